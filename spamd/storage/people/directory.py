"""The users of a mail server's own database: `users.query` at `users.query_url`, only ever read.

The name is bound as a parameter, never written into the statement. Nothing of ours lies there.
"""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from spamd.errors import StorageUnavailable
from spamd.storage.engine import driver_errors
from spamd.storage.options import sqlite_path
from spamd.users.lookup import AT_ONCE
from spamd.users.options import PARAMETER
from spamd.wording import masked_urls, reason

MOST_ROWS = 100
"""Read of an answer: an address that leads to more than one user is nobody's own anyway."""


class SqlLookup:
    """Asks a database who is behind a name (`users.ports.Lookup`).

    Args:
        query: a statement with :address, :local or :domain.
        url: of the database.
        timeout_s: a connection that takes longer is given up, and a statement by the server.
    """

    def __init__(self, query: str, url: str, timeout_s: float) -> None:
        self._query = text(query)
        self._used = frozenset(PARAMETER.findall(query))
        sqlite = url.startswith("sqlite:")
        self._path = sqlite_path(url) if sqlite else None
        self._engine = _sqlite(self._path) if self._path else _postgresql(url, timeout_s)
        self._refusals, self._silences = driver_errors(sqlite=sqlite)

    async def users(self, name: str) -> Sequence[str]:
        local, _, domain = name.rpartition("@") if "@" in name else (name, "", "")
        values = {"address": name, "local": local, "domain": domain}
        bound = {key: value for key, value in values.items() if key in self._used}
        if self._path is not None and not self._path.is_file():
            raise StorageUnavailable(f"users.query_url: there is no file {self._path}")
        try:
            async with self._engine.connect() as connection:
                rows = (await connection.execute(self._query, bound)).fetchmany(MOST_ROWS)
                return [str(row[0]) for row in rows if row[0] is not None]
        except self._refusals as error:
            said = str(getattr(error, "orig", None) or error).split("\n", maxsplit=1)[0]
            said = said.replace(name, "…")  # the log names nobody
            raise StorageUnavailable(f"users.query: {masked_urls(said)}") from error
        except self._silences as error:
            raise StorageUnavailable(f"users.query_url: {reason(error)}") from error

    async def close(self) -> None:
        await self._engine.dispose()


def _sqlite(path: Path) -> AsyncEngine:
    name = f"file:{path.absolute().as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro"
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=name, query={"uri": "true"}),
        pool_size=AT_ONCE,
        max_overflow=0,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only = ON")
        cursor.close()

    return engine


def _postgresql(url: str, timeout_s: float) -> AsyncEngine:
    return create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg"),
        connect_args={
            "timeout": timeout_s,
            "server_settings": {
                "application_name": "spamd users",
                "default_transaction_read_only": "on",
                "statement_timeout": str(max(1, round(timeout_s * 1000))),
                "jit": "off",
            },
        },
        pool_size=AT_ONCE,
        max_overflow=0,
        pool_pre_ping=True,
    )
