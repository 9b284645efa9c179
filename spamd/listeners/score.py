"""The score that clients of SpamAssassin and rspamd expect: 5.0 is the border to spam.

    score = 5 + ln(p / (1 − p)) − ln(r / (1 − r))

p  the probability of spam    r  the probability from which the verdict is spam

So one point is e times the odds. A verdict is never contradicted: what is not called spam (too
little was learned yet) stays below 5.0. A message that was not judged has 0.0.
"""

from spamd.bayes.decision import Verdict
from spamd.report import ScanReport, log_odds

REQUIRED = 5.0
"""SpamAssassin's required_score, which rules and clients of three decades have learned."""

_BELOW = REQUIRED - 0.1


def points(probability: float, required: float) -> float:
    """Return the score of a probability where `required` is the border, rounded to a tenth."""
    return round(REQUIRED + log_odds(probability) - log_odds(required), 1)


def score(report: ScanReport) -> float:
    """Return the score of a message, rounded to a tenth."""
    if report.probability is None:
        return 0.0
    shifted = points(report.probability, report.required)
    if report.verdict is Verdict.SPAM:
        return max(shifted, REQUIRED)
    return min(shifted, _BELOW)
