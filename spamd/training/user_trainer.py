"""Teach and take back for one user; the site learns what users agree on.

    train         a user says what a mail is: it counts in their layer, in place of what they said
                  of it before; a lesson of the source "kept" replaces none
    forget        takes a user's lessons back
    forget_mails  takes back what anybody has taught of mails, for the site or for themselves
    forget_user   takes back all that a user has taught, with all else that is known of them

What the site learns of a mail is a function of all users' lessons in force (`agreement`). A change
of them and what follows for the site are one transaction. A lesson that was given for the site
itself stands, whatever users say; only "kept" ones yield.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.counts import distinct
from spamd.bayes.learning import unlearn
from spamd.bayes.model import Model
from spamd.bayes.own import Layer
from spamd.message.features import Features
from spamd.message.tokens.origin import origin
from spamd.person import trait
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.agreement import change_of, learned, take_back
from spamd.training.ports import KEPT, Lesson, LessonSummary, Selection
from spamd.training.retries import again
from spamd.training.user_ports import (
    AGREED,
    BY_COMMAND,
    Traces,
    UserLesson,
    UserLessonSummary,
    UserUnitOfWork,
)


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

    async def forget_mails(
        self, digests: Sequence[bytes], *, given_before: datetime | None = None
    ) -> list[Outcome]:
        """Take back what was taught of these mails, for the site and by every user.

        With `given_before` only what is older. Return what became of each.

        Raises:
            StorageUnavailable: nothing was taken back.
        """

        async def attempt() -> list[Outcome]:
            async with self._unit_of_work() as work:
                site = {
                    each.digest: each
                    for each in await work.listed(Selection(digests=tuple(digests)))
                    if given_before is None or each.time < given_before
                }
                users, heard = await work.users.remove_all(digests, given_before)
                if site or users:
                    await take_back(work, heard, gone=site)
            return [_forgotten(each, site, users) for each in dict.fromkeys(digests)]

        return await again(attempt, self._options)

    async def copy(self, user: str, to: str) -> int:
        """Have somebody have taught what a user has, but for mails that they have taught.

        Return how many lessons that were.

        Raises:
            StorageUnavailable: nothing was copied.
        """

        async def attempt() -> int:
            async with self._unit_of_work() as work:
                told = await work.users.lessons(user)
                there = await work.users.listed(to, [each.digest for each in told])
                fresh = [each for each in told if each.digest not in there]
                if fresh:
                    heard = await work.users.add(to, fresh)
                    await take_back(work, heard)
                return len(fresh)

        return await again(attempt, self._options)

    async def forget_user(self, user: str, traces: Traces) -> Mapping[str, int]:
        """Forget all that is known of a user, in one transaction; return how much it was.

        Lessons go with what the site learned by them; those after them are learned anew, so that
        all is as if this user had never taught.

        Raises:
            StorageUnavailable: nothing was forgotten.
        """

        async def attempt() -> Mapping[str, int]:
            async with self._unit_of_work() as work:
                digests = await work.users.digests(user)
                heard = await work.users.remove(user, digests)
                held = await work.listed(Selection(digests=tuple(digests)))
                gone = {each.digest for each in held if each.actor == AGREED}  # some have his time
                for actor in traces.actors:
                    given = await work.listed(Selection(actor=actor))
                    gone |= {each.digest for each in given if each.source != BY_COMMAND}
                rest = await work.forget_rest(user, traces)
                await take_back(work, heard, gone=gone, replay=True)
                return {"lessons": len(gone.union(digests)), **rest}

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
                odds = await self._settle(work, heard, fresh, user, before)
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
                await take_back(work, heard)
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
        heard: Collection[bytes],
        fresh: Sequence[Features],
        user: str,
        before: Layer | None,
    ) -> Mapping[bytes, tuple[float, float]]:
        """Bring the site to what users agree on now, and commit.

        Return the probabilities of spam of `fresh` for the user before and after.
        """
        change = await change_of(work, heard)
        samples = [each.sample for each in (*change.learned, *change.taken_back)]
        samples += [each.sample for each in fresh]
        model = await work.model(distinct(sample.ids for sample in samples))
        then = {each.digest: _probability(model, each, before) for each in fresh}
        for lesson in change.taken_back:
            unlearn(model, lesson.sample, lesson.label, lesson.effect, lesson.digest)
        told = learned(model, change.learned)
        site: dict[bytes, Lesson | None] = {each.digest: None for each in change.taken_back}
        layer = await work.users.layer(user, site | {each.digest: each for each in told})
        now = {each.digest: _probability(model, each, layer) for each in fresh}
        if told or change.taken_back:
            await work.commit(told, change.taken_back)
        else:
            await work.keep()
        return {digest: (then[digest], now[digest]) for digest in then}


def _forgotten(
    digest: bytes,
    site: Mapping[bytes, LessonSummary],
    users: Mapping[bytes, Label],
) -> Outcome:
    """Return what became of a mail that is to be forgotten."""
    if digest in site:
        old = site[digest]
        return Outcome(
            digest=digest,
            result=Result.FORGOTTEN,
            label=old.label,
            before=old.before,
            after=old.after,
        )
    found = users.get(digest)
    result = Result.UNKNOWN if found is None else Result.FORGOTTEN
    return Outcome(digest=digest, result=result, label=found)


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
