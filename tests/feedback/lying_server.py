"""An IMAP server that lies: each answer of ours × each lie, with what it cost us.

    python -m tests.feedback.lying_server        prints the table: seconds and memory of every pair

The server is an honest one (`HONEST`) until the command of the stage comes; then it sends the lie.
A lie is an iterator of bytes, so that it may have no end.
"""

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from spamd.feedback.mailboxes.mailbox import MailboxError
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.ports import Cursor, Parked
from spamd.feedback.run_summary import RunSummary
from spamd.sample import Label
from tests.feedback.fakes import FakeMailboxes
from tests.feedback.scripted import ImapPeer
from tests.feedback.world import Bench, ServerClock, bench_at
from tests.memory import peak_bytes, settled_bytes

TIMEOUT_S = 0.3
"""`feedback.timeout_s` here: an answer about a folder may take five times as long."""

DRIP_S = 0.01
"""The pause between two bytes of a slow server: far below any time-out on reading."""

OPTIONS = FeedbackOptions(
    poll_s=0.3, timeout_s=TIMEOUT_S, retry_first_s=0.05, retry_most_s=0.1, attempts=1
)

HEADER = (
    b"Received: from client.test by mx.test with ESMTP; Sat, 28 Nov 2026 10:00:00 +0000\r\n"
    b"Message-ID: <1@sender.test>\r\nFrom: ann@sender.test\r\nSubject: offer\r\n\r\n"
)
CONTENT = HEADER + b"See you tomorrow.\r\n"


def literal(data: bytes) -> bytes:
    return b"{%d}\r\n%s" % (len(data), data)


HONEST: dict[str, Callable[[bytes, bytes], bytes]] = {
    "greeting": lambda _, __: b"* OK ready\r\n",
    "CAPABILITY": lambda tag, _: b"* CAPABILITY IMAP4rev1 IDLE\r\n%s OK done\r\n" % tag,
    "LOGIN": lambda tag, _: b"%s OK done\r\n" % tag,
    "LIST": lambda tag, _: (
        b'* LIST () "/" INBOX\r\n* LIST (\\Junk) "/" Junk\r\n%s OK done\r\n' % tag
    ),
    "STATUS": lambda tag, rest: (
        b"* STATUS %s (MESSAGES 2 UIDNEXT 3 UIDVALIDITY 1)\r\n%s OK done\r\n"
        % (rest.split(b" ")[1], tag)
    ),
    "EXAMINE": lambda tag, _: (
        b"* FLAGS ()\r\n* 2 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 3] x\r\n"
        b"%s OK [READ-ONLY] x\r\n" % tag
    ),
    "UID SEARCH": lambda tag, rest: (
        b"* SEARCH%s\r\n%s OK done\r\n" % (b"" if b"KEYWORD" in rest else b" 1 2", tag)
    ),
    "UID FETCH head": lambda tag, _: (
        b"".join(
            b'* %d FETCH (UID %d FLAGS () INTERNALDATE "28-Nov-2026 10:00:00 +0000"'
            b" BODY[HEADER.FIELDS (MESSAGE-ID)] %s)\r\n" % (uid, uid, literal(HEADER))
            for uid in (1, 2)
        )
        + b"%s OK done\r\n" % tag
    ),
    "UID FETCH content": lambda tag, _: (
        b"* 1 FETCH (UID 1 BODY[]<0> %s)\r\n* 2 FETCH (UID 2 BODY[]<0> %s)\r\n%s OK done\r\n"
        % (literal(CONTENT), literal(CONTENT), tag)
    ),
    "IDLE": lambda _, __: b"+ idling\r\n",
    "DONE": lambda tag, _: b"%s OK done\r\n" % tag,
    "LOGOUT": lambda tag, _: b"* BYE bye\r\n%s OK done\r\n" % tag,
}
"""What a good server says, by the command; the stages at which ours lies."""

Lie = Callable[[bytes, bytes], Iterable[bytes]]
"""From the tag and the honest answer to what is sent; the connection ends with it."""

NUMBERS = (b"0", b"-1", b"4294967296", b"9223372036854775808", b"1" + b"0" * 30, b"9" * 5000, b"x")
"""Numbers in the place of every number of an answer."""


def _in_place_of_numbers(number: bytes) -> Lie:
    def lie(tag: bytes, honest: bytes) -> Iterable[bytes]:
        words = [
            number if word.isdigit() else word
            for word in honest.replace(b"]", b" ]").replace(b")", b" )").split(b" ")
        ]
        yield b" ".join(words).replace(b" ]", b"]").replace(b" )", b")")

    return lie


def _drip(data: bytes) -> Iterator[bytes]:
    for byte in data:
        time.sleep(DRIP_S)
        yield bytes([byte])


def _endless(line: bytes) -> Lie:
    return lambda tag, honest: itertools.repeat(line * (1 + 60_000 // len(line)))


def _before(noise: bytes) -> Lie:
    return lambda tag, honest: [noise, honest]


def _instead(answer: bytes) -> Lie:
    return lambda tag, honest: [answer.replace(b"TAG", tag)]


ALL = b"SEARCH LIST STATUS FETCH EXISTS EXPUNGE".split()

LIES: dict[str, Lie] = {
    "silence": lambda tag, honest: _drip_for_ever(b""),
    "a byte at a time": lambda tag, honest: _drip(b"* OK " + b"x" * 300 + b"\r\n" + honest),
    "a line at a time": lambda tag, honest: _drip_for_ever(b"* OK still here\r\n"),
    "a line without end": lambda tag, honest: itertools.repeat(b"x" * 60_000),
    "lines without end": _endless(b"* 1 EXISTS\r\n"),
    "status without end": _endless(b"* OK [ALERT] x\r\n"),
    "continuations without end": _endless(b"+ \r\n"),
    "answers of every kind without end": _endless(
        b"* SEARCH 1\r\n* LIST () NIL x\r\n* STATUS INBOX (MESSAGES 1)\r\n* 1 FETCH (UID 1)\r\n"
    ),
    "a huge literal": _before(b"* 1 FETCH (BODY[] {999999999999}\r\n"),
    "a literal beyond all numbers": _before(b"* 1 FETCH (BODY[] {1" + b"0" * 5000 + b"}\r\n"),
    "literals without end": _endless(b"* 1 FETCH (UID 1 BODY[] " + literal(b"x" * 9000) + b")\r\n"),
    "words without end": _endless(b"* 1 FETCH (UID 1 X (" + b"ab 999 " * 100_000 + b"))\r\n"),
    "half a million words": _before(
        (b"* 1 FETCH (UID 1 X (" + b"ab 999 " * 120_000 + b"))\r\n") * 2
    ),
    "a literal that is cut": lambda tag, honest: [b"* LIST () NIL {100}\r\nabc"],
    "nesting": _before(
        b"".join(b"* %s %s\r\n" % (word, b"(" * 400_000) for word in ALL)
        + b"* 1 FETCH (UID 1 FLAGS %s)\r\n" % (b"(" * 400_000)
    ),
    "quotes left open": _before(b'* LIST () "\r\n* STATUS "\r\n* 1 FETCH ("\r\n* SEARCH "\r\n'),
    "bytes": _before(b"* " + bytes(range(256)).replace(b"\r", b"").replace(b"\n", b"") + b"\r\n"),
    "no protocol": _instead(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "NULs": _instead(b"\0" * 1000 + b"\r\n"),
    "NO": _instead(b"TAG NO no\r\n"),
    "BAD": _instead(b"TAG BAD bad\r\n"),
    "OK and nothing": _instead(b"TAG OK done\r\n"),
    "a tag without words": _instead(b"TAG\r\nTAG \r\nTAG OK\r\n"),
    "BYE": _instead(b"* BYE no\r\n"),
    "PREAUTH": _instead(b"* PREAUTH welcome\r\n"),
    "another tag": _instead(b"ZZZZ9 OK done\r\n"),
    "twice": lambda tag, honest: [honest, honest],
    "cut": lambda tag, honest: [honest[: len(honest) // 2]],
    "backwards": lambda tag, honest: [honest[-3::-1] + b"\r\n"],
    "bare LF": lambda tag, honest: [honest.replace(b"\r\n", b"\n")],
    "no answer at all": lambda tag, honest: [],
    "nothing where something must be": lambda tag, honest: [
        b"* LIST\r\n* STATUS\r\n* SEARCH\r\n* 1 FETCH\r\n* FLAGS\r\n* CAPABILITY\r\n* OK []\r\n",
        honest,
    ],
    "odd rows": _before(
        b"* 1 FETCH ()\r\n* 1 FETCH (UID)\r\n* 1 FETCH (UID x)\r\n* 1 FETCH NIL\r\n* 1 FETCH 5\r\n"
    ),
    "odd values": lambda tag, honest: [
        honest.replace(b"FLAGS ()", b"FLAGS NIL")
        .replace(b"[HEADER.FIELDS (MESSAGE-ID)] ", b"[HEADER.FIELDS (MESSAGE-ID)] NIL X-A ")
        .replace(b"BODY[]<0> ", b"BODY[]<0> (1 2) X-A ")
        .replace(b"* SEARCH", b"* SEARCH (1) 1.5 1:4294967295")
        .replace(b"(MESSAGES 2", b"(MESSAGES (2) X")
    ],
    "odd folders": _before(
        b'* LIST () "/" {12}\r\nx\r\nA DELETE \r\n* LIST ((())) "/" x\r\n* LIST () "//" y\r\n'
        b'* LIST () NIL ""\r\n* LIST (\\Junk \\Sent) "" 7\r\n* LIST () "/" "a&b&-&AAA"\r\n'
    ),
    "a million UIDs": lambda tag, honest: [
        b"* SEARCH " + b" ".join(b"%d" % uid for uid in range(10**9, 10**9 + 80_000)) + b"\r\n",
        honest,
    ],
    **{f"number {number[:20].decode()}": _in_place_of_numbers(number) for number in NUMBERS},
}  # fmt: skip


def _drip_for_ever(line: bytes) -> Iterator[bytes]:
    while True:
        time.sleep(DRIP_S)
        yield line


class LyingImap(ImapPeer):
    """Honest but for one stage; `commands` holds what was asked, by stage."""

    def __init__(self, stage: str, lie: Lie) -> None:
        super().__init__()
        self._stage = stage
        self._lie = lie
        self.commands: list[bytes] = []
        self.lied = 0

    def talk(self, client: socket.socket) -> None:
        idle = b""
        with contextlib.suppress(OSError), client.makefile("rb") as lines:
            if not self._answer(client, "greeting", b"*", b""):
                return
            for raw in lines:
                tag, _, rest = raw.rstrip(b"\r\n").partition(b" ")
                self.commands.append(rest)
                stage = _stage(tag, rest)
                if stage == "IDLE":
                    idle = tag
                if not self._answer(client, stage, idle if stage == "DONE" else tag, rest):
                    break
            client.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, stage: str, tag: bytes, rest: bytes) -> bool:
        honest = HONEST[stage](tag, rest) if stage in HONEST else b"%s OK done\r\n" % tag
        if stage != self._stage:
            client.sendall(honest)
            return stage != "LOGOUT"
        self.lied += 1
        for block in self._lie(tag, honest):
            client.sendall(block)
        return True


def _stage(tag: bytes, rest: bytes) -> str:
    if tag == b"DONE":
        return "DONE"
    words = rest.split(b" ")
    if words[0] != b"UID":
        return words[0].decode("latin-1")
    kind = words[1].decode("latin-1")
    if kind == "FETCH":
        return "UID FETCH head" if b"HEADER.FIELDS" in rest else "UID FETCH content"
    return f"UID {kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one lie cost: how long a poll took, and the memory it needed at most."""

    seconds: float
    memory_bytes: int
    lied: int
    summary: RunSummary
    faults: Sequence[tuple[str, BaseException]]


def account(port: int) -> AccountOptions:
    return AccountOptions(host="127.0.0.1", port=port, tls=Tls.NONE, user="alice", password="x")


async def told(stage: str, lie: Lie, *, measured: bool = False) -> Cost:
    """Look once at an account whose server lies, and wait for news as the watcher does.

    Args:
        measured: nothing else goes on in this process, so that memory can be told.
    """
    mailboxes = FakeMailboxes()
    with LyingImap(stage, lie) as server:
        options = account(server.port)
        for folder in ("INBOX", "Junk"):  # watched before: what is there now came since
            cursor = _cursor(f"alice@127.0.0.1:{server.port}", folder)
            await mailboxes.save(cursor.account, [cursor])
            if stage == "UID FETCH content":  # a mail is read whole when it is a lesson
                await mailboxes.park(_lesson(cursor))
        async with bench_at(
            options, options=OPTIONS, mailboxes=mailboxes, reachable=False
        ) as bench:
            before = settled_bytes() if measured else 0
            started = time.monotonic()
            summary = await bench.watcher.once()
            if stage in {"IDLE", "DONE", "LOGOUT"}:
                await _waited(bench)
            seconds = time.monotonic() - started
            memory = peak_bytes() - before if measured else 0
            faults = list(bench.observer.faults)
    return Cost(
        seconds=seconds, memory_bytes=memory, lied=server.lied, summary=summary, faults=faults
    )


async def _waited(bench: Bench) -> None:
    """Open, wait for changes, close; a lost account is told as the watcher tells it."""
    try:
        await bench.mailbox.open()
        folder = (await bench.mailbox.folders())[0]
        await bench.mailbox.wait(folder, OPTIONS.poll_s)
    except MailboxError as error:
        bench.observer.failed("account.lost", error)
    finally:
        await bench.mailbox.close()


def _lesson(cursor: Cursor) -> Parked:
    """Return a mail that is to be learned and could not be read."""
    return Parked(
        account=cursor.account, folder=cursor.folder, validity=cursor.validity, uid="1",
        attempts=0, reason="", time=cursor.time - timedelta(hours=1), label=Label.SPAM,
    )  # fmt: skip


def _cursor(key: str, folder: str) -> Cursor:
    return Cursor(
        account=key, folder=folder, validity=1, next_uid=1, modseq=0, messages=0, baseline=1,
        marked="", time=ServerClock().now(),
    )  # fmt: skip


def main() -> None:
    """Print what each lie costs at each stage."""
    worst = (0.0, 0)
    for stage in HONEST:
        for name, lie in LIES.items():
            cost = asyncio.run(told(stage, lie, measured=True))
            print(
                f"{stage:18} {name:34} {cost.seconds:6.2f} s {cost.memory_bytes / 2**20:6.1f} MiB"
                f" {cost.lied:3} {'; '.join(str(error)[:90] for _, error in cost.faults)[:200]}"
            )
            worst = max(worst[0], cost.seconds), max(worst[1], cost.memory_bytes)
    print(f"at most {worst[0]:.2f} s, {worst[1] / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
