r"""From network blocks to a spooled message: the end of DATA, dot-stuffing, size and bare newlines.

Only CRLF.CRLF ends DATA (RFC 5321 §4.1.1.4); every other mixture of CR, LF, dot and NUL is content.
Blocks are searched and counted whole, not line by line: 100 KB cost about 0.2 ms instead of 2 ms,
and 20 MB of empty lines are no attack. Lines may be as long as the message.

What is stored is the wire form as it came, so it can go on unchanged. A fault while storing (too
large, disk full) does not stop the reading: the client hears of it at its end of data, in step.
"""

import asyncio
from collections.abc import Callable, Iterator

import numpy as np

from spamd.errors import BareNewline, MessageTooLarge, SpamdError
from spamd.network.spool import Share, SpooledMessage
from spamd.relay.content.newlines import normalized
from spamd.relay.options import BareNewlines

END_OF_DATA = b"\r\n.\r\n"
_CR, _LF = np.array(13, np.uint8), np.array(10, np.uint8)
_ENDS = tuple(END_OF_DATA[:length] for length in range(4, 0, -1))


class MessageReader:
    """What DATA and BDAT share: a message that is being filled, and what is wrong with it.

    Args:
        share: memory and disk for this client.
        limit_bytes: the largest message taken.

    Attributes:
        message: as far as it has come; `finish` gives the whole.
        holds_bare_newlines: a CR or LF stands alone in it.
        fault: why the message can't be taken.
    """

    def __init__(self, share: Share, limit_bytes: int) -> None:
        self._share = share
        self._limit_bytes = limit_bytes
        self.message = SpooledMessage(share)
        self.holds_bare_newlines = False
        self._held = b"\r\n"  # for the next block; the line before the message ended like that
        self._surplus = 2  # so much of what comes to be stored is not the message's
        self.fault: SpamdError | None = None
        self.received_bytes = 0

    async def finish(self, bare_newlines: BareNewlines) -> SpooledMessage:
        """Return the message, which `close` takes away.

        Raises:
            MessageTooLarge, SpoolFull, BareNewline: as found.
        """
        if self.fault is None and self.holds_bare_newlines and bare_newlines is BareNewlines.REJECT:
            self.fault = BareNewline("bare CR or LF")
        try:
            if self.fault is None:
                await self.message.settled()
            if self.fault is None and self.holds_bare_newlines:
                await self._normalize()
                await self.message.settled()
        except SpamdError as error:
            self._fail(error)
        if self.fault is not None:
            self.close()
            raise self.fault
        return self.message

    @property
    def behind(self) -> bool:
        """Tell whether the disk is slower than the client."""
        return self.message.behind

    def when_written(self, resume: Callable[[], None]) -> None:
        """Have `resume` called once the disk is no longer behind."""
        self.message.when_written = resume

    def close(self) -> None:
        """Drop what has come."""
        self.message.close()

    def _store(self, piece: bytes) -> None:
        """Keep a piece of the wire form; it never ends between CR and LF."""
        if self._surplus and piece:  # the first piece: it begins with the CRLF before the message
            piece, self._surplus = piece[self._surplus :], 0
        if not piece:
            return
        self.received_bytes += len(piece)
        if self.fault is not None:
            return
        if self.received_bytes > self._limit_bytes:
            self._fail(MessageTooLarge("above relay.max_message_bytes"))
            return
        self.holds_bare_newlines = self.holds_bare_newlines or _holds_bare_newline(piece)
        try:
            self.message.append(piece)
        except SpamdError as error:
            self._fail(error)

    def _fail(self, fault: SpamdError) -> None:
        self.fault = fault
        self.message.close()

    async def _normalize(self) -> None:
        unrepaired, self.message = self.message, SpooledMessage(self._share)
        self.message.dotted = True  # maybe: a bare newline may have stood before a dot
        try:
            blocks = normalized(unrepaired.blocks())
            while (block := await _next(blocks, in_thread=unrepaired.spooled)) is not None:
                self.message.append(block)
                if self.message.behind:
                    await self.message.settled()
            if not self.message.ends_line:
                self.message.append(b"\r\n")
        except SpamdError as error:
            self._fail(error)
        finally:
            unrepaired.close()


async def _next(blocks: Iterator[bytes], *, in_thread: bool) -> bytes | None:
    """Return the next block, read by a thread where a disk is read; others have their turn."""
    if in_thread:
        return await asyncio.to_thread(next, blocks, None)
    await asyncio.sleep(0)
    return next(blocks, None)


class DataReader(MessageReader):
    """The message after DATA, as far as its final dot."""

    def feed(self, block: bytes) -> bytes | None:
        """Take a block; return what follows the end of data, or None while it has not come."""
        if self._held:
            block = self._held + block
        dot = block.find(b"\r\n.")  # one search for both: a line with a dot, and the last one
        end = block.find(END_OF_DATA, dot) if dot >= 0 else -1
        self.message.dotted = self.message.dotted or dot != end
        if end >= 0:
            self._store(block[: end + 2])
            self._held = b""
            return block[end + 5 :]
        self._held = next((part for part in _ENDS if block.endswith(part)), b"")
        self._store(block[: len(block) - len(self._held)] if self._held else block)
        return None


class BdatReader(MessageReader):
    """The message of several BDAT commands (RFC 3030), which the next hop gets as DATA."""

    def feed(self, block: bytes) -> None:
        """Take octets of a chunk as they are; dots at the start of a line are doubled."""
        block = self._held + block
        # RFC 5321 §4.5.2; what may turn out to be CRLF-dot waits for the next block.
        self._held = next((part for part in (b"\r\n", b"\r") if block.endswith(part)), b"")
        self._keep(block[: len(block) - len(self._held)])

    def last(self) -> None:
        """End the message; a line left open is closed, since DATA knows whole lines only."""
        if self._held == b"\r" or not (self._held or self._empty):
            self._held += b"\n" if self._held else b"\r\n"
        held, self._held = self._held, b""
        self._keep(held)

    @property
    def _empty(self) -> bool:
        return self.received_bytes == 0

    def _keep(self, piece: bytes) -> None:
        stuffed = piece.replace(b"\r\n.", b"\r\n..")
        self.message.dotted = self.message.dotted or len(stuffed) != len(piece)
        self._store(stuffed)


def _holds_bare_newline(piece: bytes) -> bool:
    """Tell whether a CR or LF stands alone; numpy takes a third to a tenth of three counts."""
    octets = np.frombuffer(piece, np.uint8)
    cr: bytes = np.equal(octets, _CR).tobytes()
    lf: bytes = np.equal(octets, _LF).tobytes()
    return lf != b"\0" + cr[:-1] or cr[-1:] == b"\1"


def stuffed(text: bytes) -> bytes:
    """Return the wire form of whole lines."""
    return (b"\r\n" + text).replace(b"\r\n.", b"\r\n..")[2:]


def unstuffed(wire: bytes) -> bytes:
    """Return the message that the sender meant by its wire form."""
    # RFC 5321 §4.5.2: the first dot of a line is taken away
    if wire.startswith(b"."):
        wire = wire[1:]
    return wire.replace(b"\r\n.", b"\r\n") if b"\r\n." in wire else wire


def unstuffed_blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the message of its wire form, block by block, with LF line ends (for a Maildir)."""
    held = b"\r\n"
    surplus = 1
    for block in blocks:
        text = held + block
        held = next((part for part in (b"\r\n", b"\r") if text.endswith(part)), b"")
        lines = text[: len(text) - len(held)].replace(b"\r\n.", b"\r\n").replace(b"\r\n", b"\n")
        yield lines[surplus:]
        surplus = max(0, surplus - len(lines))
    yield held.replace(b"\r\n", b"\n")[surplus:]
