"""Teach, take back, correct: every mail counts exactly once, whoever teaches it and however often.

    train      a mail not known is learned; the same label again changes nothing and is a success;
               the other label takes the old lesson back and learns the new one, in one transaction;
               a lesson of the source "kept", which nobody gave by hand, replaces none, and any
               other replaces it
    forget     takes lessons back; a mail that was never taught is named, nothing changes
    rollback   takes back all lessons of a time, source, actor or sender domain
    rehearse   learns lessons again in mixed order, when one label was taught after the other
    refresh    learns some old lessons again, after those that people give when the filter errs

A call of `train` or `forget` is one transaction: it happens whole or not at all. Whoever has many
mails calls with some hundreds at a time; a run that was killed is simply run again and learns only
what is missing. Taking back is the exact inverse of learning: counts, totals, facts and the steps
of the logistic classifiers. The weights are the sum of the steps of all lessons in force, so they
are zero when nothing is left; a step was measured when its lesson was learned and stays as it was.

When another writer is in the way, or the database is away for a moment, the transaction is tried
again; then `StorageUnavailable` goes to the caller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import pairwise, zip_longest
from typing import TypeVar

from spamd.bayes.counts import distinct
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import Model
from spamd.message.features import Features
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.ports import (
    KEPT,
    Lesson,
    LessonSummary,
    Selection,
    TrainingObserver,
    UnitOfWork,
)
from spamd.training.retries import again

T = TypeVar("T")


MIXED = 0.25
"""Lessons count as mixed when the label changes at least this often from one to the next, measured
against lessons in random order. A folder after the other changes it once; people's corrections and
mail as it comes in change it nearly as often as chance does."""

YIELD_EVERY = 16
"""Lessons learned before the event loop gets a turn: about 5 ms."""


class Trainer:
    """The use case of everything that teaches.

    Args:
        unit_of_work: makes a new transaction.
        clock: gives the time that a lesson is stamped with.
        options: batches and retries.
        observer: is told of each lesson once it is committed.
    """

    def __init__(
        self,
        *,
        unit_of_work: Callable[[], UnitOfWork],
        clock: Clock,
        options: TrainingOptions,
        observer: TrainingObserver | None = None,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._clock = clock
        self._options = options
        self._observer = observer

    async def train(
        self,
        batch: Sequence[Features],
        label: Label,
        *,
        source: str,
        actor: str,
        given: datetime | None = None,
    ) -> list[Outcome]:
        """Teach that these mails are `label`; return what became of each, in their order.

        Lessons that were `given` at another time than now have that time, and do not replace those
        that a person gave since.

        Raises:
            StorageUnavailable: nothing was learned.
        """
        outcomes = await self._again(lambda: self._train(batch, label, source, actor, given))
        self._tell(source, outcomes)
        return outcomes

    async def forget(
        self, digests: Sequence[bytes], *, given_before: datetime | None = None
    ) -> list[Outcome]:
        """Take lessons back; return what became of each, in their order.

        With `given_before` only those that are older: the others are told as unknown.

        Raises:
            StorageUnavailable: nothing was taken back.
        """
        outcomes = await self._again(lambda: self._forget(digests, given_before))
        self._tell("forget", outcomes)
        return outcomes

    async def rollback(self, selection: Selection) -> list[LessonSummary]:
        """Take back all lessons that fit; return them in the order of learning.

        Long lists are taken back in batches, the newest first, each a transaction of its own.

        Raises:
            StorageUnavailable: batches before the failing one are taken back.
        """

        async def listed() -> list[LessonSummary]:
            async with self._unit_of_work() as work:
                return list(await work.listed(selection))

        summaries = await self._again(listed)
        newest_first = [summary.digest for summary in reversed(summaries)]
        size = self._options.batch
        for start in range(0, len(newest_first), size):
            await self.forget(newest_first[start : start + size])
        return summaries

    async def rehearse(self) -> int:
        """Learn the newest lessons of both labels again, mixed; return how many that were.

        Whoever teaches one folder after the other (`train spam A`, `train ham B`) calls this at the
        end; nothing happens when the lessons are mixed already. The logistic classifiers learn from
        what they get wrong, and in a run of one label they soon get nothing wrong: the steps
        vanish, the scores that the fusion is fitted on say nothing, and the last label wins
        everywhere. Counts do not depend on the order and stay as they are. (Measured on 600 mails
        of the SpamAssassin corpus, spam after ham: of 837 new ham 44 were called spam; rehearsed 2,
        mixed at once 1.)

        Raises:
            StorageUnavailable: batches before the failing one are rehearsed.
        """
        digests = await self._again(self._one_sided)
        size = self._options.batch
        for start in range(0, len(digests), size):
            await self._again(partial(self._rehearse, digests[start : start + size]))
        return len(digests)

    async def refresh(self, *, first_scores: bool) -> int:
        """Learn again those lessons of both labels that were learned longest ago; return how many.

        People correct what is wrong, nearly always to one label, and each correction steps the
        weights of the logistic classifiers that way. The lessons of before step back where that
        went too far. In turn each comes up; counts stay as they are (E-039).

        Args:
            first_scores: whether the fusion goes on looking at the scores that these lessons had
                when they were given. Without, corrections, which are of mail that was judged
                badly, don't remain all that it sees of a label (E-044).

        Raises:
            StorageUnavailable: nothing was learned again.
        """
        half = self._options.refresh // 2
        if half == 0:
            return 0
        return await self._again(partial(self._refresh, half, first_scores=first_scores))

    async def _refresh(self, half: int, *, first_scores: bool) -> int:
        async with self._unit_of_work() as work:
            oldest = [await work.listed(Selection(label=label, oldest=half)) for label in Label]
            if not all(oldest):
                return 0  # a label alone says nothing of the other
            by_turns = [each.digest for pair in zip_longest(*oldest) for each in pair if each]
            await _learned_again(work, by_turns, first_scores=first_scores)
        return len(by_turns)

    async def _one_sided(self) -> list[bytes]:
        """Return the lessons to rehearse in mixed order, none when they are mixed already."""
        number = self._options.rehearse
        if number == 0:
            return []
        async with self._unit_of_work() as work:
            newest = await work.listed(Selection(newest=number))
            spam = await work.listed(Selection(label=Label.SPAM, newest=number // 2))
            ham = await work.listed(Selection(label=Label.HAM, newest=number // 2))
        changes = sum(one.label is not other.label for one, other in pairwise(newest))
        expected = 2 * len(spam) * len(ham) / max(1, len(spam) + len(ham))
        if changes >= MIXED * expected:
            return []
        return sorted(summary.digest for summary in (*spam, *ham))  # digests are as good as random

    async def _rehearse(self, digests: Sequence[bytes]) -> None:
        async with self._unit_of_work() as work:
            await _learned_again(work, digests, first_scores=False)

    async def _train(
        self,
        batch: Sequence[Features],
        label: Label,
        source: str,
        actor: str,
        given: datetime | None,
    ) -> list[Outcome]:
        digests = tuple(dict.fromkeys(features.digest for features in batch))
        async with self._unit_of_work() as work:
            summaries = {
                summary.digest: summary for summary in await work.listed(Selection(digests=digests))
            }
            replaced = [
                each for each in summaries.values() if _replaces(label, source, given, each)
            ]
            settled = 0 if source == KEPT else await work.settle(digests)
            old = await work.lessons([summary.digest for summary in replaced])
            fresh = _first_of_each(batch, summaries.keys() - old.keys())
            model = await work.model(
                distinct(
                    [features.sample.ids for features in fresh]
                    + [lesson.sample.ids for lesson in old.values()]
                )
            )
            for lesson in old.values():
                _take_back(model, lesson)
            effects = await _learned(
                model,
                [
                    Given(sample=features.sample, label=label, key=features.digest)
                    for features in fresh
                ],
            )
            learned = {
                features.digest: Lesson(
                    digest=features.digest,
                    label=label,
                    source=source,
                    actor=actor,
                    sender_domain=features.sender_domain,
                    time=given or self._clock.now(),
                    effect=effect,
                    sample=features.sample,
                    texts=features.texts,
                )
                for features, effect in zip(fresh, effects, strict=True)
            }
            if learned or settled:
                await work.commit(list(learned.values()), list(old.values()))
        return _outcomes(batch, summaries, learned)

    async def _forget(
        self, digests: Sequence[bytes], given_before: datetime | None
    ) -> list[Outcome]:
        async with self._unit_of_work() as work:
            old = {
                digest: lesson
                for digest, lesson in (await work.lessons(digests)).items()
                if given_before is None or lesson.time < given_before
            }
            if old:
                model = await work.model(distinct(lesson.sample.ids for lesson in old.values()))
                for lesson in old.values():
                    _take_back(model, lesson)
                await work.commit([], list(old.values()))
        return [
            _outcome(Result.FORGOTTEN, old[digest])
            if digest in old
            else Outcome(digest=digest, result=Result.UNKNOWN, label=None)
            for digest in dict.fromkeys(digests)
        ]

    async def _again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await again(attempt, self._options)

    def _tell(self, source: str, outcomes: Iterable[Outcome]) -> None:
        if self._observer is None:
            return
        for outcome in outcomes:
            if (
                outcome.label is not None
                and outcome.before is not None
                and outcome.after is not None
            ):
                self._observer.learned(
                    outcome.label, source, outcome.result, outcome.before, outcome.after
                )


def _replaces(label: Label, source: str, given: datetime | None, old: LessonSummary) -> bool:
    """Return whether a lesson takes the place of the one in force."""
    if source == KEPT:
        return False
    if given is not None and old.time >= given and old.source != KEPT:
        return False
    return old.label is not label or old.source == KEPT


def _first_of_each(batch: Sequence[Features], stands: Collection[bytes]) -> list[Features]:
    """Return the mails to learn: those about which no lesson stands, each once."""
    fresh: dict[bytes, Features] = {}
    for features in batch:
        if features.digest not in stands:
            fresh.setdefault(features.digest, features)
    return list(fresh.values())


def _outcomes(
    batch: Sequence[Features],
    summaries: dict[bytes, LessonSummary],
    learned: dict[bytes, Lesson],
) -> list[Outcome]:
    """Return what became of each mail; one that stands in a batch twice is known then."""
    outcomes: dict[bytes, Outcome] = {}
    result = []
    for features in batch:
        digest = features.digest
        if digest in outcomes:
            outcome = replace(outcomes[digest], result=Result.KNOWN)
        elif digest in learned:
            how = _how(summaries.get(digest), learned[digest])
            outcome = _outcome(how, learned[digest])
        else:
            summary = summaries[digest]
            outcome = Outcome(
                digest=digest,
                result=Result.KNOWN,
                label=summary.label,
                before=summary.before,
                after=summary.after,
            )
        outcomes[digest] = outcome
        result.append(outcome)
    return result


def _how(old: LessonSummary | None, new: Lesson) -> Result:
    if old is None:
        return Result.LEARNED
    return Result.KNOWN if old.label is new.label else Result.RELABELLED


def _outcome(result: Result, lesson: Lesson) -> Outcome:
    return Outcome(
        digest=lesson.digest,
        result=result,
        label=lesson.label,
        before=lesson.effect.probability_before,
        after=lesson.effect.probability_after,
    )


async def _learned(model: Model, lessons: Sequence[Given], *, proof: bool = True) -> list[Effect]:
    """Learn lessons, some at a time: whoever else runs on the loop gets a turn between them."""
    effects: list[Effect] = []
    for start in range(0, len(lessons), YIELD_EVERY):
        effects += learn(model, lessons[start : start + YIELD_EVERY], proof=proof)
        await asyncio.sleep(0)
    return effects


async def _learned_again(work: UnitOfWork, digests: Sequence[bytes], *, first_scores: bool) -> None:
    """Learn lessons in force again, in this order, and commit; those that are gone are no error."""
    old = await work.lessons(digests)
    model = await work.model(distinct(lesson.sample.ids for lesson in old.values()))
    again = [old[digest] for digest in digests if digest in old]
    effects = await _learned(
        model,
        [
            Given(
                sample=each.sample,
                label=each.label,
                key=each.digest,
                again=each.effect,
                first_scores=first_scores,
            )
            for each in again
        ],
        proof=False,
    )
    if again:
        rehearsed = [
            replace(lesson, effect=effect.told_as(lesson.effect))
            for lesson, effect in zip(again, effects, strict=True)
        ]
        await work.commit(rehearsed, again)


def _take_back(model: Model, lesson: Lesson) -> None:
    unlearn(model, lesson.sample, lesson.label, lesson.effect, lesson.digest)
