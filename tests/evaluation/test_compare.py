"""Settings side by side over the same orders."""

from pathlib import Path

import pytest

from spamd.bayes.fusion import FusionOptions
from spamd.bayes.model import BayesOptions
from spamd.evaluation.compare import compare, deviation, mean
from spamd.evaluation.material import prepare
from spamd.evaluation.protocol import EvaluationOptions, run
from spamd.message.tokens.tokenizer import TokenizerOptions
from tests.evaluation.mails import mailbox


def test_every_setting_goes_through_every_order(tmp_path: Path) -> None:
    material = prepare(mailbox(tmp_path, 60, mixed=0.4), TokenizerOptions(), jobs=1)
    graham = BayesOptions(fusion=FusionOptions(classifiers=("graham",)))
    found = compare(
        material, {"all": BayesOptions(), "graham": graham}, (None, 7), EvaluationOptions()
    )
    assert [one.name for one in found] == ["all", "graham"]
    each = [run(material, EvaluationOptions(seed=seed), graham).rates for seed in (None, 7)]
    assert [result.rates for result in found[1].results] == each
    assert found[1].mean.roca == pytest.approx((each[0].roca + each[1].roca) / 2)
    assert found[1].mean == mean(each)
    assert list(found[1].classifiers()) == ["graham"]
    told = found[1].to_json()
    assert told["orders"] == ["index", "seed 7"]
    assert told["each"] == [rates.to_json() for rates in each]
    assert set(found[1].windows()) == {"first 50"}
    assert found[1].spread == deviation(each)
    assert found[1].spread.roca == pytest.approx(abs(each[0].roca - each[1].roca) / 2**0.5)
    better = [run(material, EvaluationOptions(seed=seed), BayesOptions()) for seed in (None, 7)]
    assert found[0].better_than(found[1]) == sum(
        mine.rates.roca < theirs.roca for mine, theirs in zip(better, each, strict=True)
    )


def test_one_order_has_no_spread(tmp_path: Path) -> None:
    material = prepare(mailbox(tmp_path, 20), TokenizerOptions(), jobs=1)
    (one,) = compare(material, {"all": BayesOptions()}, (None,), EvaluationOptions())
    assert set(one.spread.to_json().values()) == {0}
