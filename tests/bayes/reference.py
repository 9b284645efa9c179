"""The classifiers over tokens once more: a token at a time, as the sources print the formulas.

An independent second implementation to hold `spamd.bayes.classifiers` against. It knows nothing of
numpy, of batches or of the product's options; the defaults are the numbers that are documented in
config/spamd.toml.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt


@dataclass(frozen=True, kw_only=True)
class Token:
    """What was counted of a token, and how often the message holds it."""

    spam: int
    ham: int
    spam_times: int
    ham_times: int
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Messages of each label, occurrences in them, distinct tokens."""

    spam: int
    ham: int
    spam_times: int
    ham_times: int
    vocabulary: int


def graham_probability(
    token: Token,
    trained: Trained,
    *,
    low: float = 0.001,
    high: float = 0.999,
    bias: float = 1.0,
    unknown: float = 0.5,
    minimum: float = 1.0,
    strength: float = 0.1,
    occurrences: bool = False,
    prior: float = 0.5,
    better: bool = False,
) -> float:
    """P(S|W) = P(W|S)·P(S) / (P(W|S)·P(S) + P(W|H)·P(H)), note 004 eq. (5), with Graham's rules."""
    bad = token.spam_times if occurrences else token.spam
    good = (token.ham_times if occurrences else token.ham) * bias
    sightings = bad + good
    if sightings < minimum or sightings == 0 or not trained.spam or not trained.ham:
        return unknown
    given_spam, given_ham = min(1.0, bad / trained.spam), min(1.0, good / trained.ham)
    p = given_spam * prior / (given_spam * prior + given_ham * (1 - prior))
    p = (strength * unknown + sightings * p) / (strength + sightings)
    if not better:
        return min(max(p, low), high)
    if good == 0:
        return 0.9999 if sightings > 10 else 0.9998
    if bad == 0:
        return 0.0001 if sightings > 10 else 0.0002
    return min(max(p, 0.0001), 0.9999)


def graham(
    tokens: Sequence[tuple[float, Token]],
    *,
    words: int = 30,
    prior: float = 0.5,
    word_prior: float = 0.5,
) -> float:
    """Note 004 eq. (13) over the most telling tokens, as a product and not as a sum of logarithms.

    P(S|W₁…Wₙ) ∝ P(S)·∏ P(Wᵢ|S), and P(Wᵢ|S) ∝ P(S|Wᵢ)/P(S), eq. (9).
    """
    telling = sorted(
        tokens, key=lambda each: (-round(abs(each[0] - 0.5), 9), -(each[1].spam + each[1].ham))
    )[:words]
    spam, ham = prior, 1 - prior
    for p, _ in telling:
        spam *= p / word_prior
        ham *= (1 - p) / (1 - word_prior)
    return log(spam / ham)


def fisher_probability(
    token: Token, trained: Trained, *, strength: float = 0.0178, unknown: float = 0.52
) -> float:
    """Robinson's f(w) = (s·x + n·p(w)) / (s + n)."""
    n = token.spam + token.ham
    if not n:
        return unknown
    spam_rate, ham_rate = token.spam / max(1, trained.spam), token.ham / max(1, trained.ham)
    p = spam_rate / (spam_rate + ham_rate)
    return (strength * unknown + n * p) / (strength + n)


def fisher(probabilities: Sequence[float], *, deviation: float = 0.375) -> float:
    """ln I/(1 − I) with I = (1 + H − S)/2; the tail C by its finite series."""
    told = [p for p in probabilities if abs(p - 0.5) >= deviation]
    h = _tail(-2 * sum(log(p) for p in told), len(told))
    s = _tail(-2 * sum(log(1 - p) for p in told), len(told))
    return log((1 + h - s) / (1 - h + s))


def _tail(statistic: float, tokens: int) -> float:
    term = total = exp(-statistic / 2) if tokens else 1.0
    for i in range(1, tokens):
        term *= statistic / 2 / i
        total += term
    return total


def confidence_probability(
    token: Token,
    trained: Trained,
    *,
    spread: float = 0.25,
    exponent: float = 6.0,
    rarity: float = 3.5,
) -> float:
    """q = ½ + CF·(p − ½), of rates and of the messages seen."""
    spam, ham = token.spam / trained.spam, token.ham / trained.ham
    seen = token.spam + token.ham
    if not seen:
        return 0.5
    share = (spam - ham) / (spam + ham)
    sure: float = max(0.0, share**2 - spread / seen**3) ** exponent
    return 0.5 + sure / (1 + rarity / seen) * share / 2


def confidence(probabilities: Sequence[float], *, limit: float = 1.0) -> float:
    """z = Σ max(ln q/(1−q), −limit) / n."""
    parts = [max(log(q / (1 - q)), -limit) for q in probabilities]
    return sum(parts) / max(1, len(parts))


def multinomial(
    tokens: Sequence[Token],
    trained: Trained,
    *,
    smoothing: float = 0.01,
    weight: str = "binary",
    length: str = "sqrt",
) -> float:
    """ln P(spam|x) − ln P(ham|x), the sum over tokens divided by its length."""
    total, spoke = 0.0, 0
    for token in tokens:
        if not token.spam + token.ham:
            continue
        if weight == "binary":
            times = 1.0
            spam = (token.spam + smoothing) / (trained.spam + 2 * smoothing)
            ham = (token.ham + smoothing) / (trained.ham + 2 * smoothing)
        else:
            times = token.times if weight == "raw" else log(1 + token.times)
            values = trained.vocabulary
            spam = (token.spam_times + smoothing) / (trained.spam_times + values * smoothing)
            ham = (token.ham_times + smoothing) / (trained.ham_times + values * smoothing)
        total += times * log(spam / ham)
        spoke += 1
    divisor = {"none": 1.0, "sqrt": sqrt(max(1, spoke)), "n": float(max(1, spoke))}[length]
    prior = (trained.spam + smoothing) / (trained.ham + smoothing)
    return total / divisor + log(prior)
