"""What one poll has seen: what is new, what is gone, and the few mails that may be lessons.

A poll reads all folders that changed, Junk last. Only a mail that lay in another folder at the last
look and is new in this one, or on which a keyword is new, may be a lesson; all others are only
remembered. `evidence.MoveVerifier` then finds out what they teach.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from spamd.feedback.mailboxes.mailbox import Folder, FolderChanges, MessageSummary, Place
from spamd.feedback.ports import Cursor, Sighting
from spamd.feedback.watching.lesson_rule import NOWHERE, Event
from spamd.sample import Label

OUTSIDE = timedelta(hours=1)
"""Mail delivered so long before the last poll and never seen since came from elsewhere: no queue
between server and folder holds mail for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMessage:
    """One mail: where it lies, and why we look at it."""

    folder: Folder
    message: MessageSummary
    event: Event

    @property
    def sighting(self) -> Sighting:
        """What to remember of it."""
        delivered = self.message.delivered
        return Sighting(
            folder=self.folder.name,
            key=self.message.key,
            mail=self.message.trace,
            delivered=int(delivered.timestamp()) if delivered else 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleLesson:
    """A mail that may be a lesson, and where it lay at the last poll."""

    changed: ChangedMessage
    rows: Sequence[Sighting]


class PollState:
    """What one poll has seen so far.

    Args:
        folders: all watched folders.
        cursors: how far they had been read before, by name.
    """

    def __init__(self, folders: Sequence[Folder], cursors: Mapping[str, Cursor]) -> None:
        self.folders = {folder.name: folder for folder in folders}
        self.cursors = cursors
        self.changes: dict[str, FolderChanges] = {}
        self.unread: set[str] = set()
        self.possible: list[PossibleLesson] = []
        self.filed: list[PossibleLesson] = []
        self.delivered: list[ChangedMessage] = []
        self.outside: Counter[str] = Counter()
        self.came: dict[bytes, list[Sighting]] = {}
        self._left: dict[tuple[str, str], Sighting] = {}
        self._doubted: set[tuple[str, str]] = set()
        self._kept: list[Sighting] = []

    def place(self, folder: str) -> Place:
        """Return what a folder is; one that is gone is nowhere."""
        return self.folders[folder].place if folder in self.folders else NOWHERE

    def is_kept(self, folder: str) -> bool:
        """Return whether a folder is known not to be the Trash."""
        return folder in self.folders and self.folders[folder].kept

    def add_arrived(self, seen: Sequence[ChangedMessage]) -> None:
        """Take note of mails that are new."""
        for one in seen:
            self.came.setdefault(one.message.trace, []).append(one.sighting)

    def add_relisted(
        self, changes: FolderChanges, rows: Sequence[Sighting], seen: Sequence[ChangedMessage]
    ) -> list[ChangedMessage]:
        """Compare a folder that was read again with what it held; return what is new in it.

        A mail that is missing has left only when keys never last here and the list was whole: when
        a folder got new keys once, somebody made it anew, and nobody knows what he did.
        """
        before: dict[bytes, list[Sighting]] = {}
        for row in rows:
            before.setdefault(row.mail, []).append(row)
        new = []
        for one in seen:
            if "\\Deleted" in one.message.flags:
                continue  # as good as gone
            known = before.get(one.message.trace)
            if known:
                self._doubted.add(_where(known.pop()))
                self._kept.append(one.sighting)
            else:
                new.append(one)
        sure = changes.keyless and changes.there is not None
        for row in rows:
            self._left[_where(row)] = row
            if not sure:
                self._doubted.add(_where(row))
        return new

    def add_departed(self, rows: Sequence[Sighting], there: Collection[str]) -> None:
        """Take note of which mails of a folder are not there any more."""
        for row in rows:
            if row.key not in there:
                self._left[_where(row)] = row

    def add_answer(self, name: str, keys: Collection[str], present: Collection[str]) -> None:
        """Take note of what the server says when it is asked for mails once more."""
        for one in self.possible:
            for row in one.rows:
                if row.folder == name and row.key in keys:
                    if row.key in present:
                        self._left.pop(_where(row), None)
                    else:
                        self._left[_where(row)] = row

    def missing(self, folder: str) -> set[str]:
        """Return the mails that are not known to be in a folder any more."""
        return {key for name, key in self._left if name == folder}

    def has_left(self, row: Sighting) -> bool:
        """Return whether a mail is known to be gone from where it lay."""
        return _where(row) in self._left and _where(row) not in self._doubted

    def add_possible(
        self, seen: Sequence[ChangedMessage], before: Mapping[bytes, Sequence[Sighting]]
    ) -> None:
        """Keep those of some mails that may be lessons, by where they lay at the last poll."""
        for one in seen:
            rows = [row for row in before.get(one.message.trace, ()) if not self._is_fresh(row)]
            fresh = [row for row in before.get(one.message.trace, ()) if self._is_fresh(row)]
            here = [row for row in rows if row.folder == one.folder.name]
            if one.event is Event.MARKED:
                if mark(one.message) and any(row.key == one.message.key for row in here):
                    self.possible.append(PossibleLesson(changed=one, rows=here))
                continue
            if one.message.baseline or here:
                continue
            if rows:
                self.possible.append(PossibleLesson(changed=one, rows=rows))
                self.came[one.message.trace] += fresh
            elif self._from_outside(one):
                self.outside[one.folder.name] += 1
            elif one.folder.place is Place.INBOX and not fresh:
                self.delivered.append(one)

    def to_remember(self) -> tuple[list[Sighting], list[tuple[str, str]]]:
        """Return what is to be added to the sightings, and what to be removed."""
        came = [one for ones in self.came.values() for one in ones]
        return [*self._kept, *came], list(self._left)

    def origins(self) -> Iterator[tuple[Folder, Cursor, set[str]]]:
        """Yield folders in which mails lay that may have left, with the keys to ask for."""
        keys: dict[str, set[str]] = {}
        for one in self.possible:
            for row in one.rows if one.changed.event is Event.ARRIVED else ():
                keys.setdefault(row.folder, set()).add(row.key)
        yield from self._askable(keys)

    def targets(self) -> Iterator[tuple[Folder, Cursor, set[str]]]:
        """Yield folders in which mails are new that may be lessons, with the keys to ask for."""
        keys: dict[str, set[str]] = {}
        for one in self.possible:
            keys.setdefault(one.changed.folder.name, set()).add(one.changed.message.key)
        yield from self._askable(keys)

    def _askable(self, keys: Mapping[str, set[str]]) -> Iterator[tuple[Folder, Cursor, set[str]]]:
        """Yield those folders whose keys last: of others, this poll's list is all there is."""
        for name, wanted in sorted(keys.items()):
            changes = self.changes.get(name)
            cursor = changes.end if changes else self.cursors.get(name)
            lasting = cursor is not None and cursor.validity > 0 and not (changes and changes.again)
            if name in self.folders and cursor is not None and lasting:
                yield self.folders[name], cursor, wanted

    def _is_fresh(self, row: Sighting) -> bool:
        """Return whether a mail was written down in this poll, as old mail is in chunks."""
        changes = self.changes.get(row.folder)
        if changes is None or not changes.numbered or changes.again:
            return False
        return int(row.key) >= changes.start.next_uid

    def _from_outside(self, one: ChangedMessage) -> bool:
        cursor = self.cursors.get(one.folder.name)
        delivered = one.message.delivered
        return (
            one.folder.place is Place.JUNK
            and cursor is not None
            and delivered is not None
            and delivered < cursor.time - OUTSIDE
        )


def mark(message: MessageSummary) -> Label | None:
    """Return what the keywords of a mail say, None for nothing or for both."""
    flags = {flag.lower() for flag in message.flags}
    match ("$junk" in flags, "$notjunk" in flags):
        case (True, False):
            return Label.SPAM
        case (False, True):
            return Label.HAM
        case _:
            return None


def _where(row: Sighting) -> tuple[str, str]:
    return row.folder, row.key
