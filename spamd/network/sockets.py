"""The listening sockets: made once, before any worker, and handed to the workers.

Each worker has a socket of its own on the same port (SO_REUSEPORT), so the kernel spreads the
connections. Who starts the workers keeps the sockets open: connections that wait in the queue of a
worker that crashes or is replaced are taken by its successor.
"""

import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spamd.errors import ConfigError
from spamd.network.addresses import Listener
from spamd.wording import reason

BACKLOG = 1024
"""Connections that wait to be accepted, as many as one worker serves."""


def open_sockets(listeners: Sequence[Listener], workers: int) -> list[list[socket.socket]]:
    """Return for each worker its sockets, in the order of `listeners`.

    Raises:
        ConfigError: an address can't be had; the text names key and address.
    """
    columns: list[list[socket.socket]] = []
    try:
        for listener in listeners:
            columns.append([])
            _fill(columns[-1], listener, workers)
    except OSError as error:
        for column in columns:
            for sock in column:
                sock.close()
        listener = listeners[len(columns) - 1]
        raise ConfigError(f"{listener.key}: {listener}: {unbound(error)}") from error
    return [[column[worker] for column in columns] for worker in range(workers)]


def unbound(error: OSError) -> str:
    """Return why an address can't be listened on, and what helps."""
    match error.errno:
        case errno.EADDRINUSE:
            cure = "; another program listens there (ss -ltnp shows which)"
        case errno.EADDRNOTAVAIL:
            cure = "; no interface of this machine has that address (ip address shows them)"
        case errno.EACCES:
            cure = "; ports below 1024 need root or CAP_NET_BIND_SERVICE"
        case _:
            cure = ""
    return reason(error) + cure


def probe(host: str, port: int) -> None:
    """See that nobody has a port yet; 0 is free always.

    A socket with SO_REUSEPORT would share it with another spamd without a word.

    Raises:
        OSError: somebody has it, or it can't be had.
    """
    family, address = _resolved(host, port)
    if port:
        with _socket(family) as sock:
            sock.bind(address)


def require(listeners: Sequence[Listener], sockets: Sequence[socket.socket]) -> None:
    """Refuse sockets that were opened for other addresses than these.

    Raises:
        ConfigError: the settings have changed since the sockets were opened.
    """
    if len(listeners) != len(sockets) or not all(map(_listens, sockets, listeners)):
        raise ConfigError(
            "the settings name other addresses to listen on than at the start; restart spamd to"
            " listen on them"
        )


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on any more; one that has a listener stays in the way."""
    with suppress(FileNotFoundError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)  # noqa: FBT003 - the library's own argument
        if path.is_socket() and caller.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()


def _listens(sock: socket.socket, listener: Listener) -> bool:
    if listener.path or sock.family == socket.AF_UNIX:
        return bool(sock.getsockname() == listener.path)
    family, address = _resolved(listener.host, listener.port)
    host, port = sock.getsockname()[:2]
    return (sock.family, host) == (family, address[0]) and listener.port in {0, port}


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Return family and address of a host, the first that it has."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return family, address


def _fill(column: list[socket.socket], listener: Listener, workers: int) -> None:
    if listener.path:
        _clear(Path(listener.path))
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        column.append(sock)
        sock.bind(listener.path)
        if listener.mode is not None:
            Path(listener.path).chmod(listener.mode)
        sock.listen(BACKLOG)
        column.extend(sock.dup() for _ in range(workers - 1))
        return
    family, address = _resolved(listener.host, listener.port)
    probe(listener.host, listener.port)
    for _ in range(workers):
        sock = _socket(family)
        column.append(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        address = sock.getsockname()


def _socket(family: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # [::] beside 0.0.0.0, as everywhere else; and no IPv4 client comes as ::ffff:192.0.2.1
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock
