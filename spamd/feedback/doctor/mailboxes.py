"""What the doctor does with its own test mail in an account: find it, move it, remove it.

Only here does feedback write to a mailbox, and only one mail that the doctor has sent itself.
"""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from imapclient.exceptions import IMAPClientError

from spamd.feedback.mailboxes.folders import watched
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.imap_session import PATIENCE, ImapSession
from spamd.feedback.mailboxes.mailbox import Folder, Mailbox, MailboxError, Place, words
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions

HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The test mail where it lies: `header` is its start, `delivered` when it came."""

    folder: Folder
    key: str
    header: bytes
    delivered: datetime | None


class DoctorMailbox(Protocol):
    """An account as the doctor uses it. All methods raise `MailboxError` when it is out of reach.

    key     the account
    named   names of folders that the settings give for this very account
    """

    key: str
    named: tuple[str, ...]

    async def folders(self) -> list[Folder]:
        """Return the folders that are watched."""
        ...

    async def find(self, mark: str) -> Found | None:
        """Return the mail whose Message-ID holds `mark`."""
        ...

    async def move(self, found: Found, place: Place) -> None:
        """Move the mail into the first folder that is `place`."""
        ...

    async def remove(self, found: Found) -> None:
        """Remove the mail."""
        ...

    async def close(self) -> None:
        """Log out; never fails."""
        ...


class _WritingSession(ImapSession):
    """A session that may move and remove the one mail that is the doctor's own."""

    def search(self, raw: str, mark: str) -> list[int]:
        """Return the UIDs of mail whose Message-ID holds `mark`."""
        self.examine(raw)
        with self._folder_errors(raw):
            return list(self._client.search(["HEADER", "Message-ID", mark]))

    def move(self, raw: str, uid: int, target: str) -> None:
        """Move a mail, by COPY and EXPUNGE where the server knows no MOVE."""
        self._begin(self._timeout_s * PATIENCE)
        self._client.select_folder(raw)
        try:
            if self.has("MOVE"):
                self._client.move([uid], target)
            else:
                self._client.copy([uid], target)
                self.remove(raw, uid)
        except IMAPClientError as error:
            raise MailboxError(
                f"the test mail can't be moved to {target}: {words(error)}"
            ) from error

    def remove(self, raw: str, uid: int) -> None:
        """Remove a mail; no other that somebody marked as deleted, if the server can."""
        self._begin(self._timeout_s * PATIENCE)
        self._client.select_folder(raw)
        self._client.delete_messages([uid], silent=True)
        if self.has("UIDPLUS"):
            self._client.uid_expunge([uid])


class DoctorImapMailbox:
    """An IMAP account."""

    def __init__(
        self, account: AccountOptions, options: FeedbackOptions, *, login: str, key: str
    ) -> None:
        self.key = key
        self.named = (*account.junk_folders, *account.folders)
        self._account = account
        self._options = options
        self._session = _WritingSession(account, login, options.timeout_s)
        self._open = False

    async def folders(self) -> list[Folder]:
        return await asyncio.to_thread(self._folders)

    async def find(self, mark: str) -> Found | None:
        return await asyncio.to_thread(self._find, mark)

    async def move(self, found: Found, place: Place) -> None:
        target = next(f for f in await self.folders() if f.place is place)
        uid = int(found.key)
        await asyncio.to_thread(self._session.move, found.folder.raw, uid, target.raw)

    async def remove(self, found: Found) -> None:
        await asyncio.to_thread(self._session.remove, found.folder.raw, int(found.key))

    async def close(self) -> None:
        await asyncio.to_thread(self._session.close)

    def _folders(self) -> list[Folder]:
        if not self._open:
            self._session.open()
            self._open = True
        return watched(self._session.listed(), self._account, self._options)

    def _find(self, mark: str) -> Found | None:
        for folder in self._folders():
            for uid in self._session.search(folder.raw, mark):
                content = self._session.content(folder.raw, uid, HEADER_BYTES)
                rows = self._session.rows(folder.raw, [uid])
                if content is not None and rows:
                    return Found(
                        folder=folder, key=str(uid), header=content, delivered=rows[0].delivered
                    )
        return None


class DoctorMaildirMailbox:
    """A Maildir."""

    def __init__(self, mailbox: MaildirMailbox) -> None:
        self.key = mailbox.key
        self.named = (*mailbox.account.junk_folders, *mailbox.account.folders)
        self._mailbox = mailbox
        self._root = mailbox.root

    async def folders(self) -> list[Folder]:
        await self._mailbox.open()
        return list(await self._mailbox.folders())

    async def find(self, mark: str) -> Found | None:
        if not await asyncio.to_thread(os.path.isdir, self._root):
            return None  # it comes into being with its first mail
        folders = await self.folders()
        return await asyncio.to_thread(self._find, folders, mark.encode())

    async def move(self, found: Found, place: Place) -> None:
        target = next(f for f in await self.folders() if f.place is place)
        base = Path(found.key).name.partition(":2,")[0]
        source, goal = self._root / found.key, self._root / target.raw / "cur" / f"{base}:2,S"
        await asyncio.to_thread(os.rename, source, goal)

    async def remove(self, found: Found) -> None:
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(os.unlink, self._root / found.key)

    async def close(self) -> None:
        """Nothing is held open."""

    def _find(self, folders: list[Folder], mark: bytes) -> Found | None:
        for folder in folders:
            for part in ("new", "cur"):
                for path in (self._root / folder.raw / part).glob("*"):
                    with contextlib.suppress(OSError), path.open("rb") as file:
                        header = file.read(HEADER_BYTES)
                        if mark in header:
                            return Found(
                                folder=folder,
                                key=str(path.relative_to(self._root)),
                                header=header,
                                delivered=datetime.fromtimestamp(path.stat().st_mtime, UTC),
                            )
        return None


def doctor_mailbox(mailbox: Mailbox, options: FeedbackOptions) -> DoctorMailbox:
    """Return a mailbox that may move and remove the test message."""
    match mailbox:
        case ImapMailbox():
            return DoctorImapMailbox(mailbox.account, options, login=mailbox.login, key=mailbox.key)
        case MaildirMailbox():
            return DoctorMaildirMailbox(mailbox)
        case _:
            raise TypeError(type(mailbox).__name__)
