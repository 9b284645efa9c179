"""The most memory that a process held, told apart from what was held before.

`getrusage` cannot say it: its peak is never forgotten, and a child's begins with what its parent
held when it was forked. Linux forgets the peak of `/proc/PID/status` (VmHWM) when asked.
"""

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_MEASURING = (
    "import os, sys\n"
    "pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)\n"
    "_, status, usage = os.wait4(pid, 0)\n"
    "open(sys.argv[1], 'w').write(str(usage.ru_maxrss * 1024))\n"
    "sys.exit(os.waitstatus_to_exitcode(status) % 256)\n"
)
"""Stands between us and the process that is measured: that one begins with this one's few MiB."""


def peak_bytes(pid: int | None = None) -> int:
    """Return the most memory a process (this one) held since `forget_peak`, or since it began."""
    status = _proc(pid, "status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak(pid: int | None = None) -> int:
    """Let the peak of a process (this one) begin anew; return it, so what is held now."""
    _proc(pid, "clear_refs").write_text("5")
    return peak_bytes(pid)


def settled_bytes() -> int:
    """Give back free memory that this process keeps, as it would hide growth; forget the peak."""
    ctypes.CDLL(None).malloc_trim(0)
    return forget_peak()


def run_measured(command: Sequence[str], *, cwd: Path, output: Path, note: Path) -> tuple[int, int]:
    """Run a program (its full path first); return its exit code and the most memory it held.

    Args:
        output: takes what it prints
        note: a file that may be written
    """
    with output.open("wb") as out:
        code = subprocess.run(
            [sys.executable, "-S", "-E", "-c", _MEASURING, str(note), *command],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, check=False,
        ).returncode  # fmt: skip
    return code, int(note.read_text())


def _proc(pid: int | None, name: str) -> Path:
    return Path("/proc") / ("self" if pid is None else str(pid)) / name
