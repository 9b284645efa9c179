"""Mail in files: Maildir, mbox, directory of files, one file, or standard input.

Bytes all the way; nothing is written, and modification times stay. What can't be read is yielded
as `Unreadable` with the reason, so that one bad file never stops a thousand good ones and is never
passed over in silence. The kinds:

    Maildir      a directory with `cur` or `new`: both are read, `tmp` is not. Its dot-folders
                 (`.Junk`) are separate mailboxes: read only when named. Symbolic links in it are
                 not followed: it belongs to somebody, who may link to what he can't read himself.
    directory    every file in it that is not hidden; its sub-directories likewise. Files may be
                 compressed (gzip, bzip2, xz, zip).
    mbox         a file that begins with a "From " line and holds more than one message, or is
                 called *.mbox. A message begins at "From address date" behind a blank line, so a
                 sentence that starts with "From" splits nothing; ">From" is unescaped (mboxrd).
                 Lines end in LF, CR LF, CR CR LF or CR.
    file         one message as it stands; a leading "From " line is left to the parser.
    -            standard input: one message or an mbox.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from spamd.cli.mail.compressed import FAULTS, unpacked
from spamd.files import NotRegularError, open_regular

T = TypeVar("T")

STDIN = "-"

NOT_REGULAR = "not a regular file"
"""A FIFO, a device, a socket; in a Maildir also a symbolic link."""

MANY_FILES = 100_000
"""More is no mail folder but a disk, or the mail of a whole site."""

LARGEST_BYTES = 128 * 1024 * 1024
"""A larger single message is no mail (servers stop at 50 MB) but would fill the memory."""

ONE_MESSAGE_BYTES = 256 * 1024
"""A file that begins with a postmark is looked through for a second one when it has less."""

# Atomic groups: Python before 3.11.5, Debian 12's among them, loses matches of (?:…)*+ with a look
# ahead in it.
POSTMARK = re.compile(
    rb"From (?>(?:(?!\b\d{1,2}:\d\d\b).)*)\d{1,2}:\d\d(?>(?:(?!\b\d{4}\b).)*)\d{4}\b"
)
"""First line of a message in an mbox: "From address date", the date with a time and a year."""

HEADER = re.compile(
    rb"^(?:from|to|cc|subject|date|received|message-id|return-path|delivered-to|reply-to|sender"
    rb"|mime-version|content-type)[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
"""A field of which every mail has at least one: all of 8,046 real mails have."""

HEADER_BYTES = 65_536

POSTMARK_BYTES = 1000
"""A longer first line is no postmark; looking at it for one would take too long."""

BARE_CR = re.compile(rb"\r(?![\r\n])")
CR = re.compile(rb"(?<!\r)\r+\n|\r")
ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
TRIES = 3
"""Attempts to find a Maildir message that a mail program is just renaming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One message: `name` is its path, with "#n" behind it in an mbox."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A message, file or directory that could not be read, and why."""

    name: str
    reason: str


def read(paths: Iterable[str]) -> Iterator[Mail | Unreadable]:
    """Yield every message of the given mailboxes, in the order of their names."""
    for path in paths:
        if path == STDIN:
            yield from _stream(sys.stdin.buffer, STDIN, mbox=False)
        else:
            yield from _path(Path(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much there is to read: files, and their bytes for a progress bar (None: unknown)."""

    files: int
    size_bytes: int | None


def extent(paths: Iterable[str], most: int) -> Extent:
    """Return how much `read` would read; the files beyond `most` are not looked for."""
    files = total = 0
    unknown = False
    for path in paths:
        unknown = unknown or path == STDIN
        for file in () if path == STDIN else _files(Path(path)):
            if isinstance(file, Path):
                files += 1
                with suppress(OSError):
                    total += file.stat().st_size
            if files > most:
                return Extent(files=files, size_bytes=None)
    return Extent(files=files, size_bytes=None if unknown else total)


def mail_only(found: Iterable[Mail | Unreadable]) -> Iterator[Mail | Unreadable]:
    """Pass on what is mail, and name what is none: programs, texts, pictures."""
    for one in found:
        if isinstance(one, Mail) and one.content and not HEADER.search(_header(one.content)):
            yield Unreadable(name=one.name, reason="not a mail message: no header field found")
        else:
            yield one


def _header(content: bytes) -> bytes:
    """Return the start of a message through its first blank line, or the first of its lines."""
    start = CR.sub(b"\n", content[:HEADER_BYTES]).lstrip(b"\n")
    return start.partition(b"\n\n")[0]


def _path(path: Path) -> Iterator[Mail | Unreadable]:
    for file in _files(path):
        if isinstance(file, Unreadable):
            yield file
        else:
            yield from _file(file)


def _files(path: Path) -> Iterator[Path | Unreadable]:
    """Yield the files of a mailbox."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISDIR(mode):
            yield path
            return
        names = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        yield Unreadable(name=str(path), reason=_reason(error))
        return
    if any(entry.name in {"cur", "new"} and entry.is_dir(follow_symlinks=False) for entry in names):
        yield from _maildir(path)
        return
    for entry in names:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif not entry.is_dir():
            yield Path(entry.path)


def _maildir(path: Path) -> Iterator[Path | Unreadable]:
    found: list[Path] = []
    for folder in ("new", "cur"):
        try:
            if (path / folder).is_symlink():
                yield Unreadable(name=str(path / folder), reason="a symbolic link, not followed")
                continue
            entries = [entry for entry in os.scandir(path / folder) if entry.name[0] != "."]
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Unreadable(name=str(path / folder), reason=_reason(error))
            continue
        found += [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
        for entry in entries:
            if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                yield Unreadable(name=entry.path, reason=NOT_REGULAR)
    # The base name begins with the time of delivery, so this is the order in which mail came.
    yield from sorted(found, key=lambda file: file.name)


def _file(path: Path) -> Iterator[Mail | Unreadable]:
    try:
        with _opened(path) as file, unpacked(file, str(path)) as inside:
            for name, stream in inside:
                mbox = Path(name).suffix.lower() in {".mbox", ".mbx"}
                yield from _stream(stream, name, mbox=mbox)
    except NotRegularError:
        yield Unreadable(name=str(path), reason=NOT_REGULAR)
    except OSError as error:
        yield Unreadable(name=str(path), reason=_reason(error))
    except FAULTS as error:
        yield Unreadable(name=str(path), reason=f"can't be unpacked: {str(error).lower()}")


def _opened(path: Path) -> BinaryIO:
    """Open a file; one of a Maildir also under the name that changed flags have given it."""
    mail = path.parent.name in {"cur", "new"} and (path.parent.parent / "tmp").is_dir()
    for _ in range(TRIES):
        try:
            return open_regular(path, follow=not mail)
        except FileNotFoundError:
            if path.parent.name not in {"cur", "new"}:
                raise
            path = _renamed(path) or path
    raise FileNotFoundError(2, "the file was removed while the mailbox was read")


def _renamed(path: Path) -> Path | None:
    """Return where a Maildir message is now: other flags, or moved from `new` to `cur`."""
    base = path.name.partition(":")[0]
    for folder in ("cur", "new"):
        try:
            for file in (path.parent.parent / folder).iterdir():
                if file.name.partition(":")[0] == base:
                    return file
        except OSError:
            continue
    return None


def _stream(file: BinaryIO, name: str, *, mbox: bool) -> Iterator[Mail | Unreadable]:
    """Yield the messages of an open file: several if it is an mbox."""
    first = file.readline(LARGEST_BYTES)
    if POSTMARK.match(first[:POSTMARK_BYTES]):
        if BARE_CR.search(first):  # no line end of this mailbox may be LF: all become it
            whole = first + file.read(LARGEST_BYTES + 1 - len(first))
            if len(whole) > LARGEST_BYTES:
                yield _too_large(name)
                return
            file = BytesIO(CR.sub(b"\n", whole))
            first = file.readline()
        yield from _messages(file, first, name, mbox=mbox)
        return
    content = first + file.read(LARGEST_BYTES + 1 - len(first))
    if name == STDIN and not content:
        yield Unreadable(name=name, reason="standard input is empty")
    elif len(content) > LARGEST_BYTES:
        yield _too_large(name)
    else:
        yield Mail(name=name, content=content)


def _messages(
    file: BinaryIO, postmark: bytes, name: str, *, mbox: bool
) -> Iterator[Mail | Unreadable]:
    start = file.read(ONE_MESSAGE_BYTES)
    if len(start) < ONE_MESSAGE_BYTES and b"\nFrom " not in start:  # nearly always, and cheap
        parts: Iterator[bytes | None] = iter([start])
    else:
        parts = _split(chain(BytesIO(start + file.readline(LARGEST_BYTES)), _lines(file)))
    first = next(parts)
    second = next(parts, None)
    if second is None and not mbox:
        whole = first if first is None else postmark + first
        yield _too_large(name) if whole is None else Mail(name=name, content=whole)
        return
    rest = parts if second is None else chain((second,), parts)
    for number, part in enumerate(chain((first,), rest), start=1):
        label = f"{name}#{number}"
        yield _too_large(label) if part is None else Mail(name=label, content=_delivered(part))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.readline(LARGEST_BYTES), b"")


def _split(rest: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield each message of an mbox whose first postmark was read; None for one too large."""
    lines: list[bytes] = []
    size = 0
    blank = False
    for line in rest:
        if blank and POSTMARK.match(line):
            yield b"".join(lines) if size <= LARGEST_BYTES else None
            lines, size, blank = [], 0, False
            continue
        blank = not line.strip(b"\r\n")
        size += len(line)
        if size <= LARGEST_BYTES:
            lines.append(line)
    yield b"".join(lines) if size <= LARGEST_BYTES else None


def _delivered(part: bytes) -> bytes:
    """Return a message of an mbox as it was before: "From" unescaped, the mbox's blank line off."""
    for blank in (b"\r\r\n\r\r\n", b"\r\n\r\n", b"\n\n"):
        if part.endswith(blank):
            part = part[: -len(blank) // 2]
            break
    return ESCAPED.sub(rb"\1", part)


def _too_large(name: str) -> Unreadable:
    return Unreadable(name=name, reason=f"larger than {LARGEST_BYTES // 2**20} MiB")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def batches(found: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield what was found in lists of that size; the last one may be shorter."""
    remaining = iter(found)
    while batch := list(islice(remaining, size)):
        yield batch
