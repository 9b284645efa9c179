"""Upgrades of full databases by processes that are killed, and by four that start at once."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, text

from spamd.storage import tables
from spamd.storage.engine import Database
from spamd.storage.migrate import _config, downgrade, newest, upgrade
from spamd.storage.options import DatabaseOptions
from tests.e2e.relay_daemon import CHECKOUT
from tests.storage.mails import SPAM, FixedClock, Rows, TeachingProcess, counts, mail

STARTERS = 4
ROWS = 5_000


def revisions() -> list[str]:
    """Return every revision that a database in use may have, the oldest first."""
    script = ScriptDirectory.from_config(_config())
    return [each.revision for each in script.walk_revisions()][::-1]


async def filled(url: str, tokens: int) -> Rows:
    """Make a database of the newest schema with lessons and tokens; return its counts."""
    database = await Database.open(DatabaseOptions(url=url))
    await upgrade(database)
    await TeachingProcess(database, FixedClock()).train(SPAM, mail("a"), mail("b"))
    ids = np.random.default_rng(1).integers(-(2**62), 2**62, tokens).tolist()
    async with database.writing() as connection:
        for start in range(0, tokens, ROWS):
            rows = [(each, 1, 2, 3, 4, 5) for each in ids[start : start + ROWS]]
            names = tables.token.c.keys()
            await connection.execute(
                insert(tables.token), [dict(zip(names, row, strict=True)) for row in rows]
            )
    found = await counts(database)
    await database.close()
    return found


async def taken_back(url: str, revision: str) -> None:
    """Take a database to an older revision."""
    database = await Database.open(DatabaseOptions(url=url))
    await downgrade(database, revision)
    await database.close()


def starter(url: str) -> subprocess.Popen[bytes]:
    """Start an upgrade as the command line does."""
    command = ["-m", "spamd", "--set", f"database.url={url}", "database", "upgrade"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "SPAMD_CONFIG": os.devnull}
    return subprocess.Popen(
        [sys.executable, *command], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def killed(url: str, after_s: float) -> None:
    """Start an upgrade and kill it after some time."""
    with starter(url) as process:
        time.sleep(after_s)
        os.kill(process.pid, signal.SIGKILL)


async def check(url: str, wanted: Rows) -> None:
    """Fail unless the schema is the newest and nothing is lost."""
    database = await Database.open(DatabaseOptions(url=url))

    def differences(connection: Connection) -> object:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, tables.metadata)

    async with database.reading() as connection:
        assert await connection.run_sync(differences) == []
        revision = (await connection.execute(text("SELECT version_num FROM alembic_version"))).all()
    assert revision == [(newest(),)]
    assert await counts(database) == wanted
    await database.close()


def check_backups(path: Path, revision: str, tokens: int) -> None:
    """Fail unless every copy is a whole database of the old revision."""
    copies = list(path.parent.glob(f"{path.name}.{revision}*.bak"))
    assert copies
    for copy in copies:
        with closing(sqlite3.connect(copy)) as opened:
            assert opened.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            assert opened.execute("SELECT version_num FROM alembic_version").fetchall() == [
                (revision,)
            ]
            assert opened.execute("SELECT count(*) FROM token").fetchone()[0] >= tokens


def play(url: str, wanted: Rows, revision: str, *, tokens: int, kills: int, seed: int = 1) -> None:
    """Take a filled database back to a revision, kill upgrades, then let four begin at once."""
    chance = random.Random(seed)
    asyncio.run(taken_back(url, revision))
    path = DatabaseOptions(url=url).path
    for _ in range(kills):
        killed(url, chance.uniform(0.2, 2.0))
    processes = [starter(url) for _ in range(STARTERS)]
    assert [process.wait(300) for process in processes] == [0] * STARTERS
    asyncio.run(check(url, wanted))
    if path and revision != newest():
        check_backups(path, revision, tokens)
