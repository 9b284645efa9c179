"""From a probability to a verdict and an action: Bayes decision theory.

The conditional risk of an action a is its expected loss given the message (note 002 eq. (1)–(8),
note 003):

    R(a|x) = λ(a, ham)·P(ham|x) + λ(a, spam)·P(spam|x)

The action of least risk wins; among equals the milder one. "accept" is the verdict ham, "unsure"
the verdict unsure (the mail is accepted), "tag" and "reject" are the verdict spam. With losses of 0
and 1 this is the maximum posterior (eq. (5)–(8)). Cut-offs on the probability may be set instead.
Another share of spam than was trained moves the odds: note 004 eq. (9).

While too few messages of either label were trained the verdict is "unsure", the reason says what is
missing, and nothing is rejected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import exp, inf, log

from spamd.bayes.counts import Totals


class Verdict(StrEnum):
    """What we say about a message."""

    HAM = "ham"
    UNSURE = "unsure"
    SPAM = "spam"
    UNSCANNED = "unscanned"


class Action(StrEnum):
    """What is done with it. "quarantine" and "defer" are reserved for later."""

    ACCEPT = "accept"
    TAG = "tag"
    REJECT = "reject"
    QUARANTINE = "quarantine"
    DEFER = "defer"


class Rule(StrEnum):
    """How a probability becomes a verdict."""

    LOSSES = "losses"
    CUTOFFS = "cutoffs"


CHOICES = ("accept", "unsure", "tag", "reject")
"""The rows of the loss matrix, the mildest first."""

OUTCOMES = {
    "accept": (Verdict.HAM, Action.ACCEPT),
    "unsure": (Verdict.UNSURE, Action.ACCEPT),
    "tag": (Verdict.SPAM, Action.TAG),
    "reject": (Verdict.SPAM, Action.REJECT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOptions:
    """From a probability to a verdict and an action.

    A loss is a pair [if it is ham, if it is spam] in any unit; the action of least expected loss
    wins. "spamd config show" prints the thresholds that follow.

    rule            "losses" takes the least expected loss, "cutoffs" the two probabilities below
    reject          whether mail may be rejected at all; off, its place is taken by "tag"
    accept_losses   mail passed as ham: nothing, or one spam in the inbox (the unit)
    unsure_losses   mail passed but marked unsure: a glance
    tag_losses      mail marked as spam: a ham that may be overlooked, or a spam to empty out
    reject_losses   mail refused: a ham lost (its sender is told), or nothing at all
    ham_cutoff      with "cutoffs": at most this probability is ham
    spam_cutoff     with "cutoffs": at least this probability is spam
    reject_cutoff   with "cutoffs": at least this probability is rejected, if `reject` allows
    minimum_ham     ham messages trained before there is any verdict but unsure
    minimum_spam    spam messages likewise
    prior_spam      share of spam in the mail that arrives, if it differs from that in training; 0
                    means as trained
    """

    rule: Rule = Rule.LOSSES
    reject: bool = False
    accept_losses: tuple[float, float] = (0.0, 1.0)
    unsure_losses: tuple[float, float] = (0.3, 0.3)
    tag_losses: tuple[float, float] = (9.0, 0.01)
    reject_losses: tuple[float, float] = (30.0, 0.0)
    ham_cutoff: float = 0.2
    spam_cutoff: float = 0.9
    reject_cutoff: float = 0.999
    minimum_ham: int = 10
    minimum_spam: int = 10
    prior_spam: float = 0.0

    def __post_init__(self) -> None:
        """Check ranges, and that each loss grows with what is at stake."""
        if not 0 <= self.ham_cutoff <= self.spam_cutoff <= self.reject_cutoff <= 1:
            raise ValueError("0 ≤ ham_cutoff ≤ spam_cutoff ≤ reject_cutoff ≤ 1 must hold")
        rows = [self.losses(choice) for choice in CHOICES]
        if not all(0 <= loss < inf for row in rows for loss in row):
            raise ValueError("losses must be finite and not below 0")
        if [ham for ham, _ in rows] != sorted(ham for ham, _ in rows):
            raise ValueError("the loss of a ham must not fall from accept to reject")
        if [spam for _, spam in rows] != sorted((spam for _, spam in rows), reverse=True):
            raise ValueError("the loss of a spam must not grow from accept to reject")
        if self.minimum_ham < 0 or self.minimum_spam < 0:
            raise ValueError("minimum_ham and minimum_spam must not be below 0")
        if not 0 <= self.prior_spam < 1:
            raise ValueError("prior_spam must lie between 0 and 1")

    def losses(self, choice: str) -> tuple[float, float]:
        """Return the losses (ham, spam) of one of `CHOICES`."""
        return {
            "accept": self.accept_losses,
            "unsure": self.unsure_losses,
            "tag": self.tag_losses,
            "reject": self.reject_losses,
        }[choice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Verdict and action for one message, and the reason in one line.

    probability   of spam, with the share of spam that arrives: what the thresholds are held against
    """

    verdict: Verdict
    action: Action
    reason: str
    probability: float


def risk(choice: str, probability: float, options: DecisionOptions) -> float:
    """Return the expected loss of a choice: Σ_label λ(choice, label)·P(label|x)."""
    ham, spam = options.losses(choice)
    return ham * (1 - probability) + spam * probability


def choose(probability: float, options: DecisionOptions) -> str:
    """Return the choice among `CHOICES` for a probability of spam."""
    if options.rule is Rule.CUTOFFS:
        if options.reject and probability >= options.reject_cutoff:
            return "reject"
        if probability >= options.spam_cutoff:
            return "tag"
        return "accept" if probability <= options.ham_cutoff else "unsure"
    allowed = CHOICES if options.reject else CHOICES[:-1]
    return min(allowed, key=lambda choice: risk(choice, probability, options))


@lru_cache(maxsize=8)  # asked for each message
def thresholds(options: DecisionOptions) -> Mapping[str, float]:
    """Return from which probability on each choice is taken; a choice never taken has no entry.

    With losses these are the crossings of the risks, which are straight lines in the probability.
    """
    if options.rule is Rule.CUTOFFS:
        found = {"accept": 0.0, "unsure": options.ham_cutoff, "tag": options.spam_cutoff}
        return found | ({"reject": options.reject_cutoff} if options.reject else {})
    allowed = CHOICES if options.reject else CHOICES[:-1]
    found = {choose(0.0, options): 0.0}
    while True:
        last, start = next(reversed(found.items()))
        # Where each severer choice becomes cheaper than the present one; the first to do so is
        # next.
        crossings = []
        for choice in allowed[allowed.index(last) + 1 :]:
            dearer = options.losses(choice)[0] - options.losses(last)[0]
            cheaper = options.losses(last)[1] - options.losses(choice)[1]
            if cheaper > 0 and (crossing := dearer / (dearer + cheaper)) < 1:
                spam_loss = options.losses(choice)[1]  # of those that cross here, the lowest wins
                crossings.append((max(crossing, start), spam_loss, allowed.index(choice), choice))
        if not crossings:
            return found
        crossing, _, _, choice = min(crossings)
        found[choice] = crossing


def shift(totals: Totals, prior_spam: float) -> float:
    """Return what another share of spam than was trained adds to the log-odds.

    odds' = odds · [π/(1−π)] / [N_spam/N_ham]        (note 004 eq. 9)
    """
    if prior_spam == 0 or not (totals.spam and totals.ham):
        return 0.0
    return log(prior_spam / (1 - prior_spam)) - log(totals.spam / totals.ham)


def adjusted(probability: float, totals: Totals, prior_spam: float) -> float:
    """Return the probability for mail with another share of spam than was trained."""
    added = shift(totals, prior_spam)
    if not added or not 0 < probability < 1:
        return probability
    z = log(probability / (1 - probability)) + added
    return 1 / (1 + exp(-z)) if z > 0 else exp(z) / (1 + exp(z))


def lacking(totals: Totals, options: DecisionOptions) -> list[str]:
    """Return of which labels too few messages were trained for a verdict, in words."""
    return [
        f"{label} {count} of {minimum}"
        for label, count, minimum in (
            ("ham", totals.ham, options.minimum_ham),
            ("spam", totals.spam, options.minimum_spam),
        )
        if count < minimum
    ]


def decide(probability: float, totals: Totals, options: DecisionOptions) -> Decision:
    """Return verdict, action and reason for a probability of spam after training `totals`."""
    p = adjusted(probability, totals, options.prior_spam)
    missing = lacking(totals, options)
    if missing:
        reason = f"too little training: {', '.join(missing)} messages"
        verdict, action = Verdict.UNSURE, Action.ACCEPT
    else:
        choice = choose(p, options)
        reason = f"probability {p:.4f}, {choice} from {thresholds(options).get(choice, 0.0):.4f}"
        verdict, action = OUTCOMES[choice]
    return Decision(verdict=verdict, action=action, reason=reason, probability=p)
