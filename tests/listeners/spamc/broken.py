"""Requests that are broken in every part, and crowds of slow clients, against a listener.

Each request is sent whole and once more in pieces. What must hold: a reply of the protocol or none,
the same however the bytes are cut, no fault of ours, and all memory given back.
"""

import asyncio
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.fakes import SPAM, FakeInspector, FakeTeacher
from tests.listeners.spamc.clients import MAIL, Running, request, running
from tests.memory import peak_bytes, settled_bytes
from tests.waiting import until

AT_ONCE = 16
MAX_MESSAGE_BYTES = 300_000

LINES = (
    b"User: a", b"User: \xff\x00", b"Compress: zlib", b"Compress: gzip", b"Content-length: x",
    b"Content-length: 0", b"Content-length: 99999999999999999999", b"Content-length: -5",
    b"Message-class: spam", b"Message-class: ham", b"Message-class: x", b"Set: local",
    b"Set: local,remote", b"Remove: local", b"Remove: remote", b"X: " + b"y" * 9000, b"no header",
    b": empty", b"\x00\x01\x02", b"X" * 70_000, b"Content-length: 7\r", b" folded: x",
)  # fmt: skip
VERBS = (
    b"CHECK", b"SYMBOLS", b"REPORT", b"REPORT_IFSPAM", b"HEADERS", b"PROCESS", b"TELL", b"PING",
    b"SKIP", b"check", b"GET /", b"", b"\xff", b"PROCESS PROCESS",
)  # fmt: skip
VERSIONS = (b"1.0", b"1.2", b"1.3", b"1.4", b"1.5", b"9.9", b"1", b"x", b"1.5.5", b"99999.1", b"")
ENDS = (b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"")
MAILS = (
    b"", b"\n", b"no fields", MAIL, MAIL * 2, b"From a@x.test Sat\nX-Envelope-To: b\n" + MAIL,
    MAIL + b"x" * 100_000, MAIL + b"\r\n" * 50_000, MAIL + b"x" * 400_000, b"a: b\n" * 20_000,
    b"X-Spam-Flag: YES\n" * 1000, b"\x00" * 1000, b"From " * 100, b"Subject: a\n\r\nb\n\nc",
)  # fmt: skip
REPLY = re.compile(
    rb"SPAMD/1\.0 (?:65|69|70|75|76|79) [^\r\n]*\r\n|SPAMD/1\.5 0 PONG\r\n"
    rb"|SPAMD/1\.[01] 0 EX_OK\r\n.*|",
    re.DOTALL,
)
SIZE = re.compile(rb"\r\nContent-length: ([0-9]+)")


@dataclass
class Outcome:
    """What came of the requests: first lines, counted."""

    replies: Counter[bytes] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def broken(random: Random) -> bytes:
    """Return a request of which any part may be wrong."""
    mail = random.choice(MAILS)
    if random.random() < 0.3:
        mail = zlib.compress(mail * random.choice((1, 1, 50)))
        if random.random() < 0.5:
            at = random.randrange(len(mail))
            mail = mail[:at] + random.randbytes(3) + mail[at + random.choice((0, 3)) :]
    lines = random.choices(LINES, k=random.choice((0, 0, 1, 2, 5)))
    length = len(mail) + random.choice((0, 0, 0, 0, 1, -1, 1000, -1000))
    if random.random() < 0.8:
        lines.insert(random.randint(0, len(lines)), b"Content-length: %d" % length)
    if random.random() < 0.3:
        lines.append(b"Compress: zlib")
    if random.random() < 0.02:
        lines *= 300
    first = random.choice(VERBS[:9] if random.random() < 0.8 else VERBS) + b" SPAMC/"
    first += random.choice(VERSIONS[:5] if random.random() < 0.8 else VERSIONS)
    if random.random() < 0.6:  # all ends are right
        return b"\r\n".join([first, *lines, b"", mail])
    data = b"".join(line + random.choice(ENDS) for line in (first, *lines, b"")) + mail
    if random.random() < 0.2:
        data = data[: random.randrange(len(data) + 1)]
    return data


def pieces_of(data: bytes, random: Random) -> list[bytes]:
    """Return data cut at random, more often near its start."""
    cuts = {random.randrange(len(data) + 1) for _ in range(random.choice((1, 3, 8)))}
    cuts |= {random.randrange(min(len(data), 100) + 1) for _ in range(4)}
    ends = sorted(cuts | {len(data)})
    return [data[at:end] for at, end in zip([0, *ends], ends, strict=False) if at < end]


async def asked(here: Running, pieces: list[bytes]) -> bytes:
    """Return what comes back; a client that is cut off while it sends reads what there is."""
    reader, writer = await here.connect()
    try:
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            writer.write_eof()
        except ConnectionError:
            pass
        async with asyncio.timeout(120):
            return await reader.read()
    except ConnectionError:
        return b"(reset)"
    finally:
        writer.close()


def judged(data: bytes, whole: bytes, cut: bytes) -> str:
    """Return what is wrong with two replies to the same request, "" for nothing."""
    for reply in (whole, cut):
        if REPLY.fullmatch(reply) is None:
            return f"no reply of the protocol: {reply[:80]!r}"
        head, blank, body = reply.partition(b"\r\n\r\n")
        size = SIZE.search(head) if reply.startswith(b"SPAMD/1.1") and blank else None
        if size and int(size[1]) != len(body):
            return f"{size[1]!r} announced, {len(body)} sent"
    if whole != cut and b"got more" not in whole:  # which may come after the reply
        return f"{whole[:80]!r} in one piece, {cut[:80]!r} in several"
    return ""


async def fuzz(count: int, seed: int) -> Outcome:
    """Send so many broken requests; return what came of them."""
    outcome, random = Outcome(), Random(seed)
    async with running(
        FakeInspector(SPAM), FakeTeacher(), max_message_bytes=MAX_MESSAGE_BYTES,
        report_networks=("127.0.0.0/8",), spool_above_bytes=50_000,
    ) as here:  # fmt: skip
        memory, spool = here.shared.budget.memory_bytes, here.shared.budget.spool_bytes
        numbers = iter(range(count))

        async def client() -> None:
            for _ in numbers:
                data = broken(random)
                cut = pieces_of(data, random)
                whole, in_pieces = await asked(here, [data]), await asked(here, cut)
                outcome.replies[whole.partition(b"\r\n")[0][:40]] += 1
                if fault := judged(data, whole, in_pieces):
                    outcome.faults.append(f"{fault} of {data[:300]!r}")

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(client())
        outcome.faults += [repr(error) for _, error in here.observer.faults]
        if not (await asked(here, [request("CHECK")])).startswith(b"SPAMD/1.1 0 EX_OK"):
            outcome.faults.append("an honest client is not served any more")
        await until(lambda: not here.listener.connections)
        if (here.shared.budget.memory_bytes, here.shared.budget.spool_bytes) != (memory, spool):
            outcome.faults.append("memory is not given back")
    return outcome


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """What a crowd of slow clients did to us.

    grown_bytes  of memory, over what was held before
    honest       requests answered meanwhile
    worst_s      the longest of them took
    faults       what went wrong
    """

    grown_bytes: int
    honest: int
    worst_s: float
    faults: tuple[str, ...]


async def crowd(clients: int, honest: int, *, each_bytes: int = 200_000) -> Crowd:
    """Let clients stop in the middle of mails, of heads and of replies, and others ask."""
    loop, faults, worst = asyncio.get_running_loop(), [], 0.0
    async with running(
        FakeInspector(SPAM), max_connections=clients + 50, memory_bytes=8 * 2**20,
        max_connections_per_client=0, max_connections_per_network=0,
    ) as here:  # fmt: skip
        await here.ask(request("PROCESS"))
        before = settled_bytes()
        mail = MAIL + b"x" * each_bytes
        slow = []
        for number in range(clients):
            reader, writer = await here.connect()
            slow.append((reader, writer))
            match number % 4:
                case 0:
                    writer.write(b"CHECK SPAMC/1.5\r\nUser: ")
                case 1:
                    writer.write(request("PROCESS", mail))  # and reads nothing
                case _:
                    writer.write(request("PROCESS", mail)[:-10])
        for _ in range(honest):
            started = loop.time()
            if not (await here.ask(request("CHECK"))).startswith(b"SPAMD/1.1 0 EX_OK"):
                faults.append("an honest client was not served")
            worst = max(worst, loop.time() - started)
        grown = peak_bytes() - before
        faults += [repr(error) for _, error in here.observer.faults]
        for _, writer in slow:
            writer.transport.abort()
        await until(lambda: not here.listener.connections)
    return Crowd(grown_bytes=grown, honest=honest, worst_s=worst, faults=tuple(faults))
