"""The milter listener: its sockets, and a session for each connection."""

import socket
from collections.abc import Sequence

from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.milter.session import Session
from spamd.network.shared import Shared
from spamd.network.stream_listener import Connection, StreamListener


class Milter:
    """Takes connections of mail servers until it is stopped.

    Args:
        options: of this listener.
        shared: what all listeners share.
        sockets: listening ones, one for each of `options.listeners`.
    """

    def __init__(
        self, options: MilterOptions, shared: Shared, sockets: Sequence[socket.socket]
    ) -> None:
        self._options = options
        self._shared = shared
        self._listener = StreamListener("milter", shared, self._serve, options.listeners, sockets)

    async def start(self) -> None:
        """Listen; on return every address takes connections."""
        await self._listener.start()

    async def stop(self, drain_s: float | None = None) -> None:
        """Take no more mail, finish what is in flight, and end."""
        await self._listener.stop(drain_s)

    async def _serve(self, connection: Connection) -> None:
        listener = self._listener
        await Session(connection, self._shared, self._options, lambda: listener.draining).run()
