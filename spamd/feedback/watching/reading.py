"""Reads the heads of new mail, in batches across folders, and asks again for what was left out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spamd.feedback.mailboxes.mailbox import Head, Mailbox, MailboxError, News, unreadable
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.watching.parking import ParkingLot
from spamd.feedback.watching.rule import Event
from spamd.feedback.watching.sighting import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Mails of one folder that are looked at together with those of others."""

    news: News
    event: Event
    keys: Sequence[str]


class Reader:
    """Reads the mails of one account.

    whole   the server has answered for all that it lists, since this was set
    """

    def __init__(self, mailbox: Mailbox, lot: ParkingLot, options: FeedbackOptions) -> None:
        self._mailbox = mailbox
        self._lot = lot
        self._options = options
        self._unanswered: Counter[tuple[str, str]] = Counter()
        self.whole = True

    async def heads(self, portion: Portion) -> list[Seen]:
        """Return the heads of some mails; of those that can't be read, why."""
        news, keys = portion.news, self._lot.bearable(portion.news.folder, portion.keys)
        try:
            heads = [*await self._mailbox.heads(news.folder, keys, news.start)]
            missing = set(keys) - {head.key for head in heads}
            if missing:
                heads += await self._missed(news, sorted(missing))
        except MailboxError:
            self._lot.lose(news.folder, portion.keys)
            raise
        heads += self._lot.unbearable(news.folder, portion.keys)
        return [Seen(folder=news.folder, head=head, event=portion.event) for head in heads]

    async def _missed(self, news: News, missing: Sequence[str]) -> list[Head]:
        """Ask once more for mails that the server listed and did not answer for.

        Those that it lists still are asked for at the next look, which goes over all this again,
        and are parked at last.
        """
        folder = news.folder
        there = set(await self._mailbox.still(folder, missing, news.end))
        heads: list[Head] = []
        for _ in range(self._options.attempts):
            if asked := sorted(there - {head.key for head in heads}):
                heads += await self._mailbox.heads(folder, asked, news.start)
        for key in there - {head.key for head in heads}:
            self._unanswered[folder.name, key] += 1
            if self._unanswered[folder.name, key] >= self._options.attempts:
                del self._unanswered[folder.name, key]
                heads.append(unreadable(key, "the server lists it and does not answer for it"))
            else:
                self.whole = False
        return heads


def batches(found: Sequence[News], chunk: int) -> Iterator[list[Portion]]:
    """Yield all mails to look at in batches of `chunk`, across folders, first the new ones."""
    batch: list[Portion] = []
    room = chunk
    for event in Event:
        for news in found:
            keys = news.keys if event is Event.ARRIVED else news.marked
            start = 0
            while start < len(keys):
                taken = keys[start : start + room]
                batch.append(Portion(news=news, event=event, keys=taken))
                start += len(taken)
                room -= len(taken)
                if room == 0:
                    yield batch
                    batch, room = [], chunk
    if batch:
        yield batch
