"""Robinson's token probability, combined by Fisher's chi-squared method.

    H = C(−2 Σ ln f, 2n)        small when the tokens speak for ham
    S = C(−2 Σ ln(1−f), 2n)     small when they speak for spam
    I = (1 + H − S) / 2         Robinson's indicator

C is the upper tail of the chi-squared distribution. The score is ln I/(1−I), computed from
both tails in log space: it still orders mail where I itself has run out of digits and is 0 or 1. A
message with strong clues of both kinds has H ≈ S ≈ 0 and I ≈ ½, "unsure"; ln H − ln S would be a
large difference of large numbers and ranks mail far worse (E-011).

Source: G. Robinson, "A Statistical Approach to the Spam Problem", Linux Journal 107 (2003).
"""

from dataclasses import dataclass
from math import exp, isqrt, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import AnyTotals, Batch, at_least_one
from spamd.bayes.counts import TokenCounts

EXTREME = 1e-9
"""No probability comes nearer to 0 or 1 than this before its logarithm is taken."""

SURE = -1e6
"""Stands for the logarithm of 0, so that every score is finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FisherOptions:
    """Robinson's f(w) combined by Fisher's chi-squared method.

    strength            s, the weight of the prior in messages; bogofilter's .0178
    unknown             x, the probability of a token never seen; bogofilter's .52
    minimum_deviation   tokens nearer to ½ than this are left out; bogofilter's .375
    kinds               as graham.kinds
    """

    strength: float = 0.0178
    unknown: float = 0.52
    minimum_deviation: float = 0.375
    kinds: int = 255

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.strength <= 0:
            raise ValueError("strength must be above 0")
        if not 0 < self.unknown < 1:
            raise ValueError("unknown must lie between 0 and 1")
        if not 0 <= self.minimum_deviation < 0.5:
            raise ValueError("minimum_deviation must lie between 0 and 0.5")


def smoothed(counts: TokenCounts, totals: AnyTotals, options: FisherOptions) -> NDArray[np.float64]:
    """Return f(w), the spam probability of each token pulled towards a neutral prior.

        f(w) = (s·x + n·p(w)) / (s + n),    p(w) = spam rate / (spam rate + ham rate)

    n  trained messages that held the token    s  `strength`    x  `unknown`
    """
    spam_rate = counts.spam / at_least_one(totals.spam)
    ham_rate = counts.ham / at_least_one(totals.ham)
    p = spam_rate / np.maximum(spam_rate + ham_rate, np.finfo(np.float64).tiny)
    n = counts.seen
    f: NDArray[np.float64] = (options.strength * options.unknown + n * p) / (options.strength + n)
    return f


def log_chi2_tails(statistic: float, tokens: int) -> tuple[float, float]:
    """Return (ln C, ln (1 − C)), C the chi-squared upper tail for 2n degrees of freedom.

        C(x, 2n) = e^(−m) Σ_{i<n} mⁱ/i!,    1 − C = e^(−m) Σ_{i≥n} mⁱ/i!,    m = x/2

    The smaller of the two is summed in log space (e^(−m) alone is 0 in floating point above m ≈
    745), the other follows from it. So neither loses its digits, however near to 1 its twin comes.
    """
    m = statistic / 2
    if tokens == 0 or m <= 0:
        return 0.0, SURE
    below = m < tokens
    # The series of the smaller tail, divided by its largest term, which is the first one taken;
    # what lies beyond twelve widths of √n is nothing.
    width = 60 + 12 * isqrt(tokens)
    if below:
        first, ratios = tokens, m / np.arange(tokens + 1, tokens + width)
    else:
        first, ratios = tokens - 1, np.arange(tokens - 1, max(0, tokens - width), -1) / m
    series = log1p(float(np.multiply.accumulate(ratios).sum()))
    small = max(SURE, first * log(m) - m - lgamma(first + 1) + series)
    large = log1p(-exp(small))
    return (large, small) if below else (small, large)


def tails(f: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Return ln H, ln (1 − H), ln S, ln (1 − S) of the tokens' probabilities."""
    f = np.minimum(np.maximum(f, EXTREME), 1 - EXTREME)
    log_h, log_not_h = log_chi2_tails(-2 * float(np.log(f).sum()), len(f))
    log_s, log_not_s = log_chi2_tails(-2 * float(np.log1p(-f).sum()), len(f))
    return log_h, log_not_h, log_s, log_not_s


def combine(f: NDArray[np.float64]) -> float:
    """Return ln I/(1 − I) = ln (1 − S + H) − ln (1 − H + S), with all its digits."""
    log_h, log_not_h, log_s, log_not_s = tails(f)
    return float(np.logaddexp(log_not_s, log_h) - np.logaddexp(log_not_h, log_s))


def chosen(
    f: NDArray[np.float64], counts: TokenCounts, kinds: NDArray[np.uint8], options: FisherOptions
) -> NDArray[np.bool_]:
    """Say which tokens speak: those seen, of the right kind, and far enough from ½."""
    far: NDArray[np.bool_] = np.abs(f - 0.5) >= options.minimum_deviation
    far &= counts.seen > 0
    if options.kinds != 255:
        far &= (kinds & np.uint8(options.kinds)) != 0
    return far


def scores(batch: Batch, options: FisherOptions) -> list[float]:
    """Return the classifier's log-odds of spam for each message."""
    f = smoothed(batch.counts, batch.totals, options)
    told = chosen(f, batch.counts, batch.kinds, options)
    return [combine(f[span][told[span]]) for span in batch.spans]
