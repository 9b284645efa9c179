import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.bayes.decision import DecisionOptions, Verdict, decide
from spamd.bayes.fusion import CLASSIFIERS, FusionOptions
from spamd.bayes.learning import Effect, Given, learn, restore, unlearn
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import Label, Sample
from tests.bayes.samples import known, new_model, sample_of, teach

SPAM = [
    sample_of("buy", "now", f"pill{i % 7}", discrete=(1, 1), grams=(1, 2, i)) for i in range(30)
]
HAM = [
    sample_of("dear", "all", f"plan{i % 7}", discrete=(0, 0), grams=(7, 8, i)) for i in range(30)
]

words = st.lists(st.sampled_from("abcdefghij"), min_size=0, max_size=8)
lessons = st.tuples(words, st.sampled_from(list(Label)), st.integers(0, 1), st.integers(1, 30))


def state(model: Model) -> tuple[object, ...]:
    seen = model.tokens.counts(np.arange(len(model.tokens))).cells
    known = seen.any(axis=1)
    return (
        model.tokens.ids[known].tolist(),
        seen[known].tolist(),
        model.totals,
        model.facts.to_rows(),
        model.grams.nonzero()[0].tolist(),
        model.grams[model.grams != 0].tolist(),
        model.history.keys,
    )


def trained(options: BayesOptions | None = None) -> Model:
    model = new_model(options)
    for spam, ham in zip(SPAM, HAM, strict=True):
        teach(model, spam, Label.SPAM)
        teach(model, ham, Label.HAM)
    return model


@settings(max_examples=60, deadline=None)
@given(st.lists(lessons, max_size=12), st.data())
def test_unlearning_undoes_learning_exactly_in_any_order(
    taught: list[tuple[list[str], Label, int, int]], data: st.DataObject
) -> None:
    model, done = new_model(), list[tuple[Sample, Label, Effect, bytes]]()
    for number, (text, label, html, size) in enumerate(taught):
        sample = sample_of(*text, discrete=(html, 0), size=size, grams=(html, size))
        key = b"%d" % number
        done.append((sample, label, teach(model, sample, label, key), key))

    for sample, label, effect, key in data.draw(st.permutations(done)):
        unlearn(model, sample, label, effect, key)

    assert state(model) == state(new_model())


@settings(max_examples=60, deadline=None)
@given(st.lists(lessons, max_size=8), lessons)
def test_a_lesson_taken_back_at_once_leaves_everything_as_it_was(
    taught: list[tuple[list[str], Label, int, int]], more: tuple[list[str], Label, int, int]
) -> None:
    model = new_model()
    for text, label, html, size in taught:
        teach(model, sample_of(*text, discrete=(html, 0), size=size), label)
    before, sample = state(model), sample_of(*more[0], discrete=(more[2], 0), size=more[3])

    unlearn(model, sample, more[1], teach(model, sample, more[1]))

    assert state(model) == before


@settings(max_examples=30, deadline=None)
@given(st.lists(lessons, max_size=8), st.data())
def test_counts_do_not_depend_on_the_order_of_lessons(
    taught: list[tuple[list[str], Label, int, int]], data: st.DataObject
) -> None:
    models = []
    for order in (taught, data.draw(st.permutations(taught))):
        model = new_model(BayesOptions(fusion=FusionOptions(classifiers=("graham", "facts"))))
        for text, label, html, size in order:
            teach(model, sample_of(*text, discrete=(html, 0), size=size), label)
        models.append(model)

    assert state(models[0])[:4] == state(models[1])[:4]


def test_a_lesson_restored_from_a_journal_is_as_it_was_learned() -> None:
    model = trained()
    sample = sample_of("buy", "dear", "pill2", grams=(1, 7))
    effect = teach(model, sample, Label.SPAM, b"key")
    learned = state(model)

    unlearn(model, sample, Label.SPAM, effect, b"key")
    restore(model, sample, Label.SPAM, effect, b"key")

    assert state(model) == learned


def test_every_score_is_finite_before_and_after_training() -> None:
    model = new_model()
    empty, strange = sample_of(), sample_of("a", grams=(1, 2**32 - 1))

    for _ in range(3):
        for sample in (empty, strange):
            evidence = model.weigh(sample)
            assert np.isfinite(evidence.scores).all()
            assert 0 <= evidence.probability <= 1
            teach(model, sample, Label.SPAM)


def test_an_untrained_model_knows_nothing() -> None:
    evidence = new_model().weigh(sample_of("buy", "now"))

    assert evidence.probability == pytest.approx(0.5, abs=0.05)
    assert evidence.known == 0


def test_a_few_dozen_lessons_tell_spam_from_ham() -> None:
    model = trained()

    spam = model.weigh(sample_of("buy", "now", "pill1", discrete=(1, 1)))
    ham = model.weigh(sample_of("dear", "all", "plan1"))

    assert spam.probability > 0.9
    assert ham.probability < 0.1
    assert spam.known == 3


def test_two_lessons_of_each_label_already_point_the_right_way() -> None:
    model = new_model()
    for spam, ham in zip(SPAM[:2], HAM[:2], strict=True):
        teach(model, spam, Label.SPAM)
        teach(model, ham, Label.HAM)

    assert model.weigh(SPAM[5]).probability > 0.5 > model.weigh(HAM[5]).probability


def test_one_label_alone_does_not_make_a_verdict() -> None:
    model = new_model()
    for spam in SPAM:
        teach(model, spam, Label.SPAM)

    evidence = model.weigh(HAM[0])

    verdict = decide(evidence.probability, model.totals, DecisionOptions()).verdict
    assert verdict is Verdict.UNSURE


def test_a_lesson_tells_the_probability_before_and_after() -> None:
    model = trained()
    surprise = sample_of("dear", "all", "plan1", "buy")

    effect = teach(model, surprise, Label.SPAM)

    assert effect.probability_before < effect.probability_after
    assert effect.step > 0
    assert model.weigh(surprise).probability == effect.probability_after


def test_without_proof_nothing_is_weighed_again_and_nothing_else_changes() -> None:
    slow, quick = trained(), trained()
    lesson = Given(sample=sample_of("buy", "dear", "pill2"), label=Label.SPAM)
    for model in (slow, quick):
        known(model, lesson.sample)

    (effect,) = learn(slow, [lesson])
    (spared,) = learn(quick, [lesson], proof=False)

    assert state(quick) == state(slow)
    assert (spared.step, spared.gram_step) == (effect.step, effect.gram_step)
    assert spared.probability_after == spared.probability_before == effect.probability_before


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_classifier_that_is_off_says_and_learns_nothing(classifier: str) -> None:
    others = tuple(name for name in CLASSIFIERS if name != classifier)
    model = trained(BayesOptions(fusion=FusionOptions(classifiers=others)))

    scores = dict(zip(CLASSIFIERS, model.weigh(SPAM[0]).scores, strict=True))

    assert scores[classifier] == 0.0
    assert all(score > 0 for name, score in scores.items() if name != classifier)
    assert classifier != "grams" or not model.grams.any()


def test_the_fusion_is_fitted_every_so_many_lessons() -> None:
    model = new_model(BayesOptions(fusion=FusionOptions(refit_every=4)))

    for sample in SPAM[:3]:
        teach(model, sample, Label.SPAM)
    assert model.fusion.lessons == 0

    teach(model, HAM[0], Label.HAM)
    assert model.fusion.lessons == 4


def test_the_same_lessons_in_the_same_order_give_the_same_probability() -> None:
    assert trained().weigh(SPAM[0]).probability == trained().weigh(SPAM[0]).probability


def test_a_mail_that_holds_a_dictionary_teaches_a_part_of_it() -> None:
    model = new_model()
    model.taught_tokens = 100
    dictionary = sample_of(*(f"word{number}" for number in range(1000)))

    effect = teach(model, dictionary, Label.SPAM)

    assert model.totals.vocabulary == 100
    assert model.totals.spam_occurrences == 100
    unlearn(model, dictionary, Label.SPAM, effect)
    assert state(model) == state(new_model())


def test_a_sample_whose_tokens_have_no_rows_is_not_learned() -> None:
    with pytest.raises(KeyError):
        learn(new_model(), [Given(sample=sample_of("buy"), label=Label.SPAM)])


def test_a_lesson_never_learned_is_not_taken_back() -> None:
    model = trained()
    effect = teach(model, sample_of("once"), Label.SPAM)
    before = state(model)

    with pytest.raises(ValueError, match="not learned"):
        unlearn(model, sample_of("once"), Label.HAM, effect)

    assert state(model) == before
