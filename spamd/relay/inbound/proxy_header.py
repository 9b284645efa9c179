"""The PROXY header of a trusted proxy, read before anything else of the connection.

Not one byte behind the header may be taken from the socket: with TLS from the start it belongs to
the handshake. So the header is read in the kernel's buffer (MSG_PEEK) until it is complete, and
only then taken out.

Source: "The PROXY protocol" (W. Tarreau, 2020), §2.
"""

import asyncio
import socket
from contextlib import suppress

from spamd.relay.inbound.aiosmtpd_adapter import parse_proxy_header
from spamd.relay.smtp.client_identity import plain

PAUSE_S = 0.01
"""Between two reads of a header that has come in part, which hardly ever happens."""

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_V1_BYTES = 107  # §2.1: the longest header, CRLF included
_V2_BYTES = 16 + 4096  # far above what certificates in TLVs need


async def proxy_header_of(transport: asyncio.Transport, timeout_s: float) -> tuple[str, int] | None:
    """Return the client that the header of a connection names, as `read_proxy_header`.

    The header is taken from the socket itself; the transport must be paused.

    Raises:
        ConnectionResetError: there is no good header, or not in time.
    """
    with transport.get_extra_info("socket").dup() as peer:
        try:
            async with asyncio.timeout(timeout_s):
                return await read_proxy_header(peer)
        except TimeoutError as error:
            raise ConnectionResetError("no PROXY header in time") from error


async def read_proxy_header(peer: socket.socket) -> tuple[str, int] | None:
    """Return the address and port of the client; None when the header names nobody (§2.2 LOCAL).

    Raises:
        ConnectionResetError: there is no good header.
    """
    named = await parse_proxy_header(await _header(peer))
    return (plain(named[0]), named[1]) if named is not None else None


async def _header(peer: socket.socket) -> bytes:
    """Take exactly the header from the socket."""
    loop = asyncio.get_running_loop()
    seen = -1
    while True:
        data = b""
        with suppress(BlockingIOError):
            data = peer.recv(_V2_BYTES, socket.MSG_PEEK)
            if not data:
                raise ConnectionResetError("the proxy closed the connection")
        size = _size(data)
        if size and len(data) >= size:
            return peer.recv(size)
        if len(data) != seen:
            seen = len(data)
            await _readable(loop, peer)
        else:
            await asyncio.sleep(PAUSE_S)


def _size(data: bytes) -> int:
    """Return the size of the header that `data` begins with, 0 while it can't be told."""
    if data.startswith(_SIGNATURE):
        return 16 + int.from_bytes(data[14:16], "big") if len(data) >= 16 else 0
    if _SIGNATURE.startswith(data):
        return 0
    if not b"PROXY".startswith(data[:5]):
        raise ConnectionResetError("no PROXY header")
    end = data.find(b"\n", 0, _V1_BYTES)
    if end < 0 and len(data) >= _V1_BYTES:
        raise ConnectionResetError("PROXY header too long")
    return end + 1


async def _readable(loop: asyncio.AbstractEventLoop, peer: socket.socket) -> None:
    waiter: asyncio.Future[None] = loop.create_future()
    loop.add_reader(peer, _wake, waiter)
    try:
        await waiter
    finally:
        loop.remove_reader(peer)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
