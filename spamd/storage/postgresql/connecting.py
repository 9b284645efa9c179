"""How a connection to PostgreSQL comes about: which server, which settings, behind a pooler or not.

    connector = Connector(options)
    connection = await connector.connect()     # of asyncpg
    connector.pooled                           # known from the first connection on

**Several servers** (`postgresql://user@a,b/name`) are tried one after the other, beginning with the
one that served last, until one takes writes: after a failover the standby that took over. Each has
its part of `connect_timeout_s`, so one that is gone without a word costs no more than that. A
machine that vanishes with our connections open is noticed by the kernel (`GONE_S`).

**A pooler** (pgbouncer) that lends connections by the transaction keeps nothing between two of
them: no settings of a session, no prepared statements, no LISTEN. It is known by the process id,
which it makes up, or because it refuses settings at the start. Then settings are given in each
transaction (`in_transaction`), statements have no names, and lessons of others are asked for.

Errors: what asyncpg and the system raise; `ConfigError` for a URL that asyncpg can't read.
"""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import asyncpg

from spamd.errors import ConfigError
from spamd.storage.options import DatabaseOptions, server_urls
from spamd.storage.postgresql.faults import UNKNOWN_SETTING, refuses, state_of
from spamd.wording import masked_urls

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

GONE_S = 10
"""A machine that acknowledges nothing for so long is gone. TCP itself waits for a quarter of an
hour, and everybody who uses the connection with it."""

CACHED = 100
"""Prepared statements that a connection keeps, asyncpg's default and SQLAlchemy's."""

PROBE = "SELECT pg_backend_pid(), current_setting('transaction_read_only')"


class Connector:
    """Opens connections for one process.

    pooled   whether a pooler lends them; None until the first one
    """

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self._urls = list(server_urls(options.url))
        self._several = len(self._urls) > 1
        self.pooled: bool | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """What each session or transaction has set."""
        return {
            "lock_timeout": str(round(self._options.busy_timeout_s * 1000)),
            "jit": "off",  # our statements are short; compiling them costs more than it gains
        }

    @property
    def in_transaction(self) -> str:
        """The statement that gives a transaction these settings, empty where the session has."""
        if not self.pooled:
            return ""
        given = (f"set_config('{name}', '{value}', true)" for name, value in self.settings.items())
        return f"SELECT {', '.join(given)}"

    @property
    def cached(self) -> int:
        """How many prepared statements a connection may keep."""
        return 0 if self.pooled else CACHED

    async def connect(self) -> Connection:
        """Return a connection to the first server that takes writes; to the only one anyway."""
        within_s = self._options.connect_timeout_s / len(self._urls)
        faults: list[Exception] = []
        for url in list(self._urls):
            try:
                connection = await self._connect(url, within_s)
            except asyncpg.ClientConfigurationError as error:
                raise ConfigError(f"database.url {masked_urls(url)}: {error}") from error
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                faults.append(error)
            else:
                self._urls.remove(url)
                self._urls.insert(0, url)
                return connection
        # A server that can't be reached may be the one that would let us in.
        raise next((each for each in faults if not refuses(each)), faults[0])

    async def _connect(self, url: str, within_s: float) -> Connection:
        known = self.pooled
        try:
            connection = await self._open(url, within_s)
        except asyncpg.ProtocolViolationError as error:
            if self.pooled or state_of(error) != UNKNOWN_SETTING:
                raise
            self.pooled = True
            connection = await self._open(url, within_s)
        try:
            async with asyncio.timeout(within_s):
                lent, read_only = await self._look(connection)
        except BaseException:
            connection.terminate()
            raise
        if read_only and self._several:
            connection.terminate()
            raise ConnectionError("none of the servers takes writes now")
        self.pooled = lent
        if lent and not known and not connection.is_closed():
            connection.terminate()  # it was told to keep prepared statements
            connection = await self._open(url, within_s)
        return connection

    async def _open(self, url: str, within_s: float) -> Connection:
        given: Mapping[str, str] = {} if self.pooled else self.settings
        connection: Connection = await asyncpg.connect(
            url,
            timeout=within_s,
            statement_cache_size=self.cached,
            server_settings={"application_name": "spamd", **given},
            connection_class=Watched,
        )
        return connection

    async def _look(self, connection: Connection) -> tuple[bool, bool]:
        """Return whether a pooler lends this connection, and whether the server only reads."""
        async with connection.transaction():  # a pooler changes the server between two
            statement = await connection.prepare(PROBE, name="")
            process, read_only = await statement.fetchrow() or (0, "off")
        return process != connection.get_server_pid(), read_only == "on"


class Watched(Connection):
    """A connection that notices when the other machine is gone."""

    def __init__(self, protocol: Any, transport: asyncio.Transport, *args: Any) -> None:
        super().__init__(protocol, transport, *args)
        sock = transport.get_extra_info("socket")
        if sock is None or sock.family == socket.AF_UNIX:
            return
        with suppress(OSError), socket.socket(fileno=socket.dup(sock.fileno())) as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_S)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_S * 1000)
