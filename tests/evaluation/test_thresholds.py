"""Cut-offs for a wished loss of ham."""

import numpy as np
import pytest

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.evaluation.rates import Outcomes
from spamd.evaluation.thresholds import suggest


def outcomes(ham: list[float], spam: list[float]) -> Outcomes:
    return Outcomes(
        spam=np.array([False] * len(ham) + [True] * len(spam)),
        log_odds=np.array(ham + spam),
        called=np.zeros(len(ham) + len(spam), dtype=np.int8),
    )


def test_the_cut_off_lies_between_the_last_ham_to_keep_and_the_next_message() -> None:
    run = outcomes([-5.0] * 98 + [1.0, 3.0], [0.0, 2.0, 4.0, 5.0])
    (found,) = suggest(run, [0.01])
    assert found.spam_cutoff == pytest.approx(sigmoid(1.5))
    assert (found.ham_lost, found.spam_missed) == (1, 25.0)


def test_what_the_mail_cannot_promise_is_said() -> None:
    """Of 100 ham none is lost; the true share may still be 1 − 0.025^(1/100) = 3.6 %."""
    (found,) = suggest(outcomes([-5.0] * 100, [5.0]), [0.001])
    assert found.ham_lost == 0
    assert found.ham_lost_at_most == pytest.approx(3.62, abs=0.01)


def test_without_any_spam_above_the_ham_the_cut_off_is_the_ham() -> None:
    (found,) = suggest(outcomes([2.0] * 10, [1.0]), [0.001])
    assert found.spam_cutoff == pytest.approx(sigmoid(2.0))
    assert found.spam_missed == 100.0


def test_without_ham_everything_may_be_called_spam() -> None:
    (found,) = suggest(outcomes([], [1.0]), [0.001])
    assert (found.spam_cutoff, found.spam_missed) == (0.0, 0.0)


def test_the_usual_wishes_are_answered_in_order() -> None:
    found = suggest(outcomes([-1.0] * 10, [1.0]))
    assert [one.to_json()["wished"] for one in found] == [0.05, 0.1, 0.5, 1.0]
