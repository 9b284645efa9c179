"""The watcher of one account: looks, decides by the rule, teaches, remembers, waits.

One look (`Watcher.look`) goes over all folders that changed, Junk first, in batches of
`feedback.chunk` mails. After each batch the lessons are in the journal, and then the cursors and
traces are written; a kill between the two only makes the batch be read again, and the journal knows
its lessons. Memory is bounded by the batch, however large the folders are.

What goes wrong with one mail parks that mail; what goes wrong with one folder is reported, and the
next folder is read; what goes wrong with the account or the database ends the look, and `run`
starts again with growing pauses. A lost connection loses nothing: the next look catches up.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta

from spamd.errors import TemporaryError
from spamd.feedback.folders import MOST_LISTED
from spamd.feedback.learn import Candidate, Extract, Tally, Teacher
from spamd.feedback.mailbox import (
    Folder,
    FolderError,
    Head,
    Mailbox,
    MailboxError,
    News,
    unreadable,
)
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.rule import NOWHERE, Event
from spamd.feedback.sighting import Context, Judge, Seen, VanishedError, places
from spamd.ports import Clock, Cursor, History, Known, Mailboxes, Observer, Parked, Place

ID_CHARACTERS = 100
"""Longest X-Spam-Id value worth a question to the database: ours are far shorter."""

TEACHES_NOTHING = "teach nothing"

JUST_NOW_S = 10
"""Mail this young may have been scanned by a worker that has not written it down yet."""

WRITTEN_S = 1.5
"""Workers write their scans down every second; after this pause the scan is there, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the watchers know and remember, and whom they teach."""

    mailboxes: Mailboxes
    history: History
    teacher: Teacher
    extract: Extract


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Mails of one folder that are looked at together with those of others."""

    news: News
    event: Event
    keys: Sequence[str]


class Watcher:
    """Watches one `Mailbox`; `source` names the way in the lesson journal ("imap", "maildir").

    `turn` is held while it looks, where several may not all look at once.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        memory: Memory,
        options: FeedbackOptions,
        clock: Clock,
        observer: Observer,
        *,
        source: str,
        turn: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        self._mailbox = mailbox
        self._memory = memory
        self._options = options
        self._clock = clock
        self._observer = observer
        self._source = source
        self._turn = turn or nullcontext()
        self._judge = Judge(mailbox, memory.history, memory.extract, options)
        self._unseen = NOWHERE
        self._unseen_before = NOWHERE
        self._wait_in: Folder | None = None
        self._chunk = options.chunk
        self._left_out = False
        self._losses: Counter[tuple[str, str]] = Counter()

    async def run(self) -> None:
        """Watch until cancelled; what fails is told to the observer and tried again."""
        pause = self._options.retry_first_s
        told = ""
        while True:
            try:
                await self._mailbox.open()
                self._observer.happened("account.opened", account=self._mailbox.key)
                while True:
                    async with self._turn:
                        await self.look()
                    pause, told = self._options.retry_first_s, ""
                    await self._mailbox.wait(self._wait_in, self._options.poll_s)
            except Exception as error:  # noqa: BLE001 - the border around one service
                if str(error) != told:  # the same again and again is one line in the log
                    self._observer.failed("account.lost", error, account=self._mailbox.key)
                told = str(error)
            finally:
                await self._mailbox.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._options.retry_most_s)

    async def once(self) -> Tally:
        """Look once, with open and close; what fails stands in the tally.

        A mail that makes the server hang up is found and parked, which takes some connections.
        """
        while True:
            losses = self._losses.total(), self._chunk
            try:
                await self._mailbox.open()
                return await self.look()
            except (MailboxError, TemporaryError) as error:
                self._observer.failed("account.lost", error, account=self._mailbox.key)
                if losses == (self._losses.total(), self._chunk):
                    return Tally(faults=[str(error)])
            finally:
                await self._mailbox.close()

    async def look(self) -> Tally:
        """Look at everything that changed since the last look, and learn.

        Raises:
            MailboxError: the account went out of reach.
            TemporaryError: the database did.
        """
        tally = Tally()
        folders = self._first(await self._mailbox.folders())
        self._wait_in = folders[0] if folders else None
        cursors = await self._cursors()
        await self._retry(folders, cursors, tally)
        found = await self._news(folders, cursors, tally)
        self._unseen_before, self._unseen = self._unseen, NOWHERE
        for news in found:
            self._note_gap(news.folder, gap=news.unseen)
        for batch in _batches(found, self._chunk):
            await self._read(batch, tally)
        self._chunk = self._options.chunk
        for news in found:
            await self._memory.mailboxes.save(news.end, self._mailbox.key, {})
        if tally.examined:
            self._observer.happened(
                "account.examined",
                account=self._mailbox.key,
                examined=tally.examined,
                learned=tally.learned.total(),
            )
        return tally

    def _first(self, folders: Sequence[Folder]) -> Sequence[Folder]:
        """Return as many folders as may be watched; those left out are told once."""
        most = self._options.max_folders
        first = [folder for folder in folders if folder.place is not Place.OTHER]
        if len(folders) > most and not self._left_out:
            number = f"{len(folders):,}" + " or more" * (len(folders) >= MOST_LISTED)
            error = FolderError(
                f"{number} folders, of which {most:,} are watched; name those that matter in"
                " folders of the account, or raise feedback.max_folders"
            )
            self._observer.failed("folders.left", error, account=self._mailbox.key)
        self._left_out = len(folders) > most
        if not self._left_out:
            return folders
        others = [folder for folder in folders if folder.place is Place.OTHER]
        kept = {folder.raw for folder in [*first, *others][:most]}
        return [folder for folder in folders if folder.raw in kept]

    async def _cursors(self) -> dict[str, Cursor]:
        """Return how far each folder was read.

        No look was in the future: the clock was set back since, and what is new may have just come.
        """
        now = self._clock.now()
        cursors = await self._memory.mailboxes.cursors(self._mailbox.key)
        return {name: replace(one, time=min(one.time, now)) for name, one in cursors.items()}

    async def _news(
        self, folders: Sequence[Folder], cursors: Mapping[str, Cursor], tally: Tally
    ) -> list[News]:
        """Return what is new, with all first cursors written: from then on a kill costs nothing.

        A folder without a cursor holds old mail when the account is new, and when another folder
        vanished or lost its UIDs: it may be that one under a new name.
        """
        names = {folder.name for folder in folders}
        inbox = next((folder.name for folder in folders if folder.place is Place.INBOX), None)
        lost = [cursor for name, cursor in cursors.items() if name not in names]
        gone = [cursor.folder for cursor in lost]
        found: list[News] = []
        for folder in sorted(folders, key=lambda folder: folder.name not in cursors):
            cursor = cursors.get(folder.name)
            baseline = inbox not in cursors or bool(lost)
            try:
                news = await self._mailbox.look(folder, cursor, baseline=baseline)
                if news and cursor is None and (old := _renamed(news, lost)):
                    news = await self._follow(folder, old)
            except FolderError as error:
                tally.faults.append(str(error))
                self._observer.failed("folder.failed", error, account=self._mailbox.key)
                continue
            if news:
                found.append(news)
                if cursor is not None and cursor.validity != news.start.validity:
                    lost.append(cursor)
        # The inbox goes last: while it has no cursor, the account counts as new.
        for news in sorted(found, key=lambda news: news.folder.place is Place.INBOX):
            if cursors.get(news.folder.name) != news.start:
                await self._memory.mailboxes.save(news.start, self._mailbox.key, {})
        for name in gone:
            await self._memory.mailboxes.forget(self._mailbox.key, name)
        return found

    async def _follow(self, folder: Folder, old: Cursor) -> News | None:
        """Go on with a renamed folder where it was left under its old name."""
        moved = replace(old, folder=folder.name)
        await self._memory.mailboxes.save(moved, self._mailbox.key, {})
        return await self._mailbox.look(folder, moved, baseline=True)

    async def _read(self, batch: Sequence[Portion], tally: Tally) -> None:
        """Read the mails of a batch, teach what they teach, then remember that they were read."""
        portions = [(portion, await self._heads(portion)) for portion in batch]
        await self._learn([one for _, heads in portions for one in heads], tally)
        for portion, heads in portions:
            reached = portion.news.reached(portion.keys[-1])
            cursor = reached if portion.event is Event.ARRIVED else None
            await self._memory.mailboxes.save(cursor, self._mailbox.key, places(heads))

    async def _learn(self, seen: Sequence[Seen], tally: Tally, attempt: int = 1) -> None:
        """Teach what mails teach; those that fail are parked."""
        tally.examined += len(seen)
        for one in seen:
            if one.head.fault:
                await self._park(one, attempt, FolderError(one.head.fault), tally)
        seen = [one for one in seen if not one.head.fault]
        candidates: list[Candidate] = []
        for one, context in zip(seen, await self._contexts(seen), strict=True):
            candidate = await self._judged(one, context, tally, attempt)
            if candidate:
                candidates.append(candidate)
        if candidates:
            taught = await self._memory.teacher.teach(candidates, self._source, self._mailbox.actor)
            tally.add(taught)

    async def _heads(self, portion: Portion) -> list[Seen]:
        news = portion.news
        try:
            heads = await self._mailbox.heads(
                news.folder, self._bearable(news.folder, portion.keys), news.start
            )
        except MailboxError:
            self._note_loss(news.folder, portion.keys)
            raise
        heads = [*heads, *self._unbearable(news.folder, portion.keys)]
        if portion.event is Event.ARRIVED:
            self._note_gap(news.folder, gap=len(heads) < len(portion.keys))
        return [Seen(folder=news.folder, head=head, event=portion.event) for head in heads]

    def _note_loss(self, folder: Folder, keys: Sequence[str]) -> None:
        """Remember what was asked for when the connection ended; ask for less the next time."""
        if len(keys) == 1:
            self._losses[folder.name, keys[0]] += 1
        self._chunk = max(1, min(self._chunk, len(keys)) // 20)

    def _bearable(self, folder: Folder, keys: Sequence[str]) -> list[str]:
        limit = self._options.attempts
        return [key for key in keys if self._losses[folder.name, key] < limit]

    def _unbearable(self, folder: Folder, keys: Sequence[str]) -> list[Head]:
        """Return heads for mails that make the server hang up each time they are read."""
        lost = set(keys) - set(self._bearable(folder, keys))
        return [unreadable(key, "the connection ends when it is read") for key in sorted(lost)]

    def _note_gap(self, folder: Folder, *, gap: bool) -> None:
        if gap:
            self._unseen |= folder.place

    async def _contexts(self, seen: Sequence[Seen]) -> list[Context]:
        """Return what is known around each mail, asked for all at once."""
        traces = [one.head.traces[0] for one in seen]
        before = await self._memory.mailboxes.seen(self._mailbox.key, traces)
        known = await self._known([one.head for one in seen])
        sides: dict[bytes, Place] = {}
        for one, trace in zip(seen, traces, strict=True):
            if one.event is Event.ARRIVED:
                sides[trace] = sides.get(trace, NOWHERE) | one.folder.place
        return [
            Context(
                before=before.get(trace, NOWHERE),
                unseen=self._unseen | self._unseen_before,
                sides=sides.get(trace, NOWHERE),
                known=known.get(one.head.id or ""),
            )
            for one, trace in zip(seen, traces, strict=True)
        ]

    async def _known(self, heads: Sequence[Head]) -> Mapping[str, Known]:
        """Return what is known of mails under their ids."""
        ids = {
            head.id: head.delivered for head in heads if head.id and len(head.id) <= ID_CHARACTERS
        }
        if not ids:
            return {}
        known = await self._memory.history.by_id(list(ids))
        since = self._clock.now() - timedelta(seconds=JUST_NOW_S)
        if any(when is not None and when > since for one, when in ids.items() if one not in known):
            await asyncio.sleep(WRITTEN_S)
            known = await self._memory.history.by_id(list(ids))
        return known

    async def _judged(
        self, seen: Seen, context: Context, tally: Tally, attempt: int
    ) -> Candidate | None:
        try:
            candidate = await self._judge.judge(seen, context)
        except VanishedError:
            tally.skipped["vanished"] += 1
            return None
        except Exception as error:
            if isinstance(error, TemporaryError):
                raise
            if isinstance(error, MailboxError) and not isinstance(error, FolderError):
                self._note_loss(seen.folder, [seen.head.key])
                raise
            await self._park(seen, attempt, error, tally)
            return None
        if candidate is None:
            tally.skipped[TEACHES_NOTHING] += 1
        return candidate

    async def _park(self, seen: Seen, attempts: int, error: Exception, tally: Tally) -> None:
        """Remember a mail that failed; it is tried again until `feedback.attempts`."""
        tally.parked += 1
        self._observer.failed("mail.parked", error, account=self._mailbox.key, attempts=attempts)
        cursors = await self._memory.mailboxes.cursors(self._mailbox.key)
        parked = Parked(
            account=self._mailbox.key,
            folder=seen.folder.name,
            validity=cursors[seen.folder.name].validity,
            uid=seen.head.key,
            attempts=attempts,
            reason=f"{type(error).__name__}: {error}",
            time=self._clock.now(),
        )
        await self._memory.mailboxes.park(parked)

    async def _retry(
        self, folders: Sequence[Folder], cursors: Mapping[str, Cursor], tally: Tally
    ) -> None:
        """Try again what failed before and has waited for `feedback.poll_s`."""
        by_name = {folder.name: folder for folder in folders}
        waited = self._clock.now() - timedelta(seconds=self._options.poll_s)
        for parked in await self._memory.mailboxes.parked(self._mailbox.key):
            if parked.attempts >= self._options.attempts or parked.time > waited:
                continue
            folder, cursor = by_name.get(parked.folder), cursors.get(parked.folder)
            if folder is None or cursor is None or cursor.validity != parked.validity:
                await self._unpark(parked)
                continue
            await self._retry_one(parked, folder, cursor, tally)

    async def _retry_one(
        self, parked: Parked, folder: Folder, cursor: Cursor, tally: Tally
    ) -> None:
        bearable = self._bearable(folder, [parked.uid])
        try:
            found = await self._mailbox.heads(folder, bearable, cursor)
        except MailboxError:
            self._note_loss(folder, [parked.uid])
            raise
        heads = [*found, *self._unbearable(folder, [parked.uid])]
        seen = [Seen(folder=folder, head=head, event=Event.ARRIVED) for head in heads]
        failed = tally.parked
        await self._learn(seen, tally, parked.attempts + 1)
        if tally.parked == failed:
            await self._unpark(parked)
            await self._memory.mailboxes.save(None, self._mailbox.key, places(seen))

    async def _unpark(self, parked: Parked) -> None:
        await self._memory.mailboxes.unpark(parked.account, parked.folder, parked.uid)


def _renamed(news: News, lost: Sequence[Cursor]) -> Cursor | None:
    """Return the cursor that a new folder had under another name, None when it is really new.

    A renamed folder keeps its UIDVALIDITY, and its UIDs never go back.
    """
    for old in lost:
        same = old.validity and old.validity == news.start.validity
        if same and news.end.next_uid >= old.next_uid:
            return old
    return None


def _batches(found: Sequence[News], chunk: int) -> Iterator[list[Portion]]:
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
