"""Where the bytes of a message are while we have them: in memory, on disk above a size.

A `SpooledMessage` holds one message as it goes over the wire (dot-stuffed, without the final dot).
It lies in memory until it is larger than `spool_above_bytes` or the worker's memory budget is used
up; then it continues in a nameless temporary file, so that a killed process leaves nothing behind.
All messages of a worker share one `Budget`, and those of one network (`connection_limiter.py`) have
a `Share` of it, so that nobody fills it alone; when it is empty, or the disk is full, the message
is refused with 452 and nobody else suffers.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, TypeVar
from weakref import WeakValueDictionary

from spamd.errors import SpoolFull

Result = TypeVar("Result")

BLOCK = 256 * 1024
"""Octets moved at a time between disk and network: few steps, small against any budget."""

THREADS = 2
"""Blocks written or read at a time, and large messages: a disk gains nothing by more."""

SMALL_PIECE = 1024
"""Octets; smaller pieces of a message are joined, for each by itself takes sixty octets more."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Octets that one worker may still hold in memory and on disk.

    client_share  of both, what one network may hold of it; at least one message
    """

    memory_bytes: int
    spool_bytes: int
    spool_above_bytes: int
    directory: str = ""
    client_share: float = 1.0
    max_message_bytes: int = 0
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="spool"),
        compare=False,
    )
    large: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="large"),
        compare=False,
    )
    _all: tuple[int, int] = (0, 0)
    _shares: "WeakValueDictionary[str, Share]" = field(
        default_factory=WeakValueDictionary, compare=False
    )

    def __post_init__(self) -> None:
        self._all = self.memory_bytes, self.spool_bytes

    def close(self) -> None:
        """End the threads; what they do is finished."""
        self.threads.shutdown(wait=False)
        self.large.shutdown(wait=False)

    def share(self, network: str) -> "Share":
        """Return what a network may hold; what has no network may hold all."""
        share = self._shares.get(network)
        if share is None:
            memory, spool = self._all
            part = self.client_share if network else 1.0
            share = self._shares[network] = Share(
                budget=self,
                memory_bytes=max(int(memory * part), self.spool_above_bytes),
                spool_bytes=max(int(spool * part), self.max_message_bytes),
            )
        return share


@dataclass(slots=True, kw_only=True, weakref_slot=True)
class Share:
    """Octets that one network may still hold, of those that the worker may."""

    budget: Budget
    memory_bytes: int
    spool_bytes: int

    @property
    def exhausted(self) -> bool:
        """Tell whether not even a small message may come in."""
        budget = self.budget
        memory = min(self.memory_bytes, budget.memory_bytes)
        return memory <= 0 and min(self.spool_bytes, budget.spool_bytes) <= 0

    def take_memory(self, size: int) -> bool:
        """Take octets of memory if there are so many; a negative `size` gives back."""
        if size > self.memory_bytes or size > self.budget.memory_bytes:
            return False
        self.memory_bytes -= size
        self.budget.memory_bytes -= size
        return True

    def take_spool(self, size: int) -> bool:
        """Take octets on disk if there are so many; a negative `size` gives back."""
        if size > self.spool_bytes or size > self.budget.spool_bytes:
            return False
        self.spool_bytes -= size
        self.budget.spool_bytes -= size
        return True


class SpooledMessage:
    """The bytes of one message in wire form; the owner must `close` it.

    dotted  a line may begin with a dot, so the message is not what the wire form is
    """

    __slots__ = (
        "_closed",
        "_fault",
        "_file",
        "_pending",
        "_pieces",
        "_share",
        "_small",
        "_tail",
        "_unwritten",
        "_writing",
        "dotted",
        "size_bytes",
        "spooled",
        "when_written",
    )

    def __init__(self, share: Share) -> None:
        self._share = share
        self._pieces: list[bytes] = []
        self._small = bytearray()  # small pieces behind them
        self._tail = b""
        self._file: IO[bytes] | None = None
        self._pending: list[bytes] = []  # for the disk
        self._unwritten = 0  # octets of these
        self._writing: asyncio.Future[IO[bytes]] | None = None
        self._fault: OSError | None = None
        self._closed = False
        self.when_written: Callable[[], None] | None = None
        self.spooled = False
        self.size_bytes = 0
        self.dotted = False

    @property
    def ends_line(self) -> bool:
        """Tell whether nothing, or a CRLF, is the end of it."""
        return self._tail[-2:] in {b"", b"\r\n"}

    def append(self, piece: bytes) -> None:
        """Add bytes at the end.

        Raises:
            SpoolFull: there is no room, in the budget or on the disk.
        """
        size = len(piece)
        self._tail = (self._tail + piece)[-2:] if size < 2 else piece[-2:]
        share = self._share
        if self._fault is not None:
            raise SpoolFull(
                "the disk is full, or the spool folder is not writable"
            ) from self._fault
        if not self.spooled:
            small = self.size_bytes + size <= share.budget.spool_above_bytes
            if small and share.take_memory(size):
                self.size_bytes += size
                if size >= SMALL_PIECE or not self._pieces:
                    self._join()
                    self._pieces.append(piece)
                else:
                    self._small += piece
                return
            self._to_disk()
        if not share.take_spool(size):
            raise SpoolFull("relay.spool_bytes or relay.memory_bytes is used up")
        self.size_bytes += size
        self._pending.append(piece)
        self._unwritten += size
        if self._unwritten >= BLOCK and self._writing is None:
            self._write()

    @property
    def behind(self) -> bool:
        """Tell whether the disk is slower than what comes; else `when_written` is called."""
        return self._unwritten >= BLOCK and self._writing is not None

    async def settled(self) -> None:
        """Wait until all is written.

        Raises:
            SpoolFull: it can't be.
        """
        while self._unwritten or self._writing is not None:
            if self._writing is None:
                self._write()
            else:
                await asyncio.wait([self._writing])
                await asyncio.sleep(0)  # `_written` is called
        if self._fault is not None:
            raise SpoolFull(
                "the disk is full, or the spool folder is not writable"
            ) from self._fault

    def first(self, limit: int) -> bytes:
        """Return at most `limit` bytes from the start; of a spooled message in a thread."""
        self._must_be_written()
        if self._file is None:
            return self.whole()[:limit]
        self._file.seek(0)
        return self._file.read(limit)

    def whole(self) -> bytes:
        """Return all bytes; for messages in memory."""
        self._join()
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def blocks(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on, a block at a time; of a spooled message in a thread."""
        self._must_be_written()
        if self._file is None:
            yield self.whole()[start:]
            return
        self._file.seek(start)
        while block := self._file.read(BLOCK):
            yield block

    async def read(self, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to `stop`, a block at a time, read by a thread."""
        self._must_be_written()
        if self._file is None:
            yield self.whole()[start:stop]
            return
        blocks = self.blocks(start)
        left = (self.size_bytes if stop is None else stop) - start
        loop, threads = asyncio.get_running_loop(), self._share.budget.threads
        while left > 0 and (block := await loop.run_in_executor(threads, next, blocks, b"")):
            yield block[:left]
            left -= len(block)

    def again(self) -> Iterator[bytes]:
        """Yield all bytes, by reads that disturb no other; for a thread, which may be too late."""
        file = self._file
        if file is None:
            yield self.whole()
            return
        try:
            with os.fdopen(os.dup(file.fileno()), "rb", buffering=0) as mine:
                at = 0
                while block := os.pread(mine.fileno(), BLOCK, at):
                    yield block
                    at += len(block)
        except ValueError:  # closed: nobody waits for the answer any more
            return

    async def by_thread(self, work: Callable[[], Result]) -> Result:
        """Return what `work`, which goes through all of it, comes to in a thread.

        Of spooled messages it takes long: they have threads of their own, small ones do not wait.
        """
        threads = self._share.budget.large if self.spooled else None
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def close(self) -> None:
        """Give back memory and disk; calling it twice does no harm."""
        if self.spooled:
            self._share.take_spool(-self.size_bytes)
        else:
            self._share.take_memory(-self.size_bytes)
        self._closed = True
        if self._file is not None and self._writing is None:  # or `_written` closes it
            self._file.close()
            self._file = None
        self.spooled = False
        self._pieces = []
        self._small.clear()
        self._pending = []
        self.size_bytes = self._unwritten = 0

    def _must_be_written(self) -> None:
        assert not self._unwritten, "read before `settled`"  # noqa: S101 - half a mail would go out
        assert self._writing is None  # noqa: S101 - likewise
        assert self._file is not None or not self.spooled  # noqa: S101 - likewise

    def _join(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()

    def _to_disk(self) -> None:
        """Go on on the disk, if there is room for what has come."""
        self._join()
        if not self._share.take_spool(self.size_bytes):
            raise SpoolFull("relay.spool_bytes or relay.memory_bytes is used up")
        self._share.take_memory(-self.size_bytes)
        self.spooled = True
        self._pending, self._pieces = self._pieces, []
        self._unwritten = self.size_bytes

    def _write(self) -> None:
        """Have a thread write what has gathered."""
        pieces, self._pending = self._pending, []
        self._unwritten = 0
        budget = self._share.budget
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(
            budget.threads, _written, self._file, budget.directory, pieces
        )
        self._writing.add_done_callback(self._done)

    def _done(self, written: asyncio.Future[IO[bytes]]) -> None:
        self._writing = None
        fault = None if written.cancelled() else written.exception()
        if fault is None and not written.cancelled():
            self._file = written.result()
        elif isinstance(fault, OSError):
            self._fault = fault
            self._pending = []
            self._unwritten = 0
        if self._closed:
            if self._file is not None:
                self._file.close()
                self._file = None
        elif self._unwritten >= BLOCK:
            self._write()
        if self.when_written is not None and not self.behind:
            self.when_written()


def _written(file: IO[bytes] | None, directory: str, pieces: Sequence[bytes]) -> IO[bytes]:
    """Write pieces behind what a file holds, by a thread; a nameless file is made where none is."""
    fresh = None
    if file is None:
        file = fresh = tempfile.TemporaryFile(buffering=0, dir=directory or None)  # noqa: SIM115 - the message closes it
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
    except BaseException:
        if fresh is not None:
            fresh.close()
        raise
    return file
