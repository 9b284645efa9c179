"""The facts classifier against scikit-learn's CategoricalNB and GaussianNB, three classes."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from spamd.bayes.classifiers.mixed import FactsOptions, log_joint, normalised
from spamd.bayes.factcounts import FactCounts
from spamd.sample import FIXED_POINT, FactSchema

SIZES = (3, 2, 5)
CLASSES = ("0", "1", "2")


def drawn(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, 200)
    discrete = ((random.random((200, 3)) ** (1 + labels[:, None])) * SIZES).astype(np.uint8)
    continuous = random.normal(5 + labels[:, None], 1 + labels[:, None], (200, 2)) * FIXED_POINT
    return discrete, continuous.astype(np.int64), labels


def taught(
    discrete: NDArray[np.uint8], continuous: NDArray[np.int64], labels: NDArray[np.int64]
) -> FactCounts:
    schema = FactSchema(
        discrete=tuple(
            (f"d{j}", tuple(map(str, range(size))))
            for j, size in enumerate(SIZES[: discrete.shape[1]])
        ),
        continuous=tuple(f"c{j}" for j in range(continuous.shape[1])),
    )
    counts = FactCounts(schema, classes=CLASSES)
    for row, numbers, label in zip(discrete, continuous, labels, strict=True):
        counts.add(CLASSES[label], row, numbers)
    return counts


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 3.5])
def test_discrete_facts_agree_with_categorical_naive_bayes(smoothing: float) -> None:
    discrete, continuous, labels = drawn(1)
    counts = taught(discrete, continuous[:, :0], labels)
    options = FactsOptions(smoothing=smoothing, prior_smoothing=0.0)
    model = CategoricalNB(alpha=smoothing, min_categories=SIZES).fit(discrete, labels)
    for x in discrete[:50]:
        ours = log_joint(counts, x, continuous[0, :0], options)
        theirs = model.predict_joint_log_proba(x.reshape(1, -1))[0]
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_continuous_facts_agree_with_gaussian_naive_bayes() -> None:
    discrete, continuous, labels = drawn(2)
    counts = taught(discrete[:, :0], continuous, labels)
    options = FactsOptions(prior_smoothing=0.0, pooled=0.0, variance_floor=1e-12)
    model = GaussianNB(var_smoothing=0.0).fit(continuous / FIXED_POINT, labels)
    for x in continuous[:50]:
        ours = log_joint(counts, discrete[0, :0], x, options)
        theirs = model.predict_joint_log_proba((x / FIXED_POINT).reshape(1, -1))[0]
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_mixed_facts_are_the_product_of_both_without_counting_the_prior_twice() -> None:
    discrete, continuous, labels = drawn(3)
    counts = taught(discrete, continuous, labels)
    options = FactsOptions(prior_smoothing=0.0, pooled=0.0, variance_floor=1e-12)
    categorical = CategoricalNB(alpha=1.0, min_categories=SIZES).fit(discrete, labels)
    gaussian = GaussianNB(var_smoothing=0.0).fit(continuous / FIXED_POINT, labels)
    for x, numbers in zip(discrete[:50], continuous[:50], strict=True):
        both = (
            categorical.predict_joint_log_proba(x.reshape(1, -1))[0]
            + gaussian.predict_joint_log_proba((numbers / FIXED_POINT).reshape(1, -1))[0]
            - np.log(gaussian.class_prior_)
        )
        ours = normalised(log_joint(counts, x, numbers, options))
        assert ours == pytest.approx(normalised(both), abs=1e-9)
