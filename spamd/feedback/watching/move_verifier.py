"""Finds out whether a person moved a mail: asks again, then asks the rule.

Folders are not read at one moment, and some show mail of others. So a move counts only when

    1 the mail lay in A at the last poll, and B, read after A, did not hold it then
    2 now B lists it
    3 it is gone from A, by a whole list of A that agrees with the number of mails there
    4 and B lists it still

A folder B that shows mail of A fails at 3, the mail being in both; or at 4, what it showed having
gone with the mail. A folder A that shows mail of B fails at 1: there the mail came first to B. For
moves out of Junk, which is read last, 1 needs a raised baseline (`Mailbox.raised_baseline`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

from spamd.feedback.mailboxes.mailbox import FolderError, Mailbox, MessageSummary, Place
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Known, Sighting
from spamd.feedback.teacher import Candidate
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.lesson_rule import (
    NOWHERE,
    Event,
    MoveFacts,
    Why,
    is_moved,
    is_told,
    lesson,
)
from spamd.feedback.watching.poll_state import ChangedMessage, PollState, PossibleLesson, mark
from spamd.lists.entry import Effect
from spamd.sample import Label

VIEW_SAMPLE = 200
"""Mails of a folder that tell whether it shows other folders' mail."""

VIEW_LEAST = 3
"""With fewer mails than this nothing can be said of a folder."""

VIEW_SURE = 5
"""So many mails are no chance. In what may be a view nothing is taught; that a mail lies in it as
well is only overlooked when it surely is one."""

VIEW_SHARE, VIEW_MAIN_SHARE = 0.8, 0.3
"""A view: so much of its mail lies elsewhere too, so much of it in the inbox or in Junk. A folder
that is shown shares its mail as well, but with the view alone."""

RENAMED_LEAST = 2
"""A folder that holds all that another one held is that one renamed; of one mail, who can tell?"""

JUST_NOW_S = 10
"""Mail this young may have been scanned by a worker that has not written it down yet."""

WRITTEN_S = 1.5
"""Workers write their scans down every second; after this pause the scan is there, or never."""

DATE_S = 1.0
"""A time of delivery is a whole second: the mail came at its end, at the latest."""

AHEAD = timedelta(hours=1)
"""A time of delivery that lies further ahead than this is none."""


class VanishedError(Exception):
    """The mail was moved or removed before it could be fetched: no fault, the next poll sees it."""


class MoveVerifier:
    """Decides what the mails of a poll teach."""

    def __init__(self, mailbox: Mailbox, context: WatcherContext, options: FeedbackOptions) -> None:
        self._mailbox = mailbox
        self._mailboxes = context.mailboxes
        self._history = context.history
        self._extract = context.extract
        self._options = options
        self._clock = context.clock

    async def verify(self, state: PollState) -> dict[str, int]:
        """Ask where the mails that may be lessons lie now; return which folders are views.

        With each view stands how many mails tell that it is one.
        """
        for folder, cursor, keys in list(state.origins()):
            try:
                present = await self._mailbox.still_there(folder, sorted(keys), cursor)
            except FolderError:
                present = keys  # in doubt
            state.add_answer(folder.name, keys, present)
        for folder, cursor, keys in list(state.targets()):
            try:
                present = await self._mailbox.still_there(folder, sorted(keys), cursor)
            except FolderError:
                present = ()
            state.possible = [
                one
                for one in state.possible
                if one.changed.folder.name != folder.name or one.changed.message.key in present
            ]
        names = {row.folder for one in state.possible for row in one.rows}
        names |= {one.changed.folder.name for one in state.possible}
        others = [name for name in names if state.place(name) is Place.OTHER]
        sizes = {name: await self._view_size(name, state) for name in others}
        return {name: size for name, size in sizes.items() if size}

    async def known(self, messages: Sequence[MessageSummary]) -> Mapping[str, Known]:
        """Return what is known of mails under their ids."""
        ids = {message.id: message.delivered for message in messages if message.id}
        if not ids:
            return {}
        known = await self._history.by_id(list(ids))
        since = self._clock.now() - timedelta(seconds=JUST_NOW_S)
        if any(when is not None and when > since for one, when in ids.items() if one not in known):
            await asyncio.sleep(WRITTEN_S)
            known = await self._history.by_id(list(ids))
        return known

    async def decide(
        self, one: PossibleLesson, state: PollState, views: Mapping[str, int], known: Known | None
    ) -> Label | Why:
        """Return what a mail teaches, or why it teaches nothing."""
        seen = one.changed
        if seen.folder.name in views:
            return Why.SHOWN
        found = lesson(self._facts(one, state, views, known))
        doubted = isinstance(found, Why) and found is not Why.FILED
        if doubted or seen.event is Event.MARKED:
            return found
        if _is_renamed(one, state):
            return Why.RENAMED
        if found is Why.FILED:
            return found
        return (
            Why.TWICE
            if await self._mailbox.in_excluded_folder(seen.folder, seen.message)
            else found
        )

    async def is_moved(
        self, one: PossibleLesson, state: PollState, views: Mapping[str, int], known: Known | None
    ) -> bool:
        """Tell whether a person moved a mail here from another folder, whatever it teaches."""
        seen = one.changed
        if seen.folder.name in views or not is_moved(self._facts(one, state, views, known)):
            return False
        if _is_renamed(one, state):
            return False
        return not await self._mailbox.in_excluded_folder(seen.folder, seen.message)

    async def candidate(
        self, seen: ChangedMessage, label: Label, known: Known | None
    ) -> Candidate | Why:
        """Return a mail as it was scanned, or if that is no longer kept, as it is now.

        Raises:
            VanishedError: it is no longer there.
        """
        features = await self._history.kept(known.digest) if known else None
        if features is None:
            content = await self._mailbox.content(seen.folder, seen.message.key)
            if content is None:
                raise VanishedError
            features = await asyncio.to_thread(self._extract, content)
            if known is None:
                known = (await self._history.by_digest([features.digest])).get(features.digest)
                if (
                    known is not None
                    and label is Label.SPAM
                    and is_told(label, known.verdict, known.label)
                ):
                    return Why.NOTHING
        return Candidate(features=features, label=label, known=known)

    def _facts(
        self, one: PossibleLesson, state: PollState, views: Mapping[str, int], known: Known | None
    ) -> MoveFacts:
        message, folder = one.changed.message, one.changed.folder
        was = stays = came = NOWHERE
        gone = []
        for row in one.rows:
            if views.get(row.folder, 0) >= VIEW_SURE:
                continue
            was |= state.place(row.folder)
            if state.has_left(row):
                gone.append(row)
            else:
                stays |= state.place(row.folder)
        here, beside = 0, False
        for new in state.came.get(message.trace, ()):
            shown = views.get(new.folder, 0) >= VIEW_SURE
            came |= NOWHERE if shown else state.place(new.folder)
            here += new.folder == folder.name
            beside |= new.folder not in {*views, folder.name} and not state.is_kept(new.folder)
        dates = {row.delivered for row in gone if row.delivered}
        same = known is not None or one.changed.sighting.delivered in dates
        return MoveFacts(
            place=folder.place,
            event=one.changed.event,
            was=was,
            stays=stays,
            came=came,
            mark=mark(message) if self._options.keywords else None,
            verdict=known.verdict if known else None,
            label=known.label if known else None,
            same=same and here <= len(gone) and not beside,
            hasty=self._is_hasty(gone or one.rows, state, known),
            kept=folder.kept,
            denies=folder.list is Effect.DENY,
        )

    def _is_hasty(self, rows: Sequence[Sighting], state: PollState, known: Known | None) -> bool:
        """Return whether a mail was never seen after the time that rules of programs take."""
        window = self._options.rule_window_s
        ahead = (self._clock.now() + AHEAD).timestamp()
        for row in rows if window else ():
            cursor = state.cursors.get(row.folder)
            last = cursor.time.timestamp() if cursor else 0.0
            came = row.delivered + DATE_S if 0 < row.delivered < ahead else 0.0
            if known is not None and known.scanned is not None and not came:
                came = known.scanned.timestamp()
            if last < came + window:
                return True
        return False

    async def _view_size(self, name: str, state: PollState) -> int:
        """Return how many mails a folder holds that shows mail of other folders; 0: it is none."""
        rows = [*await self._mailboxes.lying(self._mailbox.key, name)]
        rows += [one for ones in state.came.values() for one in ones if one.folder == name]
        rows = [row for row in rows if not state.has_left(row)][-VIEW_SAMPLE:]
        if len(rows) < VIEW_LEAST:
            return 0
        others = await self._mailboxes.seen(self._mailbox.key, [row.mail for row in rows])
        shared = main = 0
        for row in rows:
            places = _elsewhere(row, others, state)
            shared += bool(places)
            main += any(state.place(place) is not Place.OTHER for place in places)
        shows = shared >= VIEW_SHARE * len(rows) and main >= VIEW_MAIN_SHARE * len(rows)
        return len(rows) if shows else 0


def _elsewhere(
    row: Sighting, others: Mapping[bytes, Sequence[Sighting]], state: PollState
) -> set[str]:
    """Return the other folders that a mail lies in now."""
    known = [*others.get(row.mail, ()), *state.came.get(row.mail, ())]
    return {
        other.folder
        for other in known
        if other.folder != row.folder and other.folder in state.folders
        if not state.has_left(other)
    }


def _is_renamed(one: PossibleLesson, state: PollState) -> bool:
    """Return whether a new folder holds all that the inbox, or a folder without UIDs, held.

    Renaming the inbox moves its mail (RFC 3501 §6.3.5); a folder without UIDs that was renamed and
    made anew looks the same.
    """
    if one.changed.folder.name in state.cursors:
        return False
    for name in {row.folder for row in one.rows}:
        changes, before = state.changes.get(name), state.cursors.get(name)
        if changes is None or before is None:
            continue
        keyed = before.validity and state.place(name) is not Place.INBOX
        if not keyed and changes.end.messages == 0 and before.messages >= RENAMED_LEAST:
            return True
    return False
