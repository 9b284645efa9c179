"""The multinomial classifier against scikit-learn's MultinomialNB: three classes, and our two."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import MultinomialNB

from spamd.bayes.batch import Batch
from spamd.bayes.classifiers.multinomial import (
    Length,
    MultinomialOptions,
    TermWeight,
    log_likelihood,
    log_prior,
    scores,
)
from spamd.bayes.counts import TokenCounts, Totals

WORDS = 40


def drawn(classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return occurrences of words in messages, and the messages' classes."""
    random = np.random.default_rng(4)
    labels = np.arange(90) % classes
    rates = random.gamma(0.5, 2.0, (classes, WORDS))
    return random.poisson(rates[labels]), labels


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 2.5])
def test_three_classes_agree_on_every_likelihood_and_prior(smoothing: float) -> None:
    occurrences, labels = drawn(3)
    model = MultinomialNB(alpha=smoothing).fit(occurrences, labels)
    counts = np.array([occurrences[labels == k].sum(axis=0) for k in range(3)], dtype=np.float64)
    ours = log_likelihood(counts, counts.sum(axis=1), smoothing, WORDS)
    assert ours == pytest.approx(model.feature_log_prob_, abs=1e-9)
    messages = np.bincount(labels).astype(np.float64)
    assert log_prior(messages, 0.0) == pytest.approx(model.class_log_prior_, abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.01, 1.0])
def test_the_classifier_agrees_on_the_log_odds_of_each_message(smoothing: float) -> None:
    occurrences, labels = drawn(2)
    ham, spam = (occurrences[labels == k] for k in (0, 1))
    counts = TokenCounts(
        spam=(spam > 0).sum(axis=0).astype(np.int32),
        ham=(ham > 0).sum(axis=0).astype(np.int32),
        spam_occurrences=spam.sum(axis=0).astype(np.int32),
        ham_occurrences=ham.sum(axis=0).astype(np.int32),
        weight=np.zeros(WORDS, dtype=np.int32),
    )
    totals = Totals(
        spam=len(spam),
        ham=len(ham),
        spam_occurrences=int(spam.sum()),
        ham_occurrences=int(ham.sum()),
        vocabulary=WORDS,
    )
    textbook = MultinomialOptions(
        smoothing=smoothing, weight=TermWeight.RAW, length=Length.NONE, prior=False
    )
    model = MultinomialNB(alpha=smoothing, fit_prior=False).fit(occurrences, labels)
    kinds = np.ones(WORDS, dtype=np.uint8)
    for message in occurrences:
        theirs = model.predict_joint_log_proba(message.reshape(1, -1))[0]
        batch = Batch.of_one(counts, message.astype(np.uint8), kinds, totals)
        (ours,) = scores(batch, textbook)
        assert ours == pytest.approx(theirs[1] - theirs[0], abs=1e-9)
