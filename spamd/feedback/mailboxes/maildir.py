"""A Maildir++ as a `Mailbox`: read by scanning its folders, watched by their modification times.

Nothing is written, renamed or touched; reading keeps modification times. A mail is a file in `new`
or `cur`, called by the part of its name before the flags: that part stays when a client changes
flags while we look. `tmp` is never read, and nothing but regular files (`maildir_files`).
Sub-folders are the folders beginning with a dot (Maildir++, "." between levels) and, where there
are none, nested ones (Dovecot's LAYOUT=fs).

Files are told apart by the lasting part of their names, and a folder by its inode: so a renamed
folder is still known, and a restart reads no file twice.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

from spamd.feedback.mailboxes.blocking_threads import BlockingThreads, nothing
from spamd.feedback.mailboxes.folders import (
    Listed,
    bootstrap_folders,
    excluded,
    sent_folders,
    watched,
)
from spamd.feedback.mailboxes.mailbox import (
    Folder,
    FolderChanges,
    FolderError,
    MailboxError,
    MessageSummary,
    Opened,
    Role,
    summary_of,
    unreadable,
    words,
)
from spamd.feedback.mailboxes.maildir_files import Files, letters_of
from spamd.feedback.mailboxes.opened import opened
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.ports import Cursor, Mailboxes
from spamd.ports import Clock
from spamd.wording import reason

P = ParamSpec("P")
T = TypeVar("T")

HEADER_BYTES = 64 * 1024
"""Read of each file for its summary; the fields we need stand well before that."""

KEYWORDS_BYTES = 64 * 1024
"""Read of the file with the names of keywords: 26 of them."""

RENAMES = 3
"""How often a file is looked for again under new flags before it counts as gone."""

JUNK_KEYWORDS = {"$junk", "$notjunk"}
"""In small letters: keywords differ in more than case (RFC 9051 §2.3.2)."""

FLAG_NAMES = {"S": "\\Seen", "R": "\\Answered", "F": "\\Flagged", "D": "\\Draft", "T": "\\Deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One folder's files: `names` maps the lasting part of a name to "new/…" or "cur/…"."""

    inode: int
    stamp: tuple[int, int]
    names: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Remembered:
    """What this process knows of a folder: its last listing, and the files looked at.

    old   those that lay there at the first poll: their times move when they are read
    told  what is known comes from the database
    """

    listing: Listing
    told: bool
    known: set[str] = field(default_factory=set)
    old: set[str] = field(default_factory=set)


class MaildirMailbox:
    """The Maildir of one user."""

    def __init__(
        self,
        account: AccountOptions,
        options: FeedbackOptions,
        clock: Clock,
        mailboxes: Mailboxes,
        threads: BlockingThreads | None = None,
    ) -> None:
        if account.maildir is None:
            raise ValueError("not a Maildir account")
        self.key = account.key
        self.actor = account.user or account.maildir.name
        self.root = account.maildir
        self.account = account
        self._options = options
        self._clock = clock
        self._mailboxes = mailboxes
        self._remembered: dict[str, Remembered] = {}
        self._names: dict[str, Mapping[str, str]] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._beside: Sequence[Listed] = ()
        self._files = Files(account.maildir)
        self._threads = threads or BlockingThreads("maildir", 1)

    async def open(self) -> None:
        """Check that there is a Maildir; what was not saved before is looked at again."""
        self._remembered = {}
        if not await self._aside(os.path.isdir, self.root / "cur"):
            raise MailboxError(
                f"{self.root} is no Maildir (it has no cur), or it can't be entered:"
                " check the path and the permissions of the user spamd runs as"
            )

    async def close(self) -> None:
        """Nothing is held open."""

    async def folders(self) -> Sequence[Folder]:
        listed = await self._aside(self._listed)
        folders = await self._aside(watched, listed, self.account, self._options)
        self._beside = listed
        self._stamps = await self._aside(self._current_stamps, folders)
        return folders

    async def sent_folders(self) -> Sequence[Folder]:
        sent = await self._aside(sent_folders, self._beside, self.account, self._options)
        self._stamps |= await self._aside(self._current_stamps, sent)
        return sent

    async def bootstrap_folders(self) -> Sequence[tuple[Folder, Role]]:
        listed = await self._aside(self._listed)
        return await self._aside(bootstrap_folders, listed, self.account, self._options)

    async def changes(
        self, folder: Folder, cursor: Cursor | None, *, baseline: bool
    ) -> FolderChanges | None:
        began = self._clock.now()
        listing = await self._aside(self._list, folder)
        remembered = await self._recall(folder, listing, cursor)
        gone = remembered.known - listing.names.keys()
        again = cursor is not None and cursor.validity != listing.inode
        keys = sorted(
            listing.names.keys()
            if again or cursor is None
            else listing.names.keys() - remembered.known
        )
        marked = [] if again else self._marked(folder, remembered, listing)
        remembered.listing = listing
        remembered.known &= listing.names.keys()
        if cursor is not None and not again and not keys and not marked and not gone:
            return None
        if cursor is not None and not again:
            start = cursor
        else:
            lay_there = baseline or again
            remembered.old = set(listing.names) if lay_there else set()
            start = await self._aside(self._first_cursor, folder, listing, lay_there)
        return FolderChanges(
            folder=folder,
            keys=keys,
            marked=marked,
            there=listing.names.keys() if again or gone else None,
            start=start,
            end=replace(start, messages=len(listing.names), time=began),
            numbered=False,
            again=again,
        )

    async def _recall(self, folder: Folder, listing: Listing, cursor: Cursor | None) -> Remembered:
        """Return what is known of a folder, from the database when this process knows nothing."""
        remembered = self._remembered.get(folder.raw)
        if remembered is None or (cursor is not None and not remembered.told):
            known: set[str] = set()
            if cursor is not None:
                known = {row.key for row in await self._mailboxes.lying(self.key, folder.name)}
            old = remembered.old if remembered else set()
            remembered = Remembered(listing=listing, known=known, old=old, told=cursor is not None)
            self._remembered[folder.raw] = remembered
        return remembered

    async def summaries(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Sequence[MessageSummary]:
        messages = await self._aside(lambda: [self._summary(folder, key, cursor) for key in keys])
        remembered = self._remembered.get(folder.raw)
        if remembered is not None:
            remembered.known.update(keys)
        return [message for message in messages if message is not None]

    async def content(self, folder: Folder, key: str) -> bytes | None:
        limit = self._options.max_message_bytes
        try:
            read = await self._aside(self._read, folder, key, limit)
        except OSError as error:
            raise FolderError(f"{key} in {folder.name} can't be read: {reason(error)}") from error
        return None if read is None else read[0]

    async def still_there(
        self,
        folder: Folder,
        keys: Sequence[str],
        cursor: Cursor,  # noqa: ARG002 - names of files last for ever
    ) -> Collection[str]:
        names = (await self._aside(self._list, folder)).names
        return {key for key in keys if key in names and "T" not in letters_of(names[key])}

    async def opened(self, folder: Folder, unread: Sequence[str], read: Sequence[str]) -> Opened:
        names = self._names.get(folder.raw, {})
        return await self._aside(opened, self._files, folder, names, unread, read)

    async def raised_baseline(self, folder: Folder, cursor: Cursor) -> Cursor:
        listing = await self._aside(self._list, folder)
        remembered = self._remembered.get(folder.raw)
        if remembered is not None:
            if remembered.listing.stamp == listing.stamp:
                return cursor
            remembered.old |= listing.names.keys() - remembered.known
        newest = max(listing.stamp) // 1000 + 1
        return replace(cursor, baseline=max(cursor.baseline, newest))

    async def in_excluded_folder(self, folder: Folder, message: MessageSummary) -> bool:  # noqa: ARG002 - all are alike
        """Return whether a mail lies in an excluded folder (Trash) as well; in doubt it does."""
        return await self._aside(self._in_excluded_folder, message.key)

    silent = False

    async def wait(self, folder: Folder | None, seconds: float) -> None:  # noqa: ARG002 - all folders are watched alike
        """Return when something happened in any folder, after `seconds` at the latest."""
        pause = min(self._options.maildir_poll_s, seconds)
        waited = 0.0
        while waited < seconds:
            await asyncio.sleep(pause)
            waited += pause
            if await self._aside(self._changed):
                return

    async def _aside(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what may hang: the disk may be another machine's."""
        return await self._threads.call(nothing, work, *args, **kwargs)

    def _changed(self) -> bool:
        return any(self._stamp(raw) != stamp for raw, stamp in self._stamps.items())

    def _current_stamps(self, folders: Sequence[Folder]) -> dict[str, tuple[int, int]]:
        return {raw: self._stamp(raw) for raw in ["", *(folder.raw for folder in folders)]}

    def _stamp(self, raw: str) -> tuple[int, int]:
        return self._files.stamp(raw) if raw else (self._files.changed(), 0)

    def _listed(self) -> list[Listed]:
        try:
            return self._files.folders()
        except OSError as error:
            raise MailboxError(f"{self.root} can't be read: {reason(error)}") from error

    def _list(self, folder: Folder) -> Listing:
        try:
            stamp = self._files.stamp(folder.raw)
            names = {_base(name[4:]): name for name in self._files.names(folder.raw)}
            self._names[folder.raw] = names
            return Listing(inode=self._files.inode(folder.raw), stamp=stamp, names=names)
        except OSError as error:
            raise FolderError(
                f"folder {words(folder.name)} ({self.root / folder.raw}) can't be read:"
                f" {reason(error)}; check the permissions of the user spamd runs as"
            ) from error

    def _in_excluded_folder(self, key: str) -> bool:
        beside = excluded(self._beside, self.account, self._options)
        try:
            return any(_base(name[4:]) == key for raw in beside for name in self._files.names(raw))
        except OSError:
            return True

    def _first_cursor(self, folder: Folder, listing: Listing, lay_there: bool) -> Cursor:  # noqa: FBT001 - positional for the thread
        """Return the cursor of a first poll; `baseline` is a time, in µs of the file system."""
        newest = max(listing.stamp) // 1000 + 1 if lay_there else 0
        return Cursor(
            account=self.key,
            folder=folder.name,
            validity=listing.inode,
            next_uid=0,
            modseq=0,
            messages=0,
            baseline=newest,
            marked="",
            time=self._clock.now(),
        )

    def _marked(self, folder: Folder, remembered: Remembered, listing: Listing) -> list[str]:
        """Return the mails looked at before whose keywords changed."""
        before = remembered.listing.names
        changed = [
            base
            for base, name in listing.names.items()
            if base in remembered.known and base in before and before[base] != name
        ]
        if not changed or not self._options.keywords:
            return []
        keywords = self._keywords(folder)

        def marks(name: str) -> frozenset[str]:
            return frozenset(map(str.lower, _flags(name, keywords))) & JUNK_KEYWORDS

        return [base for base in changed if marks(listing.names[base]) - marks(before[base])]

    def _summary(self, folder: Folder, key: str, cursor: Cursor) -> MessageSummary | None:
        try:
            read = self._read(folder, key, HEADER_BYTES)
            if read is None:
                return None
            content, status, name = read
            flags = _flags(name, self._keywords(folder))
        except OSError as error:
            return unreadable(key, f"{key} in {folder.name} can't be read: {reason(error)}")
        remembered = self._remembered.get(folder.raw)
        is_old = remembered is not None and key in remembered.old
        return summary_of(
            key,
            content,
            flags=flags,
            delivered=datetime.fromtimestamp(status.st_mtime, UTC),
            baseline=is_old or status.st_ctime_ns // 1000 < cursor.baseline,
        )

    def _keywords(self, folder: Folder) -> dict[str, str]:
        """Return the keywords behind the letters a … z of a folder, as Dovecot writes them down."""
        try:
            with self._files.open(folder.raw, "dovecot-keywords") as file:
                lines = file.read(KEYWORDS_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return {}
        pairs = (line.partition(" ") for line in lines)
        numbers = {str(number): chr(ord("a") + number) for number in range(26)}
        return {numbers[number]: name for number, _, name in pairs if number in numbers}

    def _read(
        self, folder: Folder, key: str, limit: int
    ) -> tuple[bytes, os.stat_result, str] | None:
        """Return a file's start, its status and its name now; None when it is gone.

        Raises:
            OSError: it is there and can't be read.
        """
        names = self._names.get(folder.raw) or self._list(folder).names
        for _ in range(RENAMES):
            if key not in names:
                return None
            try:
                with self._files.open(folder.raw, names[key]) as file:
                    return file.read(limit), os.fstat(file.fileno()), names[key]
            except FileNotFoundError:
                names = self._list(folder).names  # its flags changed, and with them its name
        return None


def _base(name: str) -> str:
    """Return the part of a file name that stays when flags change."""
    return name.partition(":2,")[0]


def _flags(name: str, keywords: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        flag
        for letter in letters_of(name)
        if (flag := FLAG_NAMES.get(letter) or keywords.get(letter))
    )
