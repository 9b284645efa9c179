"""The product over public mail, in the order of each index: what was promised is kept.

Other orders, mail unseen before, and the whole table of attacks take an hour and are measured by
hand (docs/experiments.md, "Where we stand"). bogofilter 1.2.5 in the same order, by
`tests.benchmarks.peers_bogofilter`: 1-ROCA 0.143 % on `spamassassin`, 0.249 % on `modern`.
"""

from pathlib import Path

import pytest

from spamd.bayes.model import BayesOptions
from spamd.evaluation.attacks.attack import AttackOptions, attack
from spamd.evaluation.index import read_index
from spamd.evaluation.protocol import EvaluationOptions, evaluate
from spamd.evaluation.results import EvaluationResult
from spamd.message.tokens.tokenizer import TokenizerOptions
from tests.sizes import sized

BOGOFILTER_MODERN = 0.249

MAILS = sized(2_000, 6_046)
"""Of the mail of 2002, in the order of the index."""

PROMISED = {
    6_046: {"roca": 0.055, "later": 0.025, "spam_missed": 10.0, "lam": 1.2, "unsure": 5.0},
    2_000: {"roca": 0.18, "later": 0.04, "spam_missed": 17.0, "lam": 1.9, "unsure": 7.0},
}
"""The most of each rate. Of the first third all are worse, since it holds the beginning: for it
stands what was measured, and a tenth more."""

ATTACKED = sized(900, 3_000)
"""Mails of the attack: two thirds are learned. With all 6,046 it would take three times as long."""

pytestmark = pytest.mark.timeout(1500)  # a minute or two where the machine has nothing else to do


def run(corpus: Path, mails: int | None = None) -> EvaluationResult:
    index = read_index(corpus / "index")[:mails]
    return evaluate(index, EvaluationOptions(), BayesOptions(), TokenizerOptions())


def keeps_the_default_decision(result: EvaluationResult, unsure: float = 5.0) -> None:
    """Ham tagged, spam passed and unsure mail stay below what was promised, and P is calibrated."""
    assert result.rates.ham_misclassified <= 0.2
    assert result.rates.spam_misclassified <= 3.0
    assert result.rates.unsure <= unsure
    assert result.rates.calibration_error <= 0.01


def test_mail_of_2002_is_judged_as_promised(spamassassin_corpus: Path) -> None:
    result, most = run(spamassassin_corpus, MAILS), PROMISED[MAILS]
    assert len(result.fused) == MAILS
    assert result.rates.roca <= most["roca"]
    assert result.windows()["after 1000"].roca <= most["later"]
    assert result.rates.spam_missed <= most["spam_missed"]
    assert result.rates.lam <= most["lam"]
    assert set(result.classifiers) >= {"graham", "multinomial", "fisher", "facts"}
    keeps_the_default_decision(result, most["unsure"])


def test_mail_of_our_days_is_judged_four_times_better_than_by_bogofilter(
    modern_corpus: Path,
) -> None:
    result = run(modern_corpus)
    assert result.rates.roca <= BOGOFILTER_MODERN / 4
    assert result.rates.spam_missed <= 2.0
    keeps_the_default_decision(result)


def test_chosen_words_and_poison_do_no_more_harm_than_promised(spamassassin_corpus: Path) -> None:
    options = AttackOptions(added=(30,), disguised=0, poisoned=(0.01,), wrong_labels=(0.05,))
    mail = read_index(spamassassin_corpus / "index")[:ATTACKED]
    found = attack(mail, options, BayesOptions(), TokenizerOptions())
    rows = {row.attack: row for row in found.rows}
    assert rows["none"].caught >= 95.0
    assert rows["30 best ham words"].caught >= 85.0
    assert rows["1 % poison"].ham_lost <= 1.0
    assert rows["1 % poison"].caught >= 90.0
    assert rows["5 % wrong labels"].spam_called >= sized(55, 70)  # 600 lessons, or 2,000
    assert rows["5 % wrong labels"].ham_called <= 0.5
    move, *kept = found.kept
    assert all(row.carried <= move.carried for row in kept)
    assert all(row.plain <= move.plain for row in kept)
    assert all(row.most <= move.most for row in kept)
