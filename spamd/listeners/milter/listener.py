"""The milter listener: a session for each connection."""

import socket
from collections.abc import Sequence

from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.milter.session import Session
from spamd.network.shared import Shared
from spamd.network.stream_listener import Connection, StreamListener


def milter_listener(
    options: MilterOptions, shared: Shared, sockets: Sequence[socket.socket]
) -> StreamListener:
    """Return what takes connections of mail servers.

    options  of this listener
    sockets  listening ones, one for each of `options.listeners`
    """

    async def serve(connection: Connection) -> None:
        await Session(connection, shared, options, lambda: listener.draining).run()

    listener = StreamListener("milter", shared, serve, options.listeners, sockets)
    return listener
