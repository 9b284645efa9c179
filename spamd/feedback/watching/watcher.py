"""The watcher of one account: looks, decides by the rule, teaches, remembers, waits.

One look (`Watcher.look`) goes over all folders that changed: the inbox, others, Junk last. New mail
is read in batches of `feedback.chunk`; what may be a lesson is decided when all is read. Then the
lessons go to the journal, and after that what was seen is written down, with how far was read, in
one transaction: a kill between the two only makes the look be made again, and the journal knows its
lessons. Old mail at a first look teaches nothing and is written down batch by batch; so memory is
bounded by what is new, however large the folders are.

What goes wrong with one mail parks that mail; what goes wrong with one folder is reported once, and
the next folder is read; what goes wrong with the account or the database ends the look, and `run`
starts again with growing pauses. A lost connection loses nothing: the next look catches up. Mail
that a server lists and leaves out of its answers is asked for again, then makes the whole look be
made again, and is parked at last.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace

from spamd.feedback.account_state import Ledger
from spamd.feedback.mailboxes.folders import MOST_LISTED
from spamd.feedback.mailboxes.mailbox import (
    Folder,
    FolderError,
    Mailbox,
    Place,
    words,
)
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Cursor, History, Known, Mailboxes, Sighting
from spamd.feedback.teacher import Candidate, Extract, Tally, Teacher
from spamd.feedback.watching.evidence import DATE_S, Judge
from spamd.feedback.watching.parking import ParkingLot
from spamd.feedback.watching.reading import Portion, Reader, batches
from spamd.feedback.watching.rule import Event, Why
from spamd.feedback.watching.sighting import Open, Seen, Sights
from spamd.feedback.watching.survey import Survey
from spamd.ports import Clock, Observer
from spamd.sample import Label

ORDER = (Place.INBOX, Place.OTHER, Place.JUNK)
"""In this order folders are read: a mail that Junk does not hold yet when it was seen elsewhere was
not put into both at once."""

SOON_S = 0.2
"""Pause before a look that is due already."""

WAVE = 10
"""So many mails from outside in one look are an import, and worth a line in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the watchers know and remember, and whom they teach."""

    mailboxes: Mailboxes
    history: History
    teacher: Teacher
    extract: Extract


class Watcher:
    """Watches one `Mailbox`; `source` names the way in the lesson journal ("imap", "maildir").

    `ledger` is told how the account fares; `turn` is held while it looks, where several may not all
    look at once.
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
        ledger: Ledger,
        turn: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        self._mailbox = mailbox
        self._memory = memory
        self._options = options
        self._clock = clock
        self._observer = observer
        self._source = source
        self._ledger = ledger
        self._turn = turn or nullcontext()
        self._judge = Judge(
            mailbox, memory.mailboxes, memory.history, memory.extract, options, clock
        )
        self._survey = Survey(mailbox, memory.mailboxes, clock, observer)
        self._lot = ParkingLot(
            mailbox, memory.mailboxes, self._judge, self._teach, options, clock, observer
        )
        self._wait_in: Folder | None = None
        self._reader = Reader(mailbox, self._lot, options)
        self._left_out = False
        self._began = clock.now()
        self._young: dict[str, float] = {}
        self._again: dict[str, list[Seen]] = {}

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
                    self._ledger.opened(self._mailbox.key)
                    self._ledger.heard(self._mailbox.key, silent=self._mailbox.silent)
                    pause, told = self._options.retry_first_s, ""
                    pause_s = self._options.poll_s
                    if self._young:
                        pause_s = max(SOON_S, self._left(self._young.values()))
                    await self._mailbox.wait(self._wait_in, min(pause_s, self._options.poll_s))
            except Exception as error:  # noqa: BLE001 - the border around one service
                if str(error) != told:  # the same again and again is one line in the log
                    self._observer.failed("account.lost", error, account=self._mailbox.key)
                self._ledger.lost(self._mailbox.key, words(error))
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
            losses = self._lot.losses.total(), self._lot.chunk
            try:
                await self._mailbox.open()
                tally = await self.look()
                if self._reader.whole and self._young:
                    await asyncio.sleep(self._left(self._young.values()))
                    tally.add(await self.look())
                self._ledger.opened(self._mailbox.key)
                if self._reader.whole:
                    return tally
            except Exception as error:  # noqa: BLE001 - the border around one account
                self._observer.failed("account.lost", error, account=self._mailbox.key)
                self._ledger.lost(self._mailbox.key, words(error))
                if losses == (self._lot.losses.total(), self._lot.chunk):
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
        self._began = self._clock.now()
        self._reader.whole, self._again = True, {}
        folders = self._first(await self._mailbox.folders())
        self._wait_in = folders[0] if folders else None
        cursors = await self._cursors()
        await self._lot.retry(folders, cursors, tally)
        sights = Sights(folders, cursors)
        await self._survey.look(sights, tally)
        for batch in batches(list(sights.news.values()), self._lot.chunk):
            await self._read(batch, sights, tally)
        self._lot.chunk = self._options.chunk
        await self._decide(sights, tally)
        await self._remember(sights)
        self._survey.looked = True
        if tally.examined:
            self._observer.happened(
                "account.examined",
                account=self._mailbox.key,
                examined=tally.examined,
                learned=tally.learned.total(),
            )
        return tally

    def _first(self, folders: Sequence[Folder]) -> Sequence[Folder]:
        """Return as many folders as may be watched, Junk last; those left out are told once."""
        most = self._options.max_folders
        folders = sorted(folders, key=lambda one: ORDER.index(one.place))
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
        first = [folder for folder in folders if folder.place is not Place.OTHER]
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

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def _read(self, batch: Sequence[Portion], sights: Sights, tally: Tally) -> None:
        """Read the heads of a batch, and keep those that may be lessons."""
        fresh: list[Seen] = []
        for portion in batch:
            seen = await self._reader.heads(portion)
            tally.examined += len(seen)
            for one in seen:
                if one.head.fault:
                    fault = FolderError(one.head.fault)
                    await self._lot.park(one.folder, one.head.key, fault, tally)
            seen = [one for one in seen if not one.head.fault]
            if portion.event is Event.MARKED:
                fresh += seen
            elif portion.news.again:
                self._again.setdefault(portion.news.folder.name, []).extend(seen)
            elif portion.news.numbered and all(one.head.first_look for one in seen):
                await self._put_down(portion, seen)
            else:
                sights.arrived(seen)
                fresh += seen
        await self._gather(fresh, sights)

    async def _put_down(self, portion: Portion, seen: Sequence[Seen]) -> None:
        """Write down old mail at once: a kill costs no more than a batch."""
        reached = [portion.news.reached(portion.keys[-1])] if self._reader.whole else []
        came = [one.sighting for one in seen]
        await self._memory.mailboxes.save(self._mailbox.key, reached, came)
        self._note_young(came)

    async def _gather(self, seen: Sequence[Seen], sights: Sights) -> None:
        mails = list({one.head.trace for one in seen})
        sights.gather(seen, await self._memory.mailboxes.seen(self._mailbox.key, mails))

    async def _compare(self, sights: Sights) -> None:
        """Find out what left, in folders that were read again by what was read of them."""
        account = self._mailbox.key
        for name, news in sights.news.items():
            if news.again:
                rows = await self._memory.mailboxes.lying(account, name)
                seen = sights.relisted(news, rows, self._again.pop(name, []))
                sights.arrived(seen)
                await self._gather(seen, sights)
            elif news.there is not None:
                rows = await self._memory.mailboxes.lying(account, name)
                sights.departed(rows, news.there)

    # ── deciding ────────────────────────────────────────────────────────────────────────────────

    async def _decide(self, sights: Sights, tally: Tally) -> None:
        """Teach what a person has taught."""
        await self._compare(sights)
        views = await self._judge.prove(sights) if sights.open else set()
        known = await self._judge.known([one.seen.head for one in sights.open])
        candidates = []
        for one in sights.open:
            candidate = await self._judged(one, sights, views, known, tally)
            if candidate:
                candidates.append(candidate)
        for folder, mails in sights.outside.items():
            tally.skipped[Why.OUTSIDE] += mails
            if mails >= WAVE:
                self._observer.happened(
                    "import.noticed", account=self._mailbox.key, folder=folder, mails=mails
                )
        tally.skipped[Why.NOTHING] += tally.examined - tally.counted() - len(candidates)
        if candidates:
            tally.add(await self._teach(candidates))

    async def _teach(self, candidates: Sequence[Candidate]) -> Tally:
        return await self._memory.teacher.teach(candidates, self._source, self._mailbox.actor)

    async def _judged(
        self,
        one: Open,
        sights: Sights,
        views: set[str],
        known: Mapping[str, Known],
        tally: Tally,
    ) -> Candidate | None:
        """Return what a mail teaches, None for nothing; one that fails is parked."""
        seen, about = one.seen, known.get(one.seen.head.id or "")
        label: Label | None = None
        try:
            found = await self._judge.ruled(one, sights, views, about)
            if isinstance(found, Label):
                label = found
                candidate = await self._judge.candidate(seen, label, about)
                if isinstance(candidate, Candidate):
                    return candidate
                found = candidate
        except Exception as error:  # noqa: BLE001 - the border around one mail
            await self._lot.fail(seen.folder, seen.head.key, error, tally, label=label)
        else:
            tally.skipped[found] += 1
        return None

    async def _remember(self, sights: Sights) -> None:
        """Write down what was seen; what was not answered is asked for again instead.

        Of a folder with young mail it is written down even that nothing happened: its mail was
        there still when it was not young any more. At our first look that may be any folder.
        """
        if not self._reader.whole:
            return
        ends = {name: news.end for name, news in sights.news.items()}
        if any(news.keys for news in sights.news.values() if news.folder.place is Place.JUNK):
            ends |= await self._survey.fences(sights, ends)
        young = self._young if self._survey.looked else sights.cursors
        there = sights.folders.keys() & sights.cursors.keys() - sights.unread - ends.keys()
        for name in young.keys() & there:
            ends[name] = replace(sights.cursors[name], time=self._began)
        came, left = sights.to_remember()
        await self._memory.mailboxes.save(self._mailbox.key, list(ends.values()), came, left)
        since = self._began.timestamp()
        self._young = {name: until for name, until in self._young.items() if until > since}
        self._note_young(came)

    def _note_young(self, came: Iterable[Sighting]) -> None:
        """Remember until when folders hold mail that the rules of programs may still move."""
        since, window = self._began.timestamp(), self._options.rule_window_s
        for one in came:
            if since - window - DATE_S < one.delivered <= since + window:
                until = max(one.delivered + DATE_S + window, self._young.get(one.folder, 0.0))
                self._young[one.folder] = until

    def _left(self, until: Iterable[float]) -> float:
        """Return how many seconds are left until a time at which mail is young no more."""
        left = max(until, default=0.0) - self._clock.now().timestamp()
        return max(0.0, min(left, 2 * self._options.rule_window_s))
