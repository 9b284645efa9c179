"""A mail as it comes on standard input: whole, in memory, a large one on disk.

Without room on the disk it stays in memory: nothing that was read is ever given up.
"""

import os

from spamd.cli.pipe.descriptors import BLOCK_BYTES, read_block, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

MEMORY_BYTES = 1024 * 1024
"""A larger mail goes to disk; 99 of 100 are smaller."""


class Spool:
    """The bytes of a mail: those on disk first, then those in memory."""

    __slots__ = ("_blocks", "_disk_is_full", "_file", "_in_memory", "_on_disk")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._on_disk = 0
        self._disk_is_full = False

    @property
    def size_bytes(self) -> int:
        """Return how much has come."""
        return self._on_disk + self._in_memory

    def read(self, source: int) -> None:
        """Take in all that is to be read.

        Raises:
            OSError: it can't be read to its end; what came before is kept.
            MemoryError: no more of it can be kept; no byte was read that is not kept.
        """
        while block := read_block(source):
            self._blocks.append(block)
            self._in_memory += len(block)
            if self._in_memory > MEMORY_BYTES and not self._disk_is_full:
                self._to_disk()

    def _to_disk(self) -> None:
        """Write what is in memory to a file without a name; what finds no room stays."""
        import tempfile

        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as we
            for place, block in enumerate(self._blocks):
                end = self._on_disk + len(block)
                os.lseek(self._file.fileno(), self._on_disk, os.SEEK_SET)
                write_all(self._file.fileno(), block)
                self._blocks[place] = b""
                self._on_disk = end
                self._in_memory -= len(block)
        except OSError:
            self._disk_is_full = True
        self._blocks = [block for block in self._blocks if block]

    def blocks(self, start: int = 0) -> "Iterator[bytes]":
        """Yield the bytes from `start` on.

        Raises:
            OSError: the disk can't be read.
        """
        while self._file is not None and start < self._on_disk:
            size = min(BLOCK_BYTES, self._on_disk - start)
            block = os.pread(self._file.fileno(), size, start)
            if not block:
                raise OSError("the temporary file was cut")
            yield block
            start += len(block)
        start -= self._on_disk
        for block in self._blocks:
            if start < len(block):
                yield block[start:] if start > 0 else block
            start -= len(block)

    def first(self, limit: int) -> bytes:
        """Return at most `limit` bytes from the start."""
        found: list[bytes] = []
        for block in self.blocks():
            found.append(block[:limit])
            limit -= len(block)
            if limit <= 0:
                break
        return b"".join(found)
