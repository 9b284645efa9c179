"""SQLAlchemy's engine on the connections of a `Connector`."""

from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util import await_only

from spamd.storage.options import DatabaseOptions
from spamd.storage.postgresql.connecting import Connector
from spamd.storage.postgresql.faults import READ_ONLY, state_of

T = TypeVar("T")


class Dialect(PGDialect_asyncpg):
    """Asyncpg's dialect without what we do not use.

    For each connection that one asks how the server writes JSON: four round trips, which a pooler
    may give to two servers. We keep none.
    """

    supports_statement_cache = True

    def on_connect(self) -> None:
        """Ask nothing of a new connection."""


registry.register("postgresql.spamd", __name__, "Dialect")


def made(options: DatabaseOptions, connector: Connector) -> AsyncEngine:
    """Return the engine of a process."""
    engine = create_async_engine(
        "postgresql+spamd://",
        pool_size=options.pool,
        pool_timeout=options.connect_timeout_s,
        pool_pre_ping=True,
    )

    @event.listens_for(engine.sync_engine, "do_connect")
    def connect(_: Dialect, __: ConnectionPoolEntry, ___: object, given: dict[str, Any]) -> None:
        raw = await_only(connector.connect())
        given.update(
            async_creator_fn=partial(_itself, raw),
            prepared_statement_cache_size=connector.cached,
            prepared_statement_name_func=str if connector.pooled else None,  # "": without a name
        )

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        if statement := connector.in_transaction:
            connection.exec_driver_sql(statement)

    @event.listens_for(engine.sync_engine, "handle_error")
    def look(context: ExceptionContext) -> None:
        if state_of(context.original_exception) == READ_ONLY:
            context.is_disconnect = True  # the next connection is to the server that took over

    return engine


async def _itself(connection: T, **_: object) -> T:
    return connection
