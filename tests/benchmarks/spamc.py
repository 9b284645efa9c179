"""What a mail costs by SPAMC, ours beside SpamAssassin's spamd: same mails, same run.

    CHECK   what `spamc -c` asks        PROCESS   what spamc asks as a filter
    REPORT  what Exim's spam condition asks; the reply is the explanation

Both were trained on the first half of the SpamAssassin corpus by their own tools. A connection a
mail, two at a time; CPU of the whole process tree of the filter counts. SpamAssassin asks no
network. It takes long: the mails are few.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from spamd.evaluation.index import LabelledMail, read_index
from spamd.sample import Label
from tests.benchmarks.daemon import Daemon
from tests.benchmarks.measure import corpora, cpu_s, in_turn, table, tree
from tests.benchmarks.training import spamd
from tests.servers.base import Server, group_members, missing
from tests.servers.spamassassin import SpamAssassin

MAILS = 100
ROUNDS = 2
SESSIONS = 2
GOAL = 0.05
VERBS = ("CHECK", "PROCESS", "REPORT")


class SpamcDaemon(Daemon):
    """The daemon; `port` speaks SPAMC."""

    def settings(self) -> list[str]:
        return ["relay.listen=[]", f"spamc.listen=127.0.0.1:{self.port}"]

    def is_ready(self) -> bool:
        try:
            asyncio.run(ask(self.port, "CHECK", b"Subject: ready\n\n"))
        except OSError:
            return False
        return True


async def ask(port: int, verb: str, mail: bytes) -> None:
    """Have a mail judged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    version = "1.2" if verb == "REPORT" else "1.5"
    writer.write(f"{verb} SPAMC/{version}\r\nContent-length: {len(mail)}\r\n\r\n".encode() + mail)
    writer.write_eof()
    reply = await reader.read()
    writer.close()
    if b" 0 EX_OK\r\n" not in reply[:30]:
        raise ConnectionError(reply[:200])


async def ask_all(port: int, verb: str, mails: Sequence[bytes]) -> None:
    """Have mails judged, a few at a time."""
    waiting = iter(mails)

    async def asks() -> None:
        for mail in waiting:
            await ask(port, verb, mail)

    async with asyncio.TaskGroup() as group:
        for _ in range(SESSIONS):
            group.create_task(asks())


def cost_ms(server: Server, verb: str, mails: Sequence[bytes]) -> float:
    """Return the milliseconds of CPU that each mail took."""
    pids = {*tree(server.pid), *group_members(server.pid)}
    before = cpu_s(pids)
    asyncio.run(ask_all(server.port, verb, mails))
    return (cpu_s({*pids, *tree(server.pid)}) - before) / len(mails) * 1e3


def run() -> None:
    """Measure and print."""
    if missing("spamassassin"):
        print("\nspamc: not measured, Debian's spamd and spamc are not installed")
        return
    with corpora() as corpus, tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        entries = read_index(corpus / "spamassassin" / "index")
        half = len(entries) // 2
        step = (len(entries) - half) // MAILS
        mails = [entry.path.read_bytes() for entry in entries[half::step][:MAILS]]
        servers = _started(stack, Path(name), entries[:half])
        rows = []
        for verb in VERBS:
            best: dict[str, float] = {}
            for server in servers:
                asyncio.run(ask_all(server.port, verb, mails[:10]))  # caches, children
            for server in in_turn(servers, ROUNDS):
                took = cost_ms(server, verb, mails)
                best[server.name] = min(took, best.get(server.name, took))
            ours, theirs = best["spamd"], best["spamassassin"]
            rows.append((f"spamc {verb}", ours, theirs, f"{ours / theirs:.3f}", GOAL))
        head = ("way", "spamd CPU ms", "SpamAssassin CPU ms", "ours to it", "goal")
        table(f"what a mail costs by SPAMC, {MAILS} mails, best of {ROUNDS} rounds", head, rows)


def _started(stack: ExitStack, below: Path, taught: Sequence[LabelledMail]) -> list[Server]:
    """Return ours and SpamAssassin's, trained."""
    database, theirs = below / "spamd.db", SpamAssassin()
    stack.callback(theirs.close)
    for label in Label:
        paths = [str(mail.path) for mail in taught if mail.label is label]
        spamd(["train", label, *paths], database)
        theirs.learn(paths, label)
    return [stack.enter_context(SpamcDaemon(database)), theirs.start()]
