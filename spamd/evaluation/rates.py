"""How good a filter is, in the numbers that mail filters are compared by.

    1-ROCA %    how often a random ham scores above a random spam: 100·(1 − area under the ROC)
    hm %, sm %  ham called spam, spam called ham, by the verdict; "unsure" is counted apart
    lam %       logistic average of hm and sm when every message must be called one or the other,
                at P = ½
    sm at .1    spam missed at the threshold that loses at most 0.1 % of ham
    ECE         expected calibration error: how far probabilities are from what they promise

Sources: G. Cormack and T. Lynam, "TREC 2005 Spam Track Overview" (the first four); C. Clopper and
E. Pearson, Biometrika 26 (1934) (exact intervals); B. Efron (1979) (bootstrap).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.decision import Verdict

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CALLED: tuple[Verdict, ...] = (Verdict.HAM, Verdict.UNSURE, Verdict.SPAM)
"""The verdicts by the number that stands for them in arrays."""

CALLED_HAM, CALLED_UNSURE, CALLED_SPAM = range(3)

HAM_LOSS = 0.001
"""The loss of ham at which missed spam is compared: one in a thousand, as the TREC spam tracks."""

BINS = 10
"""Equal parts of the probability scale for the calibration error."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What a filter said about messages, in their order.

    spam      bool[n], the label is spam
    log_odds  float64[n], log-odds of spam: ties are real ties, not the rounding of a probability
    called    int8[n], index into `CALLED`
    """

    spam: Flags
    log_odds: Floats
    called: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.spam)

    @property
    def probabilities(self) -> Floats:
        """P(spam) of each message."""
        result: Floats = 0.5 * (1.0 + np.tanh(0.5 * self.log_odds))
        return result

    def part(self, chosen: slice | Flags) -> "Outcomes":
        """Return the outcomes of some of the messages."""
        return Outcomes(
            spam=self.spam[chosen], log_odds=self.log_odds[chosen], called=self.called[chosen]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of one classifier; percent, but a fraction and a count at the end.

    A rate that has nothing to divide by (no ham, no spam) is 0.

    errors  ham called spam and spam called ham, messages
    """

    roca: float
    ham_misclassified: float
    spam_misclassified: float
    unsure: float
    lam: float
    spam_missed: float
    calibration_error: float
    errors: int

    def to_json(self) -> dict[str, float | int]:
        """Return the object that `evaluate --json` prints."""
        return {
            "roca": self.roca,
            "ham_misclassified": self.ham_misclassified,
            "spam_misclassified": self.spam_misclassified,
            "unsure": self.unsure,
            "lam": self.lam,
            "spam_missed_at_0.1": self.spam_missed,
            "calibration_error": self.calibration_error,
            "errors": self.errors,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds that hold the true rate with the wanted confidence, percent."""

    low: float
    high: float

    def to_json(self) -> list[float]:
        """Return [low, high]."""
        return [self.low, self.high]


def rates(outcomes: Outcomes) -> Rates:
    """Return all rates of these outcomes."""
    ham_lost, spam_passed = misclassified(outcomes)
    return Rates(
        roca=roca(outcomes.spam, outcomes.log_odds),
        ham_misclassified=percent(ham_lost, int((~outcomes.spam).sum())),
        spam_misclassified=percent(spam_passed, int(outcomes.spam.sum())),
        unsure=percent(int((outcomes.called == CALLED_UNSURE).sum()), len(outcomes)),
        lam=lam(outcomes.spam, outcomes.log_odds),
        spam_missed=100.0 * missed_at(outcomes.spam, outcomes.log_odds, HAM_LOSS),
        calibration_error=calibration_error(outcomes.spam, outcomes.probabilities),
        errors=ham_lost + spam_passed,
    )


def percent(count: int, total: int) -> float:
    """Return 100·count/total, 0 of nothing."""
    return 100.0 * count / total if total else 0.0


def misclassified(outcomes: Outcomes) -> tuple[int, int]:
    """Return how many ham were called spam and how many spam were called ham."""
    ham_lost = int((~outcomes.spam & (outcomes.called == CALLED_SPAM)).sum())
    return ham_lost, int((outcomes.spam & (outcomes.called == CALLED_HAM)).sum())


def roca(spam: Flags, scores: Floats) -> float:
    """Return 1-ROCA %: 100·P(random ham scores above random spam), an equal score counts half.

    Computed from the mean ranks of the spam (Mann and Whitney), so ties are exact.
    """
    positive = int(spam.sum())
    negative = len(spam) - positive
    if not positive or not negative:
        return 0.0
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    ranks = ends - (sizes - 1) / 2  # the mean of the ranks that a tied group holds
    above = float(ranks[group[spam]].sum()) - positive * (positive + 1) / 2
    return 100.0 * (1.0 - above / (positive * negative))


def lam(spam: Flags, log_odds: Floats) -> float:
    """Return lam % with every message called ham or spam at P = ½.

        lam = logit⁻¹((logit hm + logit sm)/2)

    A rate of 0 or 1 counts as half a message away from it.
    """
    called = log_odds > 0
    logits = []
    for label, wrong in ((False, called), (True, ~called)):
        total = int((spam == label).sum())
        if not total:
            return 0.0
        share = int((wrong & (spam == label)).sum()) / total
        share = min(max(share, 0.5 / total), 1 - 0.5 / total)
        logits.append(log(share) - log1p(-share))
    mean = sum(logits) / 2
    return 100.0 / (1.0 + exp(-mean))


def cutoff_at(spam: Flags, scores: Floats, ham_loss: float) -> float:
    """Return the score above which mail is called spam, so that at most this share of ham is lost.

    It is the score of a ham: the first that may not be lost. Without ham everything is spam.
    """
    ham = np.sort(scores[~spam])[::-1]
    allowed = int(ham_loss * len(ham))
    return float(ham[allowed]) if allowed < len(ham) else -np.inf


def missed_at(spam: Flags, scores: Floats, ham_loss: float) -> float:
    """Return the share of spam that is missed when at most this share of ham is lost."""
    if not spam.any():
        return 0.0
    return float((scores[spam] <= cutoff_at(spam, scores, ham_loss)).mean())


def reliability(
    spam: Flags, probabilities: Floats, bins: int = BINS
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return for each equal part of the scale: mean probability, share of spam, messages."""
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    number = np.bincount(place, minlength=bins)
    divisor = np.maximum(number, 1)
    promised = np.bincount(place, weights=probabilities, minlength=bins) / divisor
    found = np.bincount(place, weights=spam.astype(np.float64), minlength=bins) / divisor
    return promised, found, number


def calibration_error(spam: Flags, probabilities: Floats, bins: int = BINS) -> float:
    """Return the expected calibration error, a fraction.

    ECE = Σ_bins (n_b / n)·|mean probability − share of spam|
    """
    if not len(spam):
        return 0.0
    promised, found, number = reliability(spam, probabilities, bins)
    return float((number * np.abs(promised - found)).sum() / len(spam))


def binomial_interval(count: int, total: int, confidence: float = 0.95) -> Interval:
    """Return the exact (Clopper and Pearson) interval of a rate, percent.

    low is the rate at which `count` or more would be seen with probability (1 − confidence)/2, high
    the one at which `count` or fewer would.
    """
    if not total:
        return Interval(low=0.0, high=100.0)
    tail = (1.0 - confidence) / 2
    low, high = 0.0, 1.0
    if count > 0:
        low = _root(lambda p: 1.0 - _at_most(count - 1, total, p) - tail)
    if count < total:
        high = _root(lambda p: tail - _at_most(count, total, p))
    return Interval(low=100.0 * low, high=100.0 * high)


def _at_most(count: int, total: int, p: float) -> float:
    """Return P(X ≤ count) of a binomial distribution."""
    k = np.arange(count + 1)
    choose = np.array([lgamma(total + 1) - lgamma(i + 1) - lgamma(total - i + 1) for i in k])
    return float(np.exp(choose + k * log(p) + (total - k) * log1p(-p)).sum())


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function of (0, 1) crosses 0, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def roca_interval(
    spam: Flags, scores: Floats, *, confidence: float = 0.95, draws: int = 1000, seed: int = 1
) -> Interval:
    """Return the bootstrap interval of 1-ROCA %: ham and spam are drawn anew, each from its own.

    The percentiles of `draws` resamples; `seed` makes the same outcomes give the same interval.
    """
    positive = int(spam.sum())
    negative = len(spam) - positive
    if not positive or not negative:
        return Interval(low=0.0, high=100.0)
    random = np.random.default_rng(seed)
    _, group = np.unique(scores, return_inverse=True)
    groups = int(group.max()) + 1
    ham_at, spam_at = group[~spam], group[spam]
    found = np.empty(draws)
    for draw in range(draws):
        ham = np.bincount(ham_at[random.integers(0, negative, negative)], minlength=groups)
        mail = np.bincount(spam_at[random.integers(0, positive, positive)], minlength=groups)
        below = np.cumsum(mail) - mail / 2  # spam below a ham of this group, ties half
        found[draw] = 100.0 * float(ham @ below) / (positive * negative)
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(found, [tail, 100.0 - tail])
    return Interval(low=float(low), high=float(high))
