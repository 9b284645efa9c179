"""The image's health check: does spamd greet at the first address that the settings name?

The greeting comes before any word with the next hop or the database, so spamd alone is asked.
"""

import socket

from spamd.settings import load

listeners = load().settings.relay.listeners
first = next((each for each in listeners if not each.tls), listeners[0])
host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(first.host, first.host)  # noqa: S104 - compared
if first.path:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.settimeout(3)
    door.connect(first.path)
else:
    door = socket.create_connection((host, first.port), 3)
if not first.tls:
    said = door.recv(3)
    if said != b"220":
        raise SystemExit(f"greeted by {said!r}")
    door.sendall(b"QUIT\r\n")
