"""Mail that could not be read or learned: tried again, then left aside (`spamd feedback parked`).

A mail that makes the server hang up is found by asking for fewer at a time; what it would teach is
kept with it, for when it is tried again nothing tells any more where it lay.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from spamd.errors import AccountError, SpamdError, TemporaryError
from spamd.feedback.mailboxes.mailbox import (
    Folder,
    FolderError,
    Mailbox,
    MailboxError,
    MessageSummary,
    unreadable,
)
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Cursor, Parked
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.teacher import Candidate
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.lesson_rule import Event
from spamd.feedback.watching.move_verifier import MoveVerifier, VanishedError
from spamd.feedback.watching.poll_state import ChangedMessage
from spamd.sample import Label
from spamd.wording import reason

Teach = Callable[[Sequence[Candidate]], Awaitable[RunSummary]]
"""How lessons are given."""


class ParkedMessages:
    """The mails of one account that failed.

    losses  how often the connection ended when one mail was asked for
    chunk   how many mails to ask for at a time now
    """

    def __init__(
        self,
        mailbox: Mailbox,
        context: WatcherContext,
        options: FeedbackOptions,
        verifier: MoveVerifier,
        teach: Teach,
    ) -> None:
        self._mailbox = mailbox
        self._mailboxes = context.mailboxes
        self._verifier = verifier
        self._teach = teach
        self._options = options
        self._clock = context.clock
        self._observer = context.observer
        self.losses: Counter[tuple[str, str]] = Counter()
        self.chunk = options.chunk

    async def fail(
        self,
        folder: Folder,
        key: str,
        error: Exception,
        summary: RunSummary,
        *,
        label: Label | None,
        attempts: int = 1,
    ) -> None:
        """Park a mail, unless it is gone, or more than this mail went wrong."""
        if isinstance(error, VanishedError):
            summary.skipped["vanished"] += 1
            return
        if isinstance(error, TemporaryError):
            raise error
        if isinstance(error, MailboxError) and not isinstance(error, FolderError):
            self.connection_lost(folder, [key])
            raise error
        await self.park(folder, key, error, summary, label=label, attempts=attempts)

    def connection_lost(self, folder: Folder, keys: Sequence[str]) -> None:
        """Remember what was asked for when the connection ended; ask for less the next time."""
        if len(keys) == 1:
            self.losses[folder.name, keys[0]] += 1
        self.chunk = max(1, min(self.chunk, len(keys)) // 20)

    def readable(self, folder: Folder, keys: Sequence[str]) -> list[str]:
        """Return those mails that don't make the server hang up each time they are read."""
        limit = self._options.attempts
        return [key for key in keys if self.losses[folder.name, key] < limit]

    def hanging_up(self, folder: Folder, keys: Sequence[str]) -> list[MessageSummary]:
        """Return summaries for mails that make the server hang up each time they are read."""
        lost = set(keys) - set(self.readable(folder, keys))
        return [
            unreadable(key, "the connection ends when the message is read") for key in sorted(lost)
        ]

    async def park(
        self,
        folder: Folder,
        key: str,
        error: Exception,
        summary: RunSummary,
        *,
        label: Label | None = None,
        attempts: int = 1,
    ) -> None:
        """Remember a mail that failed; it is tried again until `feedback.attempts`."""
        summary.parked += 1
        self._observer.failed("mail.parked", error, account=self._mailbox.key, attempts=attempts)
        cursors = await self._mailboxes.cursors(self._mailbox.key)
        parked = Parked(
            account=self._mailbox.key,
            folder=folder.name,
            validity=cursors[folder.name].validity if folder.name in cursors else 0,
            uid=key,
            attempts=attempts,
            reason=why_parked(error),
            time=self._clock.now(),
            label=label,
        )
        await self._mailboxes.park(parked)

    async def retry(
        self, folders: Sequence[Folder], cursors: Mapping[str, Cursor], summary: RunSummary
    ) -> None:
        """Try again what failed before and has waited for `feedback.poll_s`."""
        by_name = {folder.name: folder for folder in folders}
        waited = self._clock.now() - timedelta(seconds=self._options.poll_s)
        for parked in await self._mailboxes.parked(self._mailbox.key):
            if parked.attempts >= self._options.attempts or parked.time > waited:
                continue
            folder, cursor = by_name.get(parked.folder), cursors.get(parked.folder)
            if folder is None or cursor is None or cursor.validity != parked.validity:
                await self._unpark(parked)
                continue
            await self._retry_one(parked, folder, cursor, summary)

    async def _retry_one(
        self, parked: Parked, folder: Folder, cursor: Cursor, summary: RunSummary
    ) -> None:
        readable = self.readable(folder, [parked.uid])
        try:
            found = await self._mailbox.summaries(folder, readable, cursor)
        except MailboxError:
            self.connection_lost(folder, [parked.uid])
            raise
        failed = summary.parked
        for message in [*found, *self.hanging_up(folder, [parked.uid])]:
            seen = ChangedMessage(folder=folder, message=message, event=Event.ARRIVED)
            await self._try_again(seen, parked, summary)
        if summary.parked == failed:
            await self._unpark(parked)

    async def _try_again(self, seen: ChangedMessage, parked: Parked, summary: RunSummary) -> None:
        """Teach what a mail was found to teach when it failed; else only remember it."""
        summary.examined += 1
        attempts = parked.attempts + 1
        try:
            if seen.message.fault:
                raise FolderError(seen.message.fault)  # noqa: TRY301 - both faults end alike
            if parked.label is not None:
                known = (await self._verifier.known([seen.message])).get(seen.message.id or "")
                found = await self._verifier.candidate(seen, parked.label, known)
                if isinstance(found, Candidate):
                    summary.add(await self._teach([found]))
        except Exception as error:  # noqa: BLE001 - the border around one mail
            key = seen.message.key
            await self.fail(seen.folder, key, error, summary, label=parked.label, attempts=attempts)
            return
        await self._mailboxes.save(self._mailbox.key, [], [seen.sighting])

    async def _unpark(self, parked: Parked) -> None:
        await self._mailboxes.unpark(parked.account, parked.folder, parked.uid)


def why_parked(error: Exception) -> str:
    """Return why a message was parked; only a fault of the program is shown with its class."""
    if isinstance(error, AccountError | SpamdError | OSError):
        return reason(error)
    return f"internal error ({type(error).__name__}): {error}"
