"""Numbers in memory that all workers share, so that none is lost with the process that counted it.

    supervisor   board = Board.shared();  region = board.take();  …  board.release(region)
    worker       cells = Board(fd).cells(region);  cells.add(cells.cell(key), 1)
    any of them  for region in board.regions(): region.live, region.values()

A key is the name of a metric and the values of its labels.

A process writes into a region of its own; all may read all. When it has ended, however it ended,
its region stays as it was and the next process goes on in it: what was counted never falls, and a
hundred restarts need no more memory than one. What is not counted but true of a moment (a gauge)
ends with its process: `Region.live` tells, and whoever takes a region over begins with none.

The memory is an anonymous file (memfd_create(2)) that children inherit, so nothing of it is left
behind. A number is written as eight aligned bytes at once, a key is complete before it is counted
as used: a reader never sees half of one, and a process may be killed at any moment.
"""

import mmap
import os
import time
from collections.abc import Iterator
from threading import Lock

REGION_BYTES = 1 << 20
"""Room for some 10,000 numbers; we have about 300. Memory that was never written costs nothing."""

Key = tuple[str, ...]

_BETWEEN = "\x1f"  # between the texts of a key

_USED, _LIVE, _BEAT, _FIRST = range(4)
"""Words of eight bytes: how many are used, whether the process lives, its last beat, the rest."""


class Region:
    """The numbers of one process, as any process reads them.

    A number is a word with the length of its key, its value, and the key, filled up with zeros.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._whole = memoryview(memory).cast("q")
        self._values = memoryview(memory).cast("d")
        self._found: list[tuple[Key, int]] = []
        self._read = _FIRST

    @property
    def live(self) -> bool:
        """Tell whether a process writes here."""
        return self._whole[_LIVE] != 0

    @property
    def beat(self) -> float:
        """Return when its process last said that it goes on (`time.monotonic`), 0.0 for never."""
        return self._values[_BEAT]

    def end(self) -> None:
        """Say that its process has ended."""
        self._whole[_LIVE] = 0
        self._values[_BEAT] = 0.0

    def values(self) -> Iterator[tuple[Key, float]]:
        """Yield every number with its key."""
        used = max(self._whole[_USED], _FIRST)
        while self._read < used:
            length, at = self._whole[self._read], self._read
            start = (at + 2) * 8
            key = tuple(self._memory[start : start + length].decode().split(_BETWEEN))
            self._found.append((key, at + 1))
            self._read = at + 2 + -(-length // 8)
        for key, index in self._found:
            yield key, self._values[index]


class Cells(Region):
    """The numbers of this process; it goes on with those that its predecessor left."""

    def __init__(self, memory: mmap.mmap) -> None:
        super().__init__(memory)
        self._lock = Lock()  # the log may be written by any thread
        list(self.values())
        self._index = dict(self._found)

    def begin(self) -> None:
        """Say that the numbers are those of a process that lives."""
        self._whole[_LIVE] = 1

    def cell(self, key: Key) -> int:
        """Return where the number with this key stands; a new one begins with 0.

        Raises:
            MemoryError: there are too many.
        """
        with self._lock:
            if (found := self._index.get(key)) is not None:
                return found
            name = _BETWEEN.join(key).encode()
            at = max(self._whole[_USED], _FIRST)
            end = at + 2 + -(-len(name) // 8)
            if end * 8 > len(self._memory):
                raise MemoryError(f"no room for {key}")
            self._whole[at] = len(name)
            self._memory[(at + 2) * 8 : (at + 2) * 8 + len(name)] = name
            self._whole[_USED] = end
            self._index[key] = at + 1
            return at + 1

    def add(self, index: int, amount: float) -> None:
        """Count."""
        with self._lock:
            self._values[index] += amount

    def set(self, index: int, value: float) -> None:
        """Say what is true now."""
        self._values[index] = value

    def go_on(self) -> None:
        """Say that this process goes on."""
        self._values[_BEAT] = time.monotonic()


class Board:
    """All regions: those of one process, or of a supervisor and its workers.

    Args:
        fd: of the memory that they share; without one it is of this process alone.
    """

    def __init__(self, fd: int = -1) -> None:
        self.fd = fd
        self._maps: list[mmap.mmap] = []
        self._seen: list[Region] = []
        self._free: list[int] = []

    @classmethod
    def shared(cls) -> "Board":
        """Return a new one, which child processes may inherit by its descriptor."""
        return cls(os.memfd_create("spamd-metrics"))

    @property
    def supervised(self) -> bool:
        """Tell whether the first region is that of a supervisor."""
        return self.fd >= 0

    def __len__(self) -> int:
        return 1 if self.fd < 0 else os.fstat(self.fd).st_size // REGION_BYTES

    def take(self) -> int:
        """Return a region that no process writes: what one left behind, or a new one."""
        if self._free:
            return self._free.pop()
        number = len(self)
        os.ftruncate(self.fd, (number + 1) * REGION_BYTES)
        return number

    def release(self, number: int) -> None:
        """Take a region back of which the process has ended."""
        self._region(number).end()
        self._free.append(number)

    def cells(self, number: int = 0) -> Cells:
        """Return a region to write into; one process does."""
        return Cells(self._map(number))

    def regions(self) -> list[Region]:
        """Return all regions to read."""
        return [self._region(number) for number in range(len(self))]

    def _region(self, number: int) -> Region:
        while len(self._seen) <= number:
            self._seen.append(Region(self._map(len(self._seen))))
        return self._seen[number]

    def _map(self, number: int) -> mmap.mmap:
        while len(self._maps) <= number:
            place = len(self._maps) * REGION_BYTES if self.fd >= 0 else 0
            self._maps.append(mmap.mmap(self.fd, REGION_BYTES, offset=place))
        return self._maps[number]
