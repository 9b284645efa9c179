"""Naive Bayes over the facts of a message: categorical for discrete ones, Gaussian for the others.

The functions turn `FactCounts` into log probabilities of K classes; `score` is what the product
asks: the log-odds of spam against ham. They take the counts of one moment, or `FactMoments`, whose
arrays and results have the moments as one more axis in front. The one-dependence estimators in
`dependence` read the same counts.

How to use it::

    from spamd.bayes.classifiers.mixed import FactCounts, FactsOptions, contributions, score

    counts = FactCounts(schema)                                   # classes ham and spam
    counts.add(Label.SPAM, sample.discrete, sample.continuous, sign=1)     # sign=-1 takes it back
    log_odds = score(counts, sample.discrete, sample.continuous, options)  # finite, > 0 means spam
    discrete, continuous = contributions(counts, sample.discrete, sample.continuous, options)
    rows = counts.to_rows(); counts = FactCounts.from_rows(rows, schema)   # for the database

What it doesn't do: choose facts (`message.facts`), normalise by length, calibrate (`fusion`).

Invariants: every logarithm is finite, whatever the counts (a probability of zero, possible with
λ = 0 only, counts as `LEAST`); while a class has no message, continuous facts say nothing.

Sources: notes 000 (categorical, λ smoothing of likelihood and prior), 001 (maximum likelihood),
002 eq. (9)–(24) (Bayes' rule, Laplace (18), (19), Gaussian (20), multivariate (21)–(24)), 003
(mixed estimators).
"""

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.factcounts import HAM, SPAM, FactCounts, Facts

__all__ = [
    "FactCounts",
    "FactsOptions",
    "contributions",
    "log_joint",
    "log_posterior",
    "score",
]

Floats = NDArray[np.float64]

LEAST = 1e-12
"""Stands for a probability of zero: rarer than one message in any corpus that we can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsOptions:
    """Naive Bayes over structured attributes: charset, attachments, size, share of capitals, etc.

    smoothing         λ ≥ 0 added to each count of a discrete value; 0 maximum likelihood, 1
                      Laplace.
    own_values        S_j, the number of values in the smoothed likelihood (docs/mathematics.md),
                      counts those seen in that class, instead of all that the fact can have.
    prior             whether the share of each class counts; if not, all classes are equally
                      likely.
    prior_smoothing   λ ≥ 0 added to each class's number of messages (docs/mathematics.md).
    continuous        whether the continuous facts count.
    multivariate      one Gaussian with covariances for all continuous facts instead of
                      one for each: sees that facts go together, needs more mail.
    variance_floor    least variance of a continuous fact, in its unit squared: 0.0001 means that a
                      difference of a hundredth is never called significant. Must be > 0.
    pooled            weight of the variance over all classes, in messages, so that a class with few
                      messages isn't too sure of its own narrow variance; 0 takes the class's own.
    """

    smoothing: float = 1.0
    own_values: bool = False
    prior: bool = True
    prior_smoothing: float = 1.0
    continuous: bool = True
    multivariate: bool = False
    variance_floor: float = 1e-4
    pooled: float = 2.0

    def __post_init__(self) -> None:
        for name in ("smoothing", "prior_smoothing", "pooled"):
            value = getattr(self, name)
            if not 0 <= value < inf:
                raise ValueError(f"{name} must be a number ≥ 0, not {value}")
        if not (isfinite(self.variance_floor) and self.variance_floor > 0):
            raise ValueError(f"variance_floor must be a number > 0, not {self.variance_floor}")


def log_ratio(
    count: NDArray[np.int64],
    total: NDArray[np.int64],
    values: NDArray[np.int64],
    smoothing: float,
) -> Floats:
    """Return log P of a value, λ-smoothed, finite for any counts.

        P_λ = (count + λ) / (total + S·λ)

    With λ = 0 a count of zero gives log `LEAST`, and a total of zero the uniform 1/S.

    Source: note 000, 贝叶斯估计; note 002 eq. 17 (λ = 0) and 19 (λ = 1).
    """
    over, under = count + smoothing, total + values * smoothing
    known = under > 0
    if known.all():
        share = over / under
    else:
        share = np.where(known, over / np.where(known, under, 1.0), 1.0 / np.maximum(values, 1))
    result: Floats = np.log(np.maximum(share, LEAST))
    return result


def log_prior(counts: Facts, options: FactsOptions) -> Floats:
    """Return log P(c) for each class, float64[K]: (n_k + λ)/(N + K·λ), or all equal.

    Source: note 000, 贝叶斯估计 (last display); note 002 eq. 16 and 18.
    """
    number = len(counts.classes)
    if not options.prior:
        return np.full(number, -np.log(number))
    total = counts.messages.sum(axis=-1, keepdims=True)
    return log_ratio(counts.messages, total, np.array([number]), options.prior_smoothing)


def log_categorical(counts: Facts, options: FactsOptions) -> Floats:
    """Return log P(x_j = value | c) of every value of every discrete fact, float64[K, V].

    S_j is the schema's number of values or, with `own_values`, the number seen in that class.

    Source: note 000, 贝叶斯估计; note 002 eq. 17, 19 and its program; note 003, table.
    """
    if not len(counts.sizes):
        return np.zeros(counts.singles.shape)
    spread = counts.spread
    if options.own_values:
        values = np.add.reduceat(counts.singles > 0, counts.offsets, axis=-1, dtype=np.int64)
        spread = np.repeat(values, counts.sizes, axis=-1)
    return log_ratio(counts.singles, counts.messages[..., None], spread, options.smoothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """The parameters of the mixed model, derived from the counts.

    prior     float64[K], log P(c)
    values    float64[K, V], log P(x_j = value | c)
    means     float64[K, c], μ in the unit of the fact
    axes      float64[K, c, c], the directions in which the continuous facts are independent: unit
              vectors in columns; None when each fact is its own direction
    widths    float64[K, c], variance along each direction
    heights   float64[K, c], −½·log 2πσ² along each direction
    """

    options: FactsOptions
    prior: Floats
    values: Floats
    means: Floats
    axes: Floats | None
    widths: Floats
    heights: Floats


def estimates(counts: Facts, options: FactsOptions) -> Estimates:
    """Return what the options make of the counts; computed once between two changes."""
    memo = counts.memo
    if isinstance(memo, Estimates) and memo.options is options:
        return memo
    counts.memo = found = estimate(counts, options)
    return found


def estimate(counts: Facts, options: FactsOptions) -> Estimates:
    """Return the parameters by maximum likelihood (divisor n), smoothed as the options say.

        μ = Σx/n        Σ = Σ(x − μ)(x − μ)ᵀ/n = Σxxᵀ/n − μμᵀ

    The covariance is pulled towards the one over all classes by `pooled` messages. Without
    `multivariate` only its diagonal is used. Variances (eigenvalues in the multivariate form, so
    that Σ always has an inverse) are not below `variance_floor`.

    Source: note 002 eq. 20–24; notes 000 and 001 for the rest.
    """
    shape = counts.sums.shape
    means, heights = np.zeros(shape), np.zeros(shape)
    axes, widths = None, np.full(shape, np.inf)
    known = counts.messages.all(axis=-1)
    if options.continuous and shape[-1] and known.any():
        means, widths = _moments(counts, options)
        if options.multivariate:
            widths, axes = np.linalg.eigh(widths)
        widths = np.maximum(widths, options.variance_floor)
        heights = -0.5 * np.log(2.0 * np.pi * widths)
        if not known.all():
            heights[~known], widths[~known] = 0.0, np.inf
    return Estimates(
        options=options,
        prior=log_prior(counts, options),
        values=log_categorical(counts, options),
        means=means,
        axes=axes,
        widths=widths,
        heights=heights,
    )


def _moments(counts: Facts, options: FactsOptions) -> tuple[Floats, Floats]:
    """Return means float64[K, c] and variances float64[K, c] in the unit of the facts.

    With `multivariate` covariances float64[K, c, c] instead of variances.
    """
    # A class without a message has no moments; `estimate` leaves it out.
    number, products = np.maximum(counts.messages, 1.0)[..., None], counts.products
    means = counts.sums / (number * counts.unit)
    if options.multivariate:
        axis, square, weight = -3, _outer, number[..., None]
    else:
        axis, square, weight = -2, _each, number
        products = np.diagonal(products, axis1=-2, axis2=-1)
    spread = products / (weight * counts.unit**2) - square(means)
    if options.pooled:
        centre = counts.sums.sum(axis=-2, keepdims=True)
        centre = centre / (number.sum(axis=-2, keepdims=True) * counts.unit)
        total = weight.sum(axis=axis, keepdims=True) * counts.unit**2
        common = products.sum(axis=axis, keepdims=True) / total - square(centre)
        spread = (weight * spread + options.pooled * common) / (weight + options.pooled)
    return means, spread


def _each(vectors: Floats) -> Floats:
    """Return the square of each number."""
    return vectors * vectors


def _outer(vectors: Floats) -> Floats:
    """Return x·xᵀ of each vector in the last axis."""
    result: Floats = vectors[..., :, None] * vectors[..., None, :]
    return result


def categorical_terms(counts: Facts, discrete: NDArray[np.uint8], options: FactsOptions) -> Floats:
    """Return log P(x_j | c) of each discrete fact, float64[K, d]."""
    return counts.own(estimates(counts, options).values, discrete)


def gaussian_terms(counts: Facts, continuous: NDArray[np.int64], options: FactsOptions) -> Floats:
    """Return log p of each continuous fact, or of each independent direction, float64[K, c].

        log p(x|c) = −½·(log 2πσ² + (x − μ)²/σ²)

    In the multivariate form the directions are the eigenvectors of Σ, and the sum of the terms is
    −½·(d·log 2π + log|Σ| + (x − μ)ᵀ Σ⁻¹ (x − μ)).

    Source: note 002 eq. 20 and 21.
    """
    found = estimates(counts, options)
    distance = (continuous / counts.unit)[..., None, :] - found.means
    if found.axes is not None:
        distance = np.einsum("...ij,...i->...j", found.axes, distance)
    result: Floats = found.heights - 0.5 * distance * distance / found.widths
    return result


def log_joint(
    counts: Facts,
    discrete: NDArray[np.uint8],
    continuous: NDArray[np.int64],
    options: FactsOptions,
) -> Floats:
    """Return log P(c)·∏P(x_j|c)·p(x|c) for each class, float64[K].

    Source: note 002 eq. 14, 15; note 003 `naive-bayes-target`; note 000 基本方法.
    """
    result: Floats = (
        estimates(counts, options).prior
        + categorical_terms(counts, discrete, options).sum(axis=-1)
        + gaussian_terms(counts, continuous, options).sum(axis=-1)
    )
    return result


def normalised(joint: Floats) -> Floats:
    """Return log P(c|x) from log P(c, x): divided by the evidence, without leaving log space.

    Source: note 000 基本方法 (basic formula); note 002 eq. 13.
    """
    shifted = joint - joint.max()
    result: Floats = shifted - np.log(np.exp(shifted).sum())
    return result


def log_posterior(
    counts: FactCounts,
    discrete: NDArray[np.uint8],
    continuous: NDArray[np.int64],
    options: FactsOptions,
) -> Floats:
    """Return log P(c|x) for each class, float64[K]."""
    return normalised(log_joint(counts, discrete, continuous, options))


def score(
    counts: Facts,
    discrete: NDArray[np.uint8],
    continuous: NDArray[np.int64],
    options: FactsOptions,
) -> Floats:
    """Return the log-odds of spam against ham: log P(spam, x) − log P(ham, x)."""
    joint = log_joint(counts, discrete, continuous, options)
    odds: Floats = joint[..., SPAM] - joint[..., HAM]
    return odds


def contributions(
    counts: FactCounts,
    discrete: NDArray[np.uint8],
    continuous: NDArray[np.int64],
    options: FactsOptions,
) -> tuple[Floats, Floats]:
    """Return what each discrete and each continuous fact adds to the log-odds, for explanations.

    With `multivariate` the continuous facts speak together, and no part of the sum belongs to one
    of them; their terms are then zero.
    """
    single = categorical_terms(counts, discrete, options)
    normal = gaussian_terms(counts, continuous, options)
    if options.multivariate:
        normal = np.zeros_like(normal)
    return single[SPAM] - single[HAM], normal[SPAM] - normal[HAM]
