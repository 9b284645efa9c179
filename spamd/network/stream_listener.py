"""A listener whose connections are read and answered as streams: its sockets, its limits, its end.

    listener = StreamListener("milter", shared, serve, addresses, sockets)

`serve(connection)` talks to one client until it returns; the connection is closed then. A client of
this machine, of `relay.trusted_networks` or at a UNIX socket is a server that filters its mail
here: only the limit on all connections holds for it. Stopping closes the sockets, ends connections
that wait for the next message, and lets messages in flight finish for `relay.drain_s`. Who came a
moment ago and has not spoken yet is served: no other worker could take that connection.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from spamd.network.addresses import Listener
from spamd.network.connection_limiter import is_here, network_of
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import Shared
from spamd.network.sockets import BACKLOG

READ_BYTES = 64 * 1024
"""Of one connection, what is read ahead, and the longest line."""


CANCELLED_CLOSE_S = 1.0
"""So long the last reply may take on a connection that is ended by us or by a fault."""

FRESH_S = 2.0
"""So long a client that has come may take to begin its first message while the daemon stops."""


@dataclass(slots=True, kw_only=True)
class Connection:
    """One client.

    address  its IP address, "" at a UNIX socket
    local    it came by a UNIX socket: the file's rights say who may
    network  whose share of memory and disk it uses (`spool.Budget.share`)
    since    when it came, by the clock of the loop
    busy     a message is in hand: stopping waits for it
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str
    local: bool
    network: str
    since: float
    time_limit: TimeLimit
    busy: bool = False


class StreamListener:
    """Takes connections on its sockets until it is stopped.

    Args:
        name: for the log.
        shared: what all listeners share.
        serve: talks to one client; what it raises is logged and ends the connection.
        addresses: of the settings.
        sockets: listening ones, one for each address.
        refusal: what a client gets that is over the limits.

    Attributes:
        connections: those that are open, by their tasks.
        draining: it is stopping.
    """

    def __init__(
        self,
        name: str,
        shared: Shared,
        serve: Callable[[Connection], Awaitable[None]],
        addresses: Sequence[Listener],
        sockets: Sequence[socket.socket],
        refusal: bytes = b"",
    ) -> None:
        self.name = name
        self.connections: dict[asyncio.Task[None], Connection] = {}
        self.draining = False
        self._shared = shared
        self._serve = serve
        self._addresses = addresses
        self._sockets = sockets
        self._refusal = refusal
        self._servers: list[asyncio.Server] = []
        self._group = asyncio.TaskGroup()
        self._keeper: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    async def start(self) -> None:
        """Listen; on return every address takes connections."""
        ready = asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep(ready), name=self.name)
        await ready.wait()
        for address, sock in zip(self._addresses, self._sockets, strict=True):
            begin = asyncio.start_unix_server if address.path else asyncio.start_server
            self._servers.append(
                await begin(self._connected, sock=sock, limit=READ_BYTES, backlog=BACKLOG)
            )

    async def stop(self, drain_s: float | None = None) -> None:
        """Take no more mail, finish what is in flight within `drain_s`, and end."""
        self.draining = True
        for server in self._servers:
            server.close()
        for task, connection in list(self.connections.items()):
            self._end_if_idle(task, connection)
        if self.connections:
            limit_s = self._shared.options.drain_s if drain_s is None else drain_s
            _, late = await asyncio.wait(self.connections, timeout=limit_s)
            for task in late:
                task.cancel()
        self._stopped.set()
        if self._keeper is not None:
            await self._keeper
            self._keeper = None

    def _end_if_idle(self, task: asyncio.Task[None], connection: Connection) -> None:
        """End a connection that has no message in hand, once it could have had one."""
        loop = task.get_loop()
        fresh_until = connection.since + FRESH_S
        if connection.busy:
            return
        if loop.time() < fresh_until:
            loop.call_at(fresh_until, self._end_if_idle, task, connection)
        else:
            task.cancel()

    async def _keep(self, ready: asyncio.Event) -> None:
        """Hold the group that all connections run in."""
        async with self._group:
            ready.set()
            await self._stopped.wait()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        local = writer.get_extra_info("socket").family == socket.AF_UNIX
        if not local and not isinstance(peer, tuple):
            writer.transport.abort()  # it has gone already, so nobody knows who it was
            return
        address = "" if local else peer[0]
        slot = self._shared.limiter.acquire("" if is_here(address) else address)
        if slot is None:
            writer.write(self._refusal)
            writer.close()
            return
        loop = asyncio.get_running_loop()
        limit = TimeLimit(loop, self._shared.deadline_timer)
        connection = Connection(
            reader=reader,
            writer=writer,
            address=address,
            local=local,
            network=network_of(slot),
            since=loop.time(),
            time_limit=limit,
        )
        task = self._group.create_task(self._served(connection, slot))
        self.connections[task] = connection
        task.add_done_callback(self.connections.pop)
        if self.draining:
            self._end_if_idle(task, connection)

    async def _served(self, connection: Connection, slot: str) -> None:
        """Serve a client: the border around one connection."""
        closing_s = CANCELLED_CLOSE_S
        try:
            await self._serve(connection)
            closing_s = self._shared.options.data_timeout_s
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away
        except Exception as error:  # noqa: BLE001 - one connection must not end the others
            self._shared.observer.failed("session.failed", error, listener=self.name)
        finally:
            connection.time_limit.stop()
            try:
                await _closed(connection.writer, closing_s)
            finally:
                self._shared.limiter.release(slot)


async def _closed(writer: asyncio.StreamWriter, within_s: float) -> None:
    """Close a connection; a client that does not read what it was sent is cut off in the end."""
    writer.close()
    try:
        async with asyncio.timeout(within_s):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
