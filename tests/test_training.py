"""The rules of teaching: what counts, what is told, and when it is tried again."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts
from spamd.bayes.model import CLASSIFIERS, BayesOptions, Model
from spamd.errors import StorageUnavailable
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.sample import Label
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.ports import Lesson, LessonSummary, Selection, TrainingObserver
from spamd.training.trainer import Trainer
from tests.fakes import FakeClock

HAM, SPAM = Label.HAM, Label.SPAM


class MemoryStore:
    """Lessons in memory; `busy` transactions fail before one succeeds.

    The model is the whole one: this store has no transactions to undo.
    """

    def __init__(self) -> None:
        self.journal: dict[bytes, Lesson] = {}
        self.whole = Model.empty(SCHEMA, BayesOptions())
        self.busy = 0
        self.commits: list[int] = []

    async def __aenter__(self) -> Self:
        if self.busy:
            self.busy -= 1
            raise StorageUnavailable("somebody else is writing")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        pass

    async def listed(self, selection: Selection) -> Sequence[LessonSummary]:
        found = [
            LessonSummary(
                digest=each.digest,
                label=each.label,
                source=each.source,
                actor=each.actor,
                sender_domain=each.sender_domain,
                time=each.time,
                before=each.effect.probability_before,
                after=each.effect.probability_after,
            )
            for each in self.journal.values()
            if (selection.digests is None or each.digest in selection.digests)
            and (selection.source is None or each.source == selection.source)
            and (selection.label is None or each.label is selection.label)
        ]
        return selection.end_of(found)

    async def lessons(self, digests: Sequence[bytes]) -> Mapping[bytes, Lesson]:
        return {digest: self.journal[digest] for digest in digests if digest in self.journal}

    async def model(self, ids: NDArray[np.int64]) -> Model:
        unknown = ids[self.whole.tokens.find(ids) < 0]
        self.whole.tokens.merge(unknown, TokenCounts.zeros(len(unknown)))
        return self.whole

    async def settle(self, digests: Sequence[bytes]) -> int:
        return 0

    async def commit(self, learned: Sequence[Lesson], taken_back: Sequence[Lesson]) -> None:
        for lesson in taken_back:
            del self.journal[lesson.digest]
        self.journal.update((lesson.digest, lesson) for lesson in learned)
        self.commits.append(len(learned) + len(taken_back))


class Listener(TrainingObserver):
    """Remembers what it is told of lessons."""

    def __init__(self) -> None:
        self.told: list[tuple[Label, str, str]] = []

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        assert 0 <= before <= 1
        assert 0 <= after <= 1
        self.told.append((label, source, outcome))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def trainer(store: MemoryStore, listener: Listener) -> Trainer:
    return Trainer(
        unit_of_work=lambda: store,
        clock=FakeClock(),
        options=TrainingOptions(batch=2, attempts=3, pause_s=0),
        observer=listener,
    )


def mail(subject: str) -> Features:
    return extract(f"Subject: {subject}\r\n\r\nwords of {subject}\r\n".encode())


async def train(
    trainer: Trainer, label: Label, *subjects: str, source: str = "cli"
) -> list[Result]:
    batch = [mail(subject) for subject in subjects]
    outcomes = await trainer.train(batch, label, source=source, actor="root")
    assert [outcome.digest for outcome in outcomes] == [each.digest for each in batch]
    assert all(outcome.label is label for outcome in outcomes)
    return [outcome.result for outcome in outcomes]


async def test_a_mail_is_learned_known_and_relabelled(trainer: Trainer, store: MemoryStore) -> None:
    assert await train(trainer, SPAM, "a", "b", "a") == [
        Result.LEARNED,
        Result.LEARNED,
        Result.KNOWN,
    ]
    assert await train(trainer, HAM, "a", "a", "c") == [
        Result.RELABELLED,
        Result.KNOWN,
        Result.LEARNED,
    ]
    totals = store.whole.totals
    assert (totals.spam, totals.ham) == (1, 2)


async def test_what_is_known_needs_no_commit(trainer: Trainer, store: MemoryStore) -> None:
    await train(trainer, SPAM, "a")
    await train(trainer, SPAM, "a", "a")
    await trainer.forget([mail("never taught").digest])
    assert await train(trainer, SPAM) == []
    assert store.commits == [1]


async def test_every_outcome_tells_the_probability_before_and_after(trainer: Trainer) -> None:
    (learned,) = await trainer.train([mail("a")], SPAM, source="cli", actor="root")
    (known,) = await trainer.train([mail("a")], SPAM, source="cli", actor="root")
    (forgotten,) = await trainer.forget([mail("a").digest])
    (unknown,) = await trainer.forget([mail("a").digest])
    assert learned.before is not None
    assert learned.after is not None
    assert learned.before < learned.after
    told = (learned.before, learned.after)
    assert (known.before, known.after) == told
    assert (forgotten.result, forgotten.label) == (Result.FORGOTTEN, SPAM)
    assert (forgotten.before, forgotten.after) == told
    assert unknown == Outcome(digest=mail("a").digest, result=Result.UNKNOWN, label=None)


async def test_a_rollback_takes_back_what_fits_in_batches_and_lists_it(
    trainer: Trainer, store: MemoryStore
) -> None:
    await train(trainer, SPAM, "a", "b", "c", source="imap")
    await train(trainer, HAM, "d")
    done = await trainer.rollback(Selection(source="imap"))
    assert [summary.digest for summary in done] == [mail(name).digest for name in "abc"]
    assert list(store.journal) == [mail("d").digest]
    assert store.commits[-2:] == [2, 1]


async def test_the_observer_hears_of_each_lesson(trainer: Trainer, listener: Listener) -> None:
    await train(trainer, SPAM, "a", source="imap")
    await train(trainer, HAM, "a", source="cli")
    await trainer.forget([mail("a").digest, mail("b").digest])
    assert listener.told == [
        (SPAM, "imap", "learned"),
        (HAM, "cli", "relabelled"),
        (HAM, "forget", "forgotten"),
    ]


async def test_without_an_observer_nobody_is_told(store: MemoryStore) -> None:
    trainer = Trainer(unit_of_work=lambda: store, clock=FakeClock(), options=TrainingOptions())
    assert await train(trainer, SPAM, "a") == [Result.LEARNED]


async def test_a_transaction_that_is_refused_is_tried_again_a_few_times(
    trainer: Trainer, store: MemoryStore, listener: Listener
) -> None:
    store.busy = 2
    assert await train(trainer, SPAM, "a") == [Result.LEARNED]
    store.busy = 3
    with pytest.raises(StorageUnavailable, match="somebody else is writing"):
        await train(trainer, SPAM, "b")
    assert len(listener.told) == 1


async def test_a_long_batch_lets_others_have_a_turn(trainer: Trainer, store: MemoryStore) -> None:
    names = [f"mail {number}" for number in range(20)]
    assert await train(trainer, SPAM, *names) == [Result.LEARNED] * 20
    assert store.whole.totals.spam == 20


async def test_taking_everything_back_leaves_no_count_and_no_weight(
    trainer: Trainer, store: MemoryStore
) -> None:
    await train(trainer, SPAM, "a", "b")
    await train(trainer, HAM, "b", "c")
    await trainer.rollback(Selection())
    model = store.whole
    rows = np.arange(len(model.tokens))
    assert not model.tokens.counts(rows).cells.any()
    assert not model.grams.any()
    assert model.facts.to_rows() == []
    assert model.totals.messages == 0


async def one_after_the_other(trainer: Trainer, number: int) -> None:
    for label in (SPAM, HAM):
        await train(trainer, label, *(f"{label} number {part}" for part in range(number)))


async def test_one_label_taught_after_the_other_is_rehearsed_mixed(
    trainer: Trainer, store: MemoryStore, listener: Listener
) -> None:
    await one_after_the_other(trainer, 20)
    before = dict(store.journal)
    cells = store.whole.tokens.counts(np.arange(len(store.whole.tokens)))
    told = len(listener.told)
    assert await trainer.rehearse() == 40
    labels = [lesson.label for lesson in store.journal.values()]
    assert labels != sorted(labels)
    assert store.journal.keys() == before.keys()
    after = store.whole.tokens.counts(np.arange(len(store.whole.tokens)))
    assert np.array_equal(after.spam, cells.spam)
    assert np.array_equal(after.ham_occurrences, cells.ham_occurrences)
    for digest, lesson in store.journal.items():
        assert lesson.effect.probability_before == before[digest].effect.probability_before
        assert lesson.time == before[digest].time
    assert len(listener.told) == told
    assert await trainer.rehearse() == 0


async def test_lessons_of_one_label_or_mixed_ones_need_no_rehearsal(trainer: Trainer) -> None:
    assert await trainer.rehearse() == 0
    await train(trainer, SPAM, *(f"mail {number}" for number in range(20)))
    assert await trainer.rehearse() == 0
    for number in range(10):
        await train(trainer, HAM, f"ham {number}")
        await train(trainer, SPAM, f"spam {number}")
    assert await trainer.rehearse() == 0


async def test_a_rehearsal_can_be_switched_off(store: MemoryStore) -> None:
    options = TrainingOptions(rehearse=0)
    trainer = Trainer(unit_of_work=lambda: store, clock=FakeClock(), options=options)
    await one_after_the_other(trainer, 20)
    assert await trainer.rehearse() == 0


async def test_a_lesson_taken_back_while_others_are_rehearsed_is_passed_over(
    trainer: Trainer, store: MemoryStore
) -> None:
    await one_after_the_other(trainer, 5)
    digests = list(store.journal)
    await trainer.forget(digests[:1])
    await trainer._rehearse(digests[:1])
    await trainer._rehearse(digests)
    assert set(store.journal) == set(digests[1:])
    assert store.whole.totals.messages == 9


async def test_old_lessons_of_both_labels_are_learned_again_in_turn(store: MemoryStore) -> None:
    options = TrainingOptions(refresh=4)
    trainer = Trainer(unit_of_work=lambda: store, clock=FakeClock(), options=options)
    await one_after_the_other(trainer, 5)
    cells = store.whole.tokens.counts(np.arange(len(store.whole.tokens)))
    before, told = dict(store.journal), len(store.commits)
    spam, ham = list(before)[:5], list(before)[5:]

    assert await trainer.refresh(first_scores=True) == 4

    assert list(store.journal) == [*spam[2:], *ham[2:], ham[0], spam[0], ham[1], spam[1]]
    assert store.commits[told:] == [8]
    for digest, lesson in store.journal.items():
        assert lesson.effect.probability_after == before[digest].effect.probability_after
        assert (lesson.time, lesson.label) == (before[digest].time, before[digest].label)
        assert np.array_equal(lesson.effect.scores, before[digest].effect.scores)
    after = store.whole.tokens.counts(np.arange(len(store.whole.tokens)))
    assert np.array_equal(after.spam, cells.spam)
    assert np.array_equal(after.ham, cells.ham)
    await trainer.refresh(first_scores=False)
    assert list(store.journal)[:3] == [spam[4], ham[4], ham[0]]
    scores = store.journal[spam[2]].effect.scores
    assert not np.array_equal(scores, before[spam[2]].effect.scores)


async def test_without_lessons_of_both_labels_none_is_learned_again(
    trainer: Trainer, store: MemoryStore
) -> None:
    assert await trainer.refresh(first_scores=True) == 0
    await train(trainer, SPAM, "one", "two")
    told = len(store.commits)
    assert await trainer.refresh(first_scores=True) == 0
    assert store.commits[told:] == []


async def test_learning_old_lessons_again_can_be_switched_off(store: MemoryStore) -> None:
    options = TrainingOptions(refresh=0)
    trainer = Trainer(unit_of_work=lambda: store, clock=FakeClock(), options=options)
    await one_after_the_other(trainer, 3)
    assert await trainer.refresh(first_scores=True) == 0


async def test_a_push_to_one_side_is_taken_back_by_old_lessons(
    trainer: Trainer, store: MemoryStore
) -> None:
    def highest() -> float:
        scores = [store.whole.weigh(mail(f"ham number {part}").sample).scores for part in range(10)]
        return float(max(score[CLASSIFIERS.index("grams")] for score in scores))

    await one_after_the_other(trainer, 10)
    said = highest()
    await train(trainer, SPAM, *(f"words of ham and spam {part}" for part in range(40)))
    pushed = highest()
    for _ in range(6):
        await trainer.refresh(first_scores=True)
    assert said < pushed
    assert highest() < pushed - (pushed - said) / 2


def test_a_selection_has_one_end() -> None:
    with pytest.raises(ValueError, match="two ends"):
        Selection(newest=1, oldest=1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch": 0}, "training.batch must lie between"),
        ({"batch": 5001}, "training.batch must lie between"),
        ({"rehearse": -1}, "training.rehearse must lie between"),
        ({"refresh": -1}, "training.refresh must lie between"),
        ({"refresh": 1001}, "training.refresh must lie between"),
        ({"attempts": 0}, "training.attempts must lie between"),
        ({"pause_s": -1}, "training.pause_s must lie between"),
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TrainingOptions(**wrong)


async def test_half_of_a_rehearsal_is_of_each_label_and_goes_in_whole_batches(
    store: MemoryStore,
) -> None:
    options = TrainingOptions(batch=4, rehearse=20)
    trainer = Trainer(unit_of_work=lambda: store, clock=FakeClock(), options=options)
    await one_after_the_other(trainer, 30)
    before = dict(store.journal)
    told = len(store.commits)

    assert await trainer.rehearse() == 20

    again = [digest for digest in store.journal if store.journal[digest] is not before[digest]]
    labels = [store.journal[digest].label for digest in again]
    assert (labels.count(SPAM), labels.count(HAM)) == (10, 10)
    newest = {SPAM: set(list(before)[20:30]), HAM: set(list(before)[50:])}
    assert set(again) == newest[SPAM] | newest[HAM]
    assert store.commits[told:] == [8] * 5
