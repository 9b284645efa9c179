"""What the client sends: command lines for the command loop, blocks for whoever takes a message.

It stands in for the `StreamReader` that aiosmtpd reads from. Differences: a line must end in CRLF
and hold no control characters (else `BadCommandError`, before anything of it could reach the next
hop), a line too long is skipped without being kept, and while a message arrives its blocks go
straight to the intake instead of through a buffer.

What comes in many blocks without a mail comes by turns (`turns.py`): until its turn has come
the client is not read further, so that a thousand segments of one octet become one block.
"""

import asyncio
import re
from collections.abc import Callable

from spamd.relay.smtp.replies import BadCommandError, TooManyCommands

LINE_BYTES = 12 * 1024 + 512
"""The longest command: AUTH with an initial response (RFC 4954 §4: 12,288 octets and the verb)."""

HIGH_WATER = 64 * 1024
"""Octets of commands waiting; above it the client is not read further until some are done."""

FREE_READS = 16
"""Blocks read since the last mail before each needs a turn; a small mail takes four to eight."""

FREE_BYTES = 64 * 1024
"""Octets read since the last mail before each block needs a turn. An event loop reads up to 256 KB
at a time: of fifty clients with large mail that was 15 ms of every round, and a small mail passes
ten to twenty rounds (E-040)."""

SMALL_BLOCK = 1024
"""Octets; a segment on its way from afar holds 1,400."""

FREE_SMALL_READS = 64
"""Small blocks since the last mail before the client is left to send more at a time."""

PAUSE_S = 0.01
"""So long it is left; whoever sends it octet by octet costs a hundred reads a second."""

SKIPPED_BYTES = 1024 * 1024
"""So much of a line that is too long is skipped; who sends more wants to keep us busy."""

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class LineBuffer:
    """Bytes from one client, buffered.

    Args:
        loop: the event loop.
        take_turn: takes a turn and tells so, or calls its argument when the turn has come.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, take_turn: Callable[[Callable[[], None]], bool]
    ) -> None:
        self._loop = loop
        self._take_turn = take_turn
        self._buffer = bytearray()
        self._searched = 0  # so far there is no end of a line
        self.sink: Callable[[bytes], bytes | None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._ended = False
        self._full = False  # not read because too much waits
        self._queued = False  # not read until its turn comes
        self._skipped = 0
        self._reads = 0
        self._octets = 0

    def set_transport(self, transport: asyncio.Transport | None) -> None:
        """Name the transport that is paused when too much waits; None when it is closed."""
        self._transport = transport
        self._full = self._queued = False

    @property
    def has_line(self) -> bool:
        """Tell whether the next command is already here."""
        return self._buffer.find(b"\n") >= 0  # `in` would try a number first, and fail

    @property
    def empty(self) -> bool:
        """Tell whether nothing waits to be read."""
        return not self._buffer

    def message_received(self) -> None:
        """Read as freely again as at the start: the client brought a mail."""
        self._reads = 0
        self._octets = 0

    def feed_data(self, block: bytes) -> None:
        """Take a block from the network."""
        self._reads += 1
        self._octets += len(block)
        free = self._reads <= FREE_READS and self._octets <= FREE_BYTES
        if not free and not self._queued:
            if self._reads > FREE_SMALL_READS and len(block) < SMALL_BLOCK:
                self._loop.call_later(PAUSE_S, self.release)
                self.hold()
            elif not self._take_turn(self.release):
                self.hold()
        self._take(block)

    def _take(self, block: bytes) -> None:
        if self.sink is None:
            buffer = self._buffer
            buffer += block
            self._stop_when_full()
            if b"\n" not in block and len(buffer) <= LINE_BYTES:
                return  # no line yet
        else:
            rest = self.sink(block)
            if rest is None:
                return
            self.sink = None
            self._buffer += rest
            self._stop_when_full()
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
            TooManyCommands: it has no end.
        """
        buffer = self._buffer
        if not buffer:
            return None
        end = buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(buffer)
            if self._searched > LINE_BYTES:
                self._skipped += self._searched
                self.clear()
                if self._skipped > SKIPPED_BYTES:
                    raise TooManyCommands
            return None
        self._searched = 0
        if end + 1 == len(buffer):
            line = bytes(buffer)
            buffer.clear()
        else:
            line = bytes(buffer[: end + 1])
            del buffer[: end + 1]
        self._read_on()
        if self._skipped or end > LINE_BYTES:
            self._skipped = 0
            raise BadCommandError("line too long")
        # RFC 5321 §2.3.8: CR and LF only together, and only at the end of the line
        if line[-2:-1] != b"\r" or _CONTROL.search(line, 0, end - 1):
            raise BadCommandError("control characters or bare LF")
        return line

    @property
    def waiting(self) -> bool:
        """Tell whether somebody waits for the client, for a command line."""
        return self._waiter is not None and not self._waiter.done() and self.sink is None

    def take(self, size: int) -> bytes:
        """Return what has come already, at most `size` octets of it."""
        block = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        self._read_on()
        return block

    def divert(self, sink: Callable[[bytes], bytes | None]) -> None:
        """Give blocks to `sink` from now on, until it returns what is no longer its own."""
        self.sink = sink
        if self._buffer:
            block = bytes(self._buffer)
            self.clear()
            self._take(block)
            self._read_on()

    def more(self) -> asyncio.Future[None]:
        """Return what is done once more has come.

        Raises:
            ConnectionResetError: the client closed the connection.
        """
        if self._ended:
            raise ConnectionResetError("the client closed the connection")
        self._read_on()
        self._waiter = self._loop.create_future()
        return self._waiter

    def _stop_when_full(self) -> None:
        """Read no more while too much waits."""
        if len(self._buffer) > HIGH_WATER and not self._full:
            self._pause()
            self._full = True

    def _read_on(self) -> None:
        """Read again if there is room."""
        if self._full and len(self._buffer) < HIGH_WATER // 2:
            self._full = False
            self._resume()

    def hold(self) -> None:
        """Read no more until `release`."""
        self._pause()
        self._queued = True

    def release(self) -> None:
        """Read again: the turn has come, or the disk has."""
        if self._queued:
            self._queued = False
            self._resume()

    def _pause(self) -> None:
        transport = self._transport
        if transport is not None and not (self._full or self._queued or transport.is_closing()):
            transport.pause_reading()

    def _resume(self) -> None:
        transport = self._transport
        if transport is not None and not (self._full or self._queued or transport.is_closing()):
            transport.resume_reading()
