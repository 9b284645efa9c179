"""What is too long for every run of the tests: `make scale PART=…`, or all parts.

lessons [N]    N lessons (20,000) from three daemons at once come to what one process learns
upgrades [N]   of databases of N tokens (100,000) and every revision, killed and by four at once
prune [N] [M]  of N tokens on PostgreSQL (10 million) and M on SQLite (3 million) half go while mail
               flows
accounts [N] [M] [C]   IMAP accounts (2,000) of M mails (500) on a Dovecot, two daemons of C
               connections (1,000) watch them: 200 moves are lessons; one is killed in the middle
users [N]      N users (10,000) with own lessons: what a scan costs, and without a database
newsletter [N]   N users (5,000) keep a newsletter, one moves it; three report a wave of spam
memory [N] [M]   start, scan, one more worker with N words on PostgreSQL (10 M), M on SQLite (3 M)
soak [S] [R]   S seconds (3,600) of R mails a second (20) on each database: lessons, reloads, kills
outage [S] [Q]   the database away for S seconds (60), Q quiet ones around (20): restarted, its
               standby promoted, the same behind PgBouncer; mail, lessons, reports, moves meanwhile
pages [N]      each view of the page in N scans (1,000,000) and N / 5 lessons; the relay meanwhile
"""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.storage.engine import Database
from spamd.storage.maintenance.verify import verify
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from tests.scale import migrations, newsletter, outage, pages, pruning, users
from tests.scale.accounts import accounts as many
from tests.scale.memory import SMALL, empty, table
from tests.scale.site import Member, lesson, site, teach_from_all
from tests.scale.soak import soak
from tests.servers.postgresql import Postgresql
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts

BATCH = 500

QUIET_S = 60.0
"""Mail is measured for so long before it is disturbed."""
MOVES = 200


def lessons(number: int = 20_000) -> None:
    """Teach from all at once, then in one process, and compare."""
    with site(3) as (server, members), tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        teach_from_all(members, range(number))
        took = time.monotonic() - began
        print(f"{number:,} lessons from three daemons: {took:.0f} s, {number / took:.0f} a second")
        asyncio.run(_same(server.url("spamd"), Path(folder), number))


async def _same(url: str, folder: Path, number: int) -> None:
    taught = Database(DatabaseOptions(url=url))
    alone = Database(DatabaseOptions(url=f"sqlite:///{folder}/alone.db"))
    await upgrade(alone)
    process = TeachingProcess(alone, FixedClock())
    for start in range(0, number, BATCH):
        some = [lesson(each) for each in range(start, min(number, start + BATCH))]
        for label, name in ((SPAM, "spam"), (HAM, "ham")):
            await process.train(label, *(extract(mail) for kind, mail in some if kind == name))
    findings = await verify(taught, SCHEMA)
    same = await counts(taught) == await counts(alone)
    print(f"{findings.lessons:,} lessons, {findings.tokens:,} tokens; by replay: {findings.faults}")
    print(f"counts and totals equal those of one process: {same}")
    await taught.close()
    await alone.close()
    if not same or findings.faults or findings.lessons != number:
        raise SystemExit(1)


def upgrades(tokens: int = 100_000) -> None:
    """Upgrade from every revision on both databases, killed five times, then four at once."""
    with Postgresql() as server, tempfile.TemporaryDirectory() as folder:
        server.do("CREATE DATABASE filled TEMPLATE template0")
        wanted = asyncio.run(migrations.filled(server.url("filled"), tokens))
        same = asyncio.run(migrations.filled(f"sqlite:///{folder}/filled.db", tokens))
        for number, revision in enumerate(migrations.revisions()[:-1]):
            began = time.monotonic()
            server.do(f"CREATE DATABASE r{revision} TEMPLATE filled")
            Path(folder, revision).mkdir()
            shutil.copy(f"{folder}/filled.db", f"{folder}/{revision}/spamd.db")
            sqlite = f"sqlite:///{folder}/{revision}/spamd.db"
            for url, rows in ((sqlite, same), (server.url(f"r{revision}"), wanted)):
                migrations.play(url, rows, revision, tokens=tokens, kills=5, seed=number)
            server.do(f"DROP DATABASE r{revision}")
            shutil.rmtree(Path(folder, revision))
            print(f"from {revision}: both whole, {time.monotonic() - began:.0f} s", flush=True)


def prune(postgresql: int = 10_000_000, sqlite: int = 3_000_000) -> None:
    """Prune large databases to half while mail flows."""
    with Postgresql() as server, tempfile.TemporaryDirectory() as folder:
        server.do("CREATE DATABASE spamd TEMPLATE template0")
        for url, tokens in (
            (f"sqlite:///{folder}/spamd.db", sqlite),
            (server.url("spamd"), postgresql),
        ):
            began = time.monotonic()
            asyncio.run(pruning.filled(url, tokens))
            print(f"{url.partition(':')[0]}: made in {time.monotonic() - began:.0f} s", flush=True)
            with Member(url) as daemon:
                done, took, times = pruning.pruned(daemon, url, QUIET_S)
                print(f"while pruning: {pruning.shown(times)}")
                print(f"{took:.0f} s: {done}", flush=True)


def accounts(number: int = 2_000, mails: int = 500, connections: int = 1_000) -> None:
    """Move mail of many accounts, kill a daemon in the middle, and move more."""
    began = time.monotonic()
    with many(number, mails, settings=f"connections = {connections}") as site:
        took = time.monotonic() - began
        print(f"{number:,} accounts of {mails} mails watched after {took:.0f} s; {site.use()}")
        chosen = random.Random(5).sample(range(number), MOVES)
        first, rest = chosen[: MOVES // 2], chosen[MOVES // 2 :]
        print(f"{len(first)} moves are lessons, {spread(site.moves(first, 1))}", flush=True)
        site.daemons[0].kill()
        print(f"a daemon killed, {len(rest)} moves, {spread(site.moves(rest, 2))}", flush=True)
        print(f"again, by one daemon, {spread(site.moves(first, 2))}")
        print(f"{site.use()}, {site.lessons} lessons", flush=True)


def spread(seconds: Sequence[float]) -> str:
    """Return how long the middle one of some took, the 95th of a hundred and the slowest."""
    middle, late = seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100]
    return f"after {middle:.1f} s (median), {late:.1f} s (95 %), {seconds[-1]:.1f} s (all)"


def memory(postgresql: int = 10_000_000, sqlite: int = 3_000_000) -> None:
    """Compare large tables with small ones."""
    for kind, largest in (("sqlite", sqlite), ("postgresql", postgresql)):
        million = min(largest, 1_000_000)
        table(kind, tuple(sorted({SMALL, million, largest})))


def soaks(seconds: int = 3_600, rate: int = 20) -> None:
    """Soak a daemon on each database."""
    for kind in ("sqlite", "postgresql"):
        with empty(kind) as (member, _):
            member.run("database", "upgrade")
            done = soak(member, rate=rate, seconds=seconds)
            mib, files = done.slopes()
            late = spread(sorted(done.delays))
            print(f"{kind}: {len(done.sent):,} mails in {seconds} s, {late}, {done.killed} workers")
            print(f"killed, sent again {dict(done.again)}, faults {done.faults}")
            print(f"second half, a worker and hour: {mib:+.2f} MiB, {files:+.2f} descriptors")
            print(done.ledger(), flush=True)


PARTS: dict[str, Callable[..., None]] = {
    "lessons": lessons,
    "upgrades": upgrades,
    "prune": prune,
    "accounts": accounts,
    "users": users.users,
    "newsletter": newsletter.at_size,
    "memory": memory,
    "soak": soaks,
    "outage": outage.at_size,
    "pages": pages.at_size,
}


def main(arguments: Sequence[str]) -> None:
    """Run the named part, or all."""
    name, *numbers = arguments or [""]
    for each in [name] if name else PARTS:
        print(f"-- {each}", flush=True)
        PARTS[each](*map(int, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
