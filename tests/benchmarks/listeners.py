"""CPU a mail at each way in, ours beside the peer whose protocol it is: same mails, same run.

    http    `POST /checkv2`, a connection a mail, as rspamc sends it: spamd beside rspamd's worker
    milter  a connection a mail, field by field, as Postfix shows it: spamd beside rspamd's proxy

Both were taught the first half of the SpamAssassin corpus by their own tools, and get mails of the
other half, a few at a time. The CPU of the whole process tree counts; rspamd asks no network.
"""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from spamd.evaluation.index import LabelledMail, read_index
from spamd.sample import Label
from tests.benchmarks import pipe, spamc
from tests.benchmarks.daemon import Daemon
from tests.benchmarks.foreign import Rspamd
from tests.benchmarks.measure import corpora, cpu_s, in_turn, table, tree
from tests.benchmarks.training import spamd
from tests.listeners.milter.mta import Mta, frame
from tests.servers.base import Server, free_port, group_members

OURS = "spamd"
FIELD = re.compile(rb"([!-9;-~]+):([^\n]*(?:\n[ \t][^\n]*)*)\n")
MAILS = 600
AT_ONCE = 4
ROUNDS = 3

Send = Callable[[Sequence[bytes]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One filter behind one way in."""

    way: str
    name: str
    servers: Sequence[Server]
    send: Send


class AllDaemon(Daemon):
    """The daemon with one worker and all listeners but the relay."""

    def choose_ports(self) -> None:
        self.port = self.web_port = free_port()
        self.milter_port = free_port()

    def settings(self) -> list[str]:
        return [
            "relay.listen=[]",
            f"web.listen=127.0.0.1:{self.web_port}",
            f"milter.listen=127.0.0.1:{self.milter_port}",
        ]

    def is_ready(self) -> bool:
        try:
            asyncio.run(_post(self.web_port, b"Subject: ready\n\n"))
        except OSError:
            return False
        return True


def asking(port: int, ask: Callable[[int, bytes], Awaitable[None]]) -> Send:
    """Return what has mails judged, a few at a time."""

    async def send(mails: Sequence[bytes]) -> None:
        waiting = iter(mails)

        async def sender() -> None:
            for mail in waiting:
                await ask(port, mail)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(sender())

    return send


async def _shown(port: int, mail: bytes) -> None:
    """Show a mail as Postfix does, whatever is answered in the end."""
    text, at = mail.replace(b"\r\n", b"\n"), 0
    mta = Mta(*await asyncio.open_connection("127.0.0.1", port))
    await mta.negotiate()
    await mta.client()
    await mta.envelope()
    while (field := FIELD.match(text, at)) is not None:
        await mta.step(b"L", field[1] + b"\0" + field[2] + b"\0")
        at = field.end()
    await mta.step(b"N")
    body = text[at:].removeprefix(b"\n").replace(b"\n", b"\r\n")
    for start in range(0, len(body), 65535):
        if await mta.step(b"B", body[start : start + 65535]) == b"s":
            break
    mta.writer.write(frame(b"E"))
    while (await mta.answer())[0] not in b"acrtdy":
        pass
    mta.writer.write(frame(b"Q"))
    mta.writer.close()


async def _post(port: int, mail: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        "POST /checkv2 HTTP/1.0\r\nConnection: close\r\nFrom: a@x.test\r\nRcpt: b@y.test\r\n"
        f"Ip: 127.0.0.1\r\nHelo: x.test\r\nContent-Length: {len(mail)}\r\n\r\n"
    )
    writer.write(head.encode("ascii") + mail)
    answer = await reader.read()
    writer.close()
    if b'"action"' not in answer:
        raise ConnectionError(answer[:200])


def run() -> None:
    """Measure and print."""
    _run()
    pipe.run()
    spamc.run()  # a table of its own: SpamAssassin takes its time


def _run() -> None:
    if missing := [name for name in ("rspamd", "redis-server") if not shutil.which(name)]:
        print(f"\nlisteners: not measured, Debian's {', '.join(missing)} not installed")
        return
    with corpora() as corpus, tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        mails = read_index(corpus / "spamassassin" / "index")
        half = len(mails) // 2
        rest = [mail.path.read_bytes() for mail in mails[half : half + MAILS]]
        found = _candidates(stack, Path(name), mails[:half])
        for candidate in found:
            _measured(candidate, rest[:50])  # caches, children
        cpu_ms: dict[tuple[str, str], list[float]] = {}
        for candidate in in_turn(found, ROUNDS):
            took = _measured(candidate, rest)
            cpu_ms.setdefault((candidate.way, candidate.name), []).append(took)
        best = {key: min(values) for key, values in sorted(cpu_ms.items())}
        rows = [
            (way, name, len(rest), took, f"{best[way, OURS] / took:.2f}")
            for (way, name), took in best.items()
        ]
        head = ("way", "filter", "mails", "CPU ms a mail", "spamd to this")
        table(f"each way in, {AT_ONCE} mails at a time, the best of {ROUNDS} rounds", head, rows)


def _measured(candidate: Candidate, mails: Sequence[bytes]) -> float:
    """Return the milliseconds of CPU that each mail took."""
    pids = {
        pid for server in candidate.servers
        for pid in (*tree(server.pid), *group_members(server.pid))
    }  # fmt: skip
    before = cpu_s(pids)
    asyncio.run(_sent(candidate, mails))
    return (cpu_s(pids) - before) / len(mails) * 1e3


async def _sent(candidate: Candidate, mails: Sequence[bytes]) -> None:
    await candidate.send(mails)


def _candidates(stack: ExitStack, below: Path, taught: Sequence[LabelledMail]) -> list[Candidate]:
    """Start and teach all filters."""
    paths = {label: [str(each.path) for each in taught if each.label is label] for label in Label}
    database = below / "spamd.db"
    for label in Label:
        spamd(["train", label, *paths[label]], database)
    ours = stack.enter_context(AllDaemon(database))
    rspamd = stack.enter_context(Rspamd())
    for label in Label:
        rspamd.learn(paths[label], label)
    return [
        Candidate(way="http", name=OURS, servers=(ours,), send=asking(ours.web_port, _post)),
        Candidate(way="http", name="rspamd", servers=(rspamd,), send=asking(rspamd.port, _post)),
        Candidate(way="milter", name=OURS, servers=(ours,), send=asking(ours.milter_port, _shown)),
        Candidate(
            way="milter",
            name="rspamd",
            servers=(rspamd,),
            send=asking(rspamd.milter_port, _shown),
        ),
    ]
