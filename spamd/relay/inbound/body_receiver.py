"""A message on its way in: how long it may take, and what happens when it takes longer.

RFC 5321 §4.5.3.2.5 gives a client 3 minutes for each block. That alone would let a client hold its
slot for ever with a byte a minute, so after a grace period a minimum rate is asked for as well; a
slow line with a large message passes.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from spamd.errors import MessageTooLarge
from spamd.relay.content.data import DataReader, MessageReader
from spamd.relay.inbound.transport import Transport
from spamd.relay.options import RelayOptions
from spamd.relay.smtp.replies import ClientTimeoutError


class BodyReceiver:
    """Reads one message, or a chunk of one, from a client."""

    def __init__(self, transport: Transport, options: RelayOptions) -> None:
        self._transport = transport
        self._options = options
        self._received_bytes = 0
        self._started = transport.loop.time()

    def receive_data(self, reader: DataReader) -> Coroutine[Any, Any, None]:
        """Read as far as the final dot."""
        return self._receive(reader.feed, reader)

    async def receive_chunk(
        self, size: int, sink: Callable[[bytes], None], reader: MessageReader | None = None
    ) -> None:
        """Read exactly `size` octets; they go to `reader`, if they are kept."""
        received = self._transport.buffer.take(size)
        sink(received)
        left = size - len(received)

        def take(block: bytes) -> bytes | None:
            nonlocal left
            sink(block[:left])
            rest = block[left:] if left <= len(block) else None
            left = max(0, left - len(block))
            return rest

        if left:
            await self._receive(take, reader)

    async def _receive(
        self, take: Callable[[bytes], bytes | None], reader: MessageReader | None = None
    ) -> None:
        """Give blocks to `take` until it returns what is no longer its own."""
        transport = self._transport
        buffer = transport.buffer

        def sink(block: bytes) -> bytes | None:
            rest = take(block)
            if rest is None:
                self._count(len(block))
                if reader is not None and reader.behind:
                    reader.when_written(buffer.release)
                    buffer.hold()
            return rest

        transport.deadline.set(self._options.data_timeout_s)
        try:
            buffer.divert(sink)
            while buffer.sink is not None:
                await buffer.more()
        finally:
            buffer.sink = None
            transport.deadline.clear()

    def _count(self, size: int) -> None:
        """Count a block and wait for the next; close on a client too slow or much too large."""
        transport, options = self._transport, self._options
        transport.deadline.set(options.data_timeout_s)
        self._received_bytes += size
        elapsed_s = transport.loop.time() - self._started
        if (
            elapsed_s > options.data_grace_s
            and self._received_bytes < elapsed_s * options.data_rate
        ):
            transport.close_with(ClientTimeoutError())
        elif self._received_bytes > 2 * options.max_message_bytes:
            transport.close_with(MessageTooLarge())
