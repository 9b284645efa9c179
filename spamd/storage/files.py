"""Files that appear whole or not at all, and never in the place of another one."""

import errno
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch(path: Path) -> Generator[Path]:
    """Give an empty file beside `path`, for its owner only; it is gone at the end.

    What is to stay is linked to its name before (`path.hardlink_to(synced(it))`), which fails where
    something of that name exists.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    unfinished.touch(mode=0o600, exist_ok=False)
    try:
        yield unfinished
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def new_file(path: Path) -> Generator[Path]:
    """Give an empty file to write to; without a fault it gets the name `path` at the end.

    Raises:
        FileExistsError: there is something of that name.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with scratch(path) as unfinished:
        yield unfinished
        path.hardlink_to(synced(unfinished))


def synced(path: Path) -> Path:
    """Return `path` once its bytes lie on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path
