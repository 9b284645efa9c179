"""What a large table of words costs: the start, the CPU of a scan, the memory of a further worker.

Scans are timed by the CPU of the process, so that a busy machine says the same as a quiet one. The
memory of a worker is what the machine holds more with one more (PSS: what is shared counts once).
"""

import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.scale.site import Client, Member, lesson
from tests.servers.base import require
from tests.servers.postgresql import Postgresql
from tests.waiting import wait_until

SMALL = 10_000
SCANS = 400
ROWS = 100_000
LESSONS = 40
MIB = 1024 * 1024
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one size of the table costs.

    start_s     from the start of the daemon until its first worker takes mail
    next_s      the same for a worker that takes the place of one that was killed
    next_cpu_s  the CPU that such a worker has used until then
    scan_ms     CPU of a scan
    worker_mib  what one more worker holds
    """

    start_s: float
    next_s: float
    next_cpu_s: float
    scan_ms: float
    worker_mib: float


@contextmanager
def empty(kind: str) -> Iterator[tuple[Member, Postgresql | None]]:
    """Give a daemon, not started, with a database of its own and the server of that, if any."""
    if kind == "sqlite":
        member = Member("")
        member.keep_in_a_file()
        try:
            yield member, None
        finally:
            member.close()
        return
    require("postgresql")
    with Postgresql() as server:
        server.do("CREATE DATABASE spamd TEMPLATE template0")
        member = Member(server.url("spamd"))
        try:
            yield member, server
        finally:
            member.close()


@contextmanager
def filled(kind: str, tokens: int) -> Iterator[Member]:
    """Give a daemon, not started, whose database holds so many words."""
    with empty(kind) as (member, server):
        member.run("database", "upgrade")
        member.start()
        teach(member)
        member.stop()
        if server is None:
            fill_sqlite(member.directory / "spamd.db", tokens)
        else:
            fill_postgresql(server, tokens)
        yield member


def teach(member: Member) -> None:
    """Teach some mails of each kind, so that it judges."""
    client = Client(member)
    for number in range(LESSONS):
        label, content = lesson(number)
        assert client.post(f"/learn{label}", content)["status"] == 200
    client.close()


def fill_postgresql(server: Postgresql, tokens: int) -> None:
    """Add words in the database itself: ten million take a minute."""
    server.do(
        "INSERT INTO token SELECT hashint8extended(n, 0), 1, 2, 3, 4, 5"
        f" FROM generate_series(1, {tokens}) AS n ON CONFLICT DO NOTHING",
        "UPDATE corpus SET vocabulary = (SELECT count(*) FROM token)",
        "VACUUM ANALYZE token",
        database="spamd",
    )


def fill_sqlite(path: Path, tokens: int) -> None:
    """Add words, the lowest first, which SQLite is quick at."""
    ids = np.unique(np.random.default_rng(1).integers(-(2**62), 2**62, tokens))
    with closing(sqlite3.connect(path)) as connection:
        for start in range(0, len(ids), ROWS):
            some = ((number, 1, 2, 3, 4, 5) for number in ids[start : start + ROWS].tolist())
            connection.executemany("INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?, ?)", some)
        connection.execute("UPDATE corpus SET vocabulary = (SELECT count(*) FROM token)")
        connection.commit()


def cost(member: Member, *, workers: int = 2) -> Cost:
    """Measure a daemon whose database is filled."""
    alone = started(member, 1)
    ask(member, SCANS)
    before = cpu_s(member.pid)
    ask(member, SCANS)
    scan_ms = (cpu_s(member.pid) - before) / SCANS * 1000
    member.stop()
    held = []
    for number in (workers, workers + 1):
        started(member, number)
        for _ in range(10 * number):
            ask(member, 2)
        held.append(sum(map(pss, [member.pid, *member.workers()])))
    victim = member.workers()[0]
    there, others = len(member.events("worker.started")), set(member.workers())
    began = time.time()
    os.kill(victim, signal.SIGKILL)
    wait_until(
        lambda: len(member.events("worker.started")) > there, what="its place is taken",
        pause_s=0.05,
    )  # fmt: skip
    next_s = time.time() - began
    (new,) = set(member.workers()) - others
    next_cpu_s = cpu_s(new)
    member.stop()
    return Cost(
        start_s=alone, next_s=next_s, next_cpu_s=next_cpu_s, scan_ms=scan_ms,
        worker_mib=(held[1] - held[0]) / MIB,
    )  # fmt: skip


def started(member: Member, workers: int) -> float:
    """Start a daemon with so many workers; return how long it took."""
    member.with_workers(workers)
    if member.running:
        member.stop()
    began = time.monotonic()
    member.start()
    took = time.monotonic() - began
    wait_until(
        lambda: workers == 1 or len(member.workers()) >= workers, what="workers", pause_s=0.1
    )
    return took


def ask(member: Member, scans: int) -> None:
    """Have mails judged over one connection, which comes to one of the workers."""
    client = Client(member)
    chosen = random.Random(scans)
    for _ in range(scans):
        _, content = lesson(chosen.randrange(10_000))
        assert client.post("/checkv2", content)["status"] == 200
    client.close()


def cpu_s(pid: int) -> float:
    """Return the CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def pss(pid: int) -> int:
    """Return what a process holds in bytes; what it shares counts as its part."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.split("\nPss:")[1].split()[0]) * 1024


def table(kind: str, sizes: tuple[int, ...]) -> list[Cost]:
    """Measure and print the costs of some sizes."""
    found = []
    for tokens in sizes:
        with filled(kind, tokens) as member:
            each = cost(member)
        found.append(each)
        print(
            f"{kind}, {tokens:,} words: start {each.start_s:.1f} s, a further worker after"
            f" {each.next_s:.1f} s ({each.next_cpu_s:.2f} s of CPU) with {each.worker_mib:.0f} MiB,"
            f" a scan {each.scan_ms:.2f} ms of CPU ({each.scan_ms / found[0].scan_ms:.2f} of the"
            " smallest)",
            flush=True,
        )
    return found
