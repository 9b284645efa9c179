"""Who may come in: the limits on connections, of all, of one client and of one network.

One client is an IPv4 address or a /64 of IPv6, what one site has at least (RFC 4291 §2.5.4). One
network is a /24 or a /48: who has one address of it has often all. Trusted networks and UNIX
sockets count as nobody.
"""

import ipaddress
import resource
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from spamd.message.envelope import Client

DESCRIPTORS_PER_SESSION = 3
"""Files that a session may have open: the client, the next hop, mail on disk."""

DESCRIPTORS_RESERVED = 100
"""Files open besides: sockets that listen, the database, the log, mailboxes."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ConnectionLimits(Protocol):
    """The settings that limit connections (`relay.options.RelayOptions` has them)."""

    @property
    def max_connections(self) -> int: ...  # noqa: D102 - the options say what each is
    @property
    def max_connections_per_client(self) -> int: ...  # noqa: D102
    @property
    def max_connections_per_network(self) -> int: ...  # noqa: D102
    @property
    def trusted_networks(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def report_networks(self) -> Sequence[str]: ...  # noqa: D102


class ConnectionLimiter:
    """Lets clients in as far as the limits go, and as the operating system's do."""

    def __init__(self, options: ConnectionLimits) -> None:
        self._options = options
        self.max_connections = min(options.max_connections, _connections_possible())
        self._networks = tuple(map(ipaddress.ip_network, options.trusted_networks))
        self._reporting = tuple(map(ipaddress.ip_network, options.report_networks))
        self._open: defaultdict[str, int] = defaultdict(int)
        self._total = 0

    def trusts(self, address: str) -> bool:
        """Tell whether who connects from there may name another client."""
        return _within(address, self._networks)

    def may_report(self, client: Client) -> bool:
        """Tell whether this client's mail to a report address is a lesson."""
        return client.login is not None or _within(client.address, self._reporting)

    def acquire(self, address: str) -> str | None:
        """Return the slot for `release`, or None when there is no room."""
        slot = self.slot_of(address)
        if self._total >= self.max_connections:
            return None
        if slot:
            options, open_slots, network = self._options, self._open, network_of(slot)
            limit = options.max_connections_per_client
            if limit and open_slots.get(slot, 0) >= limit:
                return None
            limit = options.max_connections_per_network
            if limit and open_slots.get(network, 0) >= limit:
                return None
            open_slots[slot] += 1
            open_slots[network] += 1
        self._total += 1
        return slot

    def release(self, slot: str) -> None:
        """Give the place back."""
        self._total -= 1
        if slot:
            for name in (slot, network_of(slot)):
                self._open[name] -= 1
                if not self._open[name]:
                    del self._open[name]

    def slot_of(self, address: str) -> str:
        """Return what counts as one client, empty for nobody."""
        if not address or self.trusts(address):
            return ""
        if ":" in address:
            return str(ipaddress.ip_network((address, 64), strict=False))
        return address


def is_here(address: str) -> bool:
    """Tell whether a client is this machine."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_stranger(address: str) -> bool:
    """Tell whether a client is not this machine, by address or at a UNIX socket."""
    return bool(address) and not is_here(address)


def _connections_possible() -> int:
    """Return how many sessions the limit on open files allows."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 2**31
    return max(1, (limit - DESCRIPTORS_RESERVED) // DESCRIPTORS_PER_SESSION)


def network_of(slot: str) -> str:
    """Return the network of a client, empty for nobody's."""
    if ":" in slot:
        wide = ipaddress.ip_network(slot).supernet(new_prefix=48)
        return str(wide)
    return slot.rpartition(".")[0]


def _within(address: str, networks: Sequence[Network]) -> bool:
    if not networks:
        return False
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False  # a UNIX socket, or a client that a proxy could not name
    return any(found in network for network in networks)
