"""Formulas of the classifiers over tokens against independent figures."""

from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2  # type: ignore[import-untyped]  # it has no stubs of its own
from sklearn.naive_bayes import MultinomialNB

from spamd.bayes.batch import Batch
from spamd.bayes.classifiers import confidence, fisher, graham, logistic, multinomial
from spamd.bayes.classifiers.confidence import ConfidenceOptions
from spamd.bayes.classifiers.fisher import FisherOptions
from spamd.bayes.classifiers.graham import Counting, GrahamOptions, GrahamRule
from spamd.bayes.classifiers.logistic import GramsOptions, LogisticOptions
from spamd.bayes.classifiers.multinomial import Length, MultinomialOptions, TermWeight
from spamd.bayes.counts import TokenCounts, Totals
from spamd.sample import Kind, Label

TEN = Totals(spam=10, ham=10, spam_occurrences=100, ham_occurrences=100, vocabulary=50)


def counts_of(*pairs: tuple[int, int], occurrences: int = 1) -> TokenCounts:
    """(spam, ham) messages of each token, each holding it `occurrences` times."""
    cells = [[s, h, s * occurrences, h * occurrences, 0] for s, h in pairs]
    return TokenCounts.of_cells(np.array(cells, dtype=np.int32).reshape(-1, 5))


def words(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.full(size, Kind.WORD, dtype=np.uint8)


def score(classifier: Any, counts: TokenCounts, *given: Any) -> float:
    """The score of a classifier for one message: occurrences (if given), kinds, totals, options."""
    *occurrences, kinds, totals, options = given
    (times,) = occurrences or [np.ones(len(kinds), dtype=np.uint8)]
    (found,) = classifier.scores(Batch.of_one(counts, times, kinds, totals), options)
    return float(found)


def probability(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))


# Graham


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (
            (
                ".99 .99 .99 .047225013 .047225013 .07347802 .08221981 .09019077 .09019077 "
                ".9075001 .8921298 .12454646 .8568143 .14758544 .82347786"
            ),
            0.902774,
        ),
        (".97 .99", 0.999688),
        (".9889 .99", 0.999887),
        (".8 .7", 0.903226),
    ],
)
def test_graham_combines_his_own_examples_as_he_does(tokens: str, expected: float) -> None:
    p = np.array([float(token) for token in tokens.split()])

    assert probability(graham.combine(p)) == pytest.approx(expected, abs=5e-7)


def test_unequal_priors_follow_note_004_eq_9() -> None:
    p = np.array([0.8, 0.7])

    assert probability(graham.combine(p, prior=0.2)) == pytest.approx(0.7, abs=1e-12)


def test_probabilities_computed_with_the_prior_itself_lose_it_again() -> None:
    # Likelihood ratios 4 and 7/3 under prior .2 give P(S|w) = .5 and 7/19.
    p = np.array([0.5, 7 / 19])

    assert probability(graham.combine(p, prior=0.2, word_prior=0.2)) == pytest.approx(0.7)


def test_a_token_of_one_label_only_stops_at_the_bounds() -> None:
    options = GrahamOptions(strength=0)

    p = graham.probabilities(counts_of((5, 0), (0, 5), (5, 5)), TEN, options)

    assert p.tolist() == pytest.approx([0.999, 0.001, 0.5])


def test_the_rule_of_2003_bounds_by_the_number_of_sightings() -> None:
    options = GrahamOptions(rule=GrahamRule.BETTER_2003, strength=0)

    p = graham.probabilities(counts_of((5, 0), (11, 0), (0, 5), (0, 11)), TEN, options)

    assert p.tolist() == pytest.approx([0.9998, 0.9999, 0.0002, 0.0001])


def test_a_rare_token_has_the_unknown_probability() -> None:
    options = GrahamOptions(minimum_count=5, unknown=0.4, ham_bias=2, strength=0)

    p = graham.probabilities(counts_of((4, 0), (0, 3), (0, 0)), TEN, options)

    assert p.tolist() == pytest.approx([0.4, 0.001, 0.4])


def test_counting_occurrences_and_doubling_ham_is_the_plan_of_2002() -> None:
    options = GrahamOptions(
        counting=Counting.OCCURRENCES,
        ham_bias=2,
        minimum_count=5,
        low=0.01,
        high=0.99,
        strength=0,
    )
    table = TokenCounts.of_cells(np.array([[2, 1, 6, 1, 0]], dtype=np.int32))

    p = graham.probabilities(table, TEN, options)

    assert p.tolist() == pytest.approx([0.6 / (0.6 + 0.2)])


def test_strength_makes_a_token_seen_often_more_telling_than_one_seen_once() -> None:
    options = GrahamOptions(strength=0.1, unknown=0.5)

    p = graham.probabilities(counts_of((1, 0), (9, 0)), TEN, options)

    assert p.tolist() == pytest.approx([1.05 / 1.1, 9.05 / 9.1])


def test_only_the_most_telling_words_are_combined() -> None:
    counts = counts_of((10, 0), (5, 4), (5, 5), (0, 10))
    options = GrahamOptions(words=2)
    p = graham.probabilities(counts, TEN, options)

    assert set(graham.choose(p, counts, words(4), options).tolist()) == {0, 3}


def test_among_equally_telling_words_the_better_known_is_taken() -> None:
    counts = counts_of((3, 0), (9, 0), (4, 0))
    options = GrahamOptions(words=1, strength=0)
    p = graham.probabilities(counts, TEN, options)

    assert graham.choose(p, counts, words(3), options).tolist() == [1]


def test_graham_reads_only_the_kinds_it_is_told_to() -> None:
    kinds = np.array([Kind.WORD, Kind.PAIR], dtype=np.uint8)
    options = GrahamOptions(kinds=int(Kind.WORD))

    found = score(graham, counts_of((0, 9), (9, 0)), kinds, TEN, options)

    assert found == pytest.approx(log(0.05 / 9.05))


# Multinomial and Fisher


def test_both_read_only_the_kinds_they_are_told_to() -> None:
    kinds = np.array([Kind.WORD, Kind.PAIR], dtype=np.uint8)
    once, only = np.ones(2, dtype=np.uint8), int(Kind.WORD)
    counts, first = counts_of((0, 9), (9, 0)), counts_of((0, 9))

    told = MultinomialOptions(kinds=only)
    alone = score(multinomial, first, once[:1], kinds[:1], TEN, MultinomialOptions())
    assert score(multinomial, counts, once, kinds, TEN, told) == pytest.approx(alone)

    alone = score(fisher, first, kinds[:1], TEN, FisherOptions())
    assert score(fisher, counts, kinds, TEN, FisherOptions(kinds=only)) == pytest.approx(alone)


# Multinomial


@pytest.mark.parametrize("smoothing", [0.01, 0.5, 1.0])
def test_multinomial_equals_scikit_learn_over_occurrences(smoothing: float) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 4, size=(60, 30))
    y = rng.integers(0, 2, size=60)
    spam, ham = x[y == 1], x[y == 0]
    cells = np.stack(
        [(spam > 0).sum(0), (ham > 0).sum(0), spam.sum(0), ham.sum(0), np.zeros(30)], axis=1
    )
    totals = Totals(
        spam=len(spam),
        ham=len(ham),
        spam_occurrences=int(spam.sum()),
        ham_occurrences=int(ham.sum()),
        vocabulary=30,
    )
    options = MultinomialOptions(
        smoothing=smoothing, weight=TermWeight.RAW, length=Length.NONE, prior=False
    )
    judge = MultinomialNB(alpha=smoothing, fit_prior=False).fit(x, y)

    for message in rng.integers(0, 4, size=(20, 30)):
        found = score(
            multinomial,
            TokenCounts.of_cells(cells.astype(np.int32)),
            message.astype(np.uint8),
            words(30),
            totals,
            options,
        )
        expected = judge.predict_log_proba([message])[0]
        assert found == pytest.approx(expected[1] - expected[0], abs=1e-9)


def test_the_arithmetic_holds_for_three_classes() -> None:
    rng = np.random.default_rng(11)
    x, y = rng.integers(0, 5, size=(90, 12)), rng.integers(0, 3, size=90)
    sums = np.array([x[y == label].sum(axis=0) for label in range(3)], dtype=np.float64)
    messages = np.bincount(y, minlength=3).astype(np.float64)
    judge = MultinomialNB(alpha=0.3).fit(x, y)

    likelihood = multinomial.log_likelihood(sums, sums.sum(axis=1), 0.3, 12)

    assert likelihood == pytest.approx(judge.feature_log_prob_, abs=1e-9)
    assert multinomial.log_prior(messages, 0.0) == pytest.approx(judge.class_log_prior_, abs=1e-9)


def test_the_smoothed_prior_is_that_of_the_notes() -> None:
    prior = np.exp(multinomial.log_prior(np.array([1.0, 2.0, 4.0]), 1.0))

    assert prior == pytest.approx([2 / 10, 3 / 10, 5 / 10])


def test_maximum_likelihood_stays_finite_for_tokens_of_one_label() -> None:
    options = MultinomialOptions(smoothing=0.0)

    found = score(
        multinomial, counts_of((3, 0), (0, 0)), np.ones(2, dtype=np.uint8), words(2), TEN, options
    )

    assert 10 < found < 100


def test_a_binary_weight_counts_messages_as_coins() -> None:
    options = MultinomialOptions(smoothing=1.0, length=Length.NONE)

    found = score(
        multinomial, counts_of((8, 1)), np.array([3], dtype=np.uint8), words(1), TEN, options
    )

    assert found == pytest.approx(log((9 / 12) / (2 / 12)))


def test_a_logarithmic_weight_damps_occurrences() -> None:
    raw, damped = (
        score(
            multinomial,
            counts_of((8, 1)),
            np.array([5], dtype=np.uint8),
            words(1),
            TEN,
            MultinomialOptions(weight=weight),
        )
        for weight in (TermWeight.RAW, TermWeight.LOG)
    )

    assert damped / raw == pytest.approx(log(6) / 5)


@pytest.mark.parametrize(
    ("length", "factor"), [(Length.NONE, 1.0), (Length.SQRT, 0.5), (Length.FULL, 0.25)]
)
def test_the_sum_is_divided_by_the_length_wanted(length: Length, factor: float) -> None:
    options = MultinomialOptions(length=length)
    once = np.ones(4, dtype=np.uint8)

    alone = score(multinomial, counts_of((5, 1)), once[:1], words(1), TEN, options)
    four = score(multinomial, counts_of(*[(5, 1)] * 4), once, words(4), TEN, options)

    assert four == pytest.approx(4 * factor * alone)


# Fisher


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (".9 .2 .21 .89 .2 .78", 0.572204),
        (".2 .2 .01 .79 .2 .58", 0.0594128),
        (".7 .89 .71 .79 .972 .68", 0.996012),
    ],
)
def test_the_chi_squared_tail_is_that_of_robinsons_examples(tokens: str, expected: float) -> None:
    p = [float(token) for token in tokens.split()]

    tail = exp(fisher.log_chi2_tails(-2 * sum(map(log, p)), len(p))[0])

    assert tail == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("tokens", [1, 3, 30, 500])
@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0, 1.1, 2.0])
def test_both_chi_squared_tails_equal_scipys(tokens: int, ratio: float) -> None:
    statistic = 2 * tokens * ratio

    upper, lower = fisher.log_chi2_tails(statistic, tokens)

    assert upper == pytest.approx(chi2.logsf(statistic, 2 * tokens), rel=1e-9, abs=1e-9)
    assert lower == pytest.approx(chi2.logcdf(statistic, 2 * tokens), rel=1e-9, abs=1e-9)


def test_the_chi_squared_tails_stay_finite_far_out() -> None:
    assert -1e5 < fisher.log_chi2_tails(1e5, 3)[0] < -4e4
    assert -1e5 < fisher.log_chi2_tails(1e-5, 5000)[1] < -4e4
    assert fisher.log_chi2_tails(10.0, 5000)[0] == pytest.approx(0.0)


def test_robinsons_f_pulls_rare_tokens_to_x() -> None:
    options = FisherOptions(strength=1.0, unknown=0.5)

    f = fisher.smoothed(counts_of((1, 0), (9, 0), (0, 0)), TEN, options)

    assert f.tolist() == pytest.approx([0.75, 9.5 / 10, 0.5])


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), max_size=40))
def test_fisher_is_mirrored_when_ham_and_spam_swap(pairs: list[tuple[int, int]]) -> None:
    options = FisherOptions(unknown=0.5)
    forth, back = counts_of(*pairs), counts_of(*((h, s) for s, h in pairs))

    mirrored = -score(fisher, back, words(len(pairs)), TEN, options)

    assert score(fisher, forth, words(len(pairs)), TEN, options) == pytest.approx(
        mirrored, abs=1e-6
    )


def test_fisher_is_unsure_without_evidence_and_with_strong_evidence_of_both_kinds() -> None:
    assert fisher.combine(np.zeros(0)) == 0.0
    assert abs(fisher.combine(np.array([0.999] * 20 + [0.001] * 20))) < 1e-3


def test_fisher_is_robinsons_indicator_as_log_odds() -> None:
    p = np.array([0.9, 0.7, 0.6, 0.2])
    h, s = (chi2.sf(-2 * np.log(side).sum(), 2 * len(p)) for side in (p, 1 - p))
    indicator = (1 + h - s) / 2

    assert fisher.combine(p) == pytest.approx(log(indicator / (1 - indicator)))


def test_fisher_ranks_mail_beyond_the_digits_of_the_indicator() -> None:
    assert fisher.combine(np.full(300, 0.999)) > fisher.combine(np.full(200, 0.999)) > 100


# Confidence


def test_the_confidence_factor_is_that_of_its_formula() -> None:
    q = confidence.probabilities(counts_of((9, 1)), TEN, ConfidenceOptions())

    factor = ((8**2 - 0.25 / 10) / 10**2) ** 6 / (1 + 3.5 / 10)
    assert q.tolist() == pytest.approx([0.5 + factor * 0.4])


def test_rates_are_compared_and_lessons_without_the_token_make_it_no_better_known() -> None:
    q = confidence.probabilities(counts_of((4, 2)), Totals(spam=5, ham=10), ConfidenceOptions())
    factor = (0.6**2 - 0.25 / 6**3) ** 6 / (1 + 3.5 / 6)
    assert q.tolist() == pytest.approx([0.5 + factor * 0.3])

    few, many = (
        confidence.probabilities(counts_of((4, 0)), Totals(spam=5, ham=ham), ConfidenceOptions())
        for ham in (10, 1000)
    )
    assert few.tolist() == many.tolist()


def test_rare_common_and_unseen_tokens_are_hardly_believed() -> None:
    q = confidence.probabilities(
        counts_of((9, 0), (1, 0), (9, 5), (0, 0)), TEN, ConfidenceOptions()
    )

    sure, rare, common, unseen = (abs(value - 0.5) for value in q.tolist())
    assert sure > 2 * rare > 20 * common > unseen == 0


@pytest.mark.parametrize("limit", [0.5, 1.0, 2.0])
def test_a_token_speaks_for_ham_up_to_the_limit_and_for_spam_without_one(limit: float) -> None:
    many = Totals(spam=1000, ham=1000)
    counts = counts_of((0, 900), (900, 0), (0, 1))

    parts = confidence.contributions(counts, words(3), many, ConfidenceOptions(limit=limit))

    free = confidence.contributions(counts, words(3), many, ConfidenceOptions(limit=1e9))
    assert parts.tolist() == pytest.approx([-limit / 3, free[1], free[2]])
    assert free[0] == pytest.approx(-free[1])
    assert free[1] > limit / 3


def test_confidence_is_per_token_and_reads_the_kinds_wanted() -> None:
    kinds = np.array([Kind.WORD, Kind.PAIR], dtype=np.uint8)

    other = ConfidenceOptions(exponent=6.0000001)
    assert score(confidence, counts_of((9, 1)), words(1), TEN, other) == pytest.approx(
        score(confidence, counts_of((9, 1)), words(1), TEN, ConfidenceOptions())
    )
    both = score(confidence, counts_of((9, 0), (9, 0)), words(2), TEN, ConfidenceOptions())
    one = score(
        confidence, counts_of((9, 0), (0, 9)), kinds, TEN, ConfidenceOptions(kinds=int(Kind.WORD))
    )

    assert both == pytest.approx(2 * one)


# Logistic


def test_a_step_of_a_lesson_moves_its_own_score_by_the_rate() -> None:
    options = LogisticOptions(rate=8.0)

    step = logistic.step(0.0, 100, Label.SPAM, 0, options)

    assert logistic.score(np.full(100, step, dtype=np.int32)) == pytest.approx(4.0, abs=1e-3)


def test_a_lesson_beyond_the_margin_teaches_nothing() -> None:
    options = GramsOptions(margin=2.0)

    assert logistic.step(2.5, 100, Label.SPAM, 0, options) == 0
    assert logistic.step(-2.5, 100, Label.HAM, 0, options) == 0
    assert logistic.step(2.5, 100, Label.HAM, 0, options) < 0


def test_steps_grow_finer_with_the_lessons_learned() -> None:
    options = LogisticOptions(rate=16.0, steady=4.0, settle=1000)

    steps = [logistic.step(0.0, 1, Label.SPAM, lessons, options) for lessons in (0, 1000, 10**9)]

    assert [step / 65536 for step in steps] == pytest.approx([8.0, 5.0, 2.0], abs=1e-3)


def test_a_message_without_features_scores_nothing_and_teaches_nothing() -> None:
    assert logistic.score(np.zeros(0, dtype=np.int32)) == 0.0
    assert logistic.step(0.0, 0, Label.SPAM, 0, LogisticOptions()) == 0


# All


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=60),
    st.sampled_from([0.0, 0.01, 1.0]),
)
def test_scores_are_finite_for_any_counts(pairs: list[tuple[int, int]], smoothing: float) -> None:
    size, counts = len(pairs), counts_of(*pairs)
    totals = Totals(spam=10**6, ham=10**6, spam_occurrences=1, ham_occurrences=0, vocabulary=1)

    for weight in TermWeight:
        options = MultinomialOptions(smoothing=smoothing, weight=weight)
        once = np.ones(size, dtype=np.uint8)
        assert np.isfinite(score(multinomial, counts, once, words(size), totals, options))
    assert np.isfinite(score(graham, counts, words(size), totals, GrahamOptions()))
    assert np.isfinite(score(fisher, counts, words(size), totals, FisherOptions()))
    assert np.isfinite(score(confidence, counts, words(size), totals, ConfidenceOptions()))


@given(st.integers(0, 9), st.integers(1, 10))
def test_each_classifier_grows_with_the_spam_count_of_a_token(spam: int, ham: int) -> None:
    low, high = counts_of((spam, ham), (3, 3)), counts_of((spam + 1, ham), (3, 3))
    once = np.ones(2, dtype=np.uint8)
    open_fisher = FisherOptions(minimum_deviation=0.0)

    assert score(multinomial, low, once, words(2), TEN, MultinomialOptions()) <= score(
        multinomial, high, once, words(2), TEN, MultinomialOptions()
    )
    assert score(graham, low, words(2), TEN, GrahamOptions(minimum_count=0)) <= score(
        graham, high, words(2), TEN, GrahamOptions(minimum_count=0)
    )
    assert score(fisher, low, words(2), TEN, open_fisher) <= score(
        fisher, high, words(2), TEN, open_fisher
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GrahamOptions(words=0), "words"),
        (lambda: GrahamOptions(low=0.6), "low"),
        (lambda: GrahamOptions(ham_bias=0), "ham_bias"),
        (lambda: GrahamOptions(strength=-1), "strength"),
        (lambda: GrahamOptions(prior=1.0), "prior"),
        (lambda: MultinomialOptions(smoothing=-1), "smoothing"),
        (lambda: FisherOptions(strength=0), "strength"),
        (lambda: FisherOptions(unknown=0), "unknown"),
        (lambda: FisherOptions(minimum_deviation=0.5), "minimum_deviation"),
        (lambda: ConfidenceOptions(rarity=-1), "rarity"),
        (lambda: ConfidenceOptions(exponent=0), "exponent"),
        (lambda: ConfidenceOptions(limit=0), "limit"),
        (lambda: LogisticOptions(rate=0), "rate"),
        (lambda: LogisticOptions(steady=20), "steady"),
        (lambda: GramsOptions(margin=-1), "margin"),
    ],
)
def test_an_impossible_option_is_refused_by_name(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("options", [LogisticOptions(), GramsOptions()])
def test_the_steps_are_those_of_the_formula_with_the_documented_defaults(
    options: LogisticOptions,
) -> None:
    for z, features, label, lessons in [
        (0.3, 7, Label.SPAM, 0),
        (-1.9, 50, Label.SPAM, 400),
        (1.9, 50, Label.SPAM, 1000),
        (2.0, 4, Label.SPAM, 9000),
        (-2.0, 4, Label.HAM, 0),
        (5.0, 3, Label.HAM, 2500),
        (0.0, 1, Label.HAM, 10**6),
    ]:
        y = float(label is Label.SPAM)
        rate = 4 + 12 / (1 + lessons / 1000)
        exact = rate * (y - probability(z)) / features**0.5 * 65536
        assert logistic.step(z, features, label, lessons, options) == pytest.approx(exact, abs=0.51)
    assert logistic.step(2.01, 7, Label.SPAM, 0, options) == 0
    assert logistic.step(-2.01, 7, Label.HAM, 0, options) == 0


def test_the_score_is_the_mean_weight_times_the_root_of_the_length() -> None:
    weights = np.array([65536, -16384, 32768, 0], dtype=np.int32)

    assert logistic.score(weights) == pytest.approx((1 - 0.25 + 0.5) / 2)
    assert logistic.score(weights[:1]) == 1.0


@pytest.mark.parametrize("z", [-800.0, -3.0, 0.0, 0.7, 800.0])
def test_the_sigmoid_is_the_logistic_function_without_overflow(z: float) -> None:
    exact = 0.0 if z < -700 else 1 / (1 + exp(-z))

    assert logistic.sigmoid(z) == pytest.approx(exact, abs=1e-15)


def test_a_gram_has_the_slot_of_its_lowest_bits() -> None:
    grams = np.array([0, 5, (1 << 20) + 5, 0xFFFFFFFF], dtype=np.uint32)

    assert logistic.slots(grams, 1 << 20).tolist() == [0, 5, 5, (1 << 20) - 1]
    assert logistic.slots(grams, 4).tolist() == [0, 1, 1, 3]
    assert logistic.GRAM_SLOTS == 1 << 20


def test_the_prior_of_nothing_without_smoothing_is_finite() -> None:
    assert multinomial.log_prior(np.zeros(2), 0.0).tolist() == pytest.approx([log(1e-12)] * 2)
