"""What a mail costs at each listener beside the peer who speaks the same protocol.

Both were trained on the first half of the SpamAssassin corpus by their own tools; the mails are of
its other half, the same for both, in turn, over a connection for each mail. CPU of the whole
process tree of the filter counts, not the client's, and not that of rspamd's Redis.

    make bench BENCH=listeners

A way is a function of `WAYS` that yields its candidates; each listener adds its own.
"""

import asyncio
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from spamd.evaluation.index import LabelledMail, read_index
from spamd.sample import Label
from tests.benchmarks.foreign import Rspamd
from tests.benchmarks.measure import corpora, cpu_s, in_turn, table, tree
from tests.benchmarks.training import spamd
from tests.listeners.milter.mta import Mta, frame
from tests.servers.base import Server, free_port, greeting, group_members

SESSIONS = 4
MAILS = 400
ROUNDS = 4
GOALS = {"rspamd": 0.5, "SpamAssassin": 0.05}
"""Our CPU to the peer's, at most."""

FIELD = re.compile(rb"([!-9;-~]+):([^\n]*(?:\n[ \t][^\n]*)*)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A filter that is asked.

    ask   has one mail judged
    """

    name: str
    server: Server
    ask: Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What all were taught, and what they are asked about."""

    stack: ExitStack
    database: Path
    taught: Sequence[LabelledMail]

    def paths(self, label: Label) -> list[str]:
        """Return the files of a label that are taught."""
        return [str(mail.path) for mail in self.taught if mail.label is label]


class Daemon(Server):
    """`spamd serve` with one worker and one more listener, on a database that is there."""

    name = "spamd"
    start_s = 60

    def __init__(self, database: Path, listen: str) -> None:
        super().__init__()
        self._database = database
        self._listen = listen
        self.listen_port = free_port()

    def configure(self) -> None:
        """All is said on the command line."""

    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "spamd", "serve",
            "--set", f"relay.listen=127.0.0.1:{self.port}",
            "--set", f"next_hop.url=maildir://{self.directory}/mail",
            "--set", f"{self._listen}=127.0.0.1:{self.listen_port}",
            "--set", f"database.url=sqlite:///{self._database}",
            "--set", "log.level=error",
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": ":".join(path for path in sys.path if path)}

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")


async def ask_milter(port: int, mail: bytes) -> None:
    """Show a mail as Postfix does."""
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
    mta.writer.write(struct.pack("!I", 1) + b"Q")
    mta.writer.close()


def milter(material: Material) -> Iterator[Candidate]:
    """Ours and rspamd's milter."""
    ours = material.stack.enter_context(Daemon(material.database, "milter.listen"))
    yield Candidate(name="spamd", server=ours, ask=lambda mail: ask_milter(ours.listen_port, mail))
    if all(map(shutil.which, ("rspamd", "redis-server"))):
        rspamd = material.stack.enter_context(Rspamd())
        for label in Label:
            rspamd.learn(material.paths(label), label)
        yield Candidate(
            name="rspamd", server=rspamd, ask=lambda mail: ask_milter(rspamd.milter_port, mail)
        )


WAYS: Mapping[str, Callable[[Material], Iterator[Candidate]]] = {"milter": milter}


def pids(server: Server) -> set[int]:
    """Return all processes of a filter."""
    return {*tree(server.pid), *group_members(server.pid)}


async def ask_all(candidate: Candidate, mails: Sequence[bytes]) -> None:
    """Have mails judged, a few at a time."""
    waiting = iter(mails)

    async def asks() -> None:
        for mail in waiting:
            await candidate.ask(mail)

    async with asyncio.TaskGroup() as group:
        for _ in range(SESSIONS):
            group.create_task(asks())


def measured(candidates: Sequence[Candidate], mails: Sequence[bytes]) -> dict[str, float]:
    """Return CPU milliseconds a mail of each, the least of the rounds."""
    best: dict[str, float] = {}
    for candidate in candidates:
        asyncio.run(ask_all(candidate, mails[:20]))  # caches, children
    for candidate in in_turn(candidates, ROUNDS):
        before = cpu_s(pids(candidate.server))
        asyncio.run(ask_all(candidate, mails))
        cpu_ms = (cpu_s(pids(candidate.server)) - before) / len(mails) * 1e3
        best[candidate.name] = min(cpu_ms, best.get(candidate.name, cpu_ms))
    return best


def run() -> None:
    """Measure and print."""
    with corpora() as corpus, tempfile.TemporaryDirectory() as name:
        entries = read_index(corpus / "spamassassin" / "index")
        half = len(entries) // 2
        step = (len(entries) - half) // MAILS
        mails = [entry.path.read_bytes() for entry in entries[half::step][:MAILS]]
        database = Path(name) / "spamd.db"
        rows: list[tuple[object, ...]] = []
        for way, candidates in WAYS.items():
            with ExitStack() as stack:
                material = Material(stack=stack, database=database, taught=entries[:half])
                if not database.exists():
                    for label in Label:
                        spamd(["train", label, *material.paths(label)], database)
                best = measured([*candidates(material)], mails)
            ours = best.pop("spamd")
            rows.append((way, "spamd", ours, "", ""))
            rows += [
                (way, peer, cpu_ms, f"{ours / cpu_ms:.2f}", GOALS[peer])
                for peer, cpu_ms in best.items()
            ]
        head = ("way", "filter", "CPU ms a mail", "ours to it", "goal")
        table(f"what a mail costs, {len(mails)} mails, best of {ROUNDS} rounds", head, rows)
