"""The watcher of one account: looks, decides by the rule, teaches, remembers, waits.

One poll (`Watcher.poll`) goes over all folders that changed: the inbox, others, Junk last. New mail
is read in batches of `feedback.chunk`; what may be a lesson is decided when all is read. Then the
lessons go to the journal, and after that what was seen is written down, with how far was read, in
one transaction: a kill between the two only makes the poll be made again, and the journal knows its
lessons. Old mail at a first poll teaches nothing and is written down batch by batch; so memory is
bounded by what is new, however large the folders are.

What goes wrong with one mail parks that mail; what goes wrong with one folder is reported once, and
the next folder is read; what goes wrong with the account or the database ends the poll, and `run`
starts again with growing pauses. A lost connection loses nothing: the next poll catches up. Mail
that a server lists and leaves out of its answers is asked for again, then makes the whole poll be
made again, and is parked at last.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import datetime

from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.mailbox import Folder, FolderError, Mailbox, Place, words
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Cursor, Known, Sighting
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.senders.sent_mail import SentMail, is_sent
from spamd.feedback.shares import LeaseLost, Seat, Seats
from spamd.feedback.teacher import Candidate
from spamd.feedback.watching.changed_folders import ChangedFolders
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.kept_finder import KeptFinder
from spamd.feedback.watching.kept_teacher import KeptTeacher
from spamd.feedback.watching.kept_verifier import KeptVerifier
from spamd.feedback.watching.lesson_rule import Event, Why
from spamd.feedback.watching.list_folders import ListFolders
from spamd.feedback.watching.move_verifier import DATE_S, MoveVerifier
from spamd.feedback.watching.parked_messages import ParkedMessages
from spamd.feedback.watching.poll_state import ChangedMessage, PollState, PossibleLesson
from spamd.feedback.watching.summary_reader import Portion, SummaryReader, batches
from spamd.sample import Label

SOON_S = 0.2
"""Pause before a poll that is due already."""

IMPORT_LEAST = 10
"""So many mails from outside in one poll are an import, and worth a line in the log."""


class Young:
    """Until when folders hold mail that the rules of programs may still move."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self.until: dict[str, float] = {}

    def note(self, came: Iterable[Sighting], now: datetime) -> None:
        """Remember mail that came."""
        since, window = now.timestamp(), self._window_s
        for one in came:
            if since - window - DATE_S < one.delivered <= since + window:
                until = max(one.delivered + DATE_S + window, self.until.get(one.folder, 0.0))
                self.until[one.folder] = until

    def forget(self, now: datetime) -> None:
        """Forget the folders whose mail is young no more."""
        since = now.timestamp()
        self.until = {name: until for name, until in self.until.items() if until > since}

    def left_s(self, now: datetime) -> float:
        """Return how many seconds are left until no mail is young any more."""
        left = max(self.until.values(), default=0.0) - now.timestamp()
        return max(0.0, min(left, 2 * self._window_s))


class Watcher:
    """Watches one `Mailbox`; `source` names the way in the lesson journal ("imap", "maildir").

    `states` is told how the account fares; `turn` is held while it polls, where several may not
    all poll at once; `seats` bounds the connections; `holds` tells whether an account is ours.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        context: WatcherContext,
        options: FeedbackOptions,
        *,
        source: str,
        states: AccountStates,
        turn: AbstractAsyncContextManager[object] | None = None,
        seats: Seats | None = None,
        holds: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._mailbox = mailbox
        self._mailboxes = context.mailboxes
        self._teacher = context.teacher
        self._options = options
        self._clock = context.clock
        self._observer = context.observer
        self._source = source
        self._states = states
        self._turn = turn or nullcontext()
        self._seats = seats or Seats(1)
        self._holds = holds
        self._retry_s, self._told, self._told_open = options.retry_first_s, "", False
        self._verifier = MoveVerifier(mailbox, context, options)
        self._changed_folders = ChangedFolders(mailbox, context, options.max_folders)
        kept_verifier = KeptVerifier(mailbox, context, self._verifier)
        self._kept_finder = KeptFinder(mailbox, context, options, kept_verifier)
        self._kept_teacher = KeptTeacher(mailbox, context, kept_verifier)
        self._parked = ParkedMessages(mailbox, context, options, self._verifier, self._teach)
        self._list_folders = ListFolders(mailbox, context, options, self._verifier)
        self._sent_mail = sent_mail(mailbox, context, options)
        self._wait_in: Folder | None = None
        self.reader = SummaryReader(mailbox, self._parked, options)
        self._began = self._clock.now()
        self._young = Young(options.rule_window_s)
        self._again: dict[str, list[ChangedMessage]] = {}

    async def run(self) -> None:
        """Watch until cancelled; what fails is told to the observer and tried again."""
        while True:
            async with self._seats.taken() as seat:
                try:
                    pause_s = await self._watch(seat)
                except LeaseLost:
                    pause_s = self._options.retry_first_s  # we are told soon
                except Exception as error:  # noqa: BLE001 - the border around one service
                    if str(error) != self._told:  # the same again and again is one line in the log
                        self._observer.failed("account.lost", error, account=self._mailbox.key)
                    self._states.lost(self._mailbox.key, words(error))
                    self._told, pause_s = str(error), self._retry_s
                    self._retry_s = min(pause_s * 2, self._options.retry_most_s)
                finally:
                    await self._mailbox.close()
            await asyncio.sleep(pause_s)

    async def _watch(self, seat: Seat) -> float:
        """Look again and again while the seat is ours; return when to come again, in seconds."""
        self._check_lease()
        await self._mailbox.open()
        if seat.stays or self._told or not self._told_open:  # not each time of one that takes turns
            self._observer.happened("account.opened", account=self._mailbox.key)
        self._told_open = True
        while True:
            async with self._turn:
                await self.poll()
            self._states.opened(self._mailbox.key)
            self._states.heard(self._mailbox.key, silent=self._mailbox.silent)
            self._retry_s, self._told = self._options.retry_first_s, ""
            pause_s = self._pause_s()
            if not seat.stays:  # also when mail is young: others wait
                return pause_s
            await self._mailbox.wait(self._wait_in, pause_s)

    def _check_lease(self) -> None:
        """Go on only while the account is ours.

        Raises:
            LeaseLost: another worker may watch it, and know better; we may have been stopped.
        """
        if not self._holds(self._mailbox.key):
            raise LeaseLost

    def _pause_s(self) -> float:
        """Return how long to wait for news before the next poll."""
        pause_s = self._options.poll_s
        if self._sent_mail and self._sent_mail.more:
            pause_s = SOON_S
        elif self._young.until:
            pause_s = max(SOON_S, self._young.left_s(self._clock.now()))
        return min(pause_s, self._options.poll_s)

    async def once(self) -> RunSummary:
        """Look once, with open and close; what fails stands in the summary.

        A mail that makes the server hang up is found and parked, which takes some connections.
        """
        while True:
            losses = self._parked.losses.total(), self._parked.chunk
            try:
                await self._mailbox.open()
                summary = await self.poll()
                if self.reader.whole and self._young.until:
                    await asyncio.sleep(self._young.left_s(self._clock.now()))
                    summary.add(await self.poll())
                self._states.opened(self._mailbox.key)
                if self.reader.whole:
                    return summary
            except Exception as error:  # noqa: BLE001 - the border around one account
                self._observer.failed("account.lost", error, account=self._mailbox.key)
                self._states.lost(self._mailbox.key, words(error))
                if losses == (self._parked.losses.total(), self._parked.chunk):
                    return RunSummary(faults=[str(error)])
            finally:
                await self._mailbox.close()

    async def poll(self) -> RunSummary:
        """Look at everything that changed since the last poll, and learn.

        Raises:
            MailboxError: the account went out of reach.
            TemporaryError: the database did.
            LeaseLost: the account is another worker's by now.
        """
        summary = RunSummary()
        self._began = self._clock.now()
        self.reader.whole, self._again = True, {}
        folders = self._changed_folders.first(await self._mailbox.folders())
        self._wait_in = folders[0] if folders else None
        cursors = await self._cursors()
        await self._parked.retry(folders, cursors, summary)
        state = PollState(folders, cursors)
        await self._changed_folders.find(state, summary)
        for batch in batches(list(state.changes.values()), self._parked.chunk):
            await self._read(batch, state, summary)
        self._parked.chunk = self._options.chunk
        await self._decide(state, summary)
        self._check_lease()
        if self.reader.whole:
            await self._kept_finder.poll(state, self._began)
        await self._remember(state)
        if self.reader.whole and self._options.kept_days:
            summary.add(await self._kept_teacher.poll(state))
        if self._sent_mail and self.reader.whole:
            await self._sent_mail.poll()
        self._changed_folders.polled = True
        if summary.examined:
            self._observer.happened(
                "account.examined",
                account=self._mailbox.key,
                examined=summary.examined,
                learned=summary.learned.total(),
            )
        return summary

    async def _cursors(self) -> dict[str, Cursor]:
        """Return how far each folder was read.

        No poll was in the future: the clock was set back since, and what is new may have just come.
        """
        now = self._clock.now()
        cursors = await self._mailboxes.cursors(self._mailbox.key)
        return {
            name: replace(one, time=min(one.time, now))
            for name, one in cursors.items()
            if not is_sent(name)
        }

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def _read(self, batch: Sequence[Portion], state: PollState, summary: RunSummary) -> None:
        """Read the summaries of a batch, and keep those that may be lessons."""
        fresh: list[ChangedMessage] = []
        for portion in batch:
            seen = await self.reader.summaries(portion)
            summary.examined += len(seen)
            for one in seen:
                if one.message.fault:
                    fault = FolderError(one.message.fault)
                    await self._parked.park(one.folder, one.message.key, fault, summary)
            seen = [one for one in seen if not one.message.fault]
            if portion.event is Event.MARKED:
                fresh += seen
            elif portion.changes.again:
                self._again.setdefault(portion.changes.folder.name, []).extend(seen)
            elif portion.changes.numbered and all(one.message.baseline for one in seen):
                await self._put_down(portion, seen)
            else:
                state.add_arrived(seen)
                fresh += seen
        await self._gather(fresh, state)

    async def _put_down(self, portion: Portion, seen: Sequence[ChangedMessage]) -> None:
        """Write down old mail at once: a kill costs no more than a batch."""
        self._check_lease()
        reached = [portion.changes.reached(portion.keys[-1])] if self.reader.whole else []
        came = [one.sighting for one in seen]
        await self._mailboxes.save(self._mailbox.key, reached, came)
        self._young.note(came, self._began)

    async def _gather(self, seen: Sequence[ChangedMessage], state: PollState) -> None:
        mails = list({one.message.trace for one in seen})
        state.add_possible(seen, await self._mailboxes.seen(self._mailbox.key, mails))

    async def _compare(self, state: PollState) -> None:
        """Find out what left, in folders that were read again by what was read of them."""
        account = self._mailbox.key
        for name, changes in state.changes.items():
            if changes.again:
                rows = await self._mailboxes.lying(account, name)
                seen = state.add_relisted(changes, rows, self._again.pop(name, []))
                state.add_arrived(seen)
                await self._gather(seen, state)
            elif changes.there is not None:
                rows = await self._mailboxes.lying(account, name)
                state.add_departed(rows, changes.there)

    # ── deciding ────────────────────────────────────────────────────────────────────────────────

    async def _decide(self, state: PollState, summary: RunSummary) -> None:
        """Teach what a person has taught."""
        await self._compare(state)
        views = await self._verifier.verify(state) if state.possible else {}
        known = await self._verifier.known([one.changed.message for one in state.possible])
        candidates = []
        for one in state.possible:
            candidate = await self._judged(one, state, views, known, summary)
            if candidate:
                candidates.append(candidate)
        for folder, mails in state.outside.items():
            summary.skipped[Why.OUTSIDE] += mails
            if mails >= IMPORT_LEAST:
                self._observer.happened(
                    "import.noticed", account=self._mailbox.key, folder=folder, mails=mails
                )
        summary.skipped[Why.NOTHING] += summary.examined - summary.counted() - len(candidates)
        if candidates:
            summary.add(await self._teach(candidates))
        self._check_lease()
        await self._list_folders.poll(state, views, known)

    async def _teach(self, candidates: Sequence[Candidate]) -> RunSummary:
        self._check_lease()
        return await self._teacher.teach(candidates, self._source, self._mailbox.actor)

    async def _judged(
        self,
        one: PossibleLesson,
        state: PollState,
        views: Mapping[str, int],
        known: Mapping[str, Known],
        summary: RunSummary,
    ) -> Candidate | None:
        """Return what a mail teaches, None for nothing; one that fails is parked."""
        seen, about = one.changed, known.get(one.changed.message.id or "")
        label: Label | None = None
        try:
            found = await self._verifier.decide(one, state, views, about)
            if isinstance(found, Label):
                label = found
                candidate = await self._verifier.candidate(seen, label, about)
                if isinstance(candidate, Candidate):
                    return candidate
                found = candidate
        except Exception as error:  # noqa: BLE001 - the border around one mail
            await self._parked.fail(seen.folder, seen.message.key, error, summary, label=label)
        else:
            summary.skipped[found] += 1
            if found is Why.FILED:
                state.filed.append(one)
        return None

    async def _remember(self, state: PollState) -> None:
        """Write down what was seen; what was not answered is asked for again instead.

        Of a folder with young mail it is written down even that nothing happened: its mail was
        there still when it was not young any more. At our first poll that may be any folder.
        """
        if not self.reader.whole:
            return
        ends = {name: changes.end for name, changes in state.changes.items()}
        if any(
            changes.keys for changes in state.changes.values() if changes.folder.place is Place.JUNK
        ):
            ends |= await self._changed_folders.raised_baselines(state, ends)
        young = self._young.until if self._changed_folders.polled else state.cursors
        there = state.folders.keys() & state.cursors.keys() - state.unread - ends.keys()
        for name in young.keys() & there:
            ends[name] = replace(state.cursors[name], time=self._began)
        came, left = state.to_remember()
        await self._mailboxes.save(self._mailbox.key, list(ends.values()), came, left)
        self._young.forget(self._began)
        self._young.note(came, self._began)


def sent_mail(
    mailbox: Mailbox, context: WatcherContext, options: FeedbackOptions
) -> SentMail | None:
    """Return what reads to whom the owner of an account writes; None where nobody keeps it."""
    if context.correspondents is None:
        return None
    return SentMail(
        mailbox,
        context.mailboxes,
        context.correspondents,
        context.user_of,
        options,
        context.clock,
        context.observer,
    )
