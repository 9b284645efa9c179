"""From the head of a mail in a folder to what it teaches: gathers the facts, then asks the rule.

Most mails are decided by their head and one question to the database. Only a mail that may teach
something and that we don't know by its id is fetched: its digest may be known, and its newest
Received field tells when it was delivered.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.parser import BytesHeaderParser
from email.policy import compat32
from email.utils import parsedate_to_datetime

from spamd.feedback.learn import Candidate, Extract
from spamd.feedback.mailbox import Folder, Head, Mailbox
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.rule import ELSEWHERE, Event, Sight, lesson
from spamd.ports import History, Known, Place
from spamd.sample import Label

HEADER_BYTES = 64 * 1024
"""The newest Received field stands at the top; nobody's header is longer in good faith."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One mail of a batch: where it lies, and why we look at it."""

    folder: Folder
    head: Head
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known around a mail: `Sight` explains the fields.

    sides   all places the mail is new in, in this look
    """

    before: Place
    unseen: Place
    sides: Place
    known: Known | None


class VanishedError(Exception):
    """The mail was moved or removed before it could be fetched: no fault, the next look sees it."""


class Judge:
    """Decides what a mail in a folder teaches."""

    def __init__(
        self, mailbox: Mailbox, history: History, extract: Extract, options: FeedbackOptions
    ) -> None:
        self._mailbox = mailbox
        self._history = history
        self._extract = extract
        self._options = options

    def sight(self, seen: Seen, context: Context) -> Sight:
        """Return what the rule needs, as far as the head and the database tell."""
        known = context.known
        place = seen.folder.place
        opposite = ELSEWHERE if place is Place.JUNK else Place.JUNK
        return Sight(
            place=place,
            event=seen.event,
            before=context.before,
            mark=mark(seen.head) if self._options.keywords else None,
            verdict=known.verdict if known else None,
            label=known.label if known else None,
            first_look=seen.head.first_look,
            unseen=context.unseen,
            late=self._late(seen.head, known, seen.head.delivered),
            twin=seen.event is Event.ARRIVED and bool(context.sides & opposite),
        )

    async def judge(self, seen: Seen, context: Context) -> Candidate | None:
        """Return what a mail teaches, None for nothing.

        Raises:
            VanishedError: it is no longer there.
        """
        sight = self.sight(seen, context)
        if context.known is not None:
            label = lesson(sight)
            return await self.candidate(seen, label, context.known) if label else None
        may_teach = sight.place is Place.JUNK and not sight.first_look
        if lesson(sight) is None and not may_teach:
            return None
        return await self._fetched(seen, sight)

    async def candidate(self, seen: Seen, label: Label, known: Known | None) -> Candidate:
        """Return a mail as it was scanned, or if that is no longer kept, as it is now.

        Raises:
            VanishedError: it is no longer there.
        """
        features = await self._history.kept(known.digest) if known else None
        if features is None:
            content = await self._content(seen)
            features = await asyncio.to_thread(self._extract, content)
            if known is None:
                known = (await self._history.by_digest([features.digest])).get(features.digest)
        return Candidate(features=features, label=label, known=known)

    async def _fetched(self, seen: Seen, sight: Sight) -> Candidate | None:
        content = await self._content(seen)
        features = await asyncio.to_thread(self._extract, content)
        known = (await self._history.by_digest([features.digest])).get(features.digest)
        received = delivered_at(content)
        late = sight.late or self._late(seen.head, known, received)
        if received is None and (known is None or known.scanned is None):
            late = True  # it never went through a mail server: somebody put it here
        sight = replace(
            sight,
            late=late and not sight.first_look,
            verdict=known.verdict if known else None,
            label=known.label if known else None,
        )
        label = lesson(sight)
        return Candidate(features=features, label=label, known=known) if label else None

    async def _content(self, seen: Seen) -> bytes:
        content = await self._mailbox.content(seen.folder, seen.head.key)
        if content is None:
            raise VanishedError
        return content

    def _late(self, head: Head, known: Known | None, delivered: datetime | None) -> bool:
        """Return whether a mail came to its folder long after it was delivered."""
        times = [time for time in (delivered, known.scanned if known else None) if time]
        if head.arrived is None or not times:
            return False
        return head.arrived - min(times) > timedelta(seconds=self._options.rule_window_s)


def mark(head: Head) -> Label | None:
    """Return what the keywords of a mail say, None for nothing or for both."""
    flags = {flag.lower() for flag in head.flags}
    match ("$junk" in flags, "$notjunk" in flags):
        case (True, False):
            return Label.SPAM
        case (False, True):
            return Label.HAM
        case _:
            return None


def places(seen: Sequence[Seen]) -> dict[bytes, Place]:
    """Return what to remember of mails: by trace, the folder and the keywords."""
    found: dict[bytes, Place] = {}
    for one in seen:
        place = one.folder.place
        match mark(one.head):
            case Label.SPAM:
                place |= Place.MARKED_SPAM
            case Label.HAM:
                place |= Place.MARKED_HAM
            case None:
                pass
        for trace in one.head.traces:
            found[trace] = found.get(trace, Place(0)) | place
    return found


def delivered_at(content: bytes) -> datetime | None:
    """Return the time of the newest Received field, None when there is none to be read."""
    header = BytesHeaderParser(policy=compat32).parsebytes(content[:HEADER_BYTES])
    newest = header.get("Received")
    if newest is None:
        return None
    try:
        when = parsedate_to_datetime(str(newest).rpartition(";")[2].strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return when.replace(tzinfo=when.tzinfo or UTC)
