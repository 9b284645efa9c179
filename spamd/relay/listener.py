"""The relay as a service: its sockets, its sessions, its limits, its end.

Several workers may listen on the same ports (SO_REUSEPORT); each is an equal process and the kernel
spreads connections over them. Stopping closes the sockets first, says 421 to sessions that are only
waiting, lets messages in flight finish for `drain_s`, and says 421 to the rest: their clients send
again.
"""

import asyncio
import os
import socket
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

from spamd.errors import ConfigError
from spamd.network.addresses import Listener
from spamd.network.shared import Shared
from spamd.network.sockets import BACKLOG
from spamd.network.turns import HandshakeLimiter
from spamd.relay.inbound.command_limits import RecentClients
from spamd.relay.inbound.context import RelayContext, server_tls_context
from spamd.relay.inbound.session import Session
from spamd.relay.inbound.transport import Transport
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.outbound.loops import refuse_loops
from spamd.relay.outbound.router import NextHops
from spamd.relay.ports import ReportHandler
from spamd.relay.smtp.replies import ShuttingDown
from spamd.relay.taken import Taken


class Relay:
    """Takes mail on all listeners until it is stopped.

    Args:
        options: the section `relay`.
        next_hop: the section `next_hop`.
        tls: the section `tls`.
        shared: what all listeners share; the relay does not close it.
        sockets: listening ones, one for each of `options.listeners` (`sockets.open_sockets`).
        report_handler: takes mail to the report addresses, where there are any.

    Attributes:
        context: what its sessions share.
        sessions: those that are open, by their tasks.
        addresses: host and port of each listener that is no UNIX socket.

    Raises:
        ConfigError: a certificate, folder or next hop can't be used.
    """

    def __init__(
        self,
        *,
        options: RelayOptions,
        next_hop: NextHopOptions,
        tls: TlsOptions,
        shared: Shared,
        sockets: Sequence[socket.socket],
        report_handler: ReportHandler | None = None,
    ) -> None:
        hostname = options.hostname or socket.gethostname()
        self._options = options
        self._tls = tls
        try:
            next_hops = NextHops(
                next_hop, hostname, shared.deadline_timer, shared.observer, shared.clock
            )
            context = server_tls_context(tls)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        if any(listener.tls for listener in options.listeners) and context is None:
            raise ConfigError("relay.listen_tls needs tls.certificate")
        spool = options.spool_directory
        if spool and not os.access(f"{spool}/.", os.W_OK | os.X_OK):  # a file has no "."
            raise ConfigError(
                f"relay.spool_directory: {spool} is no folder that this user may write to"
            )
        refuse_loops(next_hops.urls, options.listeners, sockets)
        self.context = RelayContext(
            relay=options,
            next_hop=next_hop,
            tls=tls,
            hostname=hostname,
            next_hops=next_hops,
            shared=shared,
            recent_clients=RecentClients(options),
            handshakes=HandshakeLimiter(),
            taken=Taken(shared.clock, shared.observer),
            spawn=self._spawn,
            tls_context=context,
            report_handler=report_handler,
        )
        self._sockets = sockets
        names = [sock.getsockname() for sock in sockets]
        self.addresses: list[tuple[str, int]] = [
            name[:2] for name in names if isinstance(name, tuple)
        ]
        self._servers: list[asyncio.Server] = []
        self.sessions: dict[asyncio.Task[None], Session] = {}
        self._group = asyncio.TaskGroup()
        self._keeper: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    async def start(self) -> None:
        """Listen; on return every address takes connections.

        Raises:
            ConfigError: an address can't be listened on.
        """
        listeners = self._options.listeners
        self._report_limit()
        ready = asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep(ready), name="relay")
        await ready.wait()
        for listener, sock in zip(listeners, self._sockets, strict=True):
            self._servers.append(await self._listen(listener, sock))

    async def stop(self, drain_s: float | None = None) -> None:
        """Take no more mail, finish what is in flight within `drain_s`, and end."""
        self.context.draining = True
        for server in self._servers:
            server.close()
        for session in list(self.sessions.values()):
            session.transport.stop()
        if self.sessions:
            limit_s = self._options.drain_s if drain_s is None else drain_s
            _, late = await asyncio.wait(self.sessions, timeout=limit_s)
            for task in late:
                self.sessions[task].transport.close_with(ShuttingDown())
                task.cancel()
        self._stopped.set()
        if self._keeper is not None:
            await self._keeper
            self._keeper = None

    async def next_hop_away(self) -> datetime | None:
        """Return since when the next hop is away; None while it is there."""
        hops = self.context.next_hops
        return None if await hops.is_there() else hops.contact.away_since

    def reports_to(self, report_handler: ReportHandler) -> None:
        """Have reports taken by another than before."""
        self.context.report_handler = report_handler

    def reload_tls(self) -> None:
        """Read our certificate again; sessions that are under way keep the old one.

        Raises:
            ConfigError: the new files can't be used; the old certificate stays.
        """
        try:
            self.context.tls_context = server_tls_context(self._tls)
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def _report_limit(self) -> None:
        """Say it when fewer connections are possible than are set."""
        allowed = self.context.shared.limiter.max_connections
        if allowed < self._options.max_connections:
            self.context.shared.observer.happened(
                "connections.limited", allowed=allowed, wanted=self._options.max_connections
            )

    async def _keep(self, ready: asyncio.Event) -> None:
        """Hold the group that all sessions run in."""
        async with self._group:
            ready.set()
            await self._stopped.wait()

    def _spawn(self, session: Session, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self.sessions[task] = session
        task.add_done_callback(self.sessions.pop)
        return task

    async def _listen(self, listener: Listener, sock: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        def protocol() -> Transport:
            return Session(self.context, listener).transport

        if listener.path:
            return await loop.create_unix_server(protocol, sock=sock, backlog=BACKLOG)
        # TLS is started by the session, so that a certificate that was read again is used at once.
        return await loop.create_server(protocol, sock=sock, backlog=BACKLOG)
