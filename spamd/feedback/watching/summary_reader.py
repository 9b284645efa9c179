"""Reads the summaries of new mail in batches across folders; asks again for what was left out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spamd.feedback.mailboxes.mailbox import (
    FolderChanges,
    Mailbox,
    MailboxError,
    MessageSummary,
    unreadable,
)
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.watching.lesson_rule import Event
from spamd.feedback.watching.parked_messages import ParkedMessages
from spamd.feedback.watching.poll_state import ChangedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Mails of one folder that are looked at together with those of others."""

    changes: FolderChanges
    event: Event
    keys: Sequence[str]


class SummaryReader:
    """Reads the mails of one account.

    whole   the server has answered for all that it lists, since this was set
    """

    def __init__(self, mailbox: Mailbox, parked: ParkedMessages, options: FeedbackOptions) -> None:
        self._mailbox = mailbox
        self._parked = parked
        self._options = options
        self._unanswered: Counter[tuple[str, str]] = Counter()
        self.whole = True

    async def summaries(self, portion: Portion) -> list[ChangedMessage]:
        """Return the summaries of some mails; of those that can't be read, why."""
        changes, keys = portion.changes, self._parked.readable(portion.changes.folder, portion.keys)
        try:
            messages = [*await self._mailbox.summaries(changes.folder, keys, changes.start)]
            missing = set(keys) - {message.key for message in messages}
            if missing:
                messages += await self._missed(changes, sorted(missing))
        except MailboxError:
            self._parked.connection_lost(changes.folder, portion.keys)
            raise
        messages += self._parked.hanging_up(changes.folder, portion.keys)
        return [
            ChangedMessage(folder=changes.folder, message=message, event=portion.event)
            for message in messages
        ]

    async def _missed(self, changes: FolderChanges, missing: Sequence[str]) -> list[MessageSummary]:
        """Ask once more for mails that the server listed and did not answer for.

        Those that it lists still are asked for at the next poll, which goes over all this again,
        and are parked at last.
        """
        folder = changes.folder
        there = set(await self._mailbox.still_there(folder, missing, changes.end))
        messages: list[MessageSummary] = []
        for _ in range(self._options.attempts):
            if asked := sorted(there - {message.key for message in messages}):
                messages += await self._mailbox.summaries(folder, asked, changes.start)
        for key in there - {message.key for message in messages}:
            self._unanswered[folder.name, key] += 1
            if self._unanswered[folder.name, key] >= self._options.attempts:
                del self._unanswered[folder.name, key]
                messages.append(
                    unreadable(key, "the server lists the message and does not return it")
                )
            else:
                self.whole = False
        return messages


def batches(found: Sequence[FolderChanges], chunk: int) -> Iterator[list[Portion]]:
    """Yield all mails to look at in batches of `chunk`, across folders, first the new ones."""
    batch: list[Portion] = []
    room = chunk
    for event in Event:
        for changes in found:
            keys = changes.keys if event is Event.ARRIVED else changes.marked
            start = 0
            while start < len(keys):
                taken = keys[start : start + room]
                batch.append(Portion(changes=changes, event=event, keys=taken))
                start += len(taken)
                room -= len(taken)
                if room == 0:
                    yield batch
                    batch, room = [], chunk
    if batch:
        yield batch
