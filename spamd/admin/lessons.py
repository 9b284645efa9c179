"""The journal of lessons, those that are held for a review, and taking many back at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from spamd.admin.history import NOTHING, ROWS, beside
from spamd.admin.mail import nameless
from spamd.admin.ports import HeldMail, Knowledge, LessonGroup, LessonRow, Place, Records
from spamd.bayes.decision import Verdict
from spamd.feedback.ports import Held, HeldLessons
from spamd.feedback.teacher import release
from spamd.sample import Label
from spamd.training.ports import Selection
from spamd.training.trainer import Trainer

AT_ONCE = 1000
"""Lessons that one step of a rollback takes back: some seconds of work."""

SUBJECT = "subject="


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonPart:
    """A part of the journal, newest first; `newer` and `older` are where those beside it begin."""

    rows: tuple[LessonRow, ...]
    newer: str | None
    older: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """A lesson that waits for a review; `mail` is the identity of the message in hex.

    words   of its subject, each once, in no order; only for who may see words and people
    """

    number: int
    mail: str
    label: Label
    verdict: Verdict
    probability: float
    source: str
    actor: str
    sender_domain: str
    reason: str
    time: datetime
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """What became of held lessons: learned or dropped, and numbers that were not found."""

    done: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a rollback would take back, and what would be left.

    groups   the largest of them, most first; there are `groups_in_all`
    """

    groups: tuple[LessonGroup, ...]
    groups_in_all: int
    lessons: int
    spam_left: int
    ham_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """One step of a rollback: lessons taken back, and those that fit and are still there."""

    taken_back: int
    left: int


class Lessons:
    """Shows lessons, releases and drops those that are held, takes many back.

    Args:
        records: the store as rows.
        knowledge: what was learned.
        held: lessons that wait.
        trainer: learns and takes back.
    """

    def __init__(
        self, records: Records, knowledge: Knowledge, held: HeldLessons, trainer: Trainer
    ) -> None:
        self._records = records
        self._knowledge = knowledge
        self._held = held
        self._trainer = trainer

    async def journal(
        self, selection: Selection, at: Place | None = None, limit: int = ROWS, *, people: bool
    ) -> LessonPart:
        """Return a part of the lessons that fit.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        found = await self._records.lessons(selection, at, limit + 1)
        more = len(found) > limit
        back = at is not None and at.newer
        rows = found[-limit:] if back else found[:limit]
        newer, older = (more, True) if back else (at is not None, more)
        around = beside(rows[0].place, rows[-1].place, newer, older) if rows else NOTHING
        shown = tuple(rows) if people else tuple(map(nameless, rows))
        return LessonPart(rows=shown, newer=around.newer, older=around.older)

    async def held(self, *, words: bool, people: bool) -> Sequence[HeldRow]:
        """Return all lessons that wait for a review, oldest first.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        waiting = await self._held.held()
        return [_held(row, words=words and people, people=people) for row in waiting]

    async def waiting(self, most: int, *, people: bool) -> Sequence[HeldMail]:
        """Return those that have waited longest, as a list shows them.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        rows = await self._records.held(most)
        return rows if people else [replace(row, actor="", reason="") for row in rows]

    async def release(self, numbers: Sequence[int]) -> Reviewed:
        """Learn held lessons.

        Raises:
            StorageUnavailable: those before the failing one are learned.
        """
        done = await release(self._held, self._trainer, numbers)
        return Reviewed(done=done.examined, missing=len(set(numbers)) - done.examined)

    async def drop(self, numbers: Sequence[int]) -> Reviewed:
        """Forget about held lessons.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        done = await self._held.drop(sorted(set(numbers)))
        return Reviewed(done=done, missing=len(set(numbers)) - done)

    async def preview(
        self, selection: Selection, most: int | None = None, *, people: bool
    ) -> Preview:
        """Return what a rollback would take back; of its groups at most so many.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        groups = await self._records.groups(selection, most, people=people)
        totals = await self._knowledge.totals()
        return Preview(
            groups=groups.found,
            groups_in_all=groups.number,
            lessons=sum(groups.lessons.values()),
            spam_left=totals.spam - groups.lessons.get(Label.SPAM, 0),
            ham_left=totals.ham - groups.lessons.get(Label.HAM, 0),
        )

    async def rollback(self, selection: Selection) -> RolledBack:
        """Take back the newest of the lessons that fit, at most `AT_ONCE`.

        Raises:
            StorageUnavailable: some of them may be taken back.
        """
        newest = replace(selection, newest=AT_ONCE)
        taken_back = len(await self._trainer.rollback(newest))
        left = 0
        if taken_back == AT_ONCE:
            groups = await self._records.groups(selection, 0, people=False)
            left = sum(groups.lessons.values())
        return RolledBack(taken_back=taken_back, left=left)


def _held(row: Held, *, words: bool, people: bool) -> HeldRow:
    features = row.features
    subject = (text for text in features.texts if text.startswith(SUBJECT)) if words else ()
    return HeldRow(
        number=row.number,
        mail=features.digest.hex(),
        label=row.label,
        verdict=row.verdict,
        probability=row.probability,
        source=row.source,
        actor=row.actor if people else "",
        sender_domain=features.sender_domain if people else "",
        reason=row.reason if people else "",
        time=row.time,
        words=tuple(sorted(text.removeprefix(SUBJECT) for text in subject)),
    )
