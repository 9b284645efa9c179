from math import log

import numpy as np
import pytest

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.decision import DecisionOptions, Verdict, decide
from spamd.bayes.evidence import ClassifierEvidence, explain
from spamd.bayes.fusion import CLASSIFIERS, FusionOptions, FusionWeights
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import Label, Sample
from tests.bayes.samples import ids_of, new_model, sample_of, teach, without

FEW = DecisionOptions(minimum_ham=1, minimum_spam=1)


def trained(options: BayesOptions | None = None) -> Model:
    model = new_model(options or BayesOptions(decision=FEW))
    for i in range(30):
        teach(model, sample_of("buy", "now", f"pill{i % 7}", discrete=(1, 1)), Label.SPAM)
        teach(model, sample_of("dear", "all", f"plan{i % 7}", discrete=(0, 0)), Label.HAM)
    return model


def index_of(sample: Sample, word: str) -> int:
    return int(np.flatnonzero(sample.ids == ids_of(word)[0])[0])


def test_each_classifier_that_is_on_shows_its_score_and_its_effect() -> None:
    sample = sample_of("buy", "now", "plan1")
    told = explain(trained(), sample)

    assert [classifier.score for classifier in told.classifiers] == told.evidence.scores.tolist()
    assert told.bias + sum(classifier.effect for classifier in told.classifiers) == pytest.approx(
        told.evidence.log_odds
    )


def test_the_share_of_spam_that_arrives_is_told_and_the_sum_is_what_is_decided_on() -> None:
    rare = DecisionOptions(minimum_ham=1, minimum_spam=1, prior_spam=0.001)
    told = explain(trained(BayesOptions(decision=rare)), sample_of("buy", "now", "pill1"))

    total = told.bias + sum(classifier.effect for classifier in told.classifiers) + told.prior
    assert told.prior == pytest.approx(log(0.001 / 0.999))
    assert sigmoid(total) == pytest.approx(told.decision.probability)
    assert told.decision.probability < told.evidence.probability


def test_a_classifier_that_is_off_is_not_explained() -> None:
    options = BayesOptions(fusion=FusionOptions(classifiers=("graham", "logistic")))

    assert [
        classifier.name for classifier in explain(trained(options), sample_of("buy")).classifiers
    ] == [
        "graham",
        "logistic",
    ]


@pytest.mark.parametrize(
    "classifier", ["graham", "multinomial", "fisher", "confidence", "logistic"]
)
def test_clues_tell_counts_probability_and_direction(classifier: str) -> None:
    sample = sample_of("buy", "dear", "never-seen")
    told = {found.name: found for found in explain(trained(), sample).classifiers}[classifier]
    clues = {clue.index: clue for clue in told.clues}

    buy, dear = clues[index_of(sample, "buy")], clues[index_of(sample, "dear")]

    assert (buy.spam, buy.ham, dear.spam, dear.ham) == (30, 0, 0, 30)
    assert buy.probability > 0.5 > dear.probability
    assert buy.contribution > 0 > dear.contribution


def test_facts_are_named_with_their_values() -> None:
    told = {
        classifier.name: classifier
        for classifier in explain(trained(), sample_of("buy")).classifiers
    }

    assert {(fact.name, fact.value) for fact in told["facts"].facts} == {
        ("html", "none"),
        ("attachment", "no"),
        ("size", "10"),
    }


def test_no_more_clues_are_told_than_asked_for() -> None:
    told = explain(trained(), sample_of("buy", "now", "dear", "all"), limit=2)

    assert max(len(classifier.clues) for classifier in told.classifiers) == 2


@pytest.mark.parametrize("clues", [1, 3, 4, 5, 6, 7, 9, 11])
def test_the_flip_names_the_fewest_clues_that_suffice_however_many(clues: int) -> None:
    model = new_model(
        BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    )
    words = [f"pill{number}" for number in range(clues)]
    for _ in range(30):
        teach(model, sample_of(*words), Label.SPAM)
        teach(model, sample_of("dear", "all"), Label.HAM)
    model.fusion = FusionWeights.of([0.0, 0.0, 9.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)
    sample = sample_of(*words, "dear", "all")
    told = explain(model, sample)

    assert told.flip is not None
    gone = np.array(told.flip.without, dtype=np.intp)
    rest, one_less = (
        decide(model.weigh(without(sample, cut)).probability, model.totals, FEW).verdict
        for cut in (gone, gone[:-1])
    )
    assert rest is told.flip.verdict is not told.decision.verdict
    assert one_less is told.decision.verdict


def test_taking_out_the_clues_named_flips_the_verdict_and_one_less_does_not() -> None:
    model = trained(
        BayesOptions(
            decision=FEW,
            fusion=FusionOptions(classifiers=("graham", "multinomial", "confidence", "logistic")),
        )
    )
    sample = sample_of("buy", "now", "pill1", "pill2")
    told = explain(model, sample)
    assert told.decision.verdict is Verdict.SPAM
    assert told.flip is not None

    all_gone = np.array(told.flip.without, dtype=np.intp)
    rest = decide(model.weigh(without(sample, all_gone)).probability, model.totals, FEW)
    one_less = decide(model.weigh(without(sample, all_gone[:-1])).probability, model.totals, FEW)

    assert rest.verdict is told.flip.verdict
    assert rest.verdict is not Verdict.SPAM
    assert one_less.verdict is Verdict.SPAM


def test_a_verdict_that_rests_on_no_few_clues_has_no_flip() -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("facts",)))

    assert explain(trained(options), sample_of("buy", "now", discrete=(1, 1))).flip is None


def test_an_untrained_model_has_no_clues_and_no_flip() -> None:
    told = explain(new_model(), sample_of("buy"))

    assert told.decision.verdict is Verdict.UNSURE
    assert all(classifier.clues == () for classifier in told.classifiers)
    assert told.flip is None


def everything(name: str) -> tuple[Model, Sample, ClassifierEvidence]:
    """A trained model, a sample, and all that its one classifier says of it."""
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=(name,)))
    model = trained(options)
    sample = sample_of("buy", "now", "now", "dear", "plan3", "pill1", "never-seen", size=700)
    (told,) = explain(model, sample, limit=99).classifiers
    return model, sample, told


@pytest.mark.parametrize(
    ("name", "beside"),
    [("graham", 0.0), ("multinomial", 0.0), ("confidence", 0.0), ("logistic", 0.0)],
)
def test_the_clues_of_a_classifier_add_up_to_its_score(name: str, beside: float) -> None:
    _, _, told = everything(name)  # as many ham as spam were taught: the prior adds nothing

    assert len(told.clues) >= 3
    assert sum(clue.contribution for clue in told.clues) == pytest.approx(told.score + beside)


@pytest.mark.parametrize("name", ["graham", "fisher"])
def test_a_clue_contributes_the_log_odds_of_its_probability(name: str) -> None:
    _, sample, told = everything(name)

    assert index_of(sample, "never-seen") not in {clue.index for clue in told.clues} or (
        name == "graham"
    )
    for clue in told.clues:
        odds = log(clue.probability / (1 - clue.probability))
        assert clue.contribution == pytest.approx(odds)


@pytest.mark.parametrize("name", ["multinomial", "logistic"])
def test_a_clue_has_the_probability_that_its_contribution_means(name: str) -> None:
    _, _, told = everything(name)

    for clue in told.clues:
        assert clue.probability == pytest.approx(sigmoid(clue.contribution))


def test_a_clue_of_confidence_has_the_probability_before_limit_and_length() -> None:
    model, sample, told = everything("confidence")
    (clue,) = [clue for clue in told.clues if clue.index == index_of(sample, "buy")]

    odds = log(clue.probability / (1 - clue.probability))
    assert clue.contribution == pytest.approx(odds / len(sample.ids))
    assert (clue.spam, clue.ham) == (30, 0)
    assert model.totals.spam == 30


@pytest.mark.parametrize("name", ["graham", "multinomial", "fisher", "confidence", "logistic"])
def test_the_strongest_clue_comes_first_and_one_that_says_nothing_is_left_out(name: str) -> None:
    _, sample, told = everything(name)

    sizes = [abs(clue.contribution) for clue in told.clues]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0
    assert index_of(sample, "never-seen") not in {clue.index for clue in told.clues}


def test_fifteen_clues_are_told_unless_more_are_asked_for() -> None:
    words = [f"word{number}" for number in range(20)]
    model = new_model(BayesOptions(decision=FEW))
    for _ in range(5):
        teach(model, sample_of(*words), Label.SPAM)
        teach(model, sample_of("dear"), Label.HAM)

    told = explain(model, sample_of(*words))

    assert len(told.classifiers[0].clues) == 15


def test_the_facts_add_up_to_the_score_strongest_first_with_their_values() -> None:
    _, _, told = everything("facts")

    assert sum(fact.contribution for fact in told.facts) == pytest.approx(told.score)
    sizes = [abs(fact.contribution) for fact in told.facts]
    assert sizes == sorted(sizes, reverse=True)
    assert {fact.name: fact.value for fact in told.facts}["size"] == "700"
    assert told.clues == ()


def test_only_facts_have_facts_and_grams_and_dependence_have_no_clues() -> None:
    told = explain(trained(), sample_of("buy", "dear", grams=(1, 2)))

    assert [one.name for one in told.classifiers if one.facts] == ["facts"]
    silent = {one.name for one in told.classifiers if not one.clues}
    assert silent == {"grams", "facts", "dependence"}


def test_what_is_left_of_a_sample_keeps_its_facts_and_grams() -> None:
    sample = sample_of("buy", "now", "now", grams=(5, 9), discrete=(1, 1), size=3)
    gone = index_of(sample, "buy")

    rest = without(sample, np.array([gone]))

    assert rest.ids.tolist() == ids_of("now").tolist()
    assert rest.occurrences.tolist() == [2]
    assert len(rest.kinds) == 1
    assert rest.grams.tolist() == [5, 9]
    assert rest.discrete.tolist() == [1, 1]


@pytest.mark.parametrize("label", [Label.SPAM, Label.HAM])
def test_a_verdict_of_either_label_is_flipped_by_its_own_clues(label: Label) -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    words = ("buy", "now", "pill1") if label is Label.SPAM else ("dear", "all", "plan1")
    model = trained(options)
    model.fusion = FusionWeights.of([0.0, 0.0, 90.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)
    sample = sample_of("buy", "now", "dear", "all", words[2])

    told = explain(model, sample)

    assert told.flip is not None
    assert set(told.flip.without) <= {index_of(sample, word) for word in words}
    rest = model.weigh(without(sample, np.array(told.flip.without)))
    assert told.flip.probability == pytest.approx(rest.probability)


def test_more_than_64_clues_are_no_reason() -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    for number, flips in ((60, True), (150, False)):
        model = new_model(options)
        words = [f"pill{place}" for place in range(number)]
        for _ in range(30):
            teach(model, sample_of(*words), Label.SPAM)
            teach(model, sample_of("dear", "all"), Label.HAM)
        model.fusion = FusionWeights.of([0.0, 0.0, 40.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)

        told = explain(model, sample_of(*words, "dear"))

        assert (told.flip is not None) is flips


def test_the_flip_takes_the_strongest_clue_first() -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    model = new_model(options)
    for number in range(30):
        rare = ["weak"] if number < 20 else []
        teach(model, sample_of("strong", *rare), Label.SPAM)
        teach(model, sample_of("plain", *(["weak"] if number < 6 else [])), Label.HAM)
    model.fusion = FusionWeights.of([0.0, 0.0, 40.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)
    sample = sample_of("strong", "weak")

    told = explain(model, sample)

    assert told.decision.verdict is Verdict.SPAM
    assert told.flip is not None
    assert told.flip.without == (index_of(sample, "strong"),)


def test_words_that_speak_for_the_other_label_are_never_named_as_reasons() -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    model = trained(options)
    model.fusion = FusionWeights.of([0.3, 0.0, 90.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)
    sample = sample_of("buy", "now", "pill1", "plan1")

    told = explain(model, sample)

    assert told.decision.verdict is Verdict.SPAM
    assert told.flip is not None
    assert index_of(sample, "plan1") not in told.flip.without
    assert told.bias == 0.3


@pytest.mark.parametrize("only", [Label.SPAM, Label.HAM])
def test_while_one_label_was_never_trained_only_logistic_regression_has_clues(only: Label) -> None:
    model = new_model()
    teach(model, sample_of("buy", "now"), only)

    told = explain(model, sample_of("buy", "now"))
    assert {one.name for one in told.classifiers if one.clues} == {"logistic"}

    other = Label.HAM if only is Label.SPAM else Label.SPAM
    teach(model, sample_of("dear"), other)
    told = explain(model, sample_of("buy", "now"))
    assert {one.name for one in told.classifiers if one.clues} >= {"graham", "multinomial"}


@pytest.mark.parametrize("clues", [1, 2, 3, 4, 5, 6, 7])
def test_a_verdict_that_stands_without_all_its_clues_has_no_flip(clues: int) -> None:
    options = BayesOptions(decision=FEW, fusion=FusionOptions(classifiers=("multinomial",)))
    model = new_model(options)
    words = [f"pill{number}" for number in range(clues)]
    for _ in range(30):
        teach(model, sample_of(*words), Label.SPAM)
        teach(model, sample_of("dear", "all"), Label.HAM)
    model.fusion = FusionWeights.of([9.0, 0.0, 1.0] + [0.0] * (len(CLASSIFIERS) - 2), 60)

    told = explain(model, sample_of(*words))

    assert told.decision.verdict is Verdict.SPAM
    assert told.flip is None


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_a_message_weigh_together_what_each_weighs_alone(seed: int) -> None:
    model = trained()
    words = [f"word{number}" for number in range(12)]
    random = np.random.default_rng(seed)
    for _ in range(20):
        taught = random.choice(words, size=5, replace=False).tolist()
        teach(model, sample_of(*taught), random.choice(list(Label)))
    sample = sample_of(*words, "new", discrete=(1, 0), grams=(3, 7))
    cuts = [random.permutation(len(sample.ids))[:size] for size in (0, 1, 5, 12, 13)]
    left = [np.delete(np.arange(len(sample.ids)), cut) for cut in cuts]

    together = model.weigh_parts(sample, model.weigh(sample), left)

    assert together == [model.weigh(without(sample, cut)).probability for cut in cuts]
