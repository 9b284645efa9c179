"""The token table of one revision as a file to be mapped, and nothing else.

    with TableFile.writing(path, key, rows) as file: …   file.add(ids, cells)
    mapped = TableFile.opened(path)                      mapped.key, mapped.table

    header   4 KiB: `MAGIC`, what it is of (`TableKey`), how many rows, checksums; zeros
    cells    int32[rows + 1, 5]                 starts   int32: the index of the ids
    ids      int64[rows + 2 widest + 1]

It is written beside its name and gets it when it is whole; it never changes then. The memory of a
process that maps it stays as it is even when another file takes the name. So a process that is
killed while it writes, or a disk that is full, leaves the old file. Who opens it checks it whole:
what was cut off, was spoilt by the disk or was not written by us is no table.

It holds hashes of words with their counts, and is for our user only (0600). It is not synced: after
a power cut its checksum tells whether it came to the disk.
"""

import mmap
import os
import stat
import struct
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import LAST_ID, BucketIndex, TableParts, TokenTable
from spamd.wording import reason

MAGIC = b"spamd token table 1\n"

HEADER_BYTES = 4096
"""A page: what follows is aligned."""

HEADER = struct.Struct("<20s16sqq16sqqqIII")
"""Magic, the key (database, generation, revision, mark), rows, length of the index, length of the
ids, and the checksums of cells, index and ids; the header's own checksum follows."""

CHECKSUM = struct.Struct("<I")

ROW_BYTES = 20

CHECKED_BYTES = 1 << 24
"""Read at a time to be checked."""


Stamp = tuple[int, int, int, int]
"""Device, inode, time and size."""


class NoTable(Exception):
    """There is no file, or it can't be trusted; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    """What a table is of.

    database   16 bytes that no other database has
    revision   of which `generation` it holds the counts
    mark       16 bytes over what the revision changed: a database that was restored from a backup
               and taught something else then has revisions of the same number
    """

    database: bytes
    generation: int
    revision: int
    mark: bytes


class TableFile:
    """A file that is being written: `rows` rows in ascending order, then it is whole.

    Use `writing`; `opened` gives one that is whole.
    """

    def __init__(self, descriptor: int, key: TableKey, rows: int) -> None:
        self._descriptor = descriptor
        self._key = key
        self._rows = rows
        self._index = BucketIndex(rows)
        self._written = 0
        self._sums = [0, 0, 0]
        starts = HEADER_BYTES + (rows + 1) * ROW_BYTES
        self._starts_at = -(-starts // 8) * 8

    @classmethod
    @contextmanager
    def writing(cls, path: Path, key: TableKey, rows: int) -> Generator[Self]:
        """Give a file to write rows to; without a fault it has the name `path` at the end.

        One process at a time may do so (`shared_tables`).

        Raises:
            OSError: it can't be written.
            ValueError: the rows are not as many as was said.
        """
        unfinished = path.with_name(f"{path.name}.new")
        with suppress(FileNotFoundError):
            unfinished.unlink()  # of one that was killed
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, 0o600)
        try:
            file = cls(descriptor, key, rows)
            os.posix_fallocate(descriptor, 0, file._starts_at + rows * 12)
            yield file
            file._finish()
            unfinished.rename(path)
        finally:
            os.close(descriptor)
            with suppress(FileNotFoundError):
                unfinished.unlink()

    def add(self, ids: NDArray[np.int64], cells: NDArray[np.int32]) -> None:
        """Write rows whose ids ascend and follow those before."""
        self._put(0, HEADER_BYTES + self._written * ROW_BYTES, cells.astype("<i4"))
        self._put(2, self._ids_at + self._written * 8, ids.astype("<i8"))
        self._index.add(ids)
        self._written += len(ids)

    @property
    def _ids_at(self) -> int:
        return -(-(self._starts_at + self._index.size * 4) // 8) * 8

    def _put(self, part: int, at: int, values: NDArray[np.generic]) -> None:
        content = memoryview(values.tobytes())
        self._sums[part] = zlib.crc32(content, self._sums[part])
        while content:
            done = os.pwrite(self._descriptor, content, at)
            content, at = content[done:], at + done

    def _finish(self) -> None:
        if self._written != self._rows:
            raise ValueError(f"{self._written} rows were written, not {self._rows}")
        starts, widest = self._index.starts()
        end = np.full(2 * widest + 1, LAST_ID, dtype="<i8")
        self._put(0, HEADER_BYTES + self._rows * ROW_BYTES, np.zeros(5, "<i4"))
        self._put(1, self._starts_at, starts.astype("<i4", copy=False))
        self._put(2, self._ids_at + self._rows * 8, end)
        os.ftruncate(self._descriptor, self._ids_at + (self._rows + len(end)) * 8)
        key, lengths = self._key, (self._rows, len(starts), self._rows + len(end))
        header = HEADER.pack(
            MAGIC, key.database, key.generation, key.revision, key.mark, *lengths, *self._sums
        )
        header += CHECKSUM.pack(zlib.crc32(header))
        os.pwrite(self._descriptor, header.ljust(HEADER_BYTES, b"\0"), 0)

    @staticmethod
    def opened(path: Path) -> "MappedTable":
        """Return the table of a file that is whole.

        Raises:
            NoTable: there is none.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            raise NoTable(reason(error)) from error
        try:
            state = os.fstat(descriptor)
            _require(stat.S_ISREG(state.st_mode), "it is no file")
            _require(state.st_uid == os.geteuid(), "it is another user's")
            _require(state.st_mode & 0o022 == 0, "others may write to it")
            _require(state.st_size > HEADER_BYTES, "it is cut off")
            memory = mmap.mmap(descriptor, state.st_size, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise NoTable(reason(error)) from error
        finally:
            os.close(descriptor)
        return _checked(memory, stamp(state))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MappedTable:
    """A table in a file, and what it is of; `stamp` tells one file from the next."""

    key: TableKey
    table: TokenTable
    stamp: Stamp


def _checked(memory: mmap.mmap, found: Stamp) -> MappedTable:
    header = memory[: HEADER.size]
    (checksum,) = CHECKSUM.unpack_from(memory, HEADER.size)
    _require(zlib.crc32(header) == checksum, "its header is damaged")
    magic, database, generation, revision, mark, rows, index, ids, *sums = HEADER.unpack(header)
    _require(magic == MAGIC, "it is of another version")
    starts_at = -(-(HEADER_BYTES + (rows + 1) * ROW_BYTES) // 8) * 8
    ids_at = -(-(starts_at + index * 4) // 8) * 8
    _require(len(memory) == ids_at + ids * 8, "its length is not what it says")
    view = memoryview(memory)
    parts = (
        view[HEADER_BYTES : HEADER_BYTES + (rows + 1) * ROW_BYTES],
        view[starts_at : starts_at + index * 4],
        view[ids_at:],
    )
    _require([_sum(part) for part in parts] == sums, "its content is damaged")
    table = TokenTable.of_parts(
        TableParts(
            cells=np.frombuffer(parts[0], "<i4").reshape(-1, 5),
            starts=np.frombuffer(parts[1], "<i4"),
            padded=np.frombuffer(parts[2], "<i8"),
        )
    )
    key = TableKey(database=database, generation=generation, revision=revision, mark=mark)
    return MappedTable(key=key, table=table, stamp=found)


def _sum(part: memoryview) -> int:
    checksum = 0
    for start in range(0, len(part), CHECKED_BYTES):
        checksum = zlib.crc32(part[start : start + CHECKED_BYTES], checksum)
    return checksum


def _require(holds: bool, why: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise NoTable(why)


def stamp(state: os.stat_result) -> Stamp:
    """Return what tells this state of a file from another."""
    return state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size
