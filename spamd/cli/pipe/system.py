"""Sockets and signals as the system has them.

`socket` and `signal` make enumerations of all their constants first, which takes longer than
starting Python does, for each mail. What they are made of is used where it is there, as in CPython.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    try:
        import _signal as signal
        import _socket as socket
    except ImportError:
        import signal
        import socket

__all__ = ["connected", "signal", "socket"]


def connected(host: str, port: int, timeout_s: float) -> "socket.socket":
    """Return a TCP connection.

    Raises:
        OSError: nobody listens there.
    """
    fault: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout_s)
            connection.connect(address)
        except OSError as error:
            fault = error
            connection.close()
        else:
            return connection
    raise fault or OSError("the host has no address")
