import numpy as np
import pytest

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


def mislabelled(share: float) -> tuple[ScoreHistory, list[Label]]:
    """Return lessons of which a share has the wrong label, and their true labels."""
    rng = np.random.default_rng(11)
    truth = [Label.SPAM if spam else Label.HAM for spam in rng.random(3000) < 0.4]
    scores = [
        (rng.normal(1.0 if label is Label.SPAM else -1.0, 0.6, len(CLASSIFIERS)) * SCALES).tolist()
        for label in truth
    ]
    other = {Label.SPAM: Label.HAM, Label.HAM: Label.SPAM}
    wrong = rng.random(3000) < share
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
