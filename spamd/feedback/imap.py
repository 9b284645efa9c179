"""An IMAP account as a `Mailbox`: each connection has one thread, in which all its calls block.

UIDs are trusted within one UIDVALIDITY only. When it changes, or the server has none, the folder is
read again from the start as at a first look: traces that were seen there before teach nothing, so
nothing is learned twice.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ParamSpec, TypeVar

from spamd.feedback.folders import surveyed, watched
from spamd.feedback.hand import Hands
from spamd.feedback.imap_login import Contexts
from spamd.feedback.imap_session import JUNK_KEYWORDS, ImapSession, Row, Status
from spamd.feedback.mailbox import (
    Folder,
    Head,
    MailboxError,
    News,
    Role,
    header_fields,
    trace,
    unreadable,
)
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.uidset import pack, unpack
from spamd.ports import Clock, Cursor, Place

P = ParamSpec("P")
T = TypeVar("T")

LOOK_EVERY_S = 1.0
"""IDLE tells of news at once, but not more often than this: a server may have news without end."""


class ImapMailbox:
    """The IMAP account of one user.

    Args:
        account: how to reach the server.
        login: the login name, with the master user where there is one.
        actor: the user whose mail this is.
        contexts: for TLS, shared by all accounts.
    """

    def __init__(
        self,
        account: AccountOptions,
        options: FeedbackOptions,
        clock: Clock,
        *,
        login: str,
        actor: str,
        contexts: Contexts | None = None,
    ) -> None:
        self.key = f"{actor}@{account.host}:{account.effective_port}"
        self.actor = actor
        self.account = account
        self._options = options
        self._clock = clock
        self.login = login
        self._contexts = contexts or Contexts()
        self._session = ImapSession(account, login, options.timeout_s, self._contexts)
        self._hand: Hands | None = None
        self._told = 0.0
        self._looked: dict[str, Status] = {}

    async def open(self) -> None:
        """Connect and log in."""
        self._session = ImapSession(
            self.account, self.login, self._options.timeout_s, self._contexts
        )
        self._hand = Hands(f"imap-{self.actor}", 1)
        self._looked = {}
        await self._call(self._session.open)

    async def close(self) -> None:
        """Log out and end the thread."""
        if self._hand is not None:
            hand, self._hand = self._hand, None
            await hand.end(self._session.close)

    async def folders(self) -> Sequence[Folder]:
        """Return the folders to watch, Junk first."""
        return await self._call(
            lambda: watched(self._session.listed(), self.account, self._options)
        )

    async def survey(self) -> Sequence[tuple[Folder, Role]]:
        """Return all folders that `bootstrap` may read, with what is kept in them."""
        return await self._call(
            lambda: surveyed(self._session.listed(), self.account, self._options)
        )

    async def look(self, folder: Folder, cursor: Cursor | None, *, baseline: bool) -> News | None:
        """Return what is new in a folder, None for nothing."""
        return await self._call(self._look, folder, cursor, baseline)

    async def heads(self, folder: Folder, keys: Sequence[str], cursor: Cursor) -> Sequence[Head]:
        """Return the heads of some mails; those that vanished are left out."""
        rows = await self._call(self._session.rows, folder.raw, [int(key) for key in keys])
        return [_head(row, cursor) for row in rows]

    async def content(self, folder: Folder, key: str) -> bytes | None:
        """Return a mail's bytes (of a huge one the start), None when it vanished."""
        limit = self._options.max_message_bytes
        return await self._call(self._session.content, folder.raw, int(key), limit)

    async def wait(self, folder: Folder | None, seconds: float) -> None:
        """Return when something may have happened in `folder`, after `seconds` at the latest."""
        if folder is not None and self._session.has("IDLE"):
            seconds = min(seconds, self._options.idle_s)
            await self._call(self._session.idle, folder.raw, seconds, self._looked.get(folder.name))
            await asyncio.sleep(min(seconds, self._told + LOOK_EVERY_S - time.monotonic()))
            self._told = time.monotonic()
        else:
            await asyncio.sleep(seconds)

    def _look(self, folder: Folder, cursor: Cursor | None, baseline: bool) -> News | None:  # noqa: FBT001 - positional for the thread
        status = self._session.status(folder.raw)
        if self._unchanged(folder, cursor, status):
            self._looked[folder.name] = status
            return None
        status = self._session.examine(folder.raw)
        self._looked[folder.name] = status
        again = cursor is None or cursor.validity != status.validity or status.validity == 0
        start = self._first_cursor(folder, status, baseline or cursor is not None)
        if not again and cursor is not None:
            start = cursor
        uids = self._session.uids(folder.raw, start.next_uid, status)
        next_uid = max([status.next_uid, *(uid + 1 for uid in uids[-1:])])
        marks = self._marks(folder, status)
        marked = [] if again else _newly_marked(start, marks)
        start = replace(start, marked=pack_marks(_without(marks, marked)))
        return News(
            folder=folder,
            keys=[str(uid) for uid in uids],
            marked=[str(uid) for uid in marked],
            unseen=_gap(start, next_uid, len(uids), folder),
            start=start,
            end=replace(
                start,
                next_uid=next_uid,
                modseq=status.modseq,
                messages=status.messages,
                marked=pack_marks(marks),
                time=self._clock.now(),
            ),
            numbered=True,
        )

    def _unchanged(self, folder: Folder, cursor: Cursor | None, status: Status) -> bool:
        """Return whether STATUS alone proves that there is nothing to look at."""
        if cursor is None or cursor.validity != status.validity:
            return False
        if status.validity == 0:
            return self._looked.get(folder.name) == status
        if cursor.next_uid < status.next_uid or not cursor.next_uid:
            return False
        if not self._options.keywords or (folder.place is Place.OTHER and not status.modseq):
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
            first_look=status.next_uid if lay_there else 1,
            marked="",
            time=self._clock.now(),
        )

    def _marks(self, folder: Folder, status: Status) -> tuple[list[int], list[int]]:
        if not self._options.keywords or status.messages == 0:
            return [], []
        junk, not_junk = (
            self._session.uids(folder.raw, 1, status, keyword) for keyword in JUNK_KEYWORDS
        )
        return junk, not_junk

    async def _call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._hand is None:
            raise MailboxError(f"{self.key} is not open")
        return await self._hand.call(self._session.abort, work, *args, **kwargs)


def pack_marks(marks: Sequence[list[int]]) -> str:
    """Return the UIDs with $Junk and with $NotJunk as one text, "3:7,12/8"."""
    return "/".join(pack(uids) for uids in marks)


def _without(marks: Sequence[list[int]], marked: Sequence[int]) -> list[list[int]]:
    """Return the marks that are known when the look begins: a kill makes none of them new."""
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


def _gap(start: Cursor, next_uid: int, found: int, folder: Folder) -> bool:
    """Return whether UIDs were given to mail that we never saw.

    At a first look at Junk they tell nothing: people delete spam all the time.
    """
    if folder.place is Place.JUNK and start.next_uid < start.first_look:
        return False
    return next_uid - start.next_uid > found


def _head(row: Row, start: Cursor) -> Head:
    if row.fault:
        return unreadable(str(row.uid), row.fault)
    fields = header_fields(row.header)
    return Head(
        key=str(row.uid),
        fields=fields,
        traces=(trace(fields),),
        id=fields.get("x-spam-id") or None,
        flags=row.flags,
        delivered=row.delivered,
        arrived=_arrived(row, start),
        first_look=row.uid < start.first_look,
    )


def _arrived(row: Row, start: Cursor) -> datetime | None:
    """Return when a mail came to this folder, at the earliest.

    What came since the last look came after the last look, and no mail comes anywhere before it is
    delivered. SAVEDATE only says that it came no later: Dovecot takes it from the file of a
    Maildir, whose time moves when the mail is read or copied.
    """
    if row.uid < start.first_look:
        return None
    since = start.time if row.delivered is None else max(start.time, row.delivered)
    return since if row.saved is None else min(since, row.saved)
