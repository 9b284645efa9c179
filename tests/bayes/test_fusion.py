import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]  # no stubs of its own

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.fusion import CLASSIFIERS, SCALES, FusionOptions, FusionWeights, ScoreHistory, fit
from spamd.sample import Label

FEW = FusionOptions()


def history_of(scores: list[list[float]], labels: list[Label], window: int = 3000) -> ScoreHistory:
    history = ScoreHistory(window)
    for number, (row, label) in enumerate(zip(scores, labels, strict=True)):
        history.append(b"%d" % number, label, row)
    return history


def test_without_lessons_the_fusion_is_its_default() -> None:
    weights = fit(ScoreHistory(), FEW)

    assert weights.values.tolist() == FusionWeights.default().values.tolist()


def test_without_lessons_agreeing_classifiers_are_believed_and_silent_ones_are_not() -> None:
    default = FusionWeights.default()

    assert sigmoid(default.log_odds(np.full(len(CLASSIFIERS), 1e6))) > 0.99
    assert sigmoid(default.log_odds(np.full(len(CLASSIFIERS), -1e6))) < 0.01
    assert sigmoid(default.log_odds(np.zeros(len(CLASSIFIERS)))) == 0.5


def test_few_lessons_keep_the_fusion_near_its_default() -> None:
    history = history_of([[1.0] * len(CLASSIFIERS)] * 3, [Label.HAM] * 3)

    moved = fit(history, FEW).values - FusionWeights.default().values

    assert 0.01 < np.abs(moved).max() < 1.5


def test_the_fusion_learns_which_classifier_to_trust() -> None:
    rng = np.random.default_rng(3)
    labels = [Label.SPAM if spam else Label.HAM for spam in rng.integers(0, 2, 1000)]
    right = [[1.0 if label is Label.SPAM else -1.0] for label in labels]
    scores = [row * 3 + rng.normal(0, 60, len(CLASSIFIERS) - 3).tolist() for row in right]

    weights = fit(history_of(scores, labels), FEW).values[1:]

    assert weights[:3].min() > 2 * np.abs(weights[3:]).max()


def test_the_fusion_is_calibrated_on_what_it_saw() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(0, 1, 3000)
    labels = [
        Label.SPAM if draw < sigmoid(3 * value) else Label.HAM
        for draw, value in zip(rng.random(3000), z, strict=True)
    ]
    history = history_of([(value * SCALES).tolist() for value in z], labels)
    weights = fit(history, FEW)

    said = np.array([sigmoid(weights.log_odds(row)) for row in history.scores])

    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        band = (said >= low) & (said < low + 0.2)
        assert history.spam[band].mean() == pytest.approx(said[band].mean(), abs=0.06)


def mislabelled(share: float, number: int = 3000) -> tuple[ScoreHistory, list[Label]]:
    """Return lessons of which a share has the wrong label, and their true labels."""
    rng = np.random.default_rng(11)
    truth = [Label.SPAM if spam else Label.HAM for spam in rng.random(number) < 0.4]
    scores = [
        (rng.normal(1.0 if label is Label.SPAM else -1.0, 0.6, len(CLASSIFIERS)) * SCALES).tolist()
        for label in truth
    ]
    other = {Label.SPAM: Label.HAM, Label.HAM: Label.SPAM}
    wrong = rng.random(number) < share
    labels = [other[label] if flip else label for label, flip in zip(truth, wrong, strict=True)]
    return history_of(scores, labels), truth


def test_with_wrong_labels_the_probability_is_that_of_the_true_one() -> None:
    history, truth = mislabelled(0.05)
    spam = np.array([label is Label.SPAM for label in truth])

    weights = fit(history, FEW)
    trusting = fit(history, FusionOptions(wrong_labels=0.0))

    said = np.array([sigmoid(weights.log_odds(row)) for row in history.scores])
    believed = np.array([sigmoid(trusting.log_odds(row)) for row in history.scores])
    assert np.median(said[spam]) > 0.999
    assert np.median(believed[spam]) < 0.99
    assert (said[~spam] > 0.97).mean() < 0.001


def test_of_true_labels_few_are_taken_for_wrong() -> None:
    history, _ = mislabelled(0.0)

    doubting = fit(history, FEW).values
    trusting = fit(history, FusionOptions(wrong_labels=0.0)).values

    assert doubting == pytest.approx(trusting, rel=0.05, abs=0.05)


def test_labels_without_sense_teach_no_weights() -> None:
    """They are no sign of wrong labels: as many would be wrong as right."""
    rng = np.random.default_rng(12)
    scores = (rng.normal(0, 1, (3000, len(CLASSIFIERS))) * SCALES).tolist()
    labels = [Label.SPAM if spam else Label.HAM for spam in rng.random(3000) < 0.5]

    assert np.abs(fit(history_of(scores, labels), FEW).values).max() < 0.5


def test_the_fit_is_a_function_of_the_lessons_in_the_window() -> None:
    rng = np.random.default_rng(8)
    scores = rng.normal(0, 20, (50, len(CLASSIFIERS))).tolist()
    labels = [Label.SPAM if row[0] > 0 else Label.HAM for row in scores]

    long = history_of(scores, labels, window=20)
    short = history_of(scores[30:], labels[30:], window=20)

    assert fit(long, FEW).values.tolist() == fit(short, FEW).values.tolist()


def test_the_window_forgets_its_oldest_lesson() -> None:
    history = history_of(
        [[float(i)] * len(CLASSIFIERS) for i in range(50)], [Label.HAM] * 50, window=7
    )

    assert history.keys == tuple(b"%d" % i for i in range(43, 50))
    assert history.scores[:, 0].tolist() == [43, 44, 45, 46, 47, 48, 49]


def test_a_lesson_taken_back_leaves_the_history_and_no_other_does() -> None:
    history = history_of(
        [[float(i)] * len(CLASSIFIERS) for i in range(5)],
        [Label.HAM, Label.SPAM, Label.HAM, Label.SPAM, Label.SPAM],
    )

    history.remove(b"1", Label.SPAM, np.full(len(CLASSIFIERS), 1.0))
    history.remove(b"2", Label.SPAM, np.full(len(CLASSIFIERS), 2.0))

    assert history.keys == (b"0", b"2", b"3", b"4")
    assert history.scores[:, 0].tolist() == [0, 2, 3, 4]
    assert history.spam.tolist() == [False, False, True, True]


def test_scores_of_an_earlier_set_of_classifiers_are_filled_up_with_silence() -> None:
    history = ScoreHistory()
    history.append(b"", Label.HAM, [1.0, 2.0])

    assert history.scores[0].tolist() == [1.0, 2.0] + [0.0] * (len(CLASSIFIERS) - 2)


def test_stored_weights_come_back_and_those_of_another_set_of_classifiers_do_not() -> None:
    values = np.arange(len(CLASSIFIERS) + 1, dtype=np.float64).tolist()

    assert FusionWeights.of(values, 9).values.tolist() == values
    assert FusionWeights.of([1.0, 2.0], 9).lessons == 0
    assert FusionWeights.of([np.nan] * len(values), 9).lessons == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"classifiers": ("graham", "oracle")}, "graham, multinomial"),
        ({"classifiers": ()}, "classifiers"),
        ({"refit_every": 0}, "refit_every"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"wrong_labels": 0.3}, "wrong_labels"),
        ({"wrong_labels": -0.1}, "wrong_labels"),
    ],
)
def test_an_impossible_option_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FusionOptions(**values)  # type: ignore[arg-type]  # the point of the test


LITERALLY = {
    "scales": np.array([100.0, 40.0, 60.0, 0.15, 5.5, 6.0, 20.0, 20.0]),
    "defaults": np.array([0.0, 1.0, 0.8, 1.2, 3.0, 2.4, 2.4, 0.0, 0.4]),
    "pulls": np.array([0.4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 20.0, 1.0]),
}
"""The constants of E-005 and E-010: another value is another filter, to be measured first."""


def regression(
    x: NDArray[np.float64], degree: NDArray[np.float64], rho: float
) -> NDArray[np.float64]:
    """The weights by scipy's minimiser: labels true to a degree, ρ/2·Σ k(w − w⁰)² beside."""

    def objective(w: NDArray[np.float64]) -> float:
        z = x @ w
        lost = degree @ np.logaddexp(0, -z) + (1 - degree) @ np.logaddexp(0, z)
        moved = w - LITERALLY["defaults"]
        return float(lost + rho / 2 * (LITERALLY["pulls"] @ moved**2))

    found = minimize(objective, LITERALLY["defaults"], method="L-BFGS-B", tol=1e-14)
    return np.asarray(found.x)


def inputs(history: ScoreHistory) -> NDArray[np.float64]:
    flattened = np.tanh(history.scores / LITERALLY["scales"])
    return np.concatenate([np.ones((len(history), 1)), flattened], axis=1)


@pytest.mark.parametrize("rho", [2.0, 10.0])
@pytest.mark.parametrize("lessons", [3, 60, 400])
def test_the_weights_minimise_the_printed_objective(lessons: int, rho: float) -> None:
    history, _ = mislabelled(0.1, lessons)

    found = fit(history, FusionOptions(wrong_labels=0.0, regularisation=rho))

    expected = regression(inputs(history), history.spam.astype(float), rho)
    assert found.values == pytest.approx(expected, abs=2e-4)
    assert found.lessons == lessons


@pytest.mark.parametrize(("wrongly", "supposed"), [(0.08, 0.01), (0.3, 0.2)])
def test_wrong_labels_are_estimated_by_ten_rounds_of_expectation_and_maximisation(
    wrongly: float, supposed: float
) -> None:
    history, _ = mislabelled(wrongly, 500)
    x, spam = inputs(history), history.spam

    w, share = regression(x, spam.astype(float), 10.0), 0.02
    for _ in range(10):
        right = 1 / (1 + np.exp(-np.where(spam, 1, -1) * (x @ w)))
        wrong = share * (1 - right) / (share * (1 - right) + (1 - share) * right)
        before, share = share, min(0.2, (wrong.sum() + 500 * supposed) / (len(spam) + 500))
        w = regression(x, np.where(spam, 1 - wrong, wrong), 10.0)
        if abs(share - before) < 1e-5:
            break

    found = fit(history, FusionOptions(wrong_labels=supposed))
    assert found.values == pytest.approx(w, abs=2e-3)


def test_without_lessons_the_weights_are_the_default_ones() -> None:
    found = fit(ScoreHistory(), FusionOptions())

    assert found.values.tolist() == LITERALLY["defaults"].tolist()
    assert found.lessons == 0
    assert FusionWeights.default().values.tolist() == LITERALLY["defaults"].tolist()
    assert SCALES.tolist() == LITERALLY["scales"].tolist()


def test_the_log_odds_are_the_bias_and_the_flattened_scores_by_their_weights() -> None:
    weights = FusionWeights.of([0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 7)
    scores = np.array([50.0, -40.0, 0.0, 0.3, 1.1, -6.0, 2.0, 400.0])

    parts = np.tanh(scores / LITERALLY["scales"]) * np.arange(1.0, 9.0)
    assert weights.effects(scores) == pytest.approx(parts)
    assert weights.log_odds(scores) == pytest.approx(0.5 + parts.sum())
    both = weights.probabilities(np.array([scores, -scores]))
    assert both == pytest.approx([sigmoid(0.5 + parts.sum()), sigmoid(0.5 - parts.sum())])


def test_the_documented_defaults_hold() -> None:
    options = FusionOptions()

    assert (options.refit_every, options.window, options.regularisation) == (50, 3000, 10.0)
    assert (options.wrong_labels, options.classifiers) == (0.01, CLASSIFIERS)
    assert ScoreHistory().window == 3000
    assert " ".join(CLASSIFIERS) == (
        "graham multinomial fisher confidence logistic grams facts dependence"
    )


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_window_holds_its_newest_lessons_however_many_come(window: int) -> None:
    for lessons in range(4 * window + 2):
        history = history_of(
            [[float(i)] * len(CLASSIFIERS) for i in range(lessons)],
            [Label.SPAM if i % 3 else Label.HAM for i in range(lessons)],
            window=window,
        )
        kept = list(range(lessons))[-window:]
        assert len(history) == len(kept)
        assert history.scores[:, -1].tolist() == kept
        assert history.spam.tolist() == [i % 3 > 0 for i in kept]
        assert history.keys == tuple(b"%d" % i for i in kept)


def test_of_lessons_with_one_key_that_with_the_same_label_and_scores_is_taken_back() -> None:
    history = ScoreHistory()
    for label, score in [(Label.HAM, 1.0), (Label.SPAM, 2.0), (Label.SPAM, 1.0), (Label.HAM, 1.0)]:
        history.append(b"key", label, [score] * len(CLASSIFIERS))

    history.remove(b"key", Label.SPAM, np.full(len(CLASSIFIERS), 1.0))
    assert history.scores[:, 0].tolist() == [1.0, 2.0, 1.0]
    assert history.spam.tolist() == [False, True, False]
    history.remove(b"key", Label.SPAM, np.full(len(CLASSIFIERS), 1.0))
    assert len(history) == 3
    history.remove(b"other", Label.HAM, np.full(len(CLASSIFIERS), 1.0))
    assert len(history) == 3
    history.remove(b"key", Label.HAM, np.full(len(CLASSIFIERS), 1.0))
    assert history.spam.tolist() == [True, False]


def test_scores_of_a_later_set_of_classifiers_are_cut_and_old_ones_leave_no_trace() -> None:
    history = ScoreHistory(window=2)
    for number in range(5):
        history.append(b"%d" % number, Label.HAM, [float(number)] * 20)
    history.append(b"short", Label.HAM, [9.0])

    assert history.scores.tolist() == [[4.0] * 8, [9.0, *[0.0] * 7]]
