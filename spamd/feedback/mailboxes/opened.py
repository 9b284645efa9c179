"""Which unread mails of a folder were marked as read, and whether one by one or many at a time.

A server with CONDSTORE numbers the changes of a folder, and mails that one command has marked share
a number; of a Maildir the files' times of change say as much. Of a server without, only the number
of unread mails tells whether others were marked too. Nothing is asked while nothing changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from spamd.feedback.mailboxes.imap_rows import Status
from spamd.feedback.mailboxes.imap_session import ImapSession
from spamd.feedback.mailboxes.mailbox import NOTHING_OPENED, Folder, FolderError, Opened
from spamd.feedback.mailboxes.maildir_files import Files, letters_of
from spamd.wording import reason

OTHERS_MOST = 1_000
"""How far before the first unread mail that matters others are counted, in UIDs."""

NUMBERED_MOST = 100
"""With more, nobody asks which change has marked which mail: it was no person's reading."""

APART_NS = 1_000_000_000
"""Mails that were marked within a second of each other were not read one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unread:
    """The unread mails of a folder from a UID on, and the first UID that was not there yet."""

    low: int
    uids: frozenset[int]
    next_uid: int


class Marks:
    """What was seen of the marks in an IMAP account since it was opened."""

    def __init__(self) -> None:
        self._asked: dict[str, Status] = {}
        self._unread: dict[str, _Unread] = {}

    def opened(
        self,
        session: ImapSession,
        folder: Folder,
        status: Status,
        unread: Sequence[int],
        read: Sequence[int],
    ) -> Opened:
        """Return what was marked on mails of a folder that is in this state."""
        if status.modseq and self._asked.get(folder.name) == status:
            return NOTHING_OPENED
        seen = session.marked(folder.raw, unread, "SEEN")
        acted = session.marked(folder.raw, sorted({*unread, *read}), "OR", "ANSWERED", "FLAGGED")
        if not status.modseq:
            others, singly = self._others(session, folder, status, unread, seen), False
        else:
            others, singly = _since(session, folder, seen) if seen else (0, True)
        self._asked[folder.name] = status
        return Opened(
            read=frozenset(map(str, seen)),
            acted=frozenset(map(str, acted)),
            others=others,
            singly=singly,
        )

    def _others(
        self,
        session: ImapSession,
        folder: Folder,
        status: Status,
        unread: Sequence[int],
        seen: Sequence[int],
    ) -> int | None:
        """Return how many others were read or removed, or came as read, since the last time."""
        before = self._unread.get(folder.name)
        low = before.low if before else max(1, min(unread, default=1) - OTHERS_MOST)
        came = session.uids(folder.raw, before.next_uid if before else low, status)
        now = frozenset(session.unread(folder.raw, low))
        next_uid = max([*(uid + 1 for uid in came), before.next_uid if before else low])
        self._unread[folder.name] = _Unread(low=low, uids=now, next_uid=next_uid)
        return None if before is None else len({*before.uids, *came} - now - set(seen))


def opened(
    files: Files,
    folder: Folder,
    names: Mapping[str, str],
    unread: Sequence[str],
    read: Sequence[str],
) -> Opened:
    """Return what was marked on files, by their names now: marking a file gives it another one."""
    letters = {key: letters_of(names[key]) for key in [*unread, *read] if key in names}
    seen = [key for key in unread if "S" in letters.get(key, "")]
    acted = frozenset(key for key, flags in letters.items() if "R" in flags or "F" in flags)
    if not seen:
        return replace(NOTHING_OPENED, acted=acted)
    try:
        times = {name: at for name, at in files.changes(folder.raw) if "S" in letters_of(name)}
    except OSError as error:
        raise FolderError(f"{folder.name} can't be read: {reason(error)}") from error
    marked_now = frozenset(key for key in seen if names[key] in times)
    first = min((times[names[key]] for key in marked_now), default=0) - APART_NS
    marked = sorted(at for at in times.values() if at >= first)
    return Opened(
        read=marked_now,
        acted=acted,
        others=len(marked) - len(marked_now),
        singly=all(later - earlier >= APART_NS for earlier, later in pairwise(marked)),
    )


def _since(session: ImapSession, folder: Folder, seen: Sequence[int]) -> tuple[int, bool]:
    """Return how many others were marked since these were, and whether each by itself."""
    changes = session.changes_of(folder.raw, seen)
    marked = {*session.read_since(folder.raw, min(changes.values())), *seen}
    if len(marked) > NUMBERED_MOST:
        return len(marked) - len(seen), False
    numbers = session.changes_of(folder.raw, sorted(marked)).values()
    return len(marked) - len(seen), len(set(numbers)) == len(marked) and all(numbers)
