"""Naive Bayes that believes a token by how sure its counts are.

    d  = (s − h) / (s + h)              s, h: share of spam and of ham messages with the token
    CF = [ d² − κ/N³ ]^γ / (1 + δ/N)    0 where that is negative; N messages with the token
    q  = ½ + CF·d/2                     the probability that is combined
    z  = Σ max(ln q/(1−q), −limit) / n  n tokens in the message

N is counted as it is. Counts scaled to the larger corpus made tokens of one label better known with
each lesson of the other: ten such lessons moved other verdicts by up to 0.1 (E-031).

A token seen often, and nearly always with one label, keeps its probability; any other is pulled to
½. So no list of the most telling tokens is needed, and no smoothing constant carries the verdict of
rare words. It was the best single classifier over counts (E-006).

What a token says for ham is limited, what it says for spam is not: anybody can add ham words to a
spam, nobody adds spam words to a ham (E-020).

Source: F. Assis, W. Yerazunis, C. Siefkes, S. Chhabra, "Exponential differential document count"
(MIT Spam Conference 2006), the confidence factor of OSBF-Lua. Words and pairs instead of sparse
bigrams, exponent and length are ours.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import AnyTotals, Batch, at_least_one
from spamd.bayes.classifiers import logistic
from spamd.bayes.counts import TokenCounts

EXTREME = 1e-6
"""No probability comes nearer to 0 or 1 than this before its logarithm is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceOptions:
    """Naive Bayes that believes a token by how sure its counts are (OSBF's confidence factor).

    spread     κ, doubt about a difference that chance explains; OSBF's 0.25
    exponent   γ, how fast confidence falls as a token becomes common to both labels (E-006)
    rarity     δ, messages after which a token is half believed; OSBF's 8 is of scaled counts
    limit      the most that one token says for ham, in log-odds: anybody can add ham words to a
               spam (E-020)
    kinds      as graham.kinds
    """

    spread: float = 0.25
    exponent: float = 6.0
    rarity: float = 3.5
    limit: float = 1.0
    kinds: int = 255

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.spread < 0 or self.rarity < 0:
            raise ValueError("spread and rarity must not be below 0")
        if self.limit <= 0:
            raise ValueError("limit must be above 0")
        if not 0 < self.exponent <= 100:
            raise ValueError("exponent must lie between 0 and 100")


def probabilities(
    counts: TokenCounts, totals: AnyTotals, options: ConfidenceOptions
) -> NDArray[np.float64]:
    """Return q of each token; ½ for one never seen."""
    spam_rate = counts.spam / at_least_one(totals.spam)
    ham_rate = counts.ham / at_least_one(totals.ham)
    share = (spam_rate - ham_rate) / np.maximum(spam_rate + ham_rate, np.finfo(np.float64).tiny)
    seen = np.maximum(counts.seen, 1.0)
    factor = share * share - options.spread / (seen * seen * seen)
    factor = np.maximum(factor, 0.0)
    if options.exponent == 6:  # the default, eight times faster than a power
        factor *= factor * factor
        factor *= factor
    else:
        factor **= options.exponent
    q: NDArray[np.float64] = 0.5 + factor * share * seen / (2 * (seen + options.rarity))
    return q


def contributions(
    counts: TokenCounts, kinds: NDArray[np.uint8], totals: AnyTotals, options: ConfidenceOptions
) -> NDArray[np.float64]:
    """Return what each token of one message adds to the classifier's log-odds."""
    parts = _said(counts, kinds, totals, options)
    parts /= max(1, len(parts))
    return parts


def _said(
    counts: TokenCounts, kinds: NDArray[np.uint8], totals: AnyTotals, options: ConfidenceOptions
) -> NDArray[np.float64]:
    """Return what each token says, in log-odds; a message says the mean of its tokens."""
    least = max(EXTREME, logistic.sigmoid(-options.limit))
    q = np.minimum(np.maximum(probabilities(counts, totals, options), least), 1 - EXTREME)
    parts: NDArray[np.float64] = np.log(q / (1 - q))
    if options.kinds != 255:
        parts[(kinds & np.uint8(options.kinds)) == 0] = 0.0
    return parts


def scores(batch: Batch, options: ConfidenceOptions) -> list[float]:
    """Return the classifier's log-odds of spam, per token, for each message."""
    parts = _said(batch.counts, batch.kinds, batch.totals, options)
    return [float(parts[span].sum()) / max(1, len(parts[span])) for span in batch.spans]
