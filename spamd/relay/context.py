"""What all sessions of a relay share: options, collaborators, limits, instead of globals."""

import asyncio
import ipaddress
import ssl
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from spamd.message.envelope import Client
from spamd.ports import Clock, Inspector, Observer, ReportDesk
from spamd.relay.next_hops import NextHops
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.relay.spool import Budget
from spamd.relay.watchdog import Kennel
from spamd.wording import reason

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

Spawn = Callable[[Any, Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a session's work among the relay's tasks: session, work → task."""


class Door:
    """Lets clients in as far as the limits go."""

    def __init__(self, options: RelayOptions) -> None:
        self._options = options
        self._networks = tuple(map(ipaddress.ip_network, options.trusted_networks))
        self._reporting = tuple(map(ipaddress.ip_network, options.report_networks))
        self._inside: defaultdict[str, int] = defaultdict(int)
        self._total = 0

    def trusts(self, address: str) -> bool:
        """Tell whether who connects from there may name another client."""
        return _within(address, self._networks)

    def may_report(self, client: Client) -> bool:
        """Tell whether this client's mail to a report address is a lesson."""
        return client.login is not None or _within(client.address, self._reporting)

    def enter(self, address: str) -> str | None:
        """Return the ticket for `leave`, or None when there is no room."""
        ticket = self._ticket(address)
        limit = self._options.max_connections_per_client
        if self._total >= self._options.max_connections:
            return None
        if limit and ticket and self._inside[ticket] >= limit:
            return None
        self._total += 1
        if ticket:
            self._inside[ticket] += 1
        return ticket

    def leave(self, ticket: str) -> None:
        """Give the place back."""
        self._total -= 1
        if ticket:
            self._inside[ticket] -= 1
            if not self._inside[ticket]:
                del self._inside[ticket]

    def _ticket(self, address: str) -> str:
        """Return what counts as one client: an IPv4 address, a /64 of IPv6, nobody if trusted."""
        if not address or self.trusts(address):
            return ""
        if ":" in address:
            # RFC 4291 §2.5.4: one site has at least a /64
            return str(ipaddress.ip_network((address, 64), strict=False))
        return address


def _within(address: str, networks: Sequence[Network]) -> bool:
    if not networks:
        return False
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False  # a UNIX socket, or a client that a proxy could not name
    return any(found in network for network in networks)


@dataclass(slots=True, kw_only=True)
class RelayContext:
    """The surroundings of a session; `context` is replaced when certificates are read again."""

    relay: RelayOptions
    next_hop: NextHopOptions
    tls: TlsOptions
    hostname: str
    next_hops: NextHops
    inspector: Inspector
    observer: Observer
    clock: Clock
    budget: Budget
    door: Door
    kennel: Kennel
    spawn: Spawn
    context: ssl.SSLContext | None = None
    desk: ReportDesk | None = None
    draining: bool = False


def server_context(options: TlsOptions) -> ssl.SSLContext | None:
    """Return the TLS context with our certificate, None when there is none.

    Raises:
        ValueError: a file of the section can't be used.
    """
    if not options.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_3 if options.minimum_version == "1.3" else ssl.TLSVersion.TLSv1_2
    )
    try:
        context.load_cert_chain(options.certificate, options.key or None)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"tls.certificate: {options.certificate}: {reason(error)}") from error
    return context
