"""The connection to the database: SQLite by aiosqlite, PostgreSQL by asyncpg.

    database = await Database.open(options)
    async with database.reading() as connection: …     # one consistent view, nothing is changed
    async with database.writing() as connection: …     # commits at the end, rolls back on an error

All that differs between the two servers and isn't SQL stands here: pragmas, how a transaction
begins, what an error means. On SQLite a writer takes the write lock at once (BEGIN IMMEDIATE), so
it never finds out half-way that another one was quicker.

Errors: `ConfigError` when the setting can't be right (no such folder, not a database, no right to
write, wrong password); `StorageUnavailable` when the database doesn't answer or refuses for now.
"""

import asyncio
import os
import random
import sqlite3
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, Table, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from spamd.errors import ConfigError, StorageUnavailable
from spamd.storage.options import DatabaseOptions
from spamd.storage.postgresql.faults import CONFLICTS, refuses, state_of
from spamd.wording import masked_urls, reason

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    from spamd.storage.postgresql.connecting import Connector

T = TypeVar("T")
P = ParamSpec("P")

CHUNK = 500
"""Keys or rows per statement."""

BEGIN = "spamd_begin"
"""Execution option: the statement that begins a transaction on SQLite."""

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""The write-ahead log is cut back to this size after a checkpoint, whatever a batch made of it."""

WAL_PAGES = 8_000
"""Pages of 4 KiB in the log before they are copied to the file. A batch touches most pages of the
token table; SQLite's 1,000 would copy each of them after every batch."""

LOCK_WAIT_S = 0.5
"""Seconds that SQLite waits for a lock before it is asked again."""

OUR_FAULT = (IntegrityError, ProgrammingError, DataError)
"""Errors of a statement, not of the server: nothing gets better by waiting."""

CONFLICT_PAUSES_S = (0.01, 0.05, 0.2, 0.5)
"""Before each further try, more or less: the other one must get through meanwhile."""

CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files by which Docker and Podman say that this is a container."""


class Database:
    """An open database."""

    def __init__(self, options: DatabaseOptions) -> None:
        """Prepare the engine; nothing is opened yet (see `open`)."""
        self.options = options
        self.path = options.path
        self.connector: Connector | None = None
        if options.path:
            self.engine = _sqlite(options, options.path)
        else:
            self.connector, self.engine = _postgresql(options)
        self._refusals, self._silences = driver_errors(sqlite=self.is_sqlite)

    @classmethod
    async def open(cls, options: DatabaseOptions) -> Self:
        """Return the database after having talked to it once.

        Raises:
            ConfigError: the setting can't be right; the sentence names `database.url`.
            StorageUnavailable: the server does not answer.
        """
        if options.path:
            check_file(options.path)
        database = cls(options)
        try:
            async with database.reading() as connection:
                await connection.exec_driver_sql("SELECT 1")
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite, else PostgreSQL."""
        return self.path is not None

    @property
    def pooled(self) -> bool:
        """Whether connections come from a pooler that lends them by the transaction."""
        return self.connector is not None and bool(self.connector.pooled)

    @property
    def shown(self) -> str:
        """The URL as it may be shown to people: without the password."""
        return masked_urls(self.options.url)

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection whose statements all see the database of one moment."""
        level = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self.translated():
            async with self.engine.connect() as connection:
                yield await connection.execution_options(**level)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection in a transaction that is committed at the end."""
        with self.translated():
            async with self.engine.connect() as plain:
                connection = await plain.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
                await self._begin(connection)
                yield connection
                if connection.in_transaction():
                    await connection.commit()

    async def _begin(self, connection: AsyncConnection) -> None:
        """Begin a transaction within `busy_timeout_s`.

        SQLite waits for a lock in a thread that nothing can wake, so it waits for a moment only and
        is asked again: who is cancelled meanwhile, as at the end of the daemon, is soon gone.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.options.busy_timeout_s
        while True:
            try:
                _ = await connection.begin()
            except OperationalError:
                if not self.is_sqlite or loop.time() >= deadline:
                    raise
            else:
                return

    @asynccontextmanager
    async def bare(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection outside of any transaction, for VACUUM and the like.

        Behind a pooler it is in one that nothing commits: between two statements outside of one
        the server may change.
        """
        outside = {BEGIN: ""} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        if self.pooled:
            outside = {}
        with self.translated():
            async with self.engine.connect() as connection:
                yield await connection.execution_options(**outside)

    @contextmanager
    def translated(self) -> Generator[None]:
        """Turn what the drivers raise into our errors."""
        try:
            yield
        except self._refusals as error:
            meaning = self._meaning(error)
            if meaning is None:
                raise
            raise meaning from error
        except self._silences as error:
            raise StorageUnavailable(
                f"the database {self.shown} does not answer: {reason(error)}"
            ) from error

    def _meaning(self, error: Exception) -> ConfigError | StorageUnavailable | None:
        """Return what a driver's error means, None when it is a bug of ours."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        said = str(cause).split("\n", maxsplit=1)[0]
        if refuses(cause):
            return ConfigError(f"database.url {self.shown}: the server says: {said}")
        if isinstance(error, OUR_FAULT) and not error.connection_invalidated:
            return None
        if self.path and ("not a database" in said or "malformed" in said):
            return ConfigError(
                f"database.url: the file {self.path} is no intact SQLite database ({said});"
                " restore a backup, or move the file away to start with an empty database"
            )
        return StorageUnavailable(f"the database {self.shown} refused: {said}")

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


def retried(
    transaction: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have a transaction done again, a few times, when it was ended in favour of another.

    SQLite never ends one: who begins to write waits for the lock before (`Database.writing`).
    """

    @wraps(transaction)
    async def again(*args: P.args, **kwargs: P.kwargs) -> T:
        for pause_s in CONFLICT_PAUSES_S:
            try:
                return await transaction(*args, **kwargs)
            except StorageUnavailable as error:
                if not _is_conflict(error):
                    raise
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        return await transaction(*args, **kwargs)

    return again


def _is_conflict(error: StorageUnavailable) -> bool:
    cause = error.__cause__
    if isinstance(cause, DBAPIError):
        cause = cause.orig
    return state_of(cause) in CONFLICTS


def check_file(path: Path) -> None:
    """Check that a SQLite database may lie at `path`, and make an empty file if there is none.

    A file made by root is given to the owner of its folder, so that a command run as root does not
    lock out a daemon that runs as somebody else.

    Raises:
        ConfigError: it may not.
    """
    if look_at_file(path):
        return
    try:
        path.touch(mode=0o640)
    except OSError as error:
        raise ConfigError(
            f"database.url: the file {path} can't be created: {reason(error)}"
        ) from error
    if os.geteuid() == 0:
        owner = path.absolute().parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def look_at_file(path: Path) -> bool:
    """Return whether there is a file at `path`, where a SQLite database may lie.

    Raises:
        ConfigError: it may not.
    """
    folder = path.absolute().parent
    try:
        there, exists = folder.is_dir(), path.exists()
    except PermissionError as error:
        raise ConfigError(
            f"database.url: {path}: this user may not enter the folder {folder}"
        ) from error
    if not there:
        raise ConfigError(f"database.url: {path}: there is no folder {folder}; create it")
    if exists and not path.is_file():
        raise ConfigError(f"database.url: {path} is not a file")
    # SQLite writes its log beside the file, so the folder must be writable too.
    for place in (path, folder) if exists else (folder,):
        if not os.access(place, os.R_OK | os.W_OK):
            raise ConfigError(f"database.url: {path}: this user may not read and write {place}")
    return exists


def volume_warning(path: Path, *, marks: tuple[Path, ...] = CONTAINER_MARKS) -> str | None:
    """Return a warning when the database lies inside a container and dies with it, else None."""
    if not any(mark.exists() for mark in marks):
        return None
    folder = path.absolute().parent
    if folder.stat().st_dev != Path("/").stat().st_dev:
        return None
    return (
        f"the database {path} is inside the container and is lost with it;"
        " mount a volume at its folder"
    )


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield values `CHUNK` at a time: bind variables are limited, and so is memory."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def upsert(connection: AsyncConnection) -> "type[sqlite.Insert] | type[postgresql.Insert]":
    """Return the INSERT of this server that knows ON CONFLICT."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite  # noqa: PLC0415 - each server's is large

        return sqlite.Insert
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415

    return postgresql.Insert


async def put(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, object]]
) -> None:
    """Insert rows; each replaces the one with the same primary key.

    They are locked in the order of their keys, so no two writers wait for each other.
    """
    keys = [each.name for each in table.primary_key]
    rows = sorted(rows, key=lambda row: [row[name] for name in keys])
    if rows:
        insert = upsert(connection)(table)
        fresh = {each.name: insert.excluded[each.name] for each in table.c if not each.primary_key}
        change = insert.on_conflict_do_update(
            index_elements=list(table.primary_key.columns), set_=fresh
        )
        await connection.execute(change, rows)


def _sqlite(options: DatabaseOptions, path: Path) -> AsyncEngine:
    lock_wait_s = min(LOCK_WAIT_S, options.busy_timeout_s)
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        connect_args={"timeout": lock_wait_s},
        pool_size=options.pool,
        pool_timeout=options.connect_timeout_s,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        cursor = connection.cursor()
        for pragma in (
            "journal_mode = WAL",
            f"synchronous = {options.synchronous}",
            f"busy_timeout = {round(lock_wait_s * 1000)}",
            f"cache_size = -{options.cache_mb * 1024}",
            f"wal_autocheckpoint = {WAL_PAGES}",
            f"journal_size_limit = {WAL_LIMIT_BYTES}",
            "foreign_keys = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(BEGIN, "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    return engine


Errors = tuple[type[Exception], ...]


def driver_errors(*, sqlite: bool) -> tuple[Errors, Errors]:
    """Return what a driver raises by itself when the server refuses, and when it is silent."""
    if sqlite:
        return (DBAPIError, sqlite3.Error), (PoolTimeout, OSError)
    import asyncpg  # noqa: PLC0415 - a command that uses SQLite need not wait for it

    return (DBAPIError, asyncpg.PostgresError), (PoolTimeout, OSError, asyncpg.InterfaceError)


def _postgresql(options: DatabaseOptions) -> "tuple[Connector, AsyncEngine]":
    # A command that uses SQLite need not wait for it.
    from spamd.storage.postgresql.connecting import Connector  # noqa: PLC0415
    from spamd.storage.postgresql.dialect import made  # noqa: PLC0415

    connector = Connector(options)
    return connector, made(options, connector)
