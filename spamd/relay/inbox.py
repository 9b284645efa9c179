"""What the client sends: command lines for the dispatcher, blocks for whoever takes a message.

It stands in for the `StreamReader` that aiosmtpd reads from. Differences: a line must end in CRLF
and hold no control characters (else `BadCommandError`, before anything of it could reach the next
hop), a line too long is skipped without being kept, and while a message arrives its blocks go
straight to the intake instead of through a buffer.
"""

import asyncio
import re
from collections.abc import Callable

from spamd.relay.replies import BadCommandError

LINE_BYTES = 12 * 1024 + 512
"""The longest command: AUTH with an initial response (RFC 4954 §4: 12,288 octets and the verb)."""

HIGH_WATER = 64 * 1024
"""Octets of commands waiting; above it the client is not read further until some are done."""

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Inbox:
    """Bytes from one client, buffered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._buffer = bytearray()
        self._searched = 0  # so far there is no end of a line
        self.sink: Callable[[bytes], bytes | None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._ended = False
        self._paused = False
        self._skipping = False
        self.turns = 0

    def set_transport(self, transport: asyncio.Transport) -> None:
        """Name the transport that is paused when too much waits."""
        self._transport = transport
        self._paused = False

    @property
    def has_line(self) -> bool:
        """Tell whether the next command is already here."""
        return self._buffer.find(b"\n") >= 0  # `in` would try a number first, and fail

    def feed_data(self, block: bytes) -> None:
        """Take a block from the network."""
        if self.sink is None:
            self._buffer += block
            if len(self._buffer) > HIGH_WATER and not self._paused and self._transport:
                self._transport.pause_reading()
                self._paused = True
        else:
            rest = self.sink(block)
            if rest is None:
                return
            self.sink = None
            self._buffer += rest
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def feed_eof(self) -> None:
        """Note that the client sends no more."""
        self._ended = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """Forget what was sent in clear before TLS (CVE-2011-0411)."""
        self._buffer.clear()
        self._searched = 0

    def line(self) -> bytes | None:
        """Return the next command line with its CRLF, None when `more` must come first.

        Raises:
            BadCommandError: it is none; it has been skipped.
        """
        buffer = self._buffer
        if not buffer:
            return None
        end = buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(buffer)
            if self._searched > LINE_BYTES:
                self.clear()
                self._skipping = True
            return None
        self._searched = 0
        if end + 1 == len(buffer):
            line = bytes(buffer)
            buffer.clear()
        else:
            line = bytes(buffer[: end + 1])
            del buffer[: end + 1]
        if self._paused and len(buffer) < HIGH_WATER // 2:
            self._resume()
        if self._skipping or end > LINE_BYTES:
            self._skipping = False
            raise BadCommandError("line too long")
        # RFC 5321 §2.3.8: CR and LF only together, and only at the end of the line
        if line[-2:-1] != b"\r" or _CONTROL.search(line, 0, end - 1):
            raise BadCommandError("control characters or bare LF")
        return line

    @property
    def waiting(self) -> bool:
        """Tell whether somebody waits for the client, for a command line."""
        return self._waiter is not None and not self._waiter.done() and self.sink is None

    def pour(self, sink: Callable[[bytes], bytes | None]) -> None:
        """Give blocks to `sink` from now on, until it returns what is no longer its own."""
        self.sink = sink
        if self._buffer:
            block = bytes(self._buffer)
            self._buffer.clear()
            if self._paused:
                self._resume()
            self.feed_data(block)

    def more(self) -> asyncio.Future[None]:
        """Return what is done once more has come.

        Raises:
            ConnectionResetError: the client has gone.
        """
        if self._ended:
            raise ConnectionResetError("the client has gone")
        if self._paused:
            self._resume()
        self.turns += 1
        self._waiter = self._loop.create_future()
        return self._waiter

    def _resume(self) -> None:
        self._paused = False
        if self._transport is not None:
            self._transport.resume_reading()
