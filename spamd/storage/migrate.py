"""Bring a database to the schema of this version: `spamd database upgrade`.

Alembic's steps lie in the package `spamd.migrations`, so this works from an installed wheel,
without any alembic.ini. All steps run in one transaction, on SQLite too: an upgrade that is killed
has not happened and can be run again. Of several that begin at once the first upgrades and the
others wait, however long it takes, and find it done. A SQLite file that holds data is copied beside
itself before; no copy is ever overwritten.

    await upgrade(database)            # `spamd database upgrade`; at the start on SQLite
    await check_schema(database)       # at the start on PostgreSQL: refuses instead of changing

A database that a newer version of spamd wrote is never touched.
"""

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.errors import ConfigError
from spamd.storage import tables
from spamd.storage.engine import Database
from spamd.storage.files import scratch, synced

SECRET_BYTES = 32

UPGRADING = 0x7370616D64
"""The number of PostgreSQL's advisory lock that upgrades queue at: "spamd"."""


TURN_S = 0.1
"""Between two looks whether another process has done its upgrade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What an upgrade did.

    before   the schema's revision before, None of an empty database
    after    and after
    backup   the copy that was made before, if any
    """

    before: str | None
    after: str
    backup: Path | None


async def upgrade(database: Database) -> Upgrade:
    """Bring the schema to this version's; nothing happens when it is there already.

    Raises:
        ConfigError: a newer version of spamd wrote this database.
    """
    before = await _revision(database)
    after = newest()
    backup = None
    if before == after:
        return Upgrade(before=before, after=after, backup=None)
    async with _turn(database), database.writing() as connection:
        if not database.is_sqlite:
            await connection.execute(text("SET LOCAL lock_timeout = 0"))  # however long it takes
            await connection.execute(select(func.pg_advisory_xact_lock(UPGRADING)))
        before = await _revision_seen_by(connection, database)
        if before == after:  # somebody else was quicker
            return Upgrade(before=before, after=after, backup=None)
        if before is not None and database.path:
            # By a connection of its own: it sees the last commit, and ours has the write lock.
            backup = await copy_file(database, database.path, before)
        await connection.run_sync(lambda plain: command.upgrade(_config(plain), after))
        await _first_rows(connection)
    return Upgrade(before=before, after=after, backup=backup)


@asynccontextmanager
async def _turn(database: Database) -> AsyncGenerator[None]:
    """Wait until no other process on this machine upgrades in the folder of a SQLite file.

    Who waits for SQLite's own lock gives up after `database.busy_timeout_s`. This one belongs to
    the folder and leaves no file behind; the kernel gives it back when its holder dies.
    PostgreSQL's upgrades queue at a lock of the server.
    """
    if database.path is None:
        yield
        return
    folder = os.open(database.path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(TURN_S)
        yield
    finally:
        os.close(folder)


async def downgrade(database: Database, revision: str) -> None:
    """Take the schema back to an older revision ("base": no tables at all)."""
    async with database.writing() as connection:
        await connection.run_sync(lambda plain: command.downgrade(_config(plain), revision))


async def check_schema(database: Database) -> None:
    """Check that the database has this version's schema.

    Raises:
        ConfigError: it has not; the sentence says what to do.
    """
    before = await _revision(database)
    if before != newest():
        found = f"schema {before}" if before else "no tables"
        raise ConfigError(
            f"database.url {database.shown} has {found}, this version of spamd needs schema"
            f" {newest()}; run: spamd database upgrade"
        )


def newest() -> str:
    """Return the revision of the schema that this version knows."""
    return _scripts().get_current_head() or "base"


async def copy_file(database: Database, path: Path, mark: str) -> Path:
    """Copy the SQLite database at `path` beside itself, as NAME.MARK.bak; return the copy.

    Where that name is taken it is NAME.MARK.2.bak and so on. The copy gets its name when it is
    whole.
    """
    with scratch(path) as whole:
        async with database.bare() as connection:
            await connection.exec_driver_sql("VACUUM INTO ?", (str(whole),))
        _same_rights(path, whole)
        return _named(synced(whole), path, mark)


def _named(whole: Path, path: Path, mark: str) -> Path:
    """Give a finished copy the first name that is free; return it."""
    number, again = 1, ""
    while True:
        copy = path.with_name(f"{path.name}.{mark}{again}.bak")
        try:
            copy.hardlink_to(whole)
        except FileExistsError:
            number += 1
            again = f".{number}"
        else:
            return copy


def _same_rights(original: Path, copy: Path) -> None:
    rights = original.stat()
    copy.chmod(rights.st_mode & 0o777)
    if os.geteuid() == 0:
        os.chown(copy, rights.st_uid, rights.st_gid)


async def _revision(database: Database) -> str | None:
    async with database.reading() as connection:
        return await _revision_seen_by(connection, database)


async def _revision_seen_by(connection: AsyncConnection, database: Database) -> str | None:
    found = await connection.run_sync(
        lambda plain: MigrationContext.configure(plain).get_current_revision()
    )
    if found is not None and found not in {step.revision for step in _scripts().walk_revisions()}:
        raise ConfigError(
            f"database.url {database.shown} was written by a newer version of spamd (schema"
            f" {found}); this version knows up to schema {newest()}: install the newer one again"
        )
    return found


async def _first_rows(connection: AsyncConnection) -> None:
    if (await connection.execute(select(tables.corpus.c.id))).first() is None:
        await connection.execute(
            insert(tables.corpus).values(
                id=1,
                spam=0,
                ham=0,
                spam_occurrences=0,
                ham_occurrences=0,
                vocabulary=0,
                revision=0,
                generation=secrets.randbits(62),
                secret=secrets.token_bytes(SECRET_BYTES),
            )
        )


def _config(connection: Connection | None = None) -> Config:
    """Return what alembic needs to know; `env.py` runs the steps on this connection."""
    config = Config()
    config.set_main_option("script_location", str(files("spamd.migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
