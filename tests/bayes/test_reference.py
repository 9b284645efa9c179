"""The classifiers over tokens against a second implementation, with every option moved."""

from collections.abc import Mapping
from dataclasses import astuple
from math import log
from typing import Any

import numpy as np
import pytest

from spamd.bayes.batch import Batch
from spamd.bayes.classifiers import confidence, fisher, graham, multinomial
from spamd.bayes.classifiers.confidence import ConfidenceOptions
from spamd.bayes.classifiers.fisher import FisherOptions
from spamd.bayes.classifiers.graham import Counting, GrahamOptions, GrahamRule
from spamd.bayes.classifiers.multinomial import Length, MultinomialOptions, TermWeight
from spamd.bayes.counts import TokenCounts, Totals
from spamd.sample import Kind, Sample
from tests.bayes import reference
from tests.bayes.reference import Token, Trained

MOMENTS = (
    Trained(spam=40, ham=25, spam_times=900, ham_times=700, vocabulary=300),
    Trained(spam=7, ham=90, spam_times=200, ham_times=2500, vocabulary=500),
    Trained(spam=13, ham=17, spam_times=310, ham_times=290, vocabulary=200),
)


def messages(tokens: int = 60) -> list[tuple[Token, ...]]:
    """A message for each moment; some tokens occur in it more often than there are messages."""
    rng = np.random.default_rng(5)
    made = []
    for trained in MOMENTS:
        found = [
            Token(spam=0, ham=0, spam_times=0, ham_times=0),
            Token(spam=1, ham=0, spam_times=1, ham_times=0),
            Token(spam=0, ham=1, spam_times=0, ham_times=3),
            Token(spam=trained.spam, ham=0, spam_times=3 * trained.spam, ham_times=0, times=4),
            Token(spam=0, ham=trained.ham, spam_times=0, ham_times=2 * trained.ham),
            Token(spam=trained.spam, ham=trained.ham, spam_times=99, ham_times=99),
        ]
        for _ in range(tokens - len(found)):
            spam, ham = int(rng.integers(trained.spam + 1)), int(rng.integers(trained.ham + 1))
            times = spam * int(rng.integers(1, 4)), ham * int(rng.integers(1, 4))
            occurs = int(rng.integers(1, 9))
            found.append(
                Token(spam=spam, ham=ham, spam_times=times[0], ham_times=times[1], times=occurs)
            )
        made.append(tuple(found))
    return made


MESSAGES = messages()


def totals_of(trained: Trained) -> Totals:
    return Totals(
        spam=trained.spam,
        ham=trained.ham,
        spam_occurrences=trained.spam_times,
        ham_occurrences=trained.ham_times,
        vocabulary=trained.vocabulary,
    )


def counts_of(tokens: tuple[Token, ...]) -> TokenCounts:
    return TokenCounts.of_cells(
        np.array([[*astuple(token)[:4], 0] for token in tokens], dtype=np.int32)
    )


def times_of(tokens: tuple[Token, ...]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.array([token.times for token in tokens], dtype=np.uint8)


def scores(classifier: Any, options: Any) -> list[float]:
    """The score of each message alone; it is the same where all are one batch."""
    kinds = [np.full(len(tokens), Kind.WORD, dtype=np.uint8) for tokens in MESSAGES]
    alone = [
        classifier.scores(
            Batch.of_one(counts_of(tokens), times_of(tokens), kind, totals_of(trained)), options
        )[0]
        for tokens, kind, trained in zip(MESSAGES, kinds, MOMENTS, strict=True)
    ]
    samples = [
        Sample(
            ids=np.arange(len(tokens)),
            occurrences=times_of(tokens),
            kinds=kind,
            discrete=np.zeros(0, dtype=np.uint8),
            continuous=np.zeros(0, dtype=np.int64),
            grams=np.zeros(0, dtype=np.uint32),
        )
        for tokens, kind in zip(MESSAGES, kinds, strict=True)
    ]
    together = TokenCounts.of_cells(np.concatenate([counts_of(one).cells for one in MESSAGES]))
    batch = Batch.of(together, samples, [totals_of(trained) for trained in MOMENTS])
    assert classifier.scores(batch, options) == pytest.approx(alone, rel=1e-12)
    return alone


GRAHAM: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"words": 7}, {"words": 7}),
    ({"words": 60}, {"words": 60}),
    ({"low": 0.02, "high": 0.9}, {"low": 0.02, "high": 0.9}),
    ({"ham_bias": 2.0}, {"bias": 2.0}),
    ({"ham_bias": 0.5}, {"bias": 0.5}),
    ({"unknown": 0.4, "minimum_count": 5.0}, {"unknown": 0.4, "minimum": 5.0}),
    ({"strength": 2.5, "unknown": 0.3}, {"strength": 2.5, "unknown": 0.3}),
    ({"strength": 0.0, "minimum_count": 0.0}, {"strength": 0.0, "minimum": 0.0}),
    ({"counting": Counting.OCCURRENCES}, {"occurrences": True}),
    (
        {"counting": Counting.OCCURRENCES, "ham_bias": 2.0, "strength": 0.0},
        {"occurrences": True, "bias": 2.0, "strength": 0.0},
    ),
    ({"rule": GrahamRule.BETTER_2003}, {"better": True}),
    ({"rule": GrahamRule.BETTER_2003, "strength": 0.0}, {"better": True, "strength": 0.0}),
    ({"prior": 0.2}, {"prior": 0.2}),
    ({"word_prior": 0.2}, {"word_prior": 0.2}),
    ({"prior": 0.7, "word_prior": 0.7}, {"prior": 0.7, "word_prior": 0.7}),
]


@pytest.mark.parametrize(("given", "formula"), GRAHAM)
def test_graham_equals_the_printed_formulas(
    given: Mapping[str, Any], formula: Mapping[str, Any]
) -> None:
    options = GrahamOptions(**given)
    word_prior = formula.get("word_prior", 0.5)
    per_word = {name: value for name, value in formula.items() if name not in {"words", "prior"}}
    per_word.pop("word_prior", None)

    expected = []
    for tokens, trained in zip(MESSAGES, MOMENTS, strict=True):
        p = [
            reference.graham_probability(token, trained, prior=word_prior, **per_word)
            for token in tokens
        ]
        found = graham.probabilities(counts_of(tokens), totals_of(trained), options)
        assert found.tolist() == pytest.approx(p, rel=1e-12)
        combined = {name: formula[name] for name in ("words", "prior") if name in formula}
        expected.append(
            reference.graham(list(zip(p, tokens, strict=True)), word_prior=word_prior, **combined)
        )
    assert scores(graham, options) == pytest.approx(expected, rel=1e-9)


def test_a_word_follows_bayes_rule_with_any_prior() -> None:
    # note 004 eq. (5): 3 of 10 spam and 1 of 20 ham hold the word, one message in five is spam.
    word = counts_of((Token(spam=3, ham=1, spam_times=3, ham_times=1),))
    options = GrahamOptions(word_prior=0.2, strength=0.0)

    p = graham.probabilities(word, Totals(spam=10, ham=20), options)

    assert p.tolist() == pytest.approx([(0.3 * 0.2) / (0.3 * 0.2 + 0.05 * 0.8)])


def test_a_word_that_occurs_more_often_than_there_are_messages_counts_as_in_all_of_them() -> None:
    # 30 occurrences in 10 spam, 5 in 10 ham: 1 and ½, not 3 and ½. And the same for ham.
    words = counts_of(
        (
            Token(spam=10, ham=5, spam_times=30, ham_times=5),
            Token(spam=5, ham=10, spam_times=5, ham_times=30),
        )
    )
    options = GrahamOptions(counting=Counting.OCCURRENCES, strength=0.0)

    p = graham.probabilities(words, Totals(spam=10, ham=10), options)

    assert p.tolist() == pytest.approx([1 / 1.5, 0.5 / 1.5])


@pytest.mark.parametrize(
    "trained", [Totals(spam=0, ham=9), Totals(spam=9, ham=0), Totals(spam=0, ham=0)]
)
def test_while_one_label_was_never_trained_every_word_is_unknown(trained: Totals) -> None:
    word = counts_of((Token(spam=9, ham=9, spam_times=9, ham_times=9),))

    p = graham.probabilities(word, trained, GrahamOptions(unknown=0.4))

    assert p.tolist() == [0.4]


@pytest.mark.parametrize("probability", [0.0, 1e-12, 1e-9, 0.5, 1 - 1e-9, 1.0])
def test_a_certain_word_and_a_certain_prior_weigh_a_thousand_million_to_one(
    probability: float,
) -> None:
    held = min(max(probability, 1e-9), 1 - 1e-9)
    alone = np.array([probability])

    assert graham.logit(probability) == pytest.approx(log(held / (1 - held)))
    assert graham.combine(alone) == pytest.approx(log(held / (1 - held)))
    assert graham.combine(np.zeros(0), prior=0.2) == pytest.approx(log(0.2 / 0.8))


def test_words_of_another_kind_are_left_out_before_the_best_are_chosen() -> None:
    counts = counts_of(tuple(Token(spam=s, ham=0, spam_times=s, ham_times=0) for s in (9, 3, 2)))
    kinds = np.array([Kind.LINK, Kind.WORD, Kind.WORD], dtype=np.uint8)
    options = GrahamOptions(kinds=int(Kind.WORD), words=2)
    p = graham.probabilities(counts, Totals(spam=10, ham=10), options)

    assert sorted(graham.choose(p, counts, kinds, options).tolist()) == [1, 2]
    exact = GrahamOptions(kinds=int(Kind.WORD), words=3)
    assert sorted(graham.choose(p, counts, kinds, exact).tolist()) == [1, 2]


def test_a_word_at_one_half_is_still_read() -> None:
    counts = counts_of((Token(spam=0, ham=0, spam_times=0, ham_times=0),))
    kinds = np.array([Kind.WORD], dtype=np.uint8)

    assert graham.choose(np.array([0.5]), counts, kinds, GrahamOptions()).tolist() == [0]


FISHER: list[dict[str, Any]] = [{}, {"strength": 1.0}, {"unknown": 0.2}, {"minimum_deviation": 0.1}]


@pytest.mark.parametrize("given", FISHER)
def test_fisher_equals_the_printed_formulas(given: dict[str, Any]) -> None:
    options = FisherOptions(**given)
    per_word = {name: given[name] for name in ("strength", "unknown") if name in given}
    deviation = {"deviation": given["minimum_deviation"]} if "minimum_deviation" in given else {}

    expected = []
    for tokens, trained in zip(MESSAGES, MOMENTS, strict=True):
        p = [reference.fisher_probability(token, trained, **per_word) for token in tokens]
        found = fisher.smoothed(counts_of(tokens), totals_of(trained), options)
        assert found.tolist() == pytest.approx(p, rel=1e-12)
        seen = [f for f, token in zip(p, tokens, strict=True) if token.spam + token.ham]
        expected.append(reference.fisher(seen, **deviation))
    assert scores(fisher, options) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("p", "told"), [(0.9, True), (0.1, True), (0.875, True), (0.87, False)])
def test_a_token_speaks_for_fisher_from_the_least_deviation_on(p: float, told: bool) -> None:  # noqa: FBT001
    counts = counts_of((Token(spam=1, ham=1, spam_times=1, ham_times=1),))
    kinds = np.array([Kind.WORD], dtype=np.uint8)

    assert fisher.chosen(np.array([p]), counts, kinds, FisherOptions()).tolist() == [told]


def test_fisher_leaves_out_a_token_never_seen_however_telling_the_prior() -> None:
    counts = counts_of((Token(spam=0, ham=0, spam_times=0, ham_times=0),))
    kinds = np.array([Kind.WORD], dtype=np.uint8)

    assert not fisher.chosen(np.array([0.99]), counts, kinds, FisherOptions()).any()


CONFIDENCE: list[dict[str, Any]] = [
    {},
    {"spread": 3.0},
    {"exponent": 2.5},
    {"exponent": 7.0},
    {"rarity": 20.0},
    {"limit": 0.4},
]


@pytest.mark.parametrize("given", CONFIDENCE)
def test_confidence_equals_the_printed_formulas(given: dict[str, Any]) -> None:
    options = ConfidenceOptions(**given)
    per_word = {name: value for name, value in given.items() if name != "limit"}
    limit = {"limit": given["limit"]} if "limit" in given else {}

    expected = []
    for tokens, trained in zip(MESSAGES, MOMENTS, strict=True):
        q = [reference.confidence_probability(token, trained, **per_word) for token in tokens]
        found = confidence.probabilities(counts_of(tokens), totals_of(trained), options)
        assert found.tolist() == pytest.approx(q, rel=1e-12)
        expected.append(reference.confidence(q, **limit))
    assert scores(confidence, options) == pytest.approx(expected, rel=1e-9)


MULTINOMIAL: list[dict[str, Any]] = [
    {"smoothing": smoothing, "weight": weight, "length": length}
    for smoothing in (0.01, 1.0)
    for weight in ("binary", "raw", "log")
    for length in ("none", "sqrt", "n")
]


@pytest.mark.parametrize("given", [{}, *MULTINOMIAL])
def test_multinomial_equals_the_printed_formulas(given: dict[str, Any]) -> None:
    options = MultinomialOptions()
    if given:
        options = MultinomialOptions(
            smoothing=given["smoothing"],
            weight=TermWeight(given["weight"]),
            length=Length(given["length"]),
        )

    expected = [
        reference.multinomial(tokens, trained, **given)
        for tokens, trained in zip(MESSAGES, MOMENTS, strict=True)
    ]
    assert scores(multinomial, options) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("classifier", [graham, fisher, confidence, multinomial])
def test_a_message_without_tokens_has_the_score_of_the_priors(classifier: Any) -> None:
    nothing = np.zeros(0, dtype=np.uint8)
    batch = Batch.of_one(TokenCounts.zeros(0), nothing, nothing, Totals(spam=3, ham=1))
    options = {
        graham: GrahamOptions(prior=0.25),
        fisher: FisherOptions(),
        confidence: ConfidenceOptions(),
        multinomial: MultinomialOptions(smoothing=1.0),
    }[classifier]

    expected = {graham: log(1 / 3), multinomial: log(4 / 2)}.get(classifier, 0.0)
    assert classifier.scores(batch, options) == pytest.approx([expected])


def alone(classifier: Any, token: Token, totals: Totals, options: Any) -> float:
    """The score of a message of one token."""
    kinds, times = np.array([Kind.WORD], dtype=np.uint8), np.ones(1, dtype=np.uint8)
    (found,) = classifier.scores(Batch.of_one(counts_of((token,)), times, kinds, totals), options)
    return float(found)


@pytest.mark.parametrize(
    ("totals", "trained"),
    [
        (Totals(), False),
        (Totals(spam=1), False),
        (Totals(ham=1), False),
        (Totals(spam=1, ham=1), True),
    ],
)
def test_a_moment_is_trained_once_both_labels_were(
    totals: Totals,
    trained: bool,  # noqa: FBT001 - a column of the table
) -> None:
    nothing = np.zeros(0, dtype=np.uint8)

    assert Batch.of_one(TokenCounts.zeros(0), nothing, nothing, totals).trained == [trained]


def test_confidence_stops_a_millionth_from_certainty() -> None:
    options = ConfidenceOptions(rarity=0.0, spread=0.0, exponent=1.0, limit=99.0)
    totals = Totals(spam=100, ham=100)
    sure = log((1 - 1e-6) / 1e-6)

    spam = Token(spam=90, ham=0, spam_times=90, ham_times=0)
    ham = Token(spam=0, ham=90, spam_times=0, ham_times=90)
    assert alone(confidence, spam, totals, options) == pytest.approx(sure)
    assert alone(confidence, ham, totals, options) == pytest.approx(-sure)
    kinds = np.array([Kind.WORD], dtype=np.uint8)
    told = confidence.contributions(counts_of((spam,)), kinds, totals, options)
    assert told.tolist() == pytest.approx([sure])


def test_fisher_of_one_token_is_its_log_odds_to_a_thousand_millionth() -> None:
    # n = 1: H = f and S = 1 − f, so I = f.
    for f in (0.0, 1e-12, 1e-9, 0.3, 0.9, 1.0):
        held = min(max(f, 1e-9), 1 - 1e-9)
        expected = log(held / (1 - held))
        assert fisher.combine(np.array([f])) == pytest.approx(expected, rel=1e-6)


def test_the_chi_squared_tails_of_nothing_and_of_far_out_are_finite() -> None:
    assert fisher.log_chi2_tails(5.0, 0) == (0.0, -1e6)
    assert fisher.log_chi2_tails(0.0, 3) == (0.0, -1e6)
    assert fisher.log_chi2_tails(-1.0, 3) == (0.0, -1e6)
    assert fisher.log_chi2_tails(4e6, 3) == (-1e6, 0.0)


@pytest.mark.parametrize(("spam", "ham", "expected"), [(1, 20_000, 1e-4), (20_000, 1, 0.9999)])
def test_the_rule_of_2003_bounds_words_of_both_labels_too(
    spam: int, ham: int, expected: float
) -> None:
    options = GrahamOptions(rule=GrahamRule.BETTER_2003, strength=0.0)
    word = counts_of((Token(spam=spam, ham=ham, spam_times=spam, ham_times=ham),))

    p = graham.probabilities(word, Totals(spam=20_000, ham=20_000), options)

    assert p.tolist() == [expected]
