"""Graham's filter: the most telling words of a message, combined by Bayes' rule.

    P(S|W) = P(W|S)·P(S) / P(W)                     one word: note 004, eq. (5)
    P = P₁…Pₙ / (P₁…Pₙ + (1−P₁)…(1−Pₙ))            many: note 004, eq. (12), (13)

over the n tokens whose probabilities are farthest from ½. The form with unequal priors, eq.
(6)–(9), is the same with one term more. Nothing is multiplied: all is a sum of log-odds.

Sources: P. Graham, "A Plan for Spam" (2002) and "Better Bayesian Filtering" (2003).
"""

from dataclasses import dataclass
from enum import StrEnum
from math import log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import AnyTotals, Batch, at_least_one
from spamd.bayes.counts import TokenCounts

EXTREME = 1e-9
"""No probability comes nearer to 0 or 1 than this before its logarithm is taken."""


class GrahamRule(StrEnum):
    """Which essay's rule bounds the probability of a token."""

    PLAN_2002 = "2002"
    BETTER_2003 = "2003"


class Counting(StrEnum):
    """What is counted: messages that hold the token, or how often they hold it."""

    PRESENCE = "presence"
    OCCURRENCES = "occurrences"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrahamOptions:
    """Graham's classifier: P1…Pn / (P1…Pn + (1-P1)…(1-Pn)) over the most telling tokens.

    words           tokens combined; Graham took 15, 30 ranks better on our corpora (E-009)
    rule            "2002" bounds every probability by `low` and `high`; "2003" gives tokens seen
                    with one label only .9998, or .9999 above ten sightings (and mirrored)
    low             lower bound of a token's probability; Graham 2002 had .01
    high            upper bound; Graham 2002 had .99
    ham_bias        ham counts are multiplied by this; Graham had 2 against false positives
    unknown         probability of a token seen less than `minimum_count` times; Graham had .4
    minimum_count   sightings (ham ones biased) before a token has its own probability; Graham had 5
    strength        sightings that `unknown` counts for in each token's probability, so that tokens
                    seen often are more telling than those seen once; 0 is Graham's own rule (E-009)
    counting        "presence" counts messages, "occurrences" counts as Graham did
    prior           P(spam) of a message before it is read
    word_prior      P(spam) that a token's probability is computed with; ½ in Graham's formula
    kinds           kinds of tokens that are read, a sum of: 1 words, 2 pairs, 4 words of header
                    fields behind the field's name, 8 the same alone, 16 links, 32 shape,
                    64 tricks, 128 hidden words
    """

    words: int = 30
    rule: GrahamRule = GrahamRule.PLAN_2002
    low: float = 0.001
    high: float = 0.999
    ham_bias: float = 1.0
    unknown: float = 0.5
    minimum_count: float = 1.0
    strength: float = 0.1
    counting: Counting = Counting.PRESENCE
    prior: float = 0.5
    word_prior: float = 0.5
    kinds: int = 255

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.words < 1:
            raise ValueError("words must be at least 1")
        if not 0 < self.low < 0.5 < self.high < 1:
            raise ValueError("low and high must hold 0 < low < 0.5 < high < 1")
        if self.ham_bias <= 0 or self.minimum_count < 0 or self.strength < 0:
            raise ValueError(
                "ham_bias must be above 0, minimum_count and strength must not be below 0"
            )
        for name in ("unknown", "prior", "word_prior"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1")


def logit(probability: float) -> float:
    """Return ln(p / (1 − p)), p held `EXTREME` away from 0 and 1."""
    p = min(max(probability, EXTREME), 1 - EXTREME)
    return log(p) - log1p(-p)


def combine(
    probabilities: NDArray[np.float64], *, prior: float = 0.5, word_prior: float = 0.5
) -> float:
    """Return the log-odds of spam given the tokens' probabilities P(spam|token).

        ln odds = ln π/(1−π) + Σ [ ln pᵢ/(1−pᵢ) − ln ω/(1−ω) ]

    π  `prior` of the message    ω  `word_prior`, the prior that the pᵢ were computed with

    π = ω = ½ is note 004 eq. (13), ω = ½ its eq. (9), and π = ω gives (π/(1−π))^(1−n) Π pᵢ/(1−pᵢ).
    """
    p = np.minimum(np.maximum(probabilities, EXTREME), 1 - EXTREME)
    total = float(np.sum(np.log(p) - np.log1p(-p)))
    return logit(prior) + total - len(p) * logit(word_prior)


def probabilities(
    counts: TokenCounts, totals: AnyTotals, options: GrahamOptions
) -> NDArray[np.float64]:
    """Return P(spam|token) of each token.

        p = π·b / (π·b + (1−π)·g),   b = min(1, spam/N_spam),   g = min(1, bias·ham/N_ham)

    pulled to `unknown` with `strength` as Robinson does, held within `low` and `high`; `unknown`
    when seen less than `minimum_count` times (note 004 eq. 5; Graham 2002). N counts messages, also
    where occurrences are counted.
    """
    presence = options.counting is Counting.PRESENCE
    bad = counts.spam if presence else counts.spam_occurrences
    good: NDArray[Any] = counts.ham if presence else counts.ham_occurrences
    if options.ham_bias != 1:
        good = options.ham_bias * good
    b, g = bad / at_least_one(totals.spam), good / at_least_one(totals.ham)
    if not presence or options.ham_bias > 1:  # else nothing is above 1
        b, g = np.minimum(1.0, b), np.minimum(1.0, g)
    if options.word_prior != 0.5:
        b, g = options.word_prior * b, (1 - options.word_prior) * g
    p: NDArray[np.float64] = b / np.maximum(b + g, np.finfo(np.float64).tiny)
    sightings = counts.seen if presence and options.ham_bias == 1 else bad + good
    if options.strength:
        p = (options.strength * options.unknown + sightings * p) / (options.strength + sightings)
    if options.rule is GrahamRule.BETTER_2003:
        sure = np.where(sightings > 10, 0.9999, 0.9998)  # Graham 2003
        p = np.clip(p, 0.0001, 0.9999)
        p = np.where(good == 0, sure, np.where(bad == 0, 1 - sure, p))
    else:
        p = np.minimum(np.maximum(p, options.low), options.high)
    rare = sightings < max(options.minimum_count, EXTREME)
    # A label that was never trained says nothing about its tokens.
    rare |= (totals.spam == 0) | (totals.ham == 0)
    return np.where(rare, options.unknown, p)


def choose(
    p: NDArray[np.float64], counts: TokenCounts, kinds: NDArray[np.uint8], options: GrahamOptions
) -> NDArray[np.intp]:
    """Return the indices of the `words` tokens farthest from ½.

    Among equals those seen in more messages come first: they are the better witnesses.
    """
    return _strongest(_strengths(p, counts, kinds, options), options.words)


def _strengths(
    p: NDArray[np.float64], counts: TokenCounts, kinds: NDArray[np.uint8], options: GrahamOptions
) -> NDArray[np.float64]:
    """Return how telling each token is, below 0 for those that are not read."""
    seen = counts.seen
    strengths: NDArray[np.float64] = np.abs(p - 0.5) + 1e-6 * (seen / (seen + 10.0))
    if options.kinds != 255:
        strengths[(kinds & np.uint8(options.kinds)) == 0] = -1.0
    return strengths


def _strongest(strengths: NDArray[np.float64], words: int) -> NDArray[np.intp]:
    if len(strengths) > words:
        best = strengths.argpartition(len(strengths) - words)[len(strengths) - words :]
    else:
        best = np.arange(len(strengths))
    return best[strengths[best] >= 0]


def scores(batch: Batch, options: GrahamOptions) -> list[float]:
    """Return the classifier's log-odds of spam for each message."""
    p = probabilities(batch.counts, batch.totals, options)
    strengths = _strengths(p, batch.counts, batch.kinds, options)
    return [
        combine(
            p[span][_strongest(strengths[span], options.words)],
            prior=options.prior,
            word_prior=options.word_prior,
        )
        for span in batch.spans
    ]
