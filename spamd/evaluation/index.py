"""Which mail is judged, with which label, in which order.

An INDEX is a text file with one line per message, `spam PATH` or `ham PATH`, paths relative to the
file, in the order to be tried. Without one, the mail below two places is taken: files, folders of
files, Maildirs and mbox files, in the order in which it came (its topmost Received field, else its
Date, else the time of its file). Where that would be all of one label first, as with an old corpus
of spam beside this year's ham, it is mixed instead: a filter that has met one label only can't be
measured.

Errors: `ConfigError` names file and line, or what can't be read.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path

from spamd.errors import ConfigError
from spamd.message.mime.parser import parse
from spamd.sample import Label
from spamd.wording import reason

WHOLE = -1

HEADER_BYTES = 65_536
"""So much of a mail is looked at for its date."""

DATE_BYTES = 100
"""A longer date is none."""

MIXED = 0.25
"""Labels count as mixed when they change at least this often, measured against chance."""

SEPARATOR = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From \S++ (?>(?:(?!\d\d:\d\d)[^\r\n])*)\d\d:\d\d[^\r\n]*+\r?\n"
)
"""The line in front of each message of an mbox: `From sender date`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledMail:
    """One message on disk and what a human says about it.

    start, end  bytes of the file that are the message; an end of `WHOLE` is the file's own end
    """

    label: Label
    path: Path
    start: int = 0
    end: int = WHOLE

    def read(self) -> bytes:
        """Return the message as it is stored.

        Raises:
            ConfigError: it can't be read.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                return file.read() if self.end == WHOLE else file.read(self.end - self.start)
        except OSError as error:
            raise ConfigError(f"{self.path}: {reason(error)}") from error


def read_index(path: Path) -> tuple[LabelledMail, ...]:
    """Return the messages that an INDEX names, in its order.

    Raises:
        ConfigError: the file can't be read, or a line is neither `spam PATH` nor `ham PATH`.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: {reason(error)}") from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        label, _, name = line.strip().partition(" ")
        if not label:
            continue
        if label not in (Label.HAM, Label.SPAM) or not name:
            raise ConfigError(f"{path}, line {number}: expected `spam PATH` or `ham PATH`.")
        found.append(LabelledMail(label=Label(label), path=path.parent / name.strip()))
    return tuple(found)


def gather(spam: Sequence[Path], ham: Sequence[Path]) -> tuple[LabelledMail, ...]:
    """Return the mail below these places, oldest first, or mixed.

    Raises:
        ConfigError: a place doesn't exist or can't be read.
    """
    found = [
        (came(mail), mail.path.stat().st_mtime_ns, str(mail.path), mail.start, mail)
        for label, places in ((Label.SPAM, spam), (Label.HAM, ham))
        for place in places
        for mail in _below(place, label)
    ]
    by_date = tuple(mail for *_, mail in sorted(found, key=lambda item: item[:4]))
    return by_date if _is_mixed([mail.label for mail in by_date]) else shuffled(by_date, 0)


def came(mail: LabelledMail) -> float:
    """Return when a mail came, as its header tells, in seconds since 1970; else its file's time.

    Raises:
        ConfigError: it can't be read.
    """
    header = parse(mail.read()[:HEADER_BYTES])
    received = (header.first("received") or b"").rpartition(b";")[2]
    for date in (received, header.first("date") or b""):
        try:
            return parsedate_to_datetime(date[:DATE_BYTES].decode("latin-1").strip()).timestamp()
        except (ValueError, OverflowError):
            continue
    return mail.path.stat().st_mtime


def _is_mixed(labels: Sequence[Label]) -> bool:
    """Return whether the label changes from one mail to the next about as often as by chance."""
    spam = sum(label is Label.SPAM for label in labels)
    expected = 2 * spam * (len(labels) - spam) / max(1, len(labels))
    return sum(one is not other for one, other in pairwise(labels)) >= MIXED * expected


def shuffled(index: Sequence[LabelledMail], seed: int | None) -> tuple[LabelledMail, ...]:
    """Return the same messages in the order of this seed; without one the order stands."""
    return tuple(index[i] for i in order(len(index), seed))


def order(size: int, seed: int | None) -> list[int]:
    """Return the numbers 0 … size − 1 in the order of this seed; without one as they are."""
    numbers = list(range(size))
    if seed is not None:
        random.Random(seed).shuffle(numbers)  # noqa: S311 — an order to repeat, not a secret
    return numbers


def _below(place: Path, label: Label) -> Iterator[LabelledMail]:
    try:
        if place.is_dir():
            for path in sorted(place.rglob("*")):
                if path.is_file() and not _is_housekeeping(path):
                    yield from _in_file(path, label)
        elif place.is_file():
            yield from _in_file(place, label)
        else:
            raise ConfigError(f"{place} is neither a file nor a folder.")
    except PermissionError as error:
        raise ConfigError(f"{error.filename} may not be looked into") from error


def _is_housekeeping(path: Path) -> bool:
    """Whether a file is hidden, unfinished, or of a Maildir itself rather than a message in it."""
    folder = path.parent
    return path.name.startswith(".") or folder.name == "tmp" or (folder / "cur").is_dir()


def _in_file(path: Path, label: Label) -> Iterator[LabelledMail]:
    """Yield the one message of a file, or those of an mbox.

    An mbox begins with a `From ` line; a further one after an empty line begins the next message.
    A single message saved with such a line in front is an mbox of one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {reason(error)}") from error
    starts = [found.start() for found in SEPARATOR.finditer(content)]
    if not starts or starts[0]:
        yield LabelledMail(label=label, path=path)
        return
    for start, end in zip(starts, [*starts[1:], len(content)], strict=True):
        head = content.index(b"\n", start) + 1
        yield LabelledMail(label=label, path=path, start=head, end=end)
