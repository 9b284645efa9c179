"""Robinson's token probability, combined by Fisher's chi-squared method.

    H = C(−2 Σ ln f, 2n)        small when the tokens speak for ham
    S = C(−2 Σ ln(1−f), 2n)     small when they speak for spam
    I = (1 + H − S) / 2         Robinson's indicator

C is the upper tail of the chi-squared distribution. The head's score is ln H − ln S: it orders mail
as I does where I is not yet 0 or 1, and still orders it beyond, where I has run out of digits.

Source: G. Robinson, "A Statistical Approach to the Spam Problem", Linux Journal 107 (2003).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts, Totals

EXTREME = 1e-9
"""No probability comes nearer to 0 or 1 than this before its logarithm is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FisherOptions:
    """Settings of the Fisher head.

    strength            s, the weight of the prior in messages; bogofilter's .0178
    unknown             x, the probability of a token never seen; bogofilter's .52
    minimum_deviation   tokens nearer to ½ than this are left out; bogofilter's .375
    kinds               which kinds of tokens are read, a sum of `Kind` flags
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


def smoothed(counts: TokenCounts, totals: Totals, options: FisherOptions) -> NDArray[np.float64]:
    """Return f(w), the spam probability of each token pulled towards a neutral prior.

        f(w) = (s·x + n·p(w)) / (s + n),    p(w) = spam rate / (spam rate + ham rate)

    n  trained messages that held the token    s  `strength`    x  `unknown`
    """
    spam_rate = counts.spam / max(1, totals.spam)
    ham_rate = counts.ham / max(1, totals.ham)
    p = spam_rate / np.maximum(spam_rate + ham_rate, np.finfo(np.float64).tiny)
    n = counts.spam + counts.ham
    f: NDArray[np.float64] = (options.strength * options.unknown + n * p) / (options.strength + n)
    return f


@lru_cache(maxsize=4)
def _log_factorials(size: int) -> NDArray[np.float64]:
    """Return ln i! for i = 0 … size−1."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size, dtype=np.float64)))])


def log_chi2_tail(statistic: float, tokens: int) -> float:
    """Return ln C(x, 2n), the logarithm of the chi-squared upper tail for 2n degrees of freedom.

        C(x, 2n) = e^(−m) Σ_{i<n} mⁱ/i!,   m = x/2

    summed in log space, since e^(−m) alone is 0 in floating point above m ≈ 745.
    """
    m = statistic / 2
    if tokens == 0 or m <= 0:
        return 0.0
    size = 1 << max(10, (tokens - 1).bit_length())  # few sizes, so that the table is computed once
    terms = np.arange(tokens) * np.log(m) - _log_factorials(size)[:tokens]
    top = float(terms.max())
    return min(0.0, top - m + float(np.log(np.exp(terms - top).sum())))


def combine(f: NDArray[np.float64]) -> tuple[float, float]:
    """Return (ln H, ln S) of the tokens' probabilities."""
    f = np.clip(f, EXTREME, 1 - EXTREME)
    log_h = log_chi2_tail(-2 * float(np.log(f).sum()), len(f))
    log_s = log_chi2_tail(-2 * float(np.log1p(-f).sum()), len(f))
    return log_h, log_s


def indicator(f: NDArray[np.float64]) -> float:
    """Return Robinson's I = (1 + H − S) / 2: near 1 spam, near 0 ham, near ½ both or neither."""
    log_h, log_s = combine(f)
    return (1 + float(np.exp(log_h)) - float(np.exp(log_s))) / 2


def chosen(
    f: NDArray[np.float64], counts: TokenCounts, kinds: NDArray[np.uint8], options: FisherOptions
) -> NDArray[np.bool_]:
    """Say which tokens speak: those seen, of the right kind, and far enough from ½."""
    far: NDArray[np.bool_] = np.abs(f - 0.5) >= options.minimum_deviation
    far &= (counts.spam + counts.ham) > 0
    if options.kinds != 255:
        far &= (kinds & np.uint8(options.kinds)) != 0
    return far


def score(
    counts: TokenCounts, kinds: NDArray[np.uint8], totals: Totals, options: FisherOptions
) -> float:
    """Return the head's score ln H − ln S; 0 while one of the labels was never trained."""
    if totals.spam == 0 or totals.ham == 0:
        return 0.0
    f = smoothed(counts, totals, options)
    log_h, log_s = combine(f[chosen(f, counts, kinds, options)])
    return log_h - log_s
