"""Where the bytes of a message are while we have them: in memory, on disk above a size.

A `Letter` holds one message as it goes over the wire (dot-stuffed, without the final dot). It lies
in memory until it is larger than `spool_above_bytes` or the worker's memory budget is used up; then
it continues in a nameless temporary file, so that a killed process leaves nothing behind. All
letters of a worker share one `Budget`; when that is empty, or the disk is full, the letter is
refused with 452 and nobody else suffers.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from spamd.relay.replies import SpoolFull

BLOCK = 256 * 1024
"""Octets moved at a time between disk and network: few steps, small against any budget."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Octets that one worker may still hold in memory and on disk."""

    memory_bytes: int
    spool_bytes: int
    spool_above_bytes: int
    directory: str = ""

    @property
    def exhausted(self) -> bool:
        """Tell whether not even a small message may come in."""
        return self.memory_bytes <= 0 and self.spool_bytes <= 0


class Letter:
    """The bytes of one message in wire form; the owner must `close` it.

    dotted  a line may begin with a dot, so the message is not what the wire form is
    """

    __slots__ = ("_budget", "_file", "_pieces", "_tail", "dotted", "size_bytes")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pieces: list[bytes] = []
        self._tail = b""
        self._file: IO[bytes] | None = None
        self.size_bytes = 0
        self.dotted = False

    @property
    def spooled(self) -> bool:
        """Tell whether the letter lies on disk."""
        return self._file is not None

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
        budget = self._budget
        if self._file is None:
            if self.size_bytes + size <= budget.spool_above_bytes and size <= budget.memory_bytes:
                budget.memory_bytes -= size
                self.size_bytes += size
                self._pieces.append(piece)
                return
            self._to_disk()
        self._write(piece)

    def head(self, limit: int) -> bytes:
        """Return at most `limit` bytes from the start."""
        if self._file is None:
            return self.whole()[:limit]
        self._file.seek(0)
        return self._file.read(limit)

    def whole(self) -> bytes:
        """Return all bytes; for letters in memory."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def blocks(self, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `start` on, a block at a time."""
        if self._file is None:
            yield self.whole()[start:]
            return
        self._file.seek(start)
        while block := self._file.read(BLOCK):
            yield block

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

    def close(self) -> None:
        """Give back memory and disk; calling it twice does no harm."""
        if self._file is None:
            self._budget.memory_bytes += self.size_bytes
        else:
            self._file.close()
            self._budget.spool_bytes += self.size_bytes
        self._file = None
        self._pieces = []
        self.size_bytes = 0

    def _to_disk(self) -> None:
        try:
            file = tempfile.TemporaryFile(  # noqa: SIM115 - closed by `close`
                buffering=0, dir=self._budget.directory or None
            )
        except OSError as error:
            raise SpoolFull("no temporary file") from error
        pieces, self._pieces = self._pieces, []
        self._budget.memory_bytes += self.size_bytes
        self.size_bytes = 0
        self._file = file
        for piece in pieces:
            self._write(piece)

    def _write(self, piece: bytes) -> None:
        assert self._file is not None  # noqa: S101 - an invariant: `append` went to disk before
        if len(piece) > self._budget.spool_bytes:
            raise SpoolFull("spool budget used up")
        self._budget.spool_bytes -= len(piece)
        self.size_bytes += len(piece)
        view = memoryview(piece)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise SpoolFull("disk full") from error
