"""Lessons into a model, and out of it again.

    effects = learn(model, [Given(sample=…, label=…, key=digest), …])
    unlearn(model, sample, label, effect)       # the exact inverse: keep effects with the lessons

Every token of a sample must have its row in `model.tokens` before it is learned
(`model.tokens.merge(ids, TokenCounts.zeros(len(ids)))`). Learning and unlearning in any order leave
counts, totals, facts and weights as if only the lessons that remain had added their counts and
steps. A step, though, was measured against the weights of its time: a database retrained from the
start may hold other logistic weights, never other counts.

Lessons given together are learned one after the other. What those over counts will need, the
counts at that moment, is noted before and after each; weighed they are all at once, which takes a
third of the time. Only the two logistic classifiers weigh at once, as each step hangs on the score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import Batch
from spamd.bayes.classifiers import logistic
from spamd.bayes.counts import TokenCounts, Totals, taught
from spamd.bayes.factmoments import FactMoments, Note, note
from spamd.bayes.model import Messages, Model
from spamd.sample import Label, Sample

PIECE_TOKENS = 16_384
"""Tokens weighed at once, when no message alone has more: arrays of 128 KB, which caches hold."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effect:
    """What a lesson did; it is stored with the lesson so that it can be taken back.

    scores               float64[classifiers], before the lesson was learned
    probability_before   P(spam) of the sample before
    probability_after    P(spam) of the sample after
    step                 integer in units of 2⁻¹⁶, added to the weight of each token taught
    gram_step            the same for each gram
    """

    scores: NDArray[np.float64]
    probability_before: float
    probability_after: float
    step: int
    gram_step: int

    def told_as(self, first: "Effect") -> "Effect":
        """Return it with the probabilities that people saw when the lesson was given."""
        return replace(
            self,
            probability_before=first.probability_before,
            probability_after=first.probability_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """A lesson to learn.

    key           its digest, which names its entry in the history
    again         what it did when it is in force already: it is taken back first
    first_scores  whether the fusion goes on looking at the scores of then: they were given before
                  the lesson, and before all that was learned since (E-039)
    """

    sample: Sample
    label: Label
    key: bytes = b""
    again: Effect | None = None
    first_scores: bool = False

    def scores(self, now: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores that the fusion is to look at, of those and the present ones."""
        return self.again.scores if self.again is not None and self.first_scores else now


def learn(model: Model, lessons: Sequence[Given], *, proof: bool = True) -> list[Effect]:
    """Learn lessons in their order; return what each did.

    Without `proof` nothing is weighed a second time, and the probability after is that from before.

    Raises:
        KeyError: a token has no row.
        ValueError: a lesson is to be learned again that was never learned.
    """
    effects: list[Effect] = []
    for piece in _pieces(lessons, model):
        effects += _learn(model, piece, proof=proof)
    return effects


def unlearn(model: Model, sample: Sample, label: Label, effect: Effect, key: bytes = b"") -> None:
    """Take one lesson back exactly; the fusion forgets it at its next fit.

    Raises:
        KeyError: a token of the sample has no row.
        ValueError: the sample was never learned with this label.
    """
    _take_back(model, sample, model.tokens.find(sample.ids), label, effect, key)


def restore(model: Model, sample: Sample, label: Label, effect: Effect, key: bytes = b"") -> None:
    """Add a lesson of a journal as it was learned then: the inverse of `unlearn`.

    Raises:
        KeyError: a token of the sample has no row.
    """
    rows = model.tokens.find(sample.ids)
    _change(model, sample, rows, label, effect.step, effect.gram_step, sign=1)
    model.history.append(key, label, effect.scores)


def _take_back(
    model: Model,
    sample: Sample,
    rows: NDArray[np.intp],
    label: Label,
    effect: Effect,
    key: bytes,
) -> None:
    _change(model, sample, rows, label, effect.step, effect.gram_step, sign=-1)
    model.history.remove(key, label, effect.scores)


def _change(
    model: Model,
    sample: Sample,
    rows: NDArray[np.intp],
    label: Label,
    step: int,
    gram_step: int,
    *,
    sign: int,
) -> None:
    occurrences = sample.occurrences
    if (chosen := taught(sample, model.taught_tokens)) is not None:
        rows, occurrences = rows[chosen], occurrences[chosen]
    vocabulary = model.tokens.add(rows, occurrences, label, sign, sign * step)
    model.totals = model.totals.changed(
        label,
        occurrences=int(occurrences.sum(dtype=np.int64)),
        vocabulary=vocabulary,
        sign=sign,
    )
    model.facts.add(label, sample.discrete, sample.continuous, sign)
    if gram_step:
        model.grams[model.slots(sample)] += np.int32(sign * gram_step)


def _pieces(lessons: Sequence[Given], model: Model) -> Iterator[Sequence[Given]]:
    """Cut lessons where the fusion is due to be fitted, and where they have too many tokens."""
    every = model.options.fusion.refit_every
    start = tokens = 0
    for place, lesson in enumerate(lessons):
        tokens += len(lesson.sample.ids)
        due = (model.learned + place + 1 - start) % every == 0
        if due or tokens >= PIECE_TOKENS or place + 1 == len(lessons):
            yield lessons[start : place + 1]
            start, tokens = place + 1, 0


def _learn(model: Model, lessons: Sequence[Given], *, proof: bool) -> list[Effect]:
    """Learn lessons between two fits of the fusion."""
    ids = [lesson.sample.ids for lesson in lessons]
    rows = np.split(model.tokens.find(np.concatenate(ids)), np.cumsum([len(each) for each in ids]))
    before, after = _Notes(), _Notes()
    steps = []
    for lesson, places in zip(lessons, rows[:-1], strict=True):
        sample = lesson.sample
        if lesson.again is not None:
            _take_back(model, sample, places, lesson.label, lesson.again, lesson.key)
        before.add(model, sample, places)
        step, gram_step = _steps(model, before, sample, lesson.label)
        _change(model, sample, places, lesson.label, step, gram_step, sign=1)
        if proof:
            after.add(model, sample, places)
        steps.append((step, gram_step))
    scores = model.scores(before.messages(model))
    later = model.scores(after.messages(model)) if proof else scores
    told, told_after = model.fusion.probabilities(scores), model.fusion.probabilities(later)
    for lesson, each in zip(lessons, scores, strict=True):
        model.history.append(lesson.key, lesson.label, lesson.scores(each))
    model.learned += len(lessons)
    if model.learned % model.options.fusion.refit_every == 0:
        model.refit()
        if proof:  # the last lesson is the one after which the fusion is another
            told_after[-1:] = model.fusion.probabilities(later[-1:])
    return [
        Effect(
            scores=lessons[place].scores(scores[place]),
            probability_before=told[place],
            probability_after=told_after[place],
            step=step,
            gram_step=gram_step,
        )
        for place, (step, gram_step) in enumerate(steps)
    ]


def _steps(model: Model, notes: "_Notes", sample: Sample, label: Label) -> tuple[int, int]:
    """Return the steps of the two logistic classifiers for the message noted last."""
    options, lessons = model.options, model.totals.messages
    step = gram_step = 0
    if "logistic" in options.fusion.classifiers:
        z = notes.linear["logistic"][-1]
        step = logistic.step(z, len(sample.ids), label, lessons, options.logistic)
    if "grams" in options.fusion.classifiers:
        z = notes.linear["grams"][-1]
        gram_step = logistic.step(z, len(sample.grams), label, lessons, options.grams)
    return step, gram_step


class _Notes:
    """Messages as they are to be weighed, noted one after the other."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._cells: list[NDArray[np.int32]] = []
        self._totals: list[Totals] = []
        self._facts: list[Note] = []
        self.linear: dict[str, list[float]] = {"logistic": [], "grams": []}

    def add(self, model: Model, sample: Sample, rows: NDArray[np.intp]) -> None:
        """Note what is known of a message now."""
        cells = model.tokens.cells(rows)
        self._samples.append(sample)
        self._cells.append(cells)
        self._totals.append(model.totals)
        self._facts.append(note(model.facts, sample.discrete))
        counts = TokenCounts.of_cells(cells)
        self.linear["logistic"].append(logistic.token_score(counts, model.totals))
        self.linear["grams"].append(logistic.score(model.grams.take(model.slots(sample))))

    def messages(self, model: Model) -> Messages:
        """Return all of them, to be weighed at once."""
        samples = self._samples
        return Messages(
            tokens=Batch.of(
                TokenCounts.of_cells(np.concatenate(self._cells)), samples, self._totals
            ),
            facts=FactMoments(model.facts, self._facts),
            discrete=np.stack([sample.discrete for sample in samples]),
            continuous=np.stack([sample.continuous for sample in samples]),
            linear=self.linear,
        )
