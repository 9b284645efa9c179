"""Which cut-off loses no more ham than wished, on the admin's own mail.

The mail itself limits what can be promised: with 500 ham and none lost, the true loss may still be
0.7 %. So each suggestion comes with the bound that the mail supports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.evaluation.rates import Outcomes, binomial_interval, cutoff_at, percent

WISHES = (0.0005, 0.001, 0.005, 0.01)
"""Shares of ham lost that admins ask for: from one in 2,000 to one in a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A cut-off for `decision.spam_cutoff` and what it did on this mail; rates in percent.

    ham_lost_at_most  upper end of the exact 95 % interval of the share of ham lost
    """

    wished: float
    spam_cutoff: float
    ham_lost: int
    ham_lost_at_most: float
    spam_missed: float

    def to_json(self) -> dict[str, float | int]:
        """Return the object that `evaluate --json` prints."""
        return {
            "wished": self.wished,
            "spam_cutoff": self.spam_cutoff,
            "ham_lost": self.ham_lost,
            "ham_lost_at_most": self.ham_lost_at_most,
            "spam_missed": self.spam_missed,
        }


def suggest(outcomes: Outcomes, wishes: Sequence[float] = WISHES) -> tuple[Suggestion, ...]:
    """Return a cut-off for each wished share of ham lost."""
    return tuple(_suggestion(outcomes, wished) for wished in wishes)


def _suggestion(outcomes: Outcomes, wished: float) -> Suggestion:
    spam, scores = outcomes.spam, outcomes.log_odds
    kept = cutoff_at(spam, scores, wished)
    above = scores[scores > kept]
    # Half way from the last ham that must be kept to the next message above it.
    cutoff = kept if not len(above) or np.isinf(kept) else (kept + float(above.min())) / 2
    lost = int((scores[~spam] > kept).sum())
    missed = int((scores[spam] <= kept).sum())
    return Suggestion(
        wished=100.0 * wished,
        spam_cutoff=sigmoid(cutoff) if np.isfinite(cutoff) else 0.0,
        ham_lost=lost,
        ham_lost_at_most=binomial_interval(lost, int((~spam).sum())).high,
        spam_missed=percent(missed, int(spam.sum())),
    )
