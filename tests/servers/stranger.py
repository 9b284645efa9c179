"""A stranger: a client with an address of its own, outside of this machine's networks.

It lives in a network namespace, at the other end of a virtual cable. Servers that listen on `host`
see it come from `address`, which is no address of this machine, so that neither loopback nor
`mynetworks` let it through.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.servers.base import require

TALK = """
import json, socket, sys
host, port, *lines = sys.argv[1:]
try:
    connection = socket.create_connection((host, int(port)), 30)
except OSError as error:
    print(json.dumps([str(error)]))
    sys.exit()
file = connection.makefile("rb")
def reply():
    text = ""
    while line := file.readline().decode("utf-8", "replace"):
        text += line
        if line[3:4] != "-":
            break
    return text
replies = [reply()]
for line in lines:
    if replies[-1][:3] == "421":
        break
    connection.sendall(line.encode() + b"\\r\\n")
    replies.append(reply())
print(json.dumps(replies))
"""
"""Says lines and prints the replies, the banner first; one text when nobody listens."""


class Stranger(NamedTuple):
    """One stranger, who reaches this machine at `host`."""

    namespace: str
    host: str
    address: str

    def says(self, port: int, *lines: str) -> list[str]:
        """Return the replies to lines, without the banner's; the fault when nobody listens."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, sys.executable, "-c", TALK, self.host,
             str(port), *lines],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        replies: list[str] = json.loads(done.stdout)
        return replies[1:] or replies

    def asks(self, port: int, recipient: str) -> str:
        """Return the reply to RCPT, or what came before it and ended the dialogue."""
        hello, mail, rcpt = (
            "EHLO stranger.example", "MAIL FROM:<s@stranger.example>", f"RCPT TO:<{recipient}>"
        )  # fmt: skip
        replies = self.says(port, hello, mail, rcpt)
        return next((reply for reply in replies if not reply.startswith("250")), replies[-1])


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=60)


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """A stranger for the time of a test."""
    require("netns")
    number = os.getpid() % 2**14
    net = f"198.{18 + number // 8192}.{number // 32 % 256}"  # RFC 2544: nobody's, for tests
    host, address = (f"{net}.{number % 32 * 8 + last}" for last in (1, 2))
    name, cable = f"stranger{os.getpid()}", f"str{os.getpid()}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("addr", "add", f"{host}/29", "dev", cable)
        _ip("link", "set", cable, "up")
        _ip("-n", name, "addr", "add", f"{address}/29", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        yield Stranger(namespace=name, host=host, address=address)
    finally:
        _ip("netns", "delete", name)  # and with it the cable


Refused = Callable[[str], bool]


def refused(reply: str) -> bool:
    """Tell whether a reply is a refusal."""
    return reply[:1] in {"4", "5"} and reply[:3].isdecimal()
