"""Relay with scanning, on real mail: ours beside rspamd and SpamAssassin, same mail, same training.

Ten sessions send mails of the SpamAssassin corpus that none of them was trained on, one session a
mail, as a mail server does:

    ours          client → spamd (two workers) → smtp-sink
    rspamd        client → Postfix with rspamd's milter → smtp-sink
    SpamAssassin  client → spampd with SpamAssassin → smtp-sink

All were trained on the first half of the corpus by their own tools.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from spamd.evaluation.index import LabelledMail, read_index
from spamd.sample import Label
from tests.benchmarks.daemon import Daemon
from tests.benchmarks.foreign import Rspamd, Spampd
from tests.benchmarks.measure import Spread, corpora, cpu_s, table, tree
from tests.benchmarks.programs import Sink
from tests.benchmarks.training import spamd
from tests.servers.base import Server, greeting, group_members
from tests.servers.postfix import Postfix, PostfixOptions

SESSIONS = 10
MAILS = {"spamd": 2000, "rspamd": 600, "SpamAssassin": 60}
"""Mails sent to each: enough for some seconds."""


ENVELOPE = (b"EHLO bench.test", b"MAIL FROM:<a@x.test>", b"RCPT TO:<b@y.test>", b"DATA")
NEEDED = ("rspamd", "spampd", "redis-server")


class RelayDaemon(Daemon):
    """The daemon with two workers."""

    def __init__(self, database: Path, next_port: int) -> None:
        super().__init__(database)
        self._next_port = next_port

    def settings(self) -> list[str]:
        return [
            f"relay.listen=127.0.0.1:{self.port}",
            "relay.workers=2",
            f"next_hop.url=smtp://127.0.0.1:{self._next_port}",
        ]

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where mail goes in, and whose CPU counts."""

    port: int
    servers: Sequence[Server]


async def send(port: int, mails: Sequence[bytes]) -> list[float]:
    """Send mails over `SESSIONS` connections at a time; return the milliseconds of each."""
    waiting = iter(mails)
    took: list[float] = []

    async def sender() -> None:
        for mail in waiting:
            started = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await _said(reader)
            for line in (
                b"EHLO bench.test",
                b"MAIL FROM:<a@x.test>",
                b"RCPT TO:<b@y.test>",
                b"DATA",
            ):
                writer.write(line + b"\r\n")
                await _said(reader)
            writer.write(mail)
            await _said(reader)
            writer.write(b"QUIT\r\n")
            writer.close()
            took.append((time.monotonic() - started) * 1e3)

    async with asyncio.TaskGroup() as group:
        for _ in range(SESSIONS):
            group.create_task(sender())
    return took


async def _said(reader: asyncio.StreamReader) -> None:
    while (line := await reader.readline())[3:4] == b"-":
        pass
    if line[:1] not in {b"2", b"3"}:
        raise ConnectionError(line)


def run() -> None:
    """Measure and print."""
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        print(f"\npeers: not measured, Debian's {', '.join(missing)} not installed")
        return
    with corpora() as corpus, tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        below = Path(name)
        mails = read_index(corpus / "spamassassin" / "index")
        half = len(mails) // 2
        taught, rest = mails[:half], [_wire(mail.path.read_bytes()) for mail in mails[half:]]
        sink = stack.enter_context(Sink())
        lines = {
            "spamd": _ours(stack, below, taught, sink.port),
            "rspamd": _rspamd(stack, taught, sink.port),
            "SpamAssassin": _spamassassin(stack, taught, sink.port),
        }
        rows = []
        for peer, line in lines.items():
            some = rest[: MAILS[peer]]
            asyncio.run(send(line.port, some[:SESSIONS]))  # first of all: caches, children
            pids = {
                pid
                for server in line.servers
                for pid in (*tree(server.pid), *group_members(server.pid))
            }
            before, started = cpu_s(pids), time.monotonic()
            took = asyncio.run(send(line.port, some))
            seconds = time.monotonic() - started
            cpu_ms = (cpu_s(pids) - before) / len(some) * 1e3
            spread = Spread.of(took)
            rows.append((
                peer, len(some), f"{len(some) / seconds:.1f}", cpu_ms,
                spread.p50, spread.p99, f"{spread.p99 / spread.p50:.1f}",
            ))  # fmt: skip
        head = ("filter", "mails", "mails/s", "CPU ms a mail", "p50 ms", "p99 ms", "p99/p50")
        table(f"relay with scanning, {SESSIONS} sessions", head, rows)


def _wire(content: bytes) -> bytes:
    lines = content.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")
    stuffed = [b"." + line if line.startswith(b".") else line for line in lines]
    return b"\r\n".join(stuffed) + b"\r\n.\r\n"


def _paths(mails: Sequence[LabelledMail], label: Label) -> list[str]:
    return [str(mail.path) for mail in mails if mail.label is label]


def _ours(stack: ExitStack, below: Path, taught: Sequence[LabelledMail], port: int) -> Line:
    database = below / "spamd.db"
    for label in Label:
        spamd(["train", label, *_paths(taught, label)], database)
    daemon = stack.enter_context(RelayDaemon(database, port))
    return Line(port=daemon.port, servers=(daemon,))


def _rspamd(stack: ExitStack, taught: Sequence[LabelledMail], port: int) -> Line:
    rspamd = stack.enter_context(Rspamd())
    for label in Label:
        rspamd.learn(_paths(taught, label), label)
    postfix = stack.enter_context(
        Postfix(
            PostfixOptions(
                main={
                    "relayhost": f"[127.0.0.1]:{port}",
                    "smtpd_milters": f"inet:127.0.0.1:{rspamd.milter_port}",
                    "milter_protocol": "6",
                    "milter_default_action": "accept",
                }
            )
        )
    )
    return Line(port=postfix.port, servers=(postfix, rspamd))


def _spamassassin(stack: ExitStack, taught: Sequence[LabelledMail], port: int) -> Line:
    spampd = Spampd(port)
    for label in Label:
        spampd.learn(_paths(taught, label), label)
    stack.enter_context(spampd)
    return Line(port=spampd.port, servers=(spampd,))
