"""No verdict moves by the mere number of lessons of one label."""

import numpy as np
import pytest

from spamd.bayes.classifiers import logistic
from spamd.bayes.fusion import SCALES
from spamd.bayes.model import CLASSIFIERS, Model
from spamd.sample import Label, Sample
from tests.bayes.samples import ids_of, new_model, sample_of, teach

SHARED = [f"shared{i}" for i in range(40)]
OWN = {label: [f"{label}{i}" for i in range(60)] for label in Label}
OTHER = {Label.HAM: Label.SPAM, Label.SPAM: Label.HAM}


def message(label: Label, draw: np.random.Generator, own: int = 20) -> Sample:
    """Return a message of words that all mail shares and of some that only its label has."""
    words = [*SHARED, *draw.choice(OWN[label], own)]
    return sample_of(
        *words,
        discrete=(int(draw.integers(0, 3)), int(draw.random() < 0.2)),
        size=int(draw.integers(5, 15)),
        grams=tuple(int(gram) & 0xFFFFFFFF for gram in ids_of(*words)),
    )


def taught(draw: np.random.Generator, times: int = 8) -> tuple[Model, dict[Label, list[Sample]]]:
    """Return a model and the ten kinds of messages of each label that it learned, equally often."""
    model = new_model()
    kinds = {label: [message(label, draw) for _ in range(10)] for label in Label}
    for _ in range(times):
        for number in range(10):
            for label in Label:
                teach(model, kinds[label][number], label)
    model.refit()
    return model, kinds


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("seed", range(3))
def test_ten_lessons_that_tell_nothing_new_move_no_other_verdict(seed: int, label: Label) -> None:
    """Each kind once more leaves all rates of its label; others share no word of it alone."""
    draw = np.random.default_rng(seed)
    model, kinds = taught(draw)
    others = [message(OTHER[label], draw, own) for own in (0, 1, 2, 3, 5, 8) * 2]
    before = [model.weigh(other) for other in others]
    assert any(0.1 < one.probability < 0.9 for one in before)
    for sample in kinds[label]:
        teach(model, sample, label)
    model.refit()
    for one, other in zip(before, others, strict=True):
        two = model.weigh(other)
        assert abs(one.probability - two.probability) <= 0.01
        # A word of one label says a little more when it was not seen in more of the other.
        moved = np.abs(one.scores - two.scores) / SCALES
        assert dict(zip(CLASSIFIERS, moved.round(3), strict=True)) == {
            name: pytest.approx(0.0, abs=0.04) for name in CLASSIFIERS
        }


@pytest.mark.parametrize("label", Label)
def test_lessons_of_one_label_hardly_pull_the_words_of_all_mail(label: Label) -> None:
    """What people correct is of one label: words that all mail shares must not become its words."""
    draw = np.random.default_rng(1)
    model, _ = taught(draw, times=2)
    plain = message(label, draw, own=0)
    for number in range(40):  # ever new ones: each steps
        words = [f"new{number}.{place}" for place in range(20)]
        teach(model, sample_of(*SHARED, *words), label)
    counts = model.tokens.counts(model.tokens.find(plain.ids))
    pulled = abs(logistic.score(counts.weight))
    assert pulled > 1
    assert abs(logistic.token_score(counts, model.totals)) == pytest.approx(0.2 * pulled, rel=0.1)


def test_a_word_that_tells_the_labels_apart_keeps_its_weight() -> None:
    draw = np.random.default_rng(1)
    model, kinds = taught(draw)
    sample = kinds[Label.SPAM][0]
    counts = model.tokens.counts(model.tokens.find(sample.ids))
    told = logistic.balanced(counts, model.totals)
    apart = np.minimum(counts.spam, counts.ham) == 0
    assert (told[apart] > 0.9 * counts.weight[apart]).all()
