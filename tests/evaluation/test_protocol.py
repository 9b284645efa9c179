"""The protocols drive the product's own model, in the right order, and count what it says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spamd.bayes.counts import TokenCounts
from spamd.bayes.decision import decide
from spamd.bayes.fusion import FusionOptions
from spamd.bayes.learning import Given, learn
from spamd.bayes.model import BayesOptions, Model
from spamd.evaluation.index import order
from spamd.evaluation.material import Material, prepare, vocabulary
from spamd.evaluation.protocol import (
    EvaluationOptions,
    Protocol,
    evaluate,
    mislabelled,
    run,
    transfer,
)
from spamd.evaluation.rates import CALLED
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label
from tests.evaluation.agreed import RATES
from tests.evaluation.mails import mailbox

if TYPE_CHECKING:
    from spamd.evaluation.results import EvaluationResult


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("mail")
    return prepare(mailbox(folder, 120), TokenizerOptions(), jobs=1)


def by_hand(material: Material, delay: int, options: BayesOptions) -> tuple[list[float], list[str]]:
    """Judge, then learn, with the bare model."""
    model = Model.empty(material.schema, options)
    ids = vocabulary(material.samples)
    model.tokens.merge(ids, TokenCounts.zeros(len(ids)))
    log_odds, verdicts = [], []
    for place, sample in enumerate(material.samples):
        evidence = model.weigh(sample)
        log_odds.append(evidence.log_odds)
        verdicts.append(decide(evidence.probability, model.totals, options.decision).verdict)
        if place >= delay:
            old = place - delay
            learn(model, [Given(sample=material.samples[old], label=material.labels[old])])
    return log_odds, [str(verdict) for verdict in verdicts]


@pytest.mark.parametrize(("protocol", "delay"), [("online", 0), ("delayed", 7)])
def test_a_message_is_judged_before_it_is_learned(
    material: Material, protocol: str, delay: int
) -> None:
    options = EvaluationOptions(protocol=Protocol(protocol), delay=delay)
    result = run(material, options, BayesOptions())
    log_odds, verdicts = by_hand(material, delay, BayesOptions())
    assert result.fused.log_odds.tolist() == log_odds
    assert [CALLED[called] for called in result.fused.called] == verdicts


def test_a_later_label_makes_a_worse_filter(material: Material) -> None:
    at_once = run(material, EvaluationOptions(), BayesOptions())
    late = run(material, EvaluationOptions(protocol=Protocol.DELAYED, delay=60), BayesOptions())
    assert late.rates.unsure > at_once.rates.unsure


def test_cross_validation_judges_each_message_by_the_others(material: Material) -> None:
    options = EvaluationOptions(protocol=Protocol.CROSS, folds=3)
    result = run(material, options, BayesOptions())
    others = [i for i in range(len(material)) if i % 3 != 1]
    first_fold = transfer(
        material.arranged(others), material.arranged([1, 4]), EvaluationOptions(), BayesOptions()
    )
    assert result.fused.log_odds[[1, 4]] == pytest.approx(first_fold.fused.log_odds)
    assert result.rates.unsure < 10.0


def test_a_seed_shuffles_and_is_named(material: Material) -> None:
    result = run(material, EvaluationOptions(seed=5), BayesOptions())
    assert result.order == "seed 5"
    expected = [material.labels[i] is Label.SPAM for i in order(len(material), 5)]
    assert result.fused.spam.tolist() == expected
    assert run(material, EvaluationOptions(), BayesOptions()).order == "index"


def test_only_classifiers_that_are_on_are_reported(material: Material) -> None:
    bayes = BayesOptions(fusion=FusionOptions(classifiers=("graham", "fisher")))
    result = run(material, EvaluationOptions(), bayes)
    assert list(result.classifiers) == ["graham", "fisher"]
    assert result.classifiers["fisher"].log_odds.any()


def test_json_is_what_the_design_promises(material: Material) -> None:
    found = json.loads(json.dumps(run(material, EvaluationOptions(), BayesOptions()).to_json()))
    assert list(found)[:7] == [
        "messages",
        "ham",
        "spam",
        "protocol",
        "order",
        "fused",
        "classifiers",
    ]
    assert (found["messages"], found["ham"], found["spam"]) == (120, 60, 60)
    assert found["protocol"] == "online"
    assert list(found["fused"]) == RATES
    assert list(found["classifiers"]["graham"]) == RATES
    assert list(found["windows"]) == ["first 50"]
    assert [one["wished"] for one in found["thresholds"]] == [0.05, 0.1, 0.5, 1.0]
    low, high = found["intervals"]["ham_misclassified"]
    assert low <= found["fused"]["ham_misclassified"] <= high


def test_wrong_labels_are_learned_but_not_judged_by(material: Material) -> None:
    upside_down = run(material, EvaluationOptions(wrong_labels=1.0), BayesOptions())
    assert upside_down.fused.spam.tolist() == material.spam.tolist()
    assert upside_down.rates.roca > 90.0


def test_the_share_of_wrong_labels_is_drawn_by_the_seed() -> None:
    labels = (Label.HAM,) * 1000
    wrong = mislabelled(labels, 0.05, seed=1)
    assert 20 < wrong.count(Label.SPAM) < 90
    assert wrong == mislabelled(labels, 0.05, seed=1)
    assert wrong != mislabelled(labels, 0.05, seed=2)
    assert mislabelled(labels, 0.0, seed=1) == labels


def test_learning_one_collection_judges_another(tmp_path: Path, material: Material) -> None:
    unseen = prepare(mailbox(tmp_path, 20), TokenizerOptions(), jobs=1)
    result = transfer(material, unseen, EvaluationOptions(), BayesOptions())
    assert (result.protocol, len(result.fused)) == ("transfer", 20)
    assert result.rates.roca == 0.0


def test_progress_is_told_for_each_message(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def progress(stage: str, done: int, total: int) -> None:
        told.append((stage, done, total))

    evaluate(
        mailbox(tmp_path, 4),
        EvaluationOptions(jobs=1),
        BayesOptions(),
        TokenizerOptions(),
        progress,
    )
    assert told[:4] == [("reading", i, 4) for i in (1, 2, 3, 4)]
    assert told[4:] == [("judging", i, 4) for i in (1, 2, 3, 4)]


def test_without_route_the_fields_of_the_way_teach_nothing(tmp_path: Path) -> None:
    def ids(route: bool) -> set[int]:  # noqa: FBT001 — the one thing that differs
        index = mailbox(tmp_path, 6)
        samples = prepare(index, TokenizerOptions(), route=route, jobs=1).samples
        return set(vocabulary(samples).tolist())

    assert ids(route=False) < ids(route=True)


def test_two_processes_read_the_same_as_one(tmp_path: Path) -> None:
    index = mailbox(tmp_path, 300)
    one = prepare(index, TokenizerOptions(), jobs=1)
    two = prepare(index, TokenizerOptions(), jobs=2)
    assert one.labels == two.labels
    assert all(
        np.array_equal(a.ids, b.ids) and np.array_equal(a.grams, b.grams)
        for a, b in zip(one.samples, two.samples, strict=True)
    )


@pytest.mark.parametrize(
    "options",
    [{"delay": -1}, {"folds": 1}, {"wrong_labels": 1.5}, {"jobs": 0}, {"taught_tokens": 0}],
)
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        EvaluationOptions(**options)  # type: ignore[arg-type]  # numbers all


def test_a_collection_of_one_label_has_rates(material: Material) -> None:
    ham: Sequence[int] = [i for i, label in enumerate(material.labels) if label is Label.HAM]
    result: EvaluationResult = run(material.arranged(ham), EvaluationOptions(), BayesOptions())
    assert result.rates.roca == 0.0
    assert result.rates.unsure == 100.0
