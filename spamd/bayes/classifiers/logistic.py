"""On-line logistic regression over tokens, and over hashed character 4-grams.

    z = Σ wₜ / √n        P(spam) = 1 / (1 + e^(−z))        wₜ ← wₜ + η·(y − P)/√n
    η = η∞ + (η₀ − η∞) / (1 + N/N½)                           N lessons learned so far

One pass, one step per lesson, the same step for each of the n features of the message. The first
lessons step far, later ones correct finely. Weights and
steps are integers in units of 2⁻¹⁶, so subtracting a lesson's step restores each weight exactly.
(The steps of later lessons stay as they were taken: they are theirs to take back.)

Where nearly all lessons that step are of one label, as when people correct what is wrong, they push
every common token to that side, and with it all mail. Of tokens whose counts are known most of this
is taken out again when a message is scored: a token that tells nothing weighs little.

    w′ₜ = wₜ − λ·d·fₜ        d = Σ qₜ·wₜ·fₜ / Σ qₜ·fₜ²        fₜ = (spam rate + ham rate)/2

the sums over the tokens of the message that are common, qₜ = (lower rate / higher rate)⁸: those
that tell the labels apart hardly count. λ below 1 lets lessons still see the push, so that it has
an end (E-032).

Sources: J. Goodman and W. Yih, "Online discriminative spam filter training" (CEAS 2006); G.
Cormack, TREC 2007, for character 4-grams; D. Sculley, "Advances in online learning-based spam
filtering" (2008), for margins.
"""

from dataclasses import dataclass
from math import sqrt, tanh

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import at_least_one
from spamd.bayes.counts import WEIGHT_UNIT, TokenCounts, Totals
from spamd.sample import Label

GRAM_SLOTS = 1 << 20
"""Slots of the gram table, 4 MB; TREC 2007's winner had as many (G. Cormack)."""


COMMON, TAKEN_OUT = 0.1, 0.8
"""A token is common that at least this share of spam and of ham holds; λ (both E-032)."""

LEAST_COMMON = 0.05
"""Σ qf² below this says nothing about the push."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticOptions:
    """On-line logistic regression over the same tokens.

    rate     η₀, how far the first lesson moves the score of its own message, in log-odds (E-004)
    steady   η∞, what the rate falls to as lessons grow many (E-007)
    settle   N½, lessons after which the rate is half way down (E-007)
    margin   a message on its label's side of this log-odds teaches nothing more: a thick threshold
             keeps what is known well from drowning what is rare (E-007)
    """

    rate: float = 16.0
    steady: float = 4.0
    settle: int = 1000
    margin: float = 2.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 0 < self.steady <= self.rate <= 1000:
            raise ValueError("0 < steady ≤ rate ≤ 1000 must hold")
        if self.settle < 1 or self.margin < 0:
            raise ValueError("settle must be at least 1 and margin not below 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class GramsOptions(LogisticOptions):
    """The same learner over character 4-grams: sees through spelling tricks, in every script.

    rate     as logistic.rate
    steady   as logistic.steady
    settle   as logistic.settle
    margin   as logistic.margin
    """


def sigmoid(z: float) -> float:
    """Return 1 / (1 + e^(−z)) without overflow."""
    return 0.5 * (1 + tanh(z / 2))


def score(weights: NDArray[np.int32]) -> float:
    """Return z, the log-odds of spam, from the weights of the message's features."""
    if len(weights) == 0:
        return 0.0
    return float(weights.sum(dtype=np.int64)) * WEIGHT_UNIT / sqrt(len(weights))


def balanced(counts: TokenCounts, totals: Totals) -> NDArray[np.float64]:
    """Return w′, what each token of a message tells, in units of 2⁻¹⁶."""
    spam = counts.spam / at_least_one(totals.spam)
    ham = counts.ham / at_least_one(totals.ham)
    weights: NDArray[np.float64] = counts.weight.astype(np.float64)
    lower = np.minimum(spam, ham)
    common = np.flatnonzero(lower >= COMMON)
    rates = (spam + ham) / 2
    alike = lower[common] / np.maximum(spam, ham)[common]
    alike *= alike
    alike *= alike
    alike *= alike
    alike *= rates[common]
    size = float(alike @ rates[common])
    if size > LEAST_COMMON:
        weights -= rates * (TAKEN_OUT * float(alike @ weights[common]) / size)
    return weights


def token_score(counts: TokenCounts, totals: Totals) -> float:
    """Return z, the log-odds of spam, of a message with these tokens."""
    if len(counts.weight) == 0:
        return 0.0
    return float(balanced(counts, totals).sum()) * WEIGHT_UNIT / sqrt(len(counts.weight))


def step(z: float, features: int, label: Label, lessons: int, options: LogisticOptions) -> int:
    """Return the step, in units of 2⁻¹⁶, that a lesson adds to each weight of its message.

    z  the score before, of a message with so many `features`    lessons  learned before this one
    """
    y = 1.0 if label is Label.SPAM else 0.0
    if features == 0 or (2 * y - 1) * z > options.margin:
        return 0
    rate = options.steady + (options.rate - options.steady) / (1 + lessons / options.settle)
    return round(rate * (y - sigmoid(z)) / sqrt(features) / WEIGHT_UNIT)


def slots(grams: NDArray[np.uint32], size: int) -> NDArray[np.intp]:
    """Return the slot of each gram in a table of `size` (a power of two) slots."""
    return (grams & np.uint32(size - 1)).astype(np.intp)
