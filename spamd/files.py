"""Opening files that somebody else may have put there: regular files only, and never a wait.

A FIFO would wait for its writer, a device may do anything when it is opened, a symbolic link may
lead to a file that the one who made it can't read himself. Names that an admin wrote into the
settings or on a command line may be links; names found in a mailbox may not.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LINE_BYTES = 64 * 1024
"""The longest password or token read from a file."""


class NotRegularError(OSError):
    """It is a FIFO, a device, a socket, a folder, or a link where none may be followed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(errno.EINVAL, "not a regular file", os.fspath(path))


def open_regular(
    path: str | os.PathLike[str], *, below: int | None = None, follow: bool = True
) -> BinaryIO:
    """Open a regular file for reading; of anything else nothing is opened.

    Args:
        path: its name.
        below: descriptor of the folder that a relative path begins in.
        follow: a symbolic link as the last part of the path is followed.

    Raises:
        NotRegularError: it is something else.
        OSError: it can't be opened.
    """
    if not stat.S_ISREG(os.stat(path, dir_fd=below, follow_symlinks=follow).st_mode):
        raise NotRegularError(path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags | (0 if follow else os.O_NOFOLLOW), dir_fd=below)
    except OSError as error:
        if error.errno == errno.ELOOP:  # it became a link meanwhile
            raise NotRegularError(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # it was replaced meanwhile
        os.close(descriptor)
        raise NotRegularError(path)
    return os.fdopen(descriptor, "rb")


def first_line(path: Path) -> str:
    """Return the first line of a file without its end.

    Raises:
        OSError: it can't be read.
        UnicodeError: it is not UTF-8.
    """
    with open_regular(path) as file:
        return file.readline(LINE_BYTES).decode().rstrip("\r\n")
