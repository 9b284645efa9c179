"""Reading and writing descriptors as an agent hands them to us: also those that do not block."""

import os

STDIN, STDOUT = 0, 1
BLOCK_BYTES = 64 * 1024


def read_block(source: int) -> bytes:
    """Return what comes next, nothing at the end.

    Raises:
        OSError: it can't be read.
    """
    while True:
        try:
            return os.read(source, BLOCK_BYTES)
        except BlockingIOError:
            _wait(reading=source)


def write_all(target: int, data: bytes) -> None:
    """Write all of it.

    Raises:
        OSError: it can't be written, or only a piece of it.
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            _wait(writing=target)


def copy(source: int, target: int) -> None:
    """Write all that is still to be read.

    Raises:
        OSError: something can't be read or written.
    """
    while block := read_block(source):
        write_all(target, block)


def close_gaps() -> bool:
    """Tell whether standard input or output is closed; nothing opened later takes its place."""
    closed = False
    for descriptor in (STDIN, STDOUT, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            closed = closed or descriptor != 2
    return closed


def _wait(*, reading: int = -1, writing: int = -1) -> None:
    import select

    select.select([reading] if reading >= 0 else [], [writing] if writing >= 0 else [], [])
