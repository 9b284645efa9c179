"""To whom the owner of an account has written, read from the folders of his own mail (Sent).

At the first look the newest mails, then what is new. Of each mail the fields To, Cc and Bcc; what a
program wrote (RFC 3834), a draft, or a mail that came in through us says nothing. A poll reads no
more than `feedback.chunk` mails; `more` tells whether some are left.

How far a folder was read stands among the cursors of the account, under a name that no folder has.
A mail that is read twice counts once, so nothing is lost or doubled by a kill.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spamd.feedback.mailboxes.mailbox import (
    Folder,
    FolderChanges,
    FolderError,
    Mailbox,
    MessageSummary,
)
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Cursor, FeedbackObserver, Mailboxes
from spamd.lists.ports import Correspondents, UserOf, Written
from spamd.message.authentication.sender import addresses_of
from spamd.ports import Clock

MARK = "\\Sent "
"""What a cursor's folder begins with here; a folder that people make has no backslash."""

OLD_MOST = 2_000
"""Mails read at the first look, the newest: as many as there are addresses to remember."""

ADDRESSES = 100
"""Taken of one mail: whoever writes to more people at once knows them by a list."""

SECONDS_DIGITS = 11
"""Digits of a time in seconds; longer numbers at the start of a file's name are none."""


def is_sent(cursor_folder: str) -> bool:
    """Tell whether a cursor tells how far a folder of sent mail was read."""
    return cursor_folder.startswith(MARK)


class SentMail:
    """The sent mail of one account.

    Args:
        mailbox: the account, open and listed.
        mailboxes: remembers how far was read.
        correspondents: remembers to whom was written.
        user_of: tells whose account it is.
        options: how much is read at once.
        clock: tells the time of mail that has none.
        observer: is told of folders that can't be read.

    Attributes:
        more: the last poll left something to read.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        mailboxes: Mailboxes,
        correspondents: Correspondents,
        user_of: UserOf,
        options: FeedbackOptions,
        clock: Clock,
        observer: FeedbackObserver,
    ) -> None:
        self._mailbox = mailbox
        self._mailboxes = mailboxes
        self._correspondents = correspondents
        self._user_of = user_of
        self._options = options
        self._clock = clock
        self._observer = observer
        self._cursors: dict[str, Cursor] | None = None
        self._told: set[str] = set()
        self.more = False

    async def poll(self) -> None:
        """Read what is new.

        Raises:
            MailboxError: the account went out of reach.
            TemporaryError: the database did.
        """
        self.more = False
        user = await self._user_of(self._mailbox.actor)
        if user is None:
            return  # read later: nothing is lost
        room = self._options.chunk
        cursors = await self._known()
        for folder in await self._mailbox.sent_folders():
            if room <= 0:
                self.more = True
                return
            try:
                room -= await self._read(folder, cursors, room, user)
            except FolderError as error:
                if folder.name not in self._told:
                    self._told.add(folder.name)
                    self._observer.failed("folder.failed", error, account=self._mailbox.key)

    async def _known(self) -> dict[str, Cursor]:
        if self._cursors is None:
            rows = await self._mailboxes.cursors(self._mailbox.key)
            self._cursors = {name: row for name, row in rows.items() if is_sent(name)}
        return self._cursors

    async def _read(self, folder: Folder, cursors: dict[str, Cursor], room: int, user: str) -> int:
        """Read so many mails of a folder; return how many."""
        name = MARK + folder.name
        changes = await self._mailbox.changes(folder, cursors.get(name), baseline=True)
        if changes is None:
            return 0
        first = name not in cursors or changes.again
        keys = _wanted(changes, first=first)
        some = keys[-room:] if changes.keyless else keys[:room]
        messages = await self._mailbox.summaries(folder, some, changes.start) if some else ()
        now = self._clock.now()
        mails = [mail for each in messages if (mail := written(each, now)).addresses]
        await self._correspondents.wrote(user, mails)
        left = len(some) < len(keys) and not changes.keyless
        cursor = replace(_reached(changes, some, left=left), folder=name)
        await self._mailboxes.save(self._mailbox.key, [cursor])
        cursors[name] = cursor
        self.more = self.more or left
        return len(some)


def written(message: MessageSummary, now: datetime) -> Written:
    """Return to whom a mail of Sent was written; to nobody, if no person wrote it here."""
    fields, time = message.fields, min(message.delivered or now, now)
    program = fields.get("auto-submitted", "no").lower() != "no"
    if message.fault or message.id or program or "\\Draft" in message.flags:
        return Written(time=time, addresses=())
    named = [each for name in ("to", "cc", "bcc") for each in addresses_of(fields.get(name, ""))]
    return Written(time=time, addresses=tuple(dict.fromkeys(named))[:ADDRESSES])


def _wanted(changes: FolderChanges, *, first: bool) -> Sequence[str]:
    """Return the mails to read, oldest first."""
    keys = changes.keys
    if not changes.numbered:
        since = 0 if first else changes.start.next_uid
        timed = sorted((_seconds(key), key) for key in keys)
        keys = [key for seconds, key in timed if seconds >= since]
    return keys[-OLD_MOST:] if first else keys


def _reached(changes: FolderChanges, read: Sequence[str], *, left: bool) -> Cursor:
    """Return the cursor to write once these mails were read.

    Names of files hold the second in which they were made; that is how far was read there.
    """
    if changes.numbered:
        return changes.reached(read[-1]) if left else changes.end
    last = max((_seconds(key) for key in read), default=changes.start.next_uid)
    stuck = left and last == _seconds(read[0])
    return replace(changes.end, next_uid=last + stuck)


def _seconds(key: str) -> int:
    number = key.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= SECONDS_DIGITS else 0
