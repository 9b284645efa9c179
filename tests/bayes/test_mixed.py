"""Facts by mixed naive Bayes: counts that are taken back exactly, formulas of the notes, edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spamd.bayes.classifiers.mixed import (
    FactsOptions,
    categorical_terms,
    contributions,
    gaussian_terms,
    log_joint,
    log_posterior,
    log_prior,
    log_ratio,
    score,
)
from spamd.bayes.factcounts import FactCounts
from spamd.sample import FIXED_POINT, FactSchema, Label

SCHEMA = FactSchema(
    discrete=(("charset", ("ascii", "utf-8", "other")), ("html", ("none", "only"))),
    continuous=("size", "capitals"),
)
Fact = tuple[str, NDArray[np.uint8], NDArray[np.int64]]


def fact(label: str, charset: int, html: int, size: float, capitals: float) -> Fact:
    discrete = np.array([charset, html], dtype=np.uint8)
    continuous = np.array([round(size * FIXED_POINT), round(capitals * FIXED_POINT)])
    return label, discrete, continuous


LESSONS = (
    fact(Label.HAM, 0, 0, 7.0, 0.0625),
    fact(Label.HAM, 1, 0, 8.0, 0.125),
    fact(Label.HAM, 0, 0, 9.5, 0.03125),
    fact(Label.SPAM, 1, 1, 6.0, 0.5),
    fact(Label.SPAM, 2, 1, 6.5, 0.25),
)


def taught(lessons: tuple[Fact, ...] = LESSONS) -> FactCounts:
    counts = FactCounts(SCHEMA)
    for lesson in lessons:
        counts.add(*lesson)
    return counts


facts = st.builds(
    fact,
    st.sampled_from([Label.HAM, Label.SPAM]),
    st.integers(0, 2),
    st.integers(0, 1),
    st.floats(-4, 30),
    st.floats(0, 1),
)


@given(st.lists(facts, max_size=8), st.lists(facts, max_size=8))
def test_lessons_taken_back_leave_no_trace(kept: list[Fact], taken: list[Fact]) -> None:
    counts = taught((*kept, *taken))
    for lesson in reversed(taken):
        counts.remove(*lesson)
    assert counts == taught(tuple(kept))


@given(st.lists(facts, max_size=12))
def test_rows_give_back_the_same_counts(lessons: list[Fact]) -> None:
    counts = taught(tuple(lessons))
    assert FactCounts.from_rows(counts.to_rows(), SCHEMA) == counts


def test_rows_have_readable_keys_and_leave_zeros_out() -> None:
    counts = taught((fact(Label.SPAM, 1, 1, 2.0, 0.5),))
    assert counts.to_rows() == [
        ("n", 1, 0),
        ("charset=utf-8", 1, 0),
        ("charset=utf-8&html=only", 1, 0),
        ("html=only", 1, 0),
        ("size", 2048, 0),
        ("capitals", 512, 0),
        ("size*size", 2048 * 2048, 0),
        ("size*capitals", 2048 * 512, 0),
        ("capitals*capitals", 512 * 512, 0),
    ]


def test_rows_of_facts_that_the_schema_no_longer_knows_are_left_out() -> None:
    rows = [*taught().to_rows(), ("colour=red", 3, 4)]
    assert FactCounts.from_rows(rows, SCHEMA) == taught()


def test_a_schema_whose_keys_collide_is_refused() -> None:
    twice = FactSchema(discrete=(), continuous=("n",))
    with pytest.raises(ValueError, match="share one key"):
        FactCounts(twice).to_rows()


def test_a_message_that_was_never_added_is_not_taken_back() -> None:
    counts = taught()
    with pytest.raises(ValueError, match="not added"):
        counts.remove(*fact(Label.SPAM, 0, 1, 6.0, 0.5))
    assert counts == taught()


def test_a_value_outside_the_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="outside its schema"):
        taught().add(*fact(Label.HAM, 1, 2, 6.0, 0.5))


def test_a_copy_changes_independently() -> None:
    counts = taught()
    twin = counts.copy()
    twin.add(*LESSONS[0])
    assert counts == taught()
    assert twin != counts
    assert twin != "counts"


def test_prior_is_the_smoothed_share_of_each_class() -> None:
    smoothed = log_prior(taught(), FactsOptions(prior_smoothing=1.0))
    plain = log_prior(taught(), FactsOptions(prior_smoothing=0.0))
    assert np.exp(smoothed) == pytest.approx([4 / 7, 3 / 7])
    assert np.exp(plain) == pytest.approx([3 / 5, 2 / 5])


def test_prior_is_even_when_it_does_not_count() -> None:
    assert np.exp(log_prior(taught(), FactsOptions(prior=False))) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("smoothing", "ham", "spam"),
    [
        (0.0, [1 / 3, 1e-12], [1 / 2, 1.0]),
        (0.01, [1.01 / 3.03, 0.01 / 3.02], [1.01 / 2.03, 2.01 / 2.02]),
        (1.0, [2 / 6, 1 / 5], [2 / 5, 3 / 4]),
    ],
)
def test_discrete_likelihood_is_lambda_smoothed_over_the_values_of_the_schema(
    smoothing: float, ham: list[float], spam: list[float]
) -> None:
    seen = categorical_terms(
        taught(), np.array([1, 1], dtype=np.uint8), FactsOptions(smoothing=smoothing)
    )
    assert np.exp(seen) == pytest.approx(np.array([ham, spam]), rel=1e-9, abs=0.0)


def test_discrete_likelihood_can_count_only_the_values_seen_in_the_class() -> None:
    seen = categorical_terms(
        taught(), np.array([1, 1], dtype=np.uint8), FactsOptions(own_values=True)
    )
    # ham saw 2 charsets and 1 kind of html, spam saw 2 and 1
    assert np.exp(seen) == pytest.approx(np.array([[2 / 5, 1 / 4], [2 / 4, 3 / 3]]))


def normal(x: float, mean: float, variance: float) -> float:
    return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def test_continuous_likelihood_is_the_normal_density_with_divisor_n() -> None:
    options = FactsOptions(pooled=0.0)
    seen = gaussian_terms(taught(), np.array([7168, 128]), options)
    mean, variance = (7.0 + 8.0 + 9.5) / 3, np.var([7.0, 8.0, 9.5])
    assert math.exp(seen[0, 0]) == pytest.approx(normal(7.0, mean, float(variance)))
    assert math.exp(seen[1, 1]) == pytest.approx(normal(0.125, 0.375, 0.125**2))


def test_variance_is_pulled_towards_that_of_all_classes() -> None:
    seen = gaussian_terms(taught(), np.array([7168, 128]), FactsOptions(pooled=2.0))
    everything = float(np.var([7.0, 8.0, 9.5, 6.0, 6.5]))
    pulled = (2 * float(np.var([6.0, 6.5])) + 2 * everything) / 4
    assert math.exp(seen[1, 0]) == pytest.approx(normal(7.0, 6.25, pulled))


def test_a_constant_fact_gets_the_least_variance() -> None:
    counts = taught((fact("ham", 0, 0, 5.0, 0.5), fact("spam", 0, 0, 5.0, 0.5)))
    seen = gaussian_terms(counts, np.array([5120, 512]), FactsOptions(variance_floor=0.04))
    assert np.exp(seen) == pytest.approx(np.full((2, 2), normal(0.0, 0.0, 0.04)))


def test_multivariate_form_is_the_joint_normal_density() -> None:
    counts = taught()
    options = FactsOptions(multivariate=True, pooled=0.0, variance_floor=1e-6)
    x = np.array([7.25, 0.0625])
    rows = np.array([[7.0, 0.0625], [8.0, 0.125], [9.5, 0.03125]])
    spread = np.cov(rows.T, bias=True)
    away = x - rows.mean(axis=0)
    density = math.exp(-0.5 * away @ np.linalg.inv(spread) @ away) / math.sqrt(
        (2 * math.pi) ** 2 * np.linalg.det(spread)
    )
    seen = gaussian_terms(counts, (x * FIXED_POINT).astype(np.int64), options).sum(axis=1)
    assert math.exp(seen[0]) == pytest.approx(density, rel=1e-9)


def test_multivariate_form_equals_the_single_ones_when_facts_are_uncorrelated() -> None:
    corners = [(s, c) for s in (2.0, 4.0) for c in (0.25, 0.5)]
    counts = taught(
        tuple(fact(k, 0, 0, s + d, c) for k, d in (("ham", 0), ("spam", 1)) for s, c in corners)
    )
    x = np.array([3000, 300])
    single = gaussian_terms(counts, x, FactsOptions(pooled=0.0)).sum(axis=1)
    joint = gaussian_terms(counts, x, FactsOptions(pooled=0.0, multivariate=True)).sum(axis=1)
    assert joint == pytest.approx(single, rel=1e-9)


def test_continuous_facts_say_nothing_until_every_class_has_a_message() -> None:
    only_ham = taught(LESSONS[:3])
    assert not gaussian_terms(only_ham, np.array([7168, 128]), FactsOptions()).any()


def test_continuous_facts_can_be_left_out() -> None:
    assert not gaussian_terms(taught(), LESSONS[0][2], FactsOptions(continuous=False)).any()


def test_posterior_adds_up_to_one_and_score_is_its_log_odds() -> None:
    counts, options = taught(), FactsOptions()
    posterior = np.exp(log_posterior(counts, *LESSONS[3][1:], options))
    assert posterior.sum() == pytest.approx(1.0)
    assert score(counts, *LESSONS[3][1:], options) == pytest.approx(
        math.log(posterior[1] / posterior[0])
    )


def test_contributions_and_prior_add_up_to_the_score() -> None:
    counts, options = taught(), FactsOptions()
    single, normals = contributions(counts, *LESSONS[3][1:], options)
    prior = log_prior(counts, options)
    assert single.sum() + normals.sum() + prior[1] - prior[0] == pytest.approx(
        score(counts, *LESSONS[3][1:], options)
    )


def test_contributions_of_the_multivariate_form_belong_to_no_single_fact() -> None:
    _, normals = contributions(taught(), *LESSONS[3][1:], FactsOptions(multivariate=True))
    assert not normals.any()


def test_a_lesson_changes_the_next_score_and_taken_back_restores_it() -> None:
    counts, options = taught(), FactsOptions()
    before = score(counts, *LESSONS[3][1:], options)
    counts.add(*LESSONS[3])
    after = score(counts, *LESSONS[3][1:], options)
    assert after != before
    counts.remove(*LESSONS[3])
    assert score(counts, *LESSONS[3][1:], options) == before


def test_swapping_ham_and_spam_mirrors_the_score() -> None:
    other = {Label.HAM: Label.SPAM, Label.SPAM: Label.HAM}
    mirrored = taught(tuple((other[Label(k)], d, c) for k, d, c in LESSONS))
    options = FactsOptions()
    assert score(mirrored, *LESSONS[3][1:], options) == pytest.approx(
        -score(taught(), *LESSONS[3][1:], options)
    )


@settings(max_examples=200)
@given(
    st.lists(facts, max_size=6),
    facts,
    st.builds(
        FactsOptions,
        smoothing=st.sampled_from([0.0, 0.5, 1.0]),
        prior_smoothing=st.sampled_from([0.0, 1.0]),
        own_values=st.booleans(),
        multivariate=st.booleans(),
        pooled=st.sampled_from([0.0, 2.0]),
    ),
)
def test_every_score_is_finite(lessons: list[Fact], x: Fact, options: FactsOptions) -> None:
    assert math.isfinite(score(taught(tuple(lessons)), *x[1:], options))


def test_a_schema_without_facts_leaves_the_prior() -> None:
    counts = FactCounts(FactSchema(discrete=(), continuous=()))
    nothing = np.array([], dtype=np.uint8), np.array([], dtype=np.int64)
    counts.add(Label.HAM, *nothing)
    assert score(counts, *nothing, FactsOptions()) == pytest.approx(math.log(1 / 2))


def test_three_classes_are_judged_by_the_same_arithmetic() -> None:
    counts = FactCounts(SCHEMA, classes=("ham", "spam", "list"))
    for lesson in (*LESSONS, ("list", *LESSONS[0][1:]), ("list", *LESSONS[1][1:])):
        counts.add(*lesson)
    joint = log_joint(counts, *LESSONS[0][1:], FactsOptions(continuous=False))
    by_hand = [
        (3 + 1) / (7 + 3) * (2 + 1) / (3 + 3) * (3 + 1) / (3 + 2),
        (2 + 1) / (7 + 3) * (0 + 1) / (2 + 3) * (0 + 1) / (2 + 2),
        (2 + 1) / (7 + 3) * (1 + 1) / (2 + 3) * (2 + 1) / (2 + 2),
    ]
    assert np.exp(joint) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    "options",
    [
        {"smoothing": -0.1},
        {"prior_smoothing": math.nan},
        {"pooled": math.inf},
        {"variance_floor": 0.0},
        {"variance_floor": math.nan},
    ],
)
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        FactsOptions(**options)  # type: ignore[arg-type]  # the fields under test are floats


def test_without_smoothing_a_share_is_the_share_and_of_nothing_it_is_even() -> None:
    count, values = np.array([1, 0, 3]), np.array([3, 3, 3])

    def shares(total: int, counted: NDArray[np.int64]) -> list[float]:
        found = np.exp(log_ratio(counted, np.array([total]), values, 0.0))
        return [float(share) for share in found]

    assert shares(1, np.array([1, 0, 0])) == pytest.approx([1.0, 1e-12, 1e-12])
    assert shares(4, count) == pytest.approx([0.25, 1e-12, 0.75])
    assert shares(0, np.zeros(3, dtype=np.int64)) == pytest.approx([1 / 3] * 3)
