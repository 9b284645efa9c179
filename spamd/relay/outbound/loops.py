"""Mail that would loop: next hops that are our own listeners, however they are spelled.

At the start each next hop is compared with what we listen on: by address, not by name, so that
localhost, an address of this machine behind 0.0.0.0, or a link to our socket is seen. What shows
only at run time (a port that is forwarded to us) is a client that is our own connection.
"""

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

from spamd.errors import ConfigError
from spamd.network.addresses import Listener
from spamd.relay.urls import NextHopUrl

Address = IPv4Address | IPv6Address


def refuse_loops(
    urls: Mapping[str, NextHopUrl], listeners: Sequence[Listener], sockets: Sequence[socket.socket]
) -> None:
    """Refuse a next hop that is one of our own listeners: each message would loop.

    urls     settings key → next hop
    sockets  of the listeners: they know a port that was free

    Raises:
        ConfigError: one is.
    """
    for key, url in urls.items():
        if any(_same(url, *pair) for pair in zip(listeners, sockets, strict=True)):
            raise ConfigError(f"{key}: {url} is an address of relay.listen: mail would loop")


def _same(url: NextHopUrl, listener: Listener, sock: socket.socket) -> bool:
    if not url.port:
        return bool(listener.path) and os.path.realpath(url.path) == os.path.realpath(listener.path)
    if listener.path or sock.getsockname()[1] != url.port:
        return False
    listening = list(_resolved(listener.host))
    return any(_reaches(target, ours) for target in _resolved(url.host) for ours in listening)


def _reaches(target: Address, listening: Address) -> bool:
    """Tell whether a connection to `target` reaches a listener there."""
    if target.is_unspecified:  # connect(2) takes it for loopback
        target = IPv4Address("127.0.0.1") if target.version == 4 else IPv6Address("::1")
    if target.version != listening.version:
        return False
    return target == listening or (listening.is_unspecified and _ours(target))


def _ours(address: Address) -> bool:
    """Tell whether an address is this machine's: only then a socket can be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind((str(address), 0))
    except OSError:
        return False
    return True


def _resolved(host: str) -> Iterable[Address]:
    """Yield the addresses of a host; none when it has none now."""
    with suppress(OSError, UnicodeError):
        for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            found = ip_address(str(address[0]).partition("%")[0])
            mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
            yield mapped or found
