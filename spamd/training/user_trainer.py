"""Teach and take back for one user; the site learns what users agree on.

    train    a user says what a mail is: it counts in their layer, in place of what they said of it
             before; a lesson of the source "kept" replaces none
    forget   takes a user's lessons back, or all of them

What the site learns of a mail is a function of all users' lessons in force (`UserLessons.agreed`).
A change of them and what follows for the site are one transaction. A lesson that was given for the
site itself stands, whatever users say; only "kept" ones yield.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.counts import distinct
from spamd.bayes.learning import Given, learn, unlearn
from spamd.bayes.model import Model
from spamd.bayes.own import Layer
from spamd.message.features import Features
from spamd.message.tokens.origin import origin
from spamd.person import trait
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.ports import KEPT, Lesson, LessonSummary, Selection
from spamd.training.retries import again
from spamd.training.user_ports import (
    AGREED,
    Agreed,
    UserLesson,
    UserLessons,
    UserLessonSummary,
    UserUnitOfWork,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What the site is to learn, and to take back.

    kept  of these nobody said by hand what they are
    """

    learned: Sequence[UserLesson]
    labels: Mapping[bytes, Label]
    kept: Collection[bytes]
    taken_back: Sequence[Lesson]


class UserTrainer:
    """The use case of everything that teaches for one user.

    Args:
        unit_of_work: makes a new transaction.
        clock: gives the time that a lesson is stamped with.
        options: retries.
    """

    def __init__(
        self,
        *,
        unit_of_work: Callable[[], UserUnitOfWork],
        clock: Clock,
        options: TrainingOptions,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._clock = clock
        self._options = options

    async def train(
        self,
        user: str,
        batch: Sequence[Features],
        label: Label,
        *,
        source: str,
        given: datetime | None = None,
    ) -> list[Outcome]:
        """Teach that a user calls these mails `label`; return what became of each.

        Probabilities of the outcomes are those for this user.

        Raises:
            StorageUnavailable: nothing was learned.
        """
        return await again(lambda: self._train(user, batch, label, source, given), self._options)

    async def forget(
        self, user: str, digests: Sequence[bytes], *, given_before: datetime | None = None
    ) -> list[Outcome]:
        """Take a user's lessons back; return what became of each.

        With `given_before` only those that are older.

        Raises:
            StorageUnavailable: nothing was taken back.
        """
        return await again(lambda: self._forget(user, digests, given_before), self._options)

    async def forget_all(self, user: str) -> int:
        """Take all lessons of a user back, in one transaction; return how many there were.

        Raises:
            StorageUnavailable: nothing was taken back.
        """

        async def attempt() -> int:
            async with self._unit_of_work() as work:
                lessons = work.users
                digests = await lessons.digests(user)
                if digests:
                    heard = await lessons.remove(user, digests)
                    await self._settle(work, lessons, heard, [], None)
                return len(digests)

        return await again(attempt, self._options)

    async def _train(
        self,
        user: str,
        batch: Sequence[Features],
        label: Label,
        source: str,
        given: datetime | None,
    ) -> list[Outcome]:
        mails = {features.digest: features for features in batch}
        time = given or self._clock.now()
        async with self._unit_of_work() as work:
            lessons = work.users
            old = await lessons.listed(user, tuple(mails))
            fresh = [
                features
                for digest, features in mails.items()
                if digest not in old or _replaces(label, source, given, old[digest])
            ]
            settled = 0 if source == KEPT else await work.settle(tuple(mails))
            odds: Mapping[bytes, tuple[float, float]] = {}
            if fresh:
                before = await lessons.layer(user)
                told = [_lesson(features, label, source, time) for features in fresh]
                heard = await lessons.add(user, told)
                odds = await self._settle(work, lessons, heard, fresh, (user, before))
            elif settled:
                await work.keep()
        return [_outcome(digest, label, old.get(digest), odds) for digest in mails]

    async def _forget(
        self, user: str, digests: Sequence[bytes], given_before: datetime | None
    ) -> list[Outcome]:
        async with self._unit_of_work() as work:
            lessons = work.users
            old = {
                digest: each
                for digest, each in (await lessons.listed(user, digests)).items()
                if given_before is None or each.time < given_before
            }
            if old:
                heard = await lessons.remove(user, tuple(old))
                await self._settle(work, lessons, heard, [], None)
        return [
            Outcome(
                digest=digest,
                result=Result.FORGOTTEN if digest in old else Result.UNKNOWN,
                label=old[digest].label if digest in old else None,
            )
            for digest in dict.fromkeys(digests)
        ]

    async def _settle(
        self,
        work: UserUnitOfWork,
        lessons: UserLessons,
        heard: Collection[bytes],
        fresh: Sequence[Features],
        whose: tuple[str, Layer | None] | None,
    ) -> Mapping[bytes, tuple[float, float]]:
        """Bring the site to what users agree on now, and commit.

        Return the probabilities of spam of `fresh` before and after, for whose layer it is.
        """
        change = await _change(work, lessons, heard)
        if not (change.learned or change.taken_back or fresh):
            await work.keep()
            return {}
        samples = [each.sample for each in change.learned]
        samples += [each.sample for each in change.taken_back]
        samples += [each.sample for each in fresh]
        model = await work.model(distinct(sample.ids for sample in samples))
        before = {each.digest: _probability(model, each, whose and whose[1]) for each in fresh}
        for lesson in change.taken_back:
            unlearn(model, lesson.sample, lesson.label, lesson.effect, lesson.digest)
        learned = _learned(model, change)
        layer = await lessons.layer(whose[0]) if whose else None
        after = {each.digest: _probability(model, each, layer) for each in fresh}
        if learned or change.taken_back:
            await work.commit(learned, change.taken_back)
        else:
            await work.keep()
        return {digest: (before[digest], after[digest]) for digest in before}


async def _change(work: UserUnitOfWork, lessons: UserLessons, heard: Collection[bytes]) -> _Change:
    """Return what the site must learn and take back so that it says what users agree on."""
    agreed = await lessons.agreed(heard)
    there = {each.digest: each for each in await work.listed(Selection(digests=tuple(agreed)))}
    learn_these, take_back = [], []
    for digest, wanted in sorted(agreed.items()):
        old = there.get(digest)
        if old is not None and not _yields(old, wanted):
            continue
        if old is not None:
            take_back.append(digest)
        if wanted.label is not None:
            learn_these.append(digest)
    held = await lessons.taught(learn_these)
    back = await work.lessons(take_back)
    return _Change(
        learned=[held[digest] for digest in learn_these],
        labels={digest: each.label for digest, each in agreed.items() if each.label is not None},
        kept={digest for digest, each in agreed.items() if each.kept},
        taken_back=[back[digest] for digest in take_back],
    )


def _yields(old: LessonSummary, wanted: Agreed) -> bool:
    """Return whether a lesson of the site gives way to what users agree on."""
    if old.actor != AGREED:  # it was given for the site
        return old.source == KEPT and wanted.label is not None and not wanted.kept
    return wanted.label is not old.label or wanted.kept is not (old.source == KEPT)


def _learned(model: Model, change: _Change) -> list[Lesson]:
    given = [
        Given(sample=each.sample, label=change.labels[each.digest], key=each.digest)
        for each in change.learned
    ]
    return [
        Lesson(
            digest=each.digest,
            label=change.labels[each.digest],
            source=KEPT if each.digest in change.kept else AGREED,
            actor=AGREED,
            sender_domain=each.sender_domain,
            time=each.time,
            effect=effect,
            sample=each.sample,
            texts=each.texts,
        )
        for each, effect in zip(change.learned, learn(model, given), strict=True)
    ]


def _probability(model: Model, features: Features, layer: Layer | None) -> float:
    evidence = model.weigh(features.sample)
    word = None if layer is None else layer.word_on(trait(features))
    return evidence.probability if word is None else sigmoid(word.log_odds)


def _replaces(label: Label, source: str, given: datetime | None, old: UserLessonSummary) -> bool:
    """Return whether a lesson takes the place of what the user said before."""
    if source == KEPT:
        return False
    if given is not None and old.time >= given and old.source != KEPT:
        return False
    return old.label is not label or old.source == KEPT


def _lesson(features: Features, label: Label, source: str, time: datetime) -> UserLesson:
    return UserLesson(
        digest=features.digest,
        label=label,
        source=source,
        sender_domain=features.sender_domain,
        origin=origin(features.texts.words),
        time=time,
        sample=features.sample,
        texts=features.texts,
    )


def _outcome(
    digest: bytes,
    label: Label,
    old: UserLessonSummary | None,
    odds: Mapping[bytes, tuple[float, float]],
) -> Outcome:
    if digest not in odds:
        known = label if old is None else old.label
        return Outcome(digest=digest, result=Result.KNOWN, label=known)
    result = Result.LEARNED
    if old is not None:
        result = Result.KNOWN if old.label is label else Result.RELABELLED
    before, after = odds[digest]
    return Outcome(digest=digest, result=result, label=label, before=before, after=after)
