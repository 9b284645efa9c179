"""The score of a message on the scale of SpamAssassin."""

import pytest

from spamd.bayes.decision import Verdict
from spamd.listeners.score import REQUIRED, score
from spamd.report import log_odds
from tests.fakes import fake_report


@pytest.mark.parametrize("probability", [0.0, 0.01, 0.3, 0.5, 0.8, 0.9, 0.91, 0.999, 1.0])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_five_is_the_border_of_the_verdict_spam(probability: float, verdict: Verdict) -> None:
    report = fake_report(verdict, probability=probability)
    assert (score(report) >= REQUIRED) == (verdict is Verdict.SPAM)


def test_a_point_is_e_times_the_odds() -> None:
    lower, higher = (fake_report(Verdict.HAM, probability=p) for p in (0.1, 0.25))
    assert score(higher) - score(lower) == pytest.approx(log_odds(0.25) - log_odds(0.1), abs=0.1)


def test_what_was_not_judged_has_no_score() -> None:
    assert score(fake_report(Verdict.UNSCANNED, probability=None)) == 0.0
