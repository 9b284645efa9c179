"""The HTTP listener: its sockets, its connections, its end.

    listener = HttpListener(options, shared, sockets, bounds=…, taught=…, health=…, …)

uvicorn's protocol class runs on our sockets in our event loop; its server, with signal handlers and
a loop of its own, is not used. Stopping closes the sockets and the connections that wait, lets
requests in hand finish for `relay.drain_s`, and says 503 to the rest.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from uvicorn.config import Config

from spamd.admin.administration import Administration
from spamd.admin.logins import Logins, SessionAges
from spamd.errors import StorageUnavailable
from spamd.listeners.web.access.guard import Guard
from spamd.listeners.web.access.teaching import Access
from spamd.listeners.web.api.endpoint import routes as api_routes
from spamd.listeners.web.api.session import SessionRoutes
from spamd.listeners.web.api.table import operations
from spamd.listeners.web.app import application
from spamd.listeners.web.health import HealthRoutes
from spamd.listeners.web.options import WebOptions
from spamd.listeners.web.pages.apart import Apart
from spamd.listeners.web.pages.site import pages
from spamd.listeners.web.protocol import Connections, HttpProtocol
from spamd.listeners.web.rspamd import Rspamd
from spamd.network.shared import Shared
from spamd.network.sockets import BACKLOG
from spamd.network.teaching_for import open_to_all
from spamd.ports import Health
from spamd.sample import Label


class HttpListener:
    """Takes requests on its sockets until it is stopped.

    Args:
        options: the section `web`.
        shared: what all listeners share.
        sockets: listening ones, one for each of `options.listeners`.
        bounds: from which probability on each choice is taken (`decision.thresholds`).
        taught: returns how many messages of a label were learned.
        health: tells how the daemon is.
        administration: returns what stands behind the page and the API; `StorageUnavailable` until
            the database has answered.
        apart: makes the views of the page; None: they are made here.

    Attributes:
        connections: those that are open.

    Raises:
        ConfigError: a file of passwords or tokens can't be used.
    """

    def __init__(
        self,
        options: WebOptions,
        shared: Shared,
        sockets: Sequence[socket.socket],
        *,
        bounds: Mapping[str, float],
        taught: Callable[[Label], float],
        health: Health,
        administration: Callable[[], Administration],
        apart: Apart | None = None,
    ) -> None:
        self.connections = Connections(shared.clock)
        self._options = options
        self._shared = shared
        self._sockets = sockets
        self._guard = _guard(options, shared, administration)
        count = self.connections.connections.__len__
        access = Access(self._guard.passwords, shared, to_all=open_to_all(options.listeners))
        rspamd = Rspamd(shared, access, bounds, taught, count)
        routes = [
            *rspamd.routes(),
            *HealthRoutes(health).routes(),
            *SessionRoutes(self._guard).routes(),
            *api_routes(operations(shared, bounds), self._guard, administration),
            *pages(self._guard, administration, bounds, apart),
        ]
        self._config = Config(
            application(routes, shared),
            http=HttpProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,  # whoever writes X-Forwarded-For is nobody else by that
            timeout_keep_alive=int(shared.options.command_timeout_s) or 1,
        )
        self._config.load()
        self._servers: list[asyncio.Server] = []

    async def start(self) -> None:
        """Listen; on return every address takes connections."""
        loop = asyncio.get_running_loop()
        for address, sock in zip(self._options.listeners, self._sockets, strict=True):
            if address.path:
                server = await loop.create_unix_server(self._at_socket, sock=sock, backlog=BACKLOG)
            else:
                server = await loop.create_server(self._at_port, sock=sock, backlog=BACKLOG)
            self._servers.append(server)

    async def stop(self, drain_s: float | None = None) -> None:
        """Take no more requests, finish those in hand within `drain_s`, and end."""
        for server in self._servers:
            server.close()
        open_now = self.connections.connections
        for connection in list(open_now):
            connection.shutdown()
        limit_s = self._shared.options.drain_s if drain_s is None else drain_s
        if tasks := set(self.connections.tasks):
            _, late = await asyncio.wait(tasks, timeout=limit_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        await asyncio.sleep(0)  # answers that were written leave
        for connection in list(open_now):
            connection.transport.close()

    def reload(self) -> None:
        """Read the files of passwords and tokens again.

        Raises:
            ConfigError: one can't be used; the old ones stay.
        """
        self._guard.reload()

    def _at_port(self) -> HttpProtocol:
        return HttpProtocol(self._config, self.connections, self._shared)

    def _at_socket(self) -> HttpProtocol:
        return HttpProtocol(self._config, self.connections, self._shared, unix=True)


def _guard(
    options: WebOptions, shared: Shared, administration: Callable[[], Administration]
) -> Guard:
    """Return who decides what clients may see and change."""
    own = os.urandom(32)

    def secret() -> bytes:
        try:
            return administration().secret
        except StorageUnavailable:
            return own  # forms that were sent by then are refused once, later

    ages = SessionAges(
        idle=timedelta(hours=options.idle_hours), most=timedelta(hours=options.session_hours)
    )
    logins = Logins(lambda: administration().sessions, shared.clock, os.urandom, ages)
    return Guard(options, shared, logins, secret)
