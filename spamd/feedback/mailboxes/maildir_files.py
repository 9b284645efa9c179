"""The files of a Maildir, which belong to somebody who may have put anything there.

Only regular files below the Maildir are ever opened, and only folders that are really there: each
part of a path is opened in the folder before it, symbolic links are not followed (the Maildir's own
path is the admin's, and may be one). FIFOs, devices, sockets and links among the mail are no mail
and are passed over. Hard links are files like others: mail servers make them when mail is copied.

Bounded are the folders (`MOST_FOLDERS`, `LEVELS`), the mails of a folder (`MOST_MAILS`), and by
who reads, the bytes of a mail.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spamd.feedback.mailboxes.folders import Listed
from spamd.feedback.mailboxes.mailbox import decoded
from spamd.files import open_regular

MOST_FOLDERS = 100_000
"""Of more folders the rest is not seen; `feedback.max_folders` of them are watched."""

LEVELS = 100
"""Folders inside folders, where they are nested; mail servers stop at a path of 4,096 bytes."""

MOST_MAILS = 500_000
"""A folder of more files is not read: their names alone would take 300 MB."""

PARTS = ("new", "cur")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC


class TooManyError(OSError):
    """A folder holds more files than are read."""


class Files:
    """The files below one Maildir; all names are relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folders(self) -> list[Listed]:
        """Return all folders: those that begin with a dot, or without any, the nested ones.

        Raises:
            OSError: the Maildir can't be read.
        """
        found = [Listed(name="INBOX", raw=".", attributes=frozenset(), delimiter=".")]
        with self._opened() as root:
            names = _folders_in(root)
            for name in names:
                if name.startswith(".") and len(found) < MOST_FOLDERS and _holds_mail(root, name):
                    found.append(_listed(name[1:], name, "."))
            if len(found) == 1:
                for name in names:
                    _nested(root, name, name, found, LEVELS)
        return found

    def inode(self, raw: str) -> int:
        """Return what tells a folder from others, under whatever name."""
        with self._opened(raw) as folder:
            return os.fstat(folder).st_ino

    def stamp(self, raw: str) -> tuple[int, int]:
        """Return when mail last came to or left `new` and `cur`; 0 for one that isn't there."""
        with suppress(OSError), self._opened(raw) as folder:
            new, cur = (_modified(part, folder) for part in PARTS)
            return new, cur
        return 0, 0

    def changed(self) -> int:
        """Return when a folder last came or left."""
        return _modified(self.root, None, follow=True)

    def names(self, raw: str) -> Iterator[str]:
        """Yield the files of a folder, as "new/…" or "cur/…".

        Raises:
            OSError: it can't be read.
        """
        count = 0
        for part in PARTS:
            with self._opened(raw, part) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                        continue
                    count += 1
                    if count > MOST_MAILS:
                        raise TooManyError(0, f"it holds more than {MOST_MAILS:,} files")
                    yield f"{part}/{entry.name}"

    def changes(self, raw: str) -> Iterator[tuple[str, int]]:
        """Yield the files of `cur`, as "cur/…", each with the time of its last change, in ns.

        Raises:
            OSError: it can't be read.
        """
        with self._opened(raw, "cur") as folder, os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(MOST_MAILS), strict=False):
                with suppress(FileNotFoundError):  # its flags changed, and with them its name
                    yield f"cur/{entry.name}", entry.stat(follow_symlinks=False).st_ctime_ns

    def open(self, raw: str, name: str) -> BinaryIO:
        """Open a mail, or another file of a folder, for reading."""
        part, _, file = name.rpartition("/")
        with self._opened(raw, part) as folder:
            return open_regular(file, below=folder, follow=False)

    @contextmanager
    def _opened(self, *parts: str) -> Iterator[int]:
        """Open a folder, each part of its path within the one before."""
        folder = os.open(self.root, _FOLDER)
        try:
            for step in "/".join(parts).split("/"):
                if step in {"", "."}:
                    continue
                inner = os.open(step, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _folders_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return sorted(name for name, _ in zip(names, range(MOST_FOLDERS), strict=False))


def _nested(parent: int, name: str, raw: str, found: list[Listed], levels: int) -> None:
    """Add a folder and all below it, those that hold mail."""
    if name in {"new", "cur", "tmp"} or len(found) >= MOST_FOLDERS or not levels:
        return
    if _holds_mail(parent, name):
        found.append(_listed(raw, raw, "/"))
    with suppress(OSError):
        folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        try:
            for inner in _folders_in(folder):
                _nested(folder, inner, f"{raw}/{inner}", found, levels - 1)
        finally:
            os.close(folder)


def _holds_mail(folder: int, name: str) -> bool:
    """Return whether a folder has a `cur`; one that can't be entered is reported, not left out."""
    try:
        os.stat(f"{name}/cur", dir_fd=folder, follow_symlinks=False)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _listed(name: str, raw: str, delimiter: str) -> Listed:
    return Listed(name=decoded(name), raw=raw, attributes=frozenset(), delimiter=delimiter)


def _modified(name: str | Path, folder: int | None, *, follow: bool = False) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=follow).st_mtime_ns
    except OSError:
        return 0


def letters_of(name: str) -> str:
    """Return the flags that a file's name holds."""
    return name.partition(":2,")[2]
