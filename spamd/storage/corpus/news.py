"""Word of lessons that other processes have learned.

    await announce(connection)       # with each new revision, in its transaction
    await news.wait(refresh_s)       # before each refresh

PostgreSQL tells at the commit (LISTEN, NOTIFY), on a connection that does nothing else. SQLite
tells nothing, nor does PostgreSQL behind a pooler that lends connections by the transaction: then
the revision is asked for after `refresh_s`, as it is anyway. News are a hint to look and carry
nothing, so one that is lost or comes twice costs nothing.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.errors import ConfigError
from spamd.storage.engine import Database

if TYPE_CHECKING:
    import asyncpg

CHANNEL = "spamd_corpus"
"""Channels belong to a database: another installation's news are not heard."""

AGAIN_S = 5.0
"""Between two tries to listen; meanwhile the revision is asked for."""


async def announce(connection: AsyncConnection) -> None:
    """Have who listens told of a new revision once this transaction is committed."""
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_notify(CHANNEL, "")))


class News:
    """Listens to the database of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told = asyncio.Event()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._tried = float("-inf")

    @property
    def listening(self) -> bool:
        """Whether the database would tell of news now."""
        return self._connection is not None and not self._connection.is_closed()

    async def wait(self, within_s: float) -> bool:
        """Return once there are news (True), or after some seconds without."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._listen()
                await self._told.wait()
        told = self._told.is_set()
        self._told.clear()
        return told

    async def close(self) -> None:
        """Listen no longer."""
        if self._connection is not None:
            self._connection.terminate()

    async def _listen(self) -> None:
        now = asyncio.get_running_loop().time()
        connector = self._database.connector
        if connector is None or connector.pooled or self.listening or now < self._tried + AGAIN_S:
            return
        import asyncpg  # noqa: PLC0415 - a process that uses SQLite need not wait for it

        self._tried = now
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ConfigError):
            connection = await connector.connect()
            if connector.pooled:
                connection.terminate()
                return
            self._connection = connection
            connection.add_termination_listener(lambda _: self._told.set())
            await connection.add_listener(CHANNEL, lambda *_: self._told.set())
            self._told.set()  # whatever happened before we listened
