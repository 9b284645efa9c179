"""One-dependence estimators over the discrete facts: SPODE with one super parent, AODE with all.

Naive Bayes takes the facts as independent given the class; here each fact may depend on one other,
the super parent. AODE averages the estimators of all parents, so that none has to be chosen. Both
read the co-occurrence counts of `mixed.FactCounts`; nothing else is stored. The cost grows with the
square of the number of facts: right for a dozen facts, impossible for words.

How to use it::

    from spamd.bayes.classifiers.dependence import DependenceOptions, score

    log_odds = score(counts, sample.discrete, DependenceOptions())  # AODE; finite, > 0 is spam

Invariants: every result is finite; where no parent is frequent enough, AODE is naive Bayes.

Sources: note 002 eq. (25), (26) (taken with j ≠ i: the parent given itself has probability 1);
G. Webb, J. Boughton, Z. Wang, "Not So Naive Bayes: Aggregating One-Dependence Estimators",
Machine Learning 58 (2005).
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers.mixed import (
    FactsOptions,
    Floats,
    categorical_terms,
    log_prior,
    log_ratio,
)
from spamd.bayes.factcounts import HAM, SPAM, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceOptions:
    """The same discrete attributes with one dependence each (SPODE, AODE).

    parent      name of the super parent (SPODE); empty averages over all parents (AODE).
    smoothing   λ ≥ 0 added to each count; 0 maximum likelihood, 1 Laplace.
    least       m: a fact is a parent for AODE only if its value was seen in at least so many
                messages. Webb and others took 30 at first, later 1.
    """

    parent: str = ""
    smoothing: float = 1.0
    least: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < inf:
            raise ValueError(f"smoothing must be a number ≥ 0, not {self.smoothing}")
        if self.least < 0:
            raise ValueError(f"least must be ≥ 0 messages, not {self.least}")


def parent_terms(
    together: NDArray[np.int64],
    messages: NDArray[np.int64],
    sizes: NDArray[np.int64],
    smoothing: float,
) -> Floats:
    """Return log P(c, x_i)·∏_{j≠i} P(x_j | c, x_i) for each class and parent i, float64[K, d].

        P(c, x_i)     = (F(c, x_i) + λ) / (N + K·S_i·λ)
        P(x_j|c, x_i) = (F(c, x_i, x_j) + λ) / (F(c, x_i) + S_j·λ)

    together  int64[…, K, d, d], F(c, x_i, x_j) of the message's own values
    messages  int64[…, 1, 1], N    sizes  int64[d], S

    Source: note 002 eq. 26, j ≠ i; smoothed as in note 000, over the K·S_i pairs and S_j values.
    """
    parents = together.diagonal(0, -2, -1)
    pairs = together.shape[-3] * sizes
    if smoothing > 0:
        # The same as below in fewer steps: F(c, x_i) + λ stands above in P(c, x_i) and below in
        # the factor j = i that is to be left out.
        under = np.log(parents[..., None] + sizes * smoothing)
        given = np.add.reduce(np.log(together + smoothing) - under, axis=-1)
        result: Floats = given + under.diagonal(0, -2, -1) - np.log(messages + pairs * smoothing)
        return result
    first = log_ratio(parents, messages, pairs, smoothing)
    given = log_ratio(together, parents[..., None], sizes, smoothing)
    without: Floats = first + given.sum(axis=-1) - given.diagonal(0, -2, -1)
    return without


def log_joint(counts: Facts, discrete: NDArray[np.uint8], options: DependenceOptions) -> Floats:
    """Return log P(c, x) for each class, float64[K], up to a constant that all classes share.

        SPODE   P(c, x) ∝ P(c, x_i)·∏_{j≠i} P(x_j | c, x_i)
        AODE    P(c, x) ∝ Σ_{i: F(x_i) ≥ m} P(c, x_i)·∏_{j≠i} P(x_j | c, x_i)

    Source: note 002 eq. 26; Webb and others 2005 (AODE).
    """
    together = counts.pairs(discrete)
    messages = np.add.reduce(counts.messages, axis=-1, keepdims=True)[..., np.newaxis]
    terms = parent_terms(together, messages, counts.sizes, options.smoothing)
    if options.parent:
        names = [name for name, _ in counts.schema.discrete]
        spode: Floats = terms[..., names.index(options.parent)]
        return spode
    seen = np.add.reduce(together.diagonal(0, -2, -1), axis=-2, keepdims=True)
    aode: Floats = np.logaddexp.reduce(np.where(seen >= options.least, terms, -np.inf), axis=-1)
    if aode.min() == -np.inf:  # no parent is frequent enough
        naive = _naive(counts, discrete, options.smoothing)
        aode = np.where(aode == -np.inf, naive, aode)
    return aode


def _naive(counts: Facts, discrete: NDArray[np.uint8], smoothing: float) -> Floats:
    naive = FactsOptions(smoothing=smoothing, prior_smoothing=smoothing)
    alone: Floats = categorical_terms(counts, discrete, naive).sum(axis=-1)
    return log_prior(counts, naive) + alone


def score(counts: Facts, discrete: NDArray[np.uint8], options: DependenceOptions) -> Floats:
    """Return the log-odds of spam against ham."""
    joint = log_joint(counts, discrete, options)
    odds: Floats = joint[..., SPAM] - joint[..., HAM]
    return odds
