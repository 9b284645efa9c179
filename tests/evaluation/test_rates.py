"""The rates against definitions written out, known intervals, and scikit-learn's area."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from spamd.evaluation.rates import (
    CALLED_HAM,
    CALLED_SPAM,
    CALLED_UNSURE,
    Outcomes,
    binomial_interval,
    calibration_error,
    cutoff_at,
    lam,
    missed_at,
    rates,
    reliability,
    roca,
    roca_interval,
)
from tests.evaluation.agreed import RATES

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def of(ham: list[float], spam: list[float]) -> tuple[Flags, Floats]:
    return np.array([False] * len(ham) + [True] * len(spam)), np.array(ham + spam)


scored = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40)


@given(scored)
def test_roca_is_the_share_of_pairs_in_the_wrong_order(pairs: list[tuple[bool, int]]) -> None:
    spam = np.array([label for label, _ in pairs])
    scores = np.array([float(score) for _, score in pairs])
    ham, mail = scores[~spam], scores[spam]
    if not len(ham) or not len(mail):
        assert roca(spam, scores) == 0.0
        return
    wrong = (ham[:, None] > mail).sum() + 0.5 * (ham[:, None] == mail).sum()
    assert roca(spam, scores) == pytest.approx(100.0 * wrong / (len(ham) * len(mail)))
    assert roca(spam, scores) == pytest.approx(100.0 * (1.0 - roc_auc_score(spam, scores)))


def test_missed_spam_is_counted_above_the_ham_that_may_be_lost() -> None:
    """Of 2,000 ham two may be lost: the third highest is the threshold; a tie misses."""
    ham = [0.0] * 1997 + [5.0, 6.0, 7.0]
    spam, scores = of(ham, [4.0, 5.0, 5.5, 8.0])
    assert cutoff_at(spam, scores, 0.001) == 5.0
    assert missed_at(spam, scores, 0.001) == 0.5


def test_of_few_ham_none_may_be_lost() -> None:
    spam, scores = of([1.0, 2.0], [1.5, 3.0])
    assert missed_at(spam, scores, 0.001) == 0.5


def test_without_ham_no_spam_is_missed_and_without_spam_none_either() -> None:
    assert missed_at(*of([], [1.0]), 0.001) == 0.0
    assert missed_at(*of([1.0], []), 0.001) == 0.0


def test_lam_is_the_mean_of_both_rates_in_logits() -> None:
    spam, scores = of([-1.0] * 99 + [1.0], [1.0] * 9 + [-1.0])
    logit = (math.log(0.01 / 0.99) + math.log(0.1 / 0.9)) / 2
    assert lam(spam, scores) == pytest.approx(100.0 / (1.0 + math.exp(-logit)))


def test_lam_takes_no_error_at_all_for_half_an_error() -> None:
    spam, scores = of([-1.0] * 100, [1.0] * 100)
    assert lam(spam, scores) == pytest.approx(0.5)


def test_lam_of_one_label_alone_is_zero() -> None:
    assert lam(*of([1.0], [])) == 0.0


def test_calibration_error_weighs_each_part_of_the_scale_by_its_messages() -> None:
    spam = np.array([False, False, True, True])
    probabilities = np.array([0.05, 0.05, 0.95, 0.65])
    assert calibration_error(spam, probabilities) == pytest.approx(
        2 / 4 * 0.05 + 1 / 4 * 0.05 + 1 / 4 * 0.35
    )
    assert calibration_error(spam[:0], probabilities[:0]) == 0.0


def test_probability_one_belongs_to_the_last_part_of_the_scale() -> None:
    _, found, number = reliability(np.array([True]), np.array([1.0]))
    assert (found[-1], number[-1]) == (1.0, 1)


def test_verdicts_are_counted_with_unsure_apart() -> None:
    outcomes = Outcomes(
        spam=np.array([False, False, False, False, True, True]),
        log_odds=np.array([-5.0, -4.0, 0.1, 6.0, 4.0, -3.0]),
        called=np.array(
            [CALLED_HAM, CALLED_HAM, CALLED_UNSURE, CALLED_SPAM, CALLED_SPAM, CALLED_HAM],
            dtype=np.int8,
        ),
    )
    found = rates(outcomes)
    assert found.ham_misclassified == 25.0
    assert found.spam_misclassified == 50.0
    assert found.unsure == pytest.approx(100 / 6)
    assert found.errors == 2
    assert found.roca == pytest.approx(100 * (1 + 2) / 8)
    assert list(found.to_json()) == RATES


def test_rates_of_no_message_are_zero() -> None:
    nothing = Outcomes(
        spam=np.zeros(0, dtype=np.bool_), log_odds=np.zeros(0), called=np.zeros(0, dtype=np.int8)
    )
    assert set(rates(nothing).to_json().values()) == {0}


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (0, 20, 0.0, 16.8433),  # 1 − 0.025^(1/20)
        (20, 20, 83.1567, 100.0),
        (1, 10, 0.2529, 44.5016),  # Clopper and Pearson's table
        (8, 4150, 0.0833, 0.3795),
    ],
)
def test_binomial_interval_is_exact(count: int, total: int, low: float, high: float) -> None:
    found = binomial_interval(count, total)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-4)


def test_interval_of_nothing_is_everything() -> None:
    assert binomial_interval(0, 0).to_json() == [0.0, 100.0]
    assert roca_interval(*of([1.0], [])).to_json() == [0.0, 100.0]


def test_bootstrap_interval_holds_the_rate_and_repeats_itself() -> None:
    random = np.random.default_rng(5)
    spam, scores = of(list(random.normal(0, 1, 300)), list(random.normal(3, 1, 200)))
    found = roca_interval(spam, scores, draws=200)
    assert found.low < roca(spam, scores) < found.high
    assert found == roca_interval(spam, scores, draws=200)


def test_bootstrap_interval_is_as_wide_as_the_theory_says() -> None:
    """Hanley and McNeil (1982): the standard error of an area, from its size and the numbers."""
    random = np.random.default_rng(6)
    spam, scores = of(list(random.normal(0, 1, 400)), list(random.normal(2, 1, 400)))
    area = 1.0 - roca(spam, scores) / 100.0
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    error = math.sqrt((area * (1 - area) + 399 * (q1 - area**2) + 399 * (q2 - area**2)) / 400**2)
    found = roca_interval(spam, scores, draws=500)
    assert (found.high - found.low) / 100.0 == pytest.approx(2 * 1.96 * error, rel=0.25)
