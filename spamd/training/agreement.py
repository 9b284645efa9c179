"""What the site learns of users' lessons, and takes back when they are taken back.

    change_of   what the site must learn and take back so that it says what users agree on
    take_back   do so without users' lessons, and without some of the site's own

What the site learns of a mail is a function of all users' lessons in force (`UserLessons.agreed`).
Counts are exact by that alone. The steps of the logistic classifiers, though, were measured in
their order, and the scores that the fusion is fitted on too: to be as if lessons had never been
given, those after them are learned anew in their order (`replay`), at most `MOST_REPLAYED`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spamd.bayes.counts import distinct
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import Model
from spamd.sample import Label
from spamd.training.ports import KEPT, Lesson, LessonSummary, Selection
from spamd.training.user_ports import AGREED, Agreed, UserLesson, UserUnitOfWork

MOST_REPLAYED = 10_000
"""Lessons of the site that are learned anew at most: about a minute."""

_NO_EFFECT = Effect(
    scores=np.zeros(0), probability_before=0.5, probability_after=0.5, step=0, gram_step=0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the site is to learn, and to take back.

    learned   without their effect
    """

    learned: Sequence[Lesson]
    taken_back: Sequence[Lesson]


async def change_of(
    work: UserUnitOfWork, heard: Collection[bytes], gone: Collection[bytes] = ()
) -> Change:
    """Return what the site must learn and take back so that it says what users agree on.

    gone   mails of which it forgets what it was taught, by whomever
    """
    agreed = await work.users.agreed({*heard, *gone})
    there = {each.digest: each for each in await work.listed(Selection(digests=tuple(agreed)))}
    learn_these: dict[bytes, Label] = {}
    take_back_these: list[bytes] = []
    for digest, wanted in sorted(agreed.items()):
        old = there.get(digest)
        if old is not None and digest not in gone and not _yields(old, wanted):
            continue
        if old is not None:
            take_back_these.append(digest)
        if wanted.label is not None:
            learn_these[digest] = wanted.label
    held = await work.users.taught(list(learn_these))
    back = await work.lessons(take_back_these)
    return Change(
        learned=[
            _unlearned(held[digest], label, kept=agreed[digest].kept)
            for digest, label in learn_these.items()
        ],
        taken_back=[back[digest] for digest in take_back_these],
    )


def learned(model: Model, lessons: Sequence[Lesson], *, proof: bool = True) -> list[Lesson]:
    """Learn lessons in their order; return them with what they did."""
    given = [Given(sample=each.sample, label=each.label, key=each.digest) for each in lessons]
    effects = learn(model, given, proof=proof)
    return [replace(each, effect=effect) for each, effect in zip(lessons, effects, strict=True)]


async def take_back(
    work: UserUnitOfWork,
    heard: Collection[bytes],
    *,
    gone: Collection[bytes] = (),
    replay: bool = False,
) -> None:
    """Bring the site to what users agree on without what was removed, and commit.

    gone     mails of which the site forgets what it was taught, by whomever
    replay   lessons given later are learned anew, as if those taken back had never been given
    """
    change = await change_of(work, heard, gone)
    if not (change.learned or change.taken_back):
        await work.keep()
        return
    old, new = list(change.taken_back), list(change.learned)
    if replay:
        old, new = await _with_later(work, change)
    model = await work.model(distinct(each.sample.ids for each in (*old, *new)))
    for lesson in old:
        unlearn(model, lesson.sample, lesson.label, lesson.effect, lesson.digest)
    told = {lesson.digest: lesson.effect for lesson in old}
    again = [
        replace(each, effect=each.effect.told_as(told.get(each.digest, each.effect)))
        for each in learned(model, new, proof=len(old) == len(change.taken_back))
    ]
    await work.commit(again, old)


async def _with_later(work: UserUnitOfWork, change: Change) -> tuple[list[Lesson], list[Lesson]]:
    """Return what is to be taken back and then learned, with all lessons from the first that moves.

    What users agree on stands where its time puts it: where it would stand had nobody contradicted.
    """
    now = await work.listed(Selection(newest=MOST_REPLAYED + 1))
    back = {lesson.digest for lesson in change.taken_back}
    if len(now) > MOST_REPLAYED or not back.issubset(each.digest for each in now):
        return list(change.taken_back), list(change.learned)
    fresh = {lesson.digest: lesson for lesson in change.learned}
    stays = [each for each in now if each.digest not in back]
    then = _in_order(
        [each for each in stays if each.actor != AGREED],
        [*(each for each in stays if each.actor == AGREED), *fresh.values()],
    )
    same = 0
    while same < min(len(now), len(then)) and then[same] is now[same]:
        same += 1
    held = await work.lessons([each.digest for each in now[same:]])
    return (
        [held[each.digest] for each in now[same:]],
        [fresh.get(each.digest) or held[each.digest] for each in then[same:]],
    )


def _in_order(
    given: Sequence[LessonSummary], agreed: Sequence[LessonSummary | Lesson]
) -> list[LessonSummary | Lesson]:
    """Return lessons in order: those given for the site in theirs, the others by their time."""
    placed = sorted(agreed, key=lambda each: each.time, reverse=True)
    found: list[LessonSummary | Lesson] = []
    for each in given:
        while placed and placed[-1].time < each.time:
            found.append(placed.pop())
        found.append(each)
    return [*found, *reversed(placed)]


def _yields(old: LessonSummary, wanted: Agreed) -> bool:
    """Return whether a lesson of the site gives way to what users agree on."""
    if old.actor != AGREED:  # it was given for the site
        return old.source == KEPT and wanted.label is not None and not wanted.kept
    return wanted.label is not old.label or wanted.kept is not (old.source == KEPT)


def _unlearned(told: UserLesson, label: Label, *, kept: bool) -> Lesson:
    return Lesson(
        digest=told.digest,
        label=label,
        source=KEPT if kept else AGREED,
        actor=AGREED,
        sender_domain=told.sender_domain,
        time=told.time,
        effect=_NO_EFFECT,
        sample=told.sample,
        texts=told.texts,
    )
