"""On-line logistic regression over tokens, and over hashed character 4-grams.

    z = Σ wₜ / √n        P(spam) = 1 / (1 + e^(−z))        wₜ ← wₜ + η·(y − P)/√n

One pass, one step per lesson, the same step for each of the n features of the message. Weights and
steps are integers in units of 2⁻¹⁶, so subtracting a lesson's step restores each weight exactly.
(The steps of later lessons stay as they were taken: they are theirs to take back.)

Sources: J. Goodman and W. Yih, "Online discriminative spam filter training" (CEAS 2006); G.
Cormack, TREC 2007, for character 4-grams; D. Sculley, "Advances in online learning-based spam
filtering" (2008), for margins.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import WEIGHT_UNIT
from spamd.sample import Label

GRAM_SLOTS = 1 << 20
"""Slots of the gram table, 4 MB; TREC 2007's winner had as many (G. Cormack)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticOptions:
    """Settings of the logistic head over tokens.

    rate      η, how far one lesson moves the score of its own message, in log-odds (E-004)
    margin    a message on its label's side of this log-odds teaches nothing more (thick threshold)
    """

    rate: float = 16.0
    margin: float = 1e9

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 0 < self.rate <= 1000:
            raise ValueError("rate must lie between 0 and 1000")
        if self.margin < 0:
            raise ValueError("margin must not be below 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class GramsOptions(LogisticOptions):
    """Settings of the logistic head over character 4-grams: the same learner, other defaults."""


def sigmoid(z: float) -> float:
    """Return 1 / (1 + e^(−z)) without overflow."""
    return 0.5 * (1 + float(np.tanh(z / 2)))


def score(weights: NDArray[np.int32]) -> float:
    """Return z, the log-odds of spam, from the weights of the message's features."""
    if len(weights) == 0:
        return 0.0
    return float(weights.sum(dtype=np.int64)) * WEIGHT_UNIT / float(np.sqrt(len(weights)))


def step(z: float, features: int, label: Label, options: LogisticOptions) -> int:
    """Return the step, in units of 2⁻¹⁶, that a lesson adds to each weight of its message."""
    y = 1.0 if label is Label.SPAM else 0.0
    if features == 0 or (2 * y - 1) * z > options.margin:
        return 0
    return round(options.rate * (y - sigmoid(z)) / float(np.sqrt(features)) / WEIGHT_UNIT)


def slots(grams: NDArray[np.uint32], size: int) -> NDArray[np.intp]:
    """Return the slot of each gram in a table of `size` (a power of two) slots."""
    return (grams & np.uint32(size - 1)).astype(np.intp)
