"""The listener for clients of SpamAssassin: spamc, Exim's `spam` condition and many others."""

import socket
from collections.abc import Collection, Sequence

from spamd.listeners.spamc.exchange import Exchange
from spamd.listeners.spamc.request import Code, Refused
from spamd.listeners.spamc.teaching import Teaching
from spamd.network.addresses import Listener
from spamd.network.shared import Shared
from spamd.network.stream_listener import Connection, StreamListener

FULL = Refused(Code.TEMPORARY, "too many connections")


class SpamcListener:
    """Answers requests on its sockets until it is stopped; each connection is one request.

    Args:
        shared: what all listeners share.
        addresses: of the settings.
        sockets: listening ones, one for each address.
    """

    def __init__(
        self, shared: Shared, addresses: Sequence[Listener], sockets: Sequence[socket.socket]
    ) -> None:
        self._shared = shared
        self._teaching = Teaching(shared)
        self._listener = StreamListener(
            "spamc", shared, self._serve, addresses, sockets, refusal=FULL.line
        )

    @property
    def connections(self) -> Collection[Connection]:
        """Return those that are open."""
        return self._listener.connections.values()

    async def start(self) -> None:
        """Listen; on return every address takes connections."""
        await self._listener.start()

    async def stop(self) -> None:
        """Take no more mail, finish what is in flight, and end."""
        await self._listener.stop()

    async def _serve(self, connection: Connection) -> None:
        await Exchange(self._shared, self._teaching, connection).run()
