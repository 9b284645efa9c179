"""The listener for clients of SpamAssassin: spamc, Exim's `spam` condition and many others."""

import socket
from collections.abc import Sequence

from spamd.listeners.spamc.exchange import Exchange
from spamd.listeners.spamc.options import SpamcOptions
from spamd.listeners.spamc.request import Code, Refused
from spamd.listeners.spamc.teaching import Teaching
from spamd.network.shared import Shared
from spamd.network.stream_listener import Connection, StreamListener
from spamd.network.teaching_for import open_to_all

FULL = Refused(Code.TEMPORARY, "too many connections")


def spamc_listener(
    options: SpamcOptions, shared: Shared, sockets: Sequence[socket.socket]
) -> StreamListener:
    """Return what answers requests; each connection is one.

    options  of this listener
    sockets  listening ones, one for each of `options.listeners`
    """
    teaching = Teaching(shared, to_all=open_to_all(options.listeners))

    async def serve(connection: Connection) -> None:
        await Exchange(shared, teaching, connection).run()

    return StreamListener("spamc", shared, serve, options.listeners, sockets, refusal=FULL.line)
