"""How the benchmarks measure: CPU of whole process trees, percentiles, and tables.

Machines are shared and noisy, so every comparison is made side by side in one run, candidates in
turn, and CPU time per message is the figure to trust; rates are quoted as ratios.
"""

import os
import statistics
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.servers.base import CORPORA

T = TypeVar("T")

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Percentiles of one figure."""

    mean: float
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        ordered = sorted(values)
        return cls(
            mean=statistics.fmean(ordered),
            p50=ordered[len(ordered) // 2],
            p99=ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
            worst=ordered[-1],
        )


def installed() -> dict[str, str]:
    """Return the environment of a command that is timed: what is installed has its bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def tree(pid: int) -> list[int]:
    """Return a process and all its living descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(") ")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """Return user and system seconds of processes, with those of their ended children."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))  # proc(5): utime stime cutime cstime
    return ticks / TICKS


def resident_mib(pids: Iterable[int]) -> float:
    """Return the resident memory of processes in MiB, pages they share counted in each."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * PAGE_KIB / 1024


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, ready for docs/benchmarks.md."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print(
            "| "
            + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row)
            + " |"
        )


def in_turn(candidates: Sequence[T], rounds: int) -> Iterator[T]:
    """Yield every candidate once a round, so that the machine's drift meets all of them alike."""
    for turn in range(rounds):
        yield from candidates if turn % 2 == 0 else reversed(candidates)


@contextmanager
def corpora() -> Iterator[Path]:
    """Unpack the public corpora into a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="corpora-") as folder:
        for name in ("spamassassin", "modern", "hostile"):
            with tarfile.open(CORPORA / f"{name}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        yield Path(folder)
