"""A judged message on its way out: our fields, its header section, the rest.

The header section is the only part that is ever touched; the rest leaves as the bytes that came.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import chain

from spamd.message.spam_fields import fields_start
from spamd.network.spool import SpooledMessage
from spamd.relay.content.data import unstuffed_blocks


@dataclass(slots=True, kw_only=True)
class Outgoing:
    """What goes to the next hop.

    header   our fields and the header section of the message without fields that claim to be ours
    message   the message as it came
    start    where in the message the rest begins
    sender   for a Maildir's Return-Path
    junk     the verdict says spam and the action tags it: a Maildir files it apart
    """

    header: bytes
    message: SpooledMessage
    start: int
    sender: bytes
    junk: bool

    @property
    def whole(self) -> bytes | None:
        """Return the wire form with its final dot in one piece, None when it lies on disk."""
        if self.message.spooled:
            return None
        rest = self.message.whole()
        return b"".join((self.header, rest[self.start :] if self.start else rest, b".\r\n"))

    async def blocks(self) -> AsyncIterator[bytes]:
        """Yield the wire form without its final dot."""
        yield self.header
        async for block in self.message.read(self.start):
            yield block

    def plain_blocks(self) -> Iterator[bytes]:
        """Yield the message as a Maildir keeps it: Return-Path, LF line ends, no dot-stuffing."""
        top = fields_start(self.header)  # behind an mbox line, which no other line may stand before
        trace = b"Return-Path: <" + self.sender + b">\r\n"
        header = self.header[:top] + trace + self.header[top:]
        return unstuffed_blocks(chain((header,), self.message.blocks(self.start)))
