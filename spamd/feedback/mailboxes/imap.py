"""An IMAP account as a `Mailbox`: each connection has one thread, in which all its calls block.

UIDs are trusted within one UIDVALIDITY only. When it changes, the folder is read again, and what
came or left meanwhile teaches nothing. Where there is none that lasts (none at all, 0, beyond 32
bits, a new one at each SELECT) each poll reads the whole folder and knows its mail by traces alone.

What left a folder is found by its number of mails: when that is not what it was with the new ones
added, all UIDs are asked for, and believed if they are as many as the server says there are.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from spamd.feedback.mailboxes.blocking_threads import BlockingThreads
from spamd.feedback.mailboxes.folders import (
    Listed,
    bootstrap_folders,
    excluded,
    sent_folders,
    watched,
)
from spamd.feedback.mailboxes.imap_login import TlsContexts
from spamd.feedback.mailboxes.imap_rows import Row, Status
from spamd.feedback.mailboxes.imap_session import JUNK_KEYWORDS, ImapSession
from spamd.feedback.mailboxes.mailbox import (
    NOTHING_OPENED,
    Folder,
    FolderChanges,
    FolderError,
    MailboxError,
    MessageSummary,
    Opened,
    Place,
    Role,
    summary_of,
    unreadable,
)
from spamd.feedback.mailboxes.opened import Marks
from spamd.feedback.mailboxes.uidset import pack, unpack
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.ports import Cursor
from spamd.ports import Clock

EXCLUDED_MOST = 100
"""Folders that are asked whether a mail lies in them too."""

LISTINGS = 2
"""How often a server may contradict itself: a mail may come while it counts."""

EVERY_UID = 2**32
"""Above all UIDs (RFC 3501 §2.3.1.1)."""

UNSURE = -1
"""As `Cursor.messages`: count again."""

SILENCES = 3
"""So often in a row IDLE must have missed news: once it may have come just when IDLE ended."""

P = ParamSpec("P")
T = TypeVar("T")

POLL_GAP_S = 1.0
"""IDLE tells of news at once, but not more often than this: a server may have news without end."""


class ImapMailbox:
    """The IMAP account of one user.

    Args:
        account: how to reach the server.
        login: the login name, with the master user where there is one.
        actor: the user whose mail this is.
        tls: contexts for TLS, shared by all accounts.
    """

    def __init__(
        self,
        account: AccountOptions,
        options: FeedbackOptions,
        clock: Clock,
        *,
        login: str,
        actor: str,
        tls: TlsContexts | None = None,
    ) -> None:
        self.key = f"{actor}@{account.host}:{account.effective_port}"
        self.actor = actor
        self.account = account
        self._options = options
        self._clock = clock
        self.login = login
        self.tls = tls or TlsContexts()
        self._session = ImapSession(account, login, options.timeout_s, self.tls)
        self._marks = Marks()
        self._thread: BlockingThreads | None = None
        self._told = 0.0
        self._polled: dict[str, Status] = {}
        self._restless: set[str] = set()
        self._untold: dict[str, Status] = {}
        self._silences = 0
        self._listed: Sequence[Listed] = ()

    async def open(self) -> None:
        self._session = ImapSession(self.account, self.login, self._options.timeout_s, self.tls)
        self._thread = BlockingThreads(f"imap-{self.actor}", 1)
        self._polled, self._marks = {}, Marks()
        await self._call(self._session.open)

    async def close(self) -> None:
        """Log out and end the thread."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await thread.end(self._session.close)

    async def folders(self) -> Sequence[Folder]:
        return await self._call(self._watched)

    def _watched(self) -> Sequence[Folder]:
        self._listed = self._session.listed()
        return watched(self._listed, self.account, self._options)

    async def sent_folders(self) -> Sequence[Folder]:
        return await self._call(sent_folders, self._listed, self.account, self._options)

    async def bootstrap_folders(self) -> Sequence[tuple[Folder, Role]]:
        return await self._call(
            lambda: bootstrap_folders(self._session.listed(), self.account, self._options)
        )

    async def changes(
        self, folder: Folder, cursor: Cursor | None, *, baseline: bool
    ) -> FolderChanges | None:
        return await self._call(self._changes, folder, cursor, baseline)

    async def summaries(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Sequence[MessageSummary]:
        rows = await self._call(self._session.rows, folder.raw, [int(key) for key in keys])
        return [_summary(row, cursor) for row in rows]

    async def content(self, folder: Folder, key: str) -> bytes | None:
        limit = self._options.max_message_bytes
        return await self._call(self._session.content, folder.raw, int(key), limit)

    async def still_there(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Collection[str]:
        return await self._call(self._still_there, folder, keys, cursor.validity)

    async def opened(self, folder: Folder, unread: Sequence[str], read: Sequence[str]) -> Opened:
        status = self._polled.get(folder.name)
        if status is None or not (unread or read):
            return NOTHING_OPENED
        uids = [int(key) for key in unread], [int(key) for key in read]
        return await self._call(self._marks.opened, self._session, folder, status, *uids)

    async def raised_baseline(self, folder: Folder, cursor: Cursor) -> Cursor:
        return await self._call(self._raised_baseline, folder, cursor)

    async def in_excluded_folder(self, folder: Folder, message: MessageSummary) -> bool:
        """Return whether a mail of `folder` lies in an excluded one (Trash) as well.

        In doubt only mail of the inbox and of Junk does not: nobody has views there.
        """
        return await self._call(
            self._in_excluded_folder, folder, message.fields.get("message-id", "")
        )

    async def wait(self, folder: Folder | None, seconds: float) -> None:
        if folder is not None and self._session.has("IDLE"):
            seconds = min(seconds, self._options.idle_s)
            polled = self._polled.get(folder.name)
            told = await self._call(self._session.idle, folder.raw, seconds, polled)
            self._untold = {} if told or polled is None else {folder.name: polled}
            self._silences = 0 if told else self._silences
            await asyncio.sleep(min(seconds, self._told + POLL_GAP_S - time.monotonic()))
            self._told = time.monotonic()
        else:
            await asyncio.sleep(seconds)

    def _changes(
        self,
        folder: Folder,
        cursor: Cursor | None,
        baseline: bool,  # noqa: FBT001 - for the thread
    ) -> FolderChanges | None:
        began = self._clock.now()
        status = self._session.status(folder.raw)
        if cursor is not None and self._unchanged(folder, cursor, self._lasting(folder, status)):
            self._polled[folder.name] = status
            return None
        examined = self._session.examine(folder.raw)
        if status.validity and examined.validity and status.validity != examined.validity:
            self._restless.add(folder.name)
        self._hear(folder, examined)
        self._polled[folder.name] = examined
        status = self._lasting(folder, examined)
        again = cursor is not None and _is_anew(cursor, status)
        if cursor is None or again:
            start = self._first_cursor(folder, status, baseline or again)
            if cursor is not None and not status.validity:
                start = replace(start, baseline=cursor.baseline)
        else:
            start = cursor
        changes = self._changes_since(folder, status, start, fresh=cursor is None, again=again)
        return replace(changes, end=replace(changes.end, time=began))

    def _hear(self, folder: Folder, status: Status) -> None:
        """Count the times at which news was there of which IDLE had told nothing."""
        before = self._untold.pop(folder.name, None)
        if before is not None and status.messages != before.messages:
            self._silences += 1

    @property
    def silent(self) -> bool:
        """Whether the server tells nothing in IDLE of what the polls then find."""
        return self._silences >= SILENCES

    def _changes_since(
        self, folder: Folder, status: Status, start: Cursor, *, fresh: bool, again: bool
    ) -> FolderChanges:
        uids = self._session.uids(folder.raw, 1 if again else start.next_uid, status)
        next_uid = max([status.next_uid, start.next_uid, *(uid + 1 for uid in uids[-1:])])
        marks = self._keywords(folder, status)
        told = folder.place is not Place.OTHER or bool(start.modseq and status.modseq)
        marked = _newly_marked(start, marks) if told and not (again or fresh) else []
        whole = [str(uid) for uid in uids] if len(uids) == status.messages else None
        there: Sequence[str] | None = whole
        agrees = fresh or again or start.messages + len(uids) == status.messages
        if not again:
            there = None if agrees else self._listing(folder, status)
        baseline = start.baseline
        if (fresh or again) and status.validity:
            baseline = min(baseline, next_uid)
        seen = replace(start, baseline=baseline, marked=pack_marks(_without(marks, marked)))
        return FolderChanges(
            folder=folder,
            keys=[str(uid) for uid in uids],
            marked=[str(uid) for uid in marked],
            there=there,
            start=seen,
            end=replace(
                seen,
                next_uid=next_uid,
                modseq=status.modseq,
                messages=status.messages if agrees or there is not None else UNSURE,
                baseline=seen.baseline if status.validity else 0,
                marked=pack_marks(marks),
            ),
            numbered=True,
            again=again,
            warning="" if status.validity else _warning(folder),
        )

    def _lasting(self, folder: Folder, status: Status) -> Status:
        """Return a folder's state, without the UIDVALIDITY that doesn't last."""
        return replace(status, validity=0) if folder.name in self._restless else status

    def _listing(self, folder: Folder, status: Status) -> list[str] | None:
        """Return all that lies in a folder, None when the server contradicts itself."""
        uids = self._session.uids(folder.raw, 1, status)
        return [str(uid) for uid in uids] if len(uids) == status.messages else None

    def _still_there(self, folder: Folder, keys: Sequence[str], validity: int) -> Collection[str]:
        for _ in range(LISTINGS):
            status = self._lasting(folder, self._session.examine(folder.raw))
            listing = self._listing(folder, status)
            if listing is not None:
                break
        else:
            return keys
        if status.validity != validity or not validity:
            return keys
        there = sorted(set(keys) & set(listing), key=int)
        deleted = self._session.marked(folder.raw, [int(key) for key in there], "DELETED")
        return set(there) - {str(uid) for uid in deleted}

    def _raised_baseline(self, folder: Folder, cursor: Cursor) -> Cursor:
        polled = self._polled.get(folder.name)
        status = self._session.status(folder.raw)
        if polled is not None and not replace(status, validity=polled.validity).differs(polled):
            return cursor
        if not cursor.validity:
            self._polled.pop(folder.name, None)  # the next poll reads it again, whatever it is then
            return replace(cursor, baseline=EVERY_UID)
        uids = self._session.uids(folder.raw, cursor.next_uid, status)
        after = max([status.next_uid, cursor.baseline, *(uid + 1 for uid in uids[-1:])])
        return replace(cursor, baseline=after)

    def _in_excluded_folder(self, folder: Folder, identity: str) -> bool:
        if not identity.isascii() or not identity:
            return folder.place is Place.OTHER
        beside = excluded(self._listed, self.account, self._options)[:EXCLUDED_MOST]
        try:
            return any(self._session.holds(raw, identity) for raw in beside)
        except FolderError:  # a folder may be shut for ever
            return folder.place is Place.OTHER

    def _unchanged(self, folder: Folder, cursor: Cursor, status: Status) -> bool:
        """Return whether STATUS alone proves that there is nothing to look at."""
        polled = self._polled.get(folder.name)
        if status.validity == 0:
            if polled is None or cursor.validity or not (status.next_uid or status.modseq):
                return False
            return not replace(status, validity=polled.validity).differs(polled)
        if cursor.validity != status.validity or cursor.messages != status.messages:
            return False
        if not status.next_uid or cursor.next_uid != status.next_uid:
            return False
        told = self._options.keywords or self._options.kept_days
        if not told or (folder.place is Place.OTHER and not status.modseq):
            return True
        return bool(status.modseq) and cursor.modseq == status.modseq

    def _first_cursor(self, folder: Folder, status: Status, lay_there: bool) -> Cursor:  # noqa: FBT001 - one caller
        return Cursor(
            account=self.key,
            folder=folder.name,
            validity=status.validity,
            next_uid=1,
            modseq=0,
            messages=0,
            baseline=(status.next_uid or EVERY_UID) if lay_there else 1,
            marked="",
            time=self._clock.now(),
        )

    def _keywords(self, folder: Folder, status: Status) -> tuple[list[int], list[int]]:
        if not self._options.keywords or status.messages == 0 or not status.validity:
            return [], []
        junk, not_junk = (
            self._session.uids(folder.raw, 1, status, keyword) for keyword in JUNK_KEYWORDS
        )
        return junk, not_junk

    async def _call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._thread is None:
            raise MailboxError(f"{self.key} is not open")
        return await self._thread.call(self._session.abort, work, *args, **kwargs)


def pack_marks(marks: Sequence[list[int]]) -> str:
    """Return the UIDs with $Junk and with $NotJunk as one text, "3:7,12/8"."""
    return "/".join(pack(uids) for uids in marks)


def _without(marks: Sequence[list[int]], marked: Sequence[int]) -> list[list[int]]:
    """Return the marks that are known when the poll begins: a kill makes none of them new."""
    new = set(marked)
    return [[uid for uid in uids if uid not in new] for uids in marks]


def _newly_marked(start: Cursor, marks: Sequence[list[int]]) -> list[int]:
    """Return the mails seen before on which a keyword is new."""
    known = [set(unpack(part)) for part in (start.marked or "/").split("/")]
    new = {
        uid
        for uids, before in zip(marks, known, strict=True)
        for uid in uids
        if uid < start.next_uid and uid not in before
    }
    return sorted(new)


def _is_anew(cursor: Cursor, status: Status) -> bool:
    """Return whether UIDs of an earlier poll mean nothing now."""
    if not status.validity or cursor.validity != status.validity:
        return True
    return 0 < status.next_uid < cursor.next_uid  # RFC 3501 §2.3.1.1: UIDs never go back


def _warning(folder: Folder) -> str:
    return (
        f"folder {folder.name}: the server gives no lasting UIDs (UIDVALIDITY); its mail is known"
        " by header fields alone and read whole at each poll"
    )


def _summary(row: Row, start: Cursor) -> MessageSummary:
    if row.fault:
        return unreadable(str(row.uid), row.fault)
    return summary_of(
        str(row.uid),
        row.header,
        flags=row.flags,
        delivered=row.delivered,
        baseline=row.uid < start.baseline,
    )
