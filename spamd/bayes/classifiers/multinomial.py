"""Multinomial naive Bayes over every token of a message.

    ln P(c|x) = ln P(c) + Σₜ wₜ·ln P(t|c) + const,    P(t|c) = (N_tc + λ) / (N_c + λ·V)

λ = 0 is maximum likelihood, λ = 1 Laplace; the priors are smoothed alike, (N_c+λ)/(N+Kλ). The
arithmetic (`log_prior`, `log_likelihood`) holds for any number of classes: classes are an axis of
its arrays. The classifier (`score`) uses two.

Textbook naive Bayes with λ = 1 over an open vocabulary ranks mail poorly: a small λ and dividing
the sum by the root of its length are what makes it good (E-013).

Sources: notes 000 (smoothed estimators), 001 (their maximum-likelihood derivation), 002 eq.
(14)–(19); A. Kołcz and W. Yih, "Raising the baseline for high-precision text classifiers" (KDD
2007) for length.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import AnyTotals, Batch
from spamd.bayes.counts import TokenCounts

FLOOR = 1e-12
"""λ = 0 gives tokens unseen with a class the likelihood 0; its logarithm stops here to stay
finite."""


class TermWeight(StrEnum):
    """What a token that occurs x times weighs: x, ln(1+x), or 1."""

    RAW = "raw"
    LOG = "log"
    BINARY = "binary"


class Length(StrEnum):
    """What the sum of log-odds is divided by: 1, √n, or n, n being the tokens that spoke."""

    NONE = "none"
    SQRT = "sqrt"
    FULL = "n"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultinomialOptions:
    """Multinomial naive Bayes over all tokens, with λ-smoothing.

    smoothing   λ, any real number not below 0; 1 is Laplace's, small ones rank mail far better
                (E-013)
    weight      "raw" and "log" count occurrences; "binary" counts messages, as a coin per token
    length      division of the token sum by its length: "none", "sqrt" or "n"
    prior       whether the smoothed class prior (N_k+λ)/(N+Kλ) is added
    kinds       as graham.kinds
    """

    smoothing: float = 0.01
    weight: TermWeight = TermWeight.BINARY
    length: Length = Length.SQRT
    prior: bool = True
    kinds: int = 255

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (self.smoothing >= 0 and np.isfinite(self.smoothing)):
            raise ValueError("smoothing must be a finite number not below 0")


def log_prior(messages: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """Return ln (N_k + λ)/(N + Kλ) of each of K classes, the last axis (notes 000; 002 eq. 18)."""
    every = messages.sum(axis=-1, keepdims=True) + messages.shape[-1] * smoothing
    share = (messages + smoothing) / np.maximum(every, FLOOR)
    log: NDArray[np.float64] = np.log(np.maximum(share, FLOOR))
    return log


def log_likelihood(
    counts: NDArray[np.float64],
    class_totals: NDArray[np.float64],
    smoothing: float,
    values: float | NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return ln P(t|c), float64[K, n], from N_tc in `counts`[K, n] and N_c in `class_totals`.

    N_c are those of one moment, [K], or those of each token, [K, n].

        P(t|c) = (N_tc + λ) / (N_c + λ·S)

    S  `values`, how many values the smoothing is shared by: the vocabulary when occurrences are
       drawn from it, 2 when each token is a coin that a message shows or not (notes 000; 002 eq.
       19)
    """
    denominators = np.maximum(class_totals + smoothing * values, FLOOR)
    ratio = np.maximum(counts + smoothing, FLOOR)
    log: NDArray[np.float64] = np.log(ratio)
    log -= np.log(denominators if denominators.ndim > 1 else denominators[:, np.newaxis])
    return log


def speaking(
    counts: TokenCounts, kinds: NDArray[np.uint8], options: MultinomialOptions
) -> NDArray[np.bool_]:
    """Say which tokens speak: those seen, of the right kind."""
    spoke: NDArray[np.bool_] = counts.seen > 0
    if options.kinds != 255:
        spoke &= (kinds & np.uint8(options.kinds)) != 0
    return spoke


def contributions(
    counts: TokenCounts,
    occurrences: NDArray[np.uint8],
    spoke: NDArray[np.bool_],
    totals: AnyTotals,
    options: MultinomialOptions,
) -> NDArray[np.float64]:
    """Return what each token adds to the log-odds, before division by length.

    spoke  which tokens speak (`speaking`); others add 0
    """
    if options.weight is TermWeight.BINARY:
        pair = np.array([counts.spam, counts.ham], dtype=np.float64)
        sums = np.array([totals.spam, totals.ham], dtype=np.float64)
        likelihood = log_likelihood(pair, sums, options.smoothing, 2.0)
        return np.where(spoke, likelihood[0] - likelihood[1], 0.0)
    pair = np.array([counts.spam_occurrences, counts.ham_occurrences], dtype=np.float64)
    sums = np.array([totals.spam_occurrences, totals.ham_occurrences], dtype=np.float64)
    likelihood = log_likelihood(pair, sums, options.smoothing, totals.vocabulary)
    times = occurrences.astype(np.float64)
    weights = times if options.weight is TermWeight.RAW else np.log1p(times)
    return np.where(spoke, weights * (likelihood[0] - likelihood[1]), 0.0)


def divisor(spoke: int, length: Length) -> float:
    """Return what the sum over `spoke` tokens is divided by."""
    if length is Length.NONE:
        return 1.0
    n = float(max(1, spoke))
    return n if length is Length.FULL else sqrt(n)


def scores(batch: Batch, options: MultinomialOptions) -> list[float]:
    """Return the classifier's log-odds of spam for each message."""
    spoke = speaking(batch.counts, batch.kinds, options)
    parts = contributions(batch.counts, batch.occurrences, spoke, batch.totals, options)
    found = [
        float(parts[span].sum()) / divisor(int(np.count_nonzero(spoke[span])), options.length)
        for span in batch.spans
    ]
    if not options.prior:
        return found
    messages = np.array([(moment.spam, moment.ham) for moment in batch.moments], dtype=np.float64)
    priors = log_prior(messages, options.smoothing).tolist()
    return [score + spam - ham for score, (spam, ham) in zip(found, priors, strict=True)]
