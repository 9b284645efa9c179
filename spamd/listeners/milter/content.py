"""A message as the mail server shows it: field by field, then the body; put together again.

The result is the message as its sender sent it, without the Received field of the mail server,
which it hides: the same bytes that a relay in its place would judge. Of a large message only the
start is kept: a little more than is read of any message. Its identity is made of its header and of
this start, since nobody asked for the rest.
"""

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from spamd.errors import MessageTooLarge, SpamdError, SpoolFull
from spamd.listeners.milter.packets import changed
from spamd.message.identity import rest_of
from spamd.message.spam_fields import strip_and_prepend
from spamd.network.judge import start_of
from spamd.network.marking import LARGE_HEADER_BYTES
from spamd.network.spool import Share, SpooledMessage

MAX_FORGED = 1_000
"""Fields of ours that a stranger may have written: the mail server goes through the whole header
for each that we take out."""

_FIELD_BEFORE = b"X: x\r\n"  # what stands on top of a header section is read in its own way


class Content:
    """One message, while it comes and when it has come; the owner must `close` it.

    Args:
        share: memory and disk for its client.
        limit: octets of a message that are looked at, lines ended by LF.
        leading_space: values of fields come with what stands behind the colon.

    Attributes:
        fault: why the message can't be taken.
        full: nothing more is wanted.
    """

    def __init__(self, share: Share, limit: int, *, leading_space: bool) -> None:
        self.fault: SpamdError | None = None
        self.full = False
        self._limit = limit
        self._space = b"" if leading_space else b" "
        self._message = SpooledMessage(share)
        self._starts = array("L")  # of each field
        self._carriage_returns = 0
        self._header_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Return how much is kept."""
        return self._message.size_bytes

    @property
    def behind(self) -> bool:
        """Tell whether the disk is slower than what comes; then `settled` shall be waited for."""
        return self._message.behind

    def field(self, name: bytes, value: bytes) -> None:
        """Take a header field; its folds come with bare LF, or with CRLF."""
        if b"\n" in value:
            value = value.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        self._starts.append(self._message.size_bytes)
        self._keep(b"%b:%b%b\r\n" % (name, self._space, value))
        self._header_bytes = self._message.size_bytes
        if self.full:
            self.refuse(
                MessageTooLarge("the header section is larger than tokenizer.limits allows")
            )

    def end_of_header(self) -> None:
        """Take the empty line behind the header section."""
        self._keep(b"\r\n")

    def body(self, piece: bytes) -> None:
        """Take a piece of the body, unless there is enough of it."""
        if piece and not self.full:
            self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        if self.fault is not None:
            return
        try:
            self._message.append(piece)
        except SpoolFull as error:
            self.refuse(error)
            return
        self._carriage_returns += piece.count(b"\r")
        size = self._message.size_bytes
        # The first is the rule; the second bounds a body of nothing but CR.
        self.full = size - self._carriage_returns > self._limit or size > 2 * self._limit

    def refuse(self, fault: SpamdError) -> None:
        """Keep nothing of the message any more."""
        if self.fault is None:
            self.fault = fault
            self.full = True
            self.close()

    async def settled(self) -> None:
        """Wait until what has come is written, or can't be."""
        try:
            await self._message.settled()
        except SpoolFull as error:
            self.refuse(error)

    def start(self) -> bytes:
        """Return the message, of a large one enough of its start; of a spooled one in a thread."""
        return start_of(self._message, self._limit, bytes)

    def rest(self) -> bytes:
        """Return what stands for the whole body, of a large message for what is kept of it."""
        blocks = self._message.again()
        return rest_of(_without_cr(blocks, self._limit) if self.full else blocks)

    async def removals(self) -> list[bytes]:
        """Return the packets that take out what may pass for a field of ours, the last field first.

        Raises:
            MessageTooLarge: there are too many of them.
        """
        if not self._starts:
            return []
        if self._message.spooled or self._header_bytes > LARGE_HEADER_BYTES:
            return await asyncio.to_thread(self._removals)
        return self._removals()

    def _removals(self) -> list[bytes]:
        head = self._message.first(self._header_bytes)
        if strip_and_prepend(head, b"") == head:
            return []
        return list(_removals(head, self._starts, self._space))

    def close(self) -> None:
        """Give back memory and disk."""
        self._message.close()
        del self._starts[:]


def _without_cr(blocks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Yield the start of a message, without CR: the same however the body was cut into pieces."""
    for block in blocks:
        piece = block.translate(None, b"\r")[:limit]
        yield piece
        limit -= len(piece)
        if not limit:
            return


def _removals(head: bytes, starts: Sequence[int], space: bytes) -> Iterator[bytes]:
    """Yield the packets for a header section that holds forged fields.

    A field goes if its name may pass for one of ours; else its value is what remains. Fields of one
    name are numbered from the top: the last is changed first, so that no number is out of date.
    """
    forged: list[tuple[int, bytes, bytes]] = []
    seen: Counter[bytes] = Counter()
    for start, end in zip(starts, [*starts[1:], len(head)], strict=True):
        field = head[start:end]
        name, _, _ = field.partition(b":")
        seen[name.lower()] += 1
        kept = strip_and_prepend(_FIELD_BEFORE + field, b"")[len(_FIELD_BEFORE) :]
        if kept != field:
            value = b""  # the name is forged: nothing stays of the field
            if kept.startswith(name + b":"):
                value = kept[len(name) + 1 :].replace(b"\r\n", b"\n").rstrip(b"\r\n")
            forged.append((seen[name.lower()], name, value.removeprefix(space)))
    if len(forged) > MAX_FORGED:
        raise MessageTooLarge(f"more than {MAX_FORGED} header fields that only spamd may write")
    for index, name, value in reversed(forged):
        yield changed(index, name, value)
