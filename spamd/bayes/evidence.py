"""Why a message was judged as it was: each classifier's clues, and what would flip the verdict.

Nothing here is an approximation of the verdict: scores come from `Model.weigh`, and "without these
clues it would be …" is found by taking the clues out of the sample and weighing the rest. Words are
named by their index in the sample; rendering is left to others. `grams` gives no clues: the
texts of its 4-grams aren't kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers import confidence, fisher, graham, logistic, mixed, multinomial
from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.counts import WEIGHT_UNIT, TokenCounts, Totals
from spamd.bayes.decision import Decision, Verdict, decide, shift
from spamd.bayes.fusion import CLASSIFIERS, SCALES
from spamd.bayes.model import Evidence, Model
from spamd.sample import FIXED_POINT, Sample

Floats = NDArray[np.float64]

FLIP_LIMIT = 64
"""More clues than this are no longer something a person would call a reason."""

STEPS = 8
"""Parts into which the gap is divided where the verdict turns: so many are weighed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """One token as one classifier saw it.

    index          of the token in the sample
    spam, ham      messages trained that held it
    probability    P(spam|token) as this classifier computes it
    contribution   to the classifier's log-odds, above 0 for spam
    """

    index: int
    spam: int
    ham: int
    probability: float
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FactClue:
    """One structured attribute with its value, and what it adds to the classifier's log-odds."""

    name: str
    value: str
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierEvidence:
    """A classifier: its score, what it adds to the fused log-odds, its strongest clues first."""

    name: str
    score: float
    effect: float
    clues: tuple[Clue, ...]
    facts: tuple[FactClue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEffect:
    """One token, and what it adds to the fused log-odds through all classifiers together."""

    index: int
    spam: int
    ham: int
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """The verdict without some clues: the fewest that suffice when the strongest go first."""

    without: tuple[int, ...]
    probability: float
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """Everything that can be said about one verdict; `flip` is None when no few clues decide it.

    prior   what the share of spam that arrives adds to the log-odds (`decision.prior_spam`)
    words   the tokens that moved the verdict most, the strongest first
    """

    evidence: Evidence
    decision: Decision
    totals: Totals
    bias: float
    prior: float
    classifiers: tuple[ClassifierEvidence, ...]
    words: tuple[WordEffect, ...]
    flip: Flip | None


def explain(model: Model, sample: Sample, limit: int = 15) -> Explanation:
    """Return why the model judges the sample as it does, with up to `limit` clues a classifier."""
    evidence = model.weigh(sample)
    counts = model.tokens.counts(evidence.rows)
    decision = decide(evidence.probability, model.totals, model.options.decision)
    effects = model.fusion.effects(evidence.scores)
    parts = {
        name: _contributions(name, model, sample, counts)
        for name in CLASSIFIERS
        if name in model.options.fusion.classifiers
    }
    classifiers = tuple(
        ClassifierEvidence(
            name=name,
            score=float(evidence.scores[place]),
            effect=float(effects[place]),
            clues=_clues(name, model, counts, parts[name], limit),
            facts=_facts(model, sample) if name == "facts" else (),
        )
        for place, name in enumerate(CLASSIFIERS)
        if name in parts
    )
    return Explanation(
        evidence=evidence,
        decision=decision,
        totals=model.totals,
        bias=float(model.fusion.values[0]),
        prior=shift(model.totals, model.options.decision.prior_spam),
        classifiers=classifiers,
        words=_words(model, counts, evidence, parts, limit),
        flip=_flip(model, sample, evidence, parts, decision),
    )


def _contributions(name: str, model: Model, sample: Sample, counts: TokenCounts) -> Floats:
    """Return what each token adds to a classifier's score (Fisher: log-odds before the tail)."""
    options, totals, kinds = model.options, model.totals, sample.kinds
    parts = np.zeros(len(sample.ids))
    trained = totals.spam > 0 and totals.ham > 0
    match name:
        case "graham" if trained:
            p = graham.probabilities(counts, totals, options.graham)
            chosen = graham.choose(p, counts, kinds, options.graham)
            parts[chosen] = np.log(p[chosen]) - np.log1p(-p[chosen])
        case "multinomial" if trained:
            spoke = multinomial.speaking(counts, kinds, options.multinomial)
            parts = multinomial.contributions(
                counts, sample.occurrences, spoke, totals, options.multinomial
            )
            parts = parts / multinomial.divisor(
                int(np.count_nonzero(spoke)), options.multinomial.length
            )
        case "fisher" if trained:
            f = fisher.smoothed(counts, totals, options.fisher)
            f = np.clip(f, fisher.EXTREME, 1 - fisher.EXTREME)
            told = fisher.chosen(f, counts, kinds, options.fisher)
            parts = np.where(told, np.log(f) - np.log1p(-f), 0.0)
        case "confidence" if trained:
            parts = confidence.contributions(counts, kinds, totals, options.confidence)
        case "logistic":
            weights = logistic.balanced(counts, totals)
            parts = weights * (WEIGHT_UNIT / np.sqrt(max(1, len(parts))))
        case _:
            pass
    return parts


def _words(
    model: Model,
    counts: TokenCounts,
    evidence: Evidence,
    parts: Mapping[str, Floats],
    limit: int,
) -> tuple[WordEffect, ...]:
    """Share out what each classifier adds to the verdict among its tokens.

    A classifier adds w·tanh(s/scale) for its score s, so each unit of s adds w·tanh(s/scale)/s.
    Where its tokens do not add up to s (Fisher's tail), they share it out all the same.
    """
    effect = np.zeros(len(counts.spam))
    for place, name in enumerate(CLASSIFIERS):
        if name in parts:
            score, total = evidence.scores[place], abs(parts[name].sum())
            weight, scale = model.fusion.values[1 + place], SCALES[place]
            slope = np.tanh(score / scale) / score if abs(score) > 1e-9 else 1 / scale
            slope *= min(1.0, abs(score) / total) if total else 0.0
            effect += weight * slope * parts[name]
    strongest = np.argsort(-np.abs(effect), kind="stable")[:limit]
    return tuple(
        WordEffect(
            index=int(index),
            spam=int(counts.spam[index]),
            ham=int(counts.ham[index]),
            effect=float(effect[index]),
        )
        for index in strongest
        if effect[index]
    )


def _probability(name: str, model: Model, counts: TokenCounts, parts: Floats) -> Floats:
    """Return P(spam|token) as a classifier computes it."""
    if name == "confidence":  # whose contributions are limited, and divided by their number
        return confidence.probabilities(counts, model.totals, model.options.confidence)
    return np.array([sigmoid(part) for part in parts])


def _clues(
    name: str, model: Model, counts: TokenCounts, parts: Floats, limit: int
) -> tuple[Clue, ...]:
    strongest = np.argsort(-np.abs(parts), kind="stable")[:limit]
    strongest = strongest[parts[strongest] != 0]
    some = TokenCounts.of_cells(counts.cells[strongest])
    probability = _probability(name, model, some, parts[strongest])
    return tuple(
        Clue(
            index=int(index),
            spam=int(some.spam[place]),
            ham=int(some.ham[place]),
            probability=float(probability[place]),
            contribution=float(parts[index]),
        )
        for place, index in enumerate(strongest)
    )


def _facts(model: Model, sample: Sample) -> tuple[FactClue, ...]:
    schema = model.facts.schema
    discrete, continuous = mixed.contributions(
        model.facts, sample.discrete, sample.continuous, model.options.facts
    )
    clues = [
        FactClue(name=name, value=values[sample.discrete[place]], contribution=float(part))
        for place, ((name, values), part) in enumerate(zip(schema.discrete, discrete, strict=True))
    ]
    clues += [
        FactClue(name=name, value=f"{value / FIXED_POINT:.4g}", contribution=float(part))
        for name, value, part in zip(schema.continuous, sample.continuous, continuous, strict=True)
    ]
    return tuple(sorted(clues, key=lambda clue: -abs(clue.contribution)))


def _flip(
    model: Model,
    sample: Sample,
    told: Evidence,
    parts: Mapping[str, Floats],
    decision: Decision,
) -> Flip | None:
    """Return the fewest of the strongest clues without which the verdict is another one.

    1, 2, 4, … of them are taken out; then the gap in which it turns is searched, in `STEPS` parts
    at a time.
    """
    strength = np.zeros(len(sample.ids))
    for place, name in enumerate(CLASSIFIERS):
        if name in parts:
            strength += model.fusion.values[1 + place] / SCALES[place] * parts[name]
    strength *= 1.0 if decision.probability > 0.5 else -1.0
    order = np.argsort(-strength, kind="stable")
    order = order[strength[order] > 0][:FLIP_LIMIT]
    sizes = sorted({*(1 << power for power in range(len(order).bit_length())), len(order)})
    kept, found = 0, None
    while sizes and sizes[0]:
        flips = _judged(model, sample, told, [order[:size] for size in sizes])
        turned = next(
            (i for i, flip in enumerate(flips) if flip.verdict is not decision.verdict), None
        )
        if turned is not None:
            found = flips[turned]
            kept, size = (sizes[turned - 1] if turned else kept), sizes[turned]
        elif found is None:
            return None
        else:
            kept, size = sizes[-1], len(found.without)
        step = -(-(size - kept) // STEPS)
        sizes = list(range(kept + step, size, step))
    return found


def _judged(
    model: Model, sample: Sample, told: Evidence, gone: Sequence[NDArray[np.intp]]
) -> list[Flip]:
    """Return the verdicts without these tokens."""
    everything = np.arange(len(sample.ids))
    rest = [np.delete(everything, places) for places in gone]
    flips = []
    for places, probability in zip(gone, model.weigh_parts(sample, told, rest), strict=True):
        found = decide(probability, model.totals, model.options.decision)
        flips.append(
            Flip(
                without=tuple(places.tolist()),
                probability=found.probability,
                verdict=found.verdict,
            )
        )
    return flips
