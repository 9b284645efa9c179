"""A message on its way in: how long it may take, and what happens when it takes longer.

RFC 5321 §4.5.3.2.5 gives a client 3 minutes for each block. That alone would let a client hold a
place for ever with a byte a minute, so after a grace period a minimum rate is asked for as well; a
slow line with a large message passes.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from spamd.errors import MessageTooLarge
from spamd.relay.content.data import DataReader, MessageReader
from spamd.relay.inbound.connection import Connection
from spamd.relay.smtp.replies import ClientTimeoutError


class Receiving:
    """Reads one message, or a chunk of one, from a client.

    Args:
        connection: the client.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received_bytes = 0
        self._started = connection.loop.time()

    def data(self, reader: DataReader) -> Coroutine[Any, Any, None]:
        """Read as far as the final dot."""
        return self._receive(reader.feed, reader)

    async def chunk(
        self, size: int, sink: Callable[[bytes], None], reader: MessageReader | None = None
    ) -> None:
        """Read exactly `size` octets; they go to `reader`, if they are kept."""
        come = self._connection.buffer.take(size)
        sink(come)
        left = size - len(come)

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
        connection = self._connection
        buffer = connection.buffer

        def sink(block: bytes) -> bytes | None:
            rest = take(block)
            if rest is None:
                self._wait(len(block))
                if reader is not None and reader.behind:
                    reader.when_written(buffer.release)
                    buffer.hold()
            return rest

        connection.deadline.set(connection.options.data_timeout_s)
        try:
            buffer.divert(sink)
            while buffer.sink is not None:
                await buffer.more()
        finally:
            buffer.sink = None
            connection.deadline.clear()

    def _wait(self, size: int) -> None:
        """Count a block and wait for the next; close on a client too slow or much too large."""
        connection = self._connection
        options = connection.options
        connection.deadline.set(options.data_timeout_s)
        self._received_bytes += size
        elapsed_s = connection.loop.time() - self._started
        if (
            elapsed_s > options.data_grace_s
            and self._received_bytes < elapsed_s * options.data_rate
        ):
            connection.close_with(ClientTimeoutError())
        elif self._received_bytes > 2 * options.max_message_bytes:
            connection.close_with(MessageTooLarge())
