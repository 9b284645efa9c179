"""Lessons learned together do what they do one after the other."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.bayes import learning
from spamd.bayes.classifiers.dependence import DependenceOptions
from spamd.bayes.classifiers.graham import Counting, GrahamOptions
from spamd.bayes.classifiers.mixed import FactsOptions
from spamd.bayes.classifiers.multinomial import MultinomialOptions, TermWeight
from spamd.bayes.fusion import FusionOptions
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import Label
from tests.bayes.samples import known, new_model, sample_of
from tests.bayes.test_model import state

lessons = st.builds(
    lambda words, label, html, size: Given(
        sample=sample_of(*words, discrete=(html, size % 2), size=size, grams=(html, size)),
        label=label,
        key=b"%d" % size,
    ),
    st.lists(st.sampled_from("abcdefghij"), max_size=8),
    st.sampled_from(list(Label)),
    st.integers(0, 2),
    st.integers(1, 30),
)

OPTIONS = (
    BayesOptions(),
    BayesOptions(
        graham=GrahamOptions(counting=Counting.OCCURRENCES, ham_bias=2),
        multinomial=MultinomialOptions(weight=TermWeight.LOG),
        facts=FactsOptions(multivariate=True, own_values=True, smoothing=0.0),
        dependence=DependenceOptions(smoothing=0.0, least=3),
        fusion=FusionOptions(refit_every=4),
    ),
    BayesOptions(
        facts=FactsOptions(prior=False, pooled=0.0, prior_smoothing=0.0),
        dependence=DependenceOptions(parent="attachment"),
        fusion=FusionOptions(refit_every=7, classifiers=("graham", "facts", "dependence")),
    ),
)


def model_for(some: Sequence[Given], options: BayesOptions) -> Model:
    model = new_model(options)
    for lesson in some:
        known(model, lesson.sample)
    return model


def assert_alike(some: Sequence[Effect], others: Sequence[Effect]) -> None:
    for one, other in zip(some, others, strict=True):
        assert (one.step, one.gram_step) == (other.step, other.gram_step)
        assert one.scores == pytest.approx(other.scores, rel=1e-9, abs=1e-9)
        assert one.probability_before == pytest.approx(other.probability_before, rel=1e-9)
        assert one.probability_after == pytest.approx(other.probability_after, rel=1e-9)


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=40, deadline=None)
@given(st.lists(lessons, min_size=1, max_size=14))
def test_lessons_learned_together_do_what_they_do_alone(
    options: BayesOptions, some: list[Given]
) -> None:
    together, alone = model_for(some, options), model_for(some, options)

    effects = learn(together, some)

    assert_alike(effects, [learn(alone, [lesson])[0] for lesson in some])
    assert state(together) == state(alone)
    assert together.fusion.values == pytest.approx(alone.fusion.values, rel=1e-6)


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=40, deadline=None)
@given(st.lists(lessons, min_size=1, max_size=10, unique_by=lambda each: each.key))
def test_lessons_learned_again_are_taken_back_one_by_one_before(
    options: BayesOptions, some: list[Given]
) -> None:
    together, alone = model_for(some, options), model_for(some, options)
    first = learn(together, some)
    learn(alone, some)

    again = [
        Given(sample=each.sample, label=each.label, key=each.key, again=effect)
        for each, effect in zip(some, first, strict=True)
    ]
    effects = learn(together, again)

    expected = []
    for lesson, effect in zip(some, first, strict=True):
        unlearn(alone, lesson.sample, lesson.label, effect, lesson.key)
        expected += learn(alone, [lesson])
    assert_alike(effects, expected)
    assert state(together) == state(alone)


@settings(max_examples=20, deadline=None)
@given(st.lists(lessons, min_size=1, max_size=10))
def test_each_lesson_is_weighed_as_a_scan_at_that_moment_would(some: list[Given]) -> None:
    together, scanning = model_for(some, BayesOptions()), model_for(some, BayesOptions())

    for lesson, effect in zip(some, learn(together, some), strict=True):
        before = scanning.weigh(lesson.sample)
        learn(scanning, [lesson])
        after = scanning.weigh(lesson.sample)
        assert effect.scores == pytest.approx(before.scores, rel=1e-9, abs=1e-9)
        assert effect.probability_before == pytest.approx(before.probability, rel=1e-9)
        assert effect.probability_after == pytest.approx(after.probability, rel=1e-9)


def test_lessons_with_very_many_tokens_are_weighed_in_several_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = [
        Given(sample=sample_of(*(f"w{n}" for n in range(40))), label=Label.SPAM, key=b"a"),
        Given(sample=sample_of("w1", "other"), label=Label.HAM, key=b"b"),
        Given(sample=sample_of("w2"), label=Label.HAM, key=b"c"),
    ]
    together, parts = model_for(some, BayesOptions()), model_for(some, BayesOptions())

    whole = learn(together, some)
    monkeypatch.setattr(learning, "PIECE_TOKENS", 40)
    cut = learn(parts, some)

    assert_alike(whole, cut)
    assert state(together) == state(parts)


def test_learning_again_fits_the_fusion_no_oftener_than_learning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = [
        Given(sample=sample_of(f"w{n}"), label=list(Label)[n % 2], key=b"%d" % n) for n in range(8)
    ]
    model = model_for(some, BayesOptions(fusion=FusionOptions(refit_every=4)))
    first = learn(model, some)
    fits: list[int] = []
    monkeypatch.setattr(Model, "refit", lambda one: fits.append(one.learned))

    for lesson, effect in zip(some, first, strict=True):
        learn(
            model,
            [Given(sample=lesson.sample, label=lesson.label, key=lesson.key, again=effect)],
        )

    assert fits == [12, 16]


def test_a_lesson_that_was_never_learned_is_not_learned_again() -> None:
    lesson = Given(sample=sample_of("once"), label=Label.SPAM, key=b"a")
    model = model_for([lesson], BayesOptions())
    before = state(model)
    effect = Effect(
        scores=np.zeros(8), probability_before=0.5, probability_after=0.5, step=0, gram_step=0
    )

    with pytest.raises(ValueError, match="not learned"):
        learn(model, [Given(sample=lesson.sample, label=lesson.label, again=effect)])

    assert state(model) == before
