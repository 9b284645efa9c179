"""A message on its way in: how long it may take, and what happens when it takes longer.

RFC 5321 §4.5.3.2.5 gives a client 3 minutes for each block. That alone would let a client hold a
place for ever with a byte a minute, so after a grace period a minimum rate is asked for as well; a
slow line with a large message passes.
"""

from collections.abc import Callable

from spamd.errors import MessageTooLarge
from spamd.relay.connection import Connection
from spamd.relay.data import DataIntake, Intake
from spamd.relay.replies import ClientTimeoutError


class Receiving:
    """Reads one message, or a chunk of one, from a client.

    Args:
        connection: the client.
        intake: whose size counts for rate and limits; None while octets are only swallowed.
    """

    def __init__(self, connection: Connection, intake: Intake | None) -> None:
        self._connection = connection
        self._intake = intake
        self._started = connection.loop.time()

    async def data(self, intake: DataIntake) -> None:
        """Read as far as the final dot."""

        def take(block: bytes) -> bytes | None:
            rest = intake.feed(block)
            if rest is None:
                self._wait()
            return rest

        await self._pour(take)

    async def chunk(self, size: int, sink: Callable[[bytes], None]) -> None:
        """Read exactly `size` octets."""
        left = size

        def take(block: bytes) -> bytes | None:
            nonlocal left
            sink(block[:left])
            rest = block[left:] if left <= len(block) else None
            left = max(0, left - len(block))
            if rest is None:
                self._wait()
            return rest

        if size:
            await self._pour(take)

    async def _pour(self, take: Callable[[bytes], bytes | None]) -> None:
        watchdog = self._connection.watchdog
        watchdog.watch(self._connection.options.data_timeout_s)
        try:
            await self._connection.inbox.pour(take)
        finally:
            watchdog.calm()

    def _wait(self) -> None:
        """Set the time for the next block; close on a client that is too slow or much too large."""
        connection = self._connection
        connection.watchdog.watch(connection.options.data_timeout_s)
        if self._intake is None:
            return
        elapsed_s = connection.loop.time() - self._started
        if (
            elapsed_s > connection.options.data_grace_s
            and self._intake.received_bytes < elapsed_s * connection.options.data_rate
        ):
            connection.last_words(ClientTimeoutError())
        elif self._intake.hopeless:
            connection.last_words(MessageTooLarge())
