from math import log

import numpy as np
import pytest

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.decision import DecisionOptions, Verdict, decide
from spamd.bayes.evidence import explain, without
from spamd.bayes.fusion import CLASSIFIERS, FusionOptions, FusionWeights
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import Label, Sample
from tests.bayes.samples import ids_of, new_model, sample_of, teach

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
