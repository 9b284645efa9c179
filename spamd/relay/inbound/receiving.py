"""A message on its way in: how long it may take, and what happens when it takes longer.

RFC 5321 §4.5.3.2.5 gives a client 3 minutes for each block. That alone would let a client hold a
place for ever with a byte a minute, so after a grace period a minimum rate is asked for as well; a
slow line with a large message passes.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from spamd.errors import MessageTooLarge
from spamd.relay.content.data import DataIntake, Intake
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

    def data(self, intake: DataIntake) -> Coroutine[Any, Any, None]:
        """Read as far as the final dot."""
        return self._pour(intake.feed, intake)

    async def chunk(
        self, size: int, sink: Callable[[bytes], None], intake: Intake | None = None
    ) -> None:
        """Read exactly `size` octets; they go to `intake`, if they are kept."""
        come = self._connection.inbox.take(size)
        sink(come)
        left = size - len(come)

        def take(block: bytes) -> bytes | None:
            nonlocal left
            sink(block[:left])
            rest = block[left:] if left <= len(block) else None
            left = max(0, left - len(block))
            return rest

        if left:
            await self._pour(take, intake)

    async def _pour(
        self, take: Callable[[bytes], bytes | None], intake: Intake | None = None
    ) -> None:
        """Give blocks to `take` until it returns what is no longer its own."""
        connection = self._connection
        inbox = connection.inbox

        def sink(block: bytes) -> bytes | None:
            rest = take(block)
            if rest is None:
                self._wait(len(block))
                if intake is not None and intake.behind:
                    intake.when_written(inbox.go_on)
                    inbox.hold()
            return rest

        connection.watchdog.watch(connection.options.data_timeout_s)
        try:
            inbox.pour(sink)
            while inbox.sink is not None:
                await inbox.more()
        finally:
            inbox.sink = None
            connection.watchdog.calm()

    def _wait(self, size: int) -> None:
        """Count a block and wait for the next; close on a client too slow or much too large."""
        connection = self._connection
        options = connection.options
        connection.watchdog.watch(options.data_timeout_s)
        self._received_bytes += size
        elapsed_s = connection.loop.time() - self._started
        if (
            elapsed_s > options.data_grace_s
            and self._received_bytes < elapsed_s * options.data_rate
        ):
            connection.last_words(ClientTimeoutError())
        elif self._received_bytes > 2 * options.max_message_bytes:
            connection.last_words(MessageTooLarge())
