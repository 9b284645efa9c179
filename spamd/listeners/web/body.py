"""The body of a request: received within its limits, unpacked if it is packed.

A packed body (gzip, deflate, zstd) is first received whole, so that a slow client holds no
decompressor, then unpacked by threads, never more than a block at a time and never to more than
`relay.max_message_bytes`.
"""

import asyncio
import sys
import zlib
from collections.abc import Callable, Iterator

from starlette.types import Receive

from spamd.errors import DeadlineExceeded
from spamd.listeners.web.answers import Refusal
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import SharedOptions
from spamd.network.spool import BLOCK, Share, SpooledMessage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD_WINDOW_LOG = 23
"""8 MiB, what RFC 8878 §3.1.1.1.2 asks every decoder for, and none for more."""

UNPACKING = 4
"""Bodies unpacked at a time: each may take a window of 8 MiB."""

TOO_LARGE = "the message is larger than relay.max_message_bytes"

_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's wbits


class ClientGone(Exception):
    """The client closed its connection before its request was whole."""


class Bodies:
    """Receives and unpacks bodies.

    Args:
        options: what holds for all listeners.
    """

    def __init__(self, options: SharedOptions) -> None:
        self._options = options
        self._unpacking = asyncio.Semaphore(UNPACKING)

    async def received(
        self, receive: Receive, share: Share, limit: TimeLimit, encoding: str
    ) -> SpooledMessage:
        """Return the body of a request, settled; whoever asks closes it.

        Raises:
            Refusal: it is too large, too slow, or not packed as it says.
            SpoolFull: there is no room for it.
            ClientGone: nobody waits for an answer.
        """
        unpack = _unpacker(encoding)
        message = SpooledMessage(share)
        try:
            await self._receive(message, receive, limit)
            if unpack is None:
                return message
            async with self._unpacking:
                plain = await self._unpacked(message, share, unpack)
        except BaseException:
            message.close()
            raise
        message.close()
        return plain

    async def _receive(self, message: SpooledMessage, receive: Receive, limit: TimeLimit) -> None:
        options = self._options
        now = asyncio.get_running_loop().time
        started = now()
        more = True
        while more:
            try:
                with limit.of(options.data_timeout_s):
                    event = await receive()
            except DeadlineExceeded:
                raise Refusal(408, "the body did not come in time") from None
            if event["type"] == "http.disconnect":
                raise ClientGone
            block: bytes = event.get("body", b"")
            more = event.get("more_body", False)
            self._keep(message, block)
            elapsed_s = now() - started
            slow = message.size_bytes < elapsed_s * options.data_rate
            if more and slow and elapsed_s > options.data_grace_s:
                raise Refusal(408, "the body comes too slowly")
            if message.behind:
                await message.settled()
        await message.settled()

    def _keep(self, message: SpooledMessage, block: bytes) -> None:
        if message.size_bytes + len(block) > self._options.max_message_bytes:
            raise Refusal(413, TOO_LARGE)
        if block:
            message.append(block)

    async def _unpacked(
        self,
        packed: SpooledMessage,
        share: Share,
        unpack: Callable[[Iterator[bytes]], Iterator[bytes]],
    ) -> SpooledMessage:
        """Return what a body holds."""
        plain = SpooledMessage(share)
        blocks = unpack(packed.again())
        loop, threads = asyncio.get_running_loop(), share.budget.threads
        try:
            while block := await loop.run_in_executor(threads, next, blocks, b""):
                self._keep(plain, block)
                if plain.behind:
                    await plain.settled()
            await plain.settled()
        except BaseException as error:
            plain.close()
            if isinstance(error, (zlib.error, zstd.ZstdError, EOFError)):
                raise Refusal(400, "the body is not packed as the request says") from None
            raise
        return plain


def encoding_of(*values: str) -> str:
    """Return the one encoding that fields name, "" for none.

    Raises:
        Refusal: they name several.
    """
    names = {
        name
        for value in values
        for name in value.lower().replace("x-gzip", "gzip").replace(" ", "").split(",")
    }
    names -= {"", "identity"}
    if len(names) > 1:
        raise Refusal(415, "the body is packed more than once")
    return names.pop() if names else ""


def _unpacker(encoding: str) -> Callable[[Iterator[bytes]], Iterator[bytes]] | None:
    match encoding:
        case "":
            return None
        case "gzip" | "deflate":
            return _inflated
        case "zstd":
            return _unzstd
        case _:
            raise Refusal(415, "a body may be packed by gzip, deflate or zstd")


def _inflated(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what gzip or deflate packed, at most a block at a time; members follow each other.

    "deflate" is zlib's format (RFC 9110 §8.4.1.2); some send it bare.
    """
    engine = None
    for data in blocks:
        while data:
            if engine is None:
                engine = zlib.decompressobj(_format(data))
            block = engine.decompress(data, BLOCK)
            data = engine.unused_data if engine.eof else engine.unconsumed_tail  # noqa: PLW2901 - the rest of it
            if block:
                yield block
            while len(block) == BLOCK and not engine.eof and not data:
                block = engine.decompress(b"", BLOCK)  # kept back inside
                if block:
                    yield block
            if engine.eof:
                engine = None
    if engine is not None:
        raise EOFError


def _format(data: bytes) -> int:
    """Return which of the formats begins so."""
    if data.startswith(b"\x1f"):
        return _GZIP
    head = int.from_bytes(data[:2], "big")
    return _ZLIB if head >> 8 & 0x0F == 8 and head % 31 == 0 else _RAW


def _unzstd(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what zstd packed, at most a block at a time; frames follow each other."""
    options = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
    engine = None
    for data in blocks:
        while data or (engine is not None and not engine.needs_input):
            if engine is None:
                engine = zstd.ZstdDecompressor(options=options)
            block = engine.decompress(data, BLOCK)
            data = engine.unused_data if engine.eof else b""  # noqa: PLW2901 - the rest of it
            if block:
                yield block
            if engine.eof:
                engine = None
    if engine is not None:
        raise EOFError
