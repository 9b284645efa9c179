"""What all sessions of a relay share: options, collaborators, limits, instead of globals."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from spamd.network.shared import Shared
from spamd.network.turns import HandshakeLimiter
from spamd.relay.inbound.command_limits import RecentClients
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.outbound.router import NextHops
from spamd.relay.ports import ReportHandler
from spamd.relay.taken import Taken
from spamd.wording import reason

Spawn = Callable[[Any, Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a session's work among the relay's tasks: session, work → task."""


@dataclass(slots=True, kw_only=True)
class RelayContext:
    """The surroundings of a session; `tls_context` is replaced when certificates are read again."""

    relay: RelayOptions
    next_hop: NextHopOptions
    tls: TlsOptions
    hostname: str
    next_hops: NextHops
    shared: Shared
    recent_clients: RecentClients
    handshakes: HandshakeLimiter
    taken: Taken
    spawn: Spawn
    tls_context: ssl.SSLContext | None = None
    report_handler: ReportHandler | None = None
    draining: bool = False


def server_tls_context(options: TlsOptions) -> ssl.SSLContext | None:
    """Return the TLS context with our certificate, None when there is none.

    Raises:
        ValueError: a file of the section can't be used.
    """
    if not options.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION  # a handshake again and again, for nothing
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_3 if options.minimum_version == "1.3" else ssl.TLSVersion.TLSv1_2
    )
    try:
        context.load_cert_chain(options.certificate, options.key or None)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"tls.certificate: {options.certificate}: {reason(error)}") from error
    return context
