"""The image's health check: does spamd answer at the first address that the settings name?

By HTTP where there is an address for that (`/healthz`), else by its greeting, which comes before
any word with the next hop or the database: spamd alone is asked.
"""

import socket

from spamd.network.addresses import Listener
from spamd.settings import load


def connected(listener: Listener) -> socket.socket:
    """Return a connection to one of our own addresses."""
    if listener.path:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.settimeout(3)
        door.connect(listener.path)
        return door
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listener.host, listener.host)  # noqa: S104 - compared
    return socket.create_connection((host, listener.port), 3)


settings = load().settings
if settings.web.listeners:
    door = connected(settings.web.listeners[0])
    door.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
    said = door.makefile("rb").read()
    if not said.startswith(b"HTTP/1.1 200 ") or not said.endswith(b"\r\n\r\nok\n"):
        raise SystemExit(f"/healthz answers {said[:80]!r}")
else:
    listeners = settings.relay.listeners
    first = next((each for each in listeners if not each.tls), listeners[0])
    door = connected(first)
    if not first.tls:
        said = door.recv(3)
        if said != b"220":
            raise SystemExit(f"greeted by {said!r}")
        door.sendall(b"QUIT\r\n")
