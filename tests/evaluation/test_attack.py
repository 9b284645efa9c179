"""Attacks on a filter: what is done to it, and that the table counts it rightly."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from spamd.bayes.model import BayesOptions
from spamd.evaluation.attacks.attack import AttackOptions, assault, attack, doses_of, evasions_of
from spamd.evaluation.attacks.kept import kept_attack
from spamd.evaluation.attacks.target import Calls, Floats, Lesson, Reader
from spamd.evaluation.attacks.words import Words
from spamd.evaluation.rates import CALLED_HAM, CALLED_SPAM
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label
from tests.evaluation.mails import HAM, mail, mailbox

FEW = AttackOptions(added=(30,), disguised=5, poisoned=(0.1,), wrong_labels=(0.1,), jobs=1)


class CountsWords:
    """A filter of one rule: log-odds fall with each different ham word."""

    def __init__(self) -> None:
        self.lessons: list[Lesson] = []

    def learn(self, lessons: Sequence[Lesson]) -> None:
        self.lessons = list(lessons)

    def judge(self, mails: Sequence[bytes]) -> tuple[Floats, Calls]:
        good = [sum(word.encode() in raw for word in HAM) for raw in mails]
        odds = np.array([[5.0 - count] for count in good])
        return odds, np.where(odds > 0, CALLED_SPAM, CALLED_HAM).astype(np.int8)


class AnotherFilter(CountsWords):
    """One more."""


def test_an_attack_is_judged_at_the_threshold_of_clean_mail() -> None:
    lessons = [(mail(label, i, 0.0), label) for i in range(60) for label in Label]
    rows = {
        row.attack: row
        for row in assault(lessons, FEW, Reader(TokenizerOptions(), 1), {"": CountsWords})
    }
    assert rows["none"].caught == 100.0
    assert rows["none"].ham_lost == 0.0
    assert rows["rewritten, nothing added"].caught == 100.0
    assert rows["30 best ham words"].caught == 0.0
    assert rows["30 best ham words"].spam_called == 0.0
    assert rows["100 best, in the header"].caught == 0.0
    assert rows["30 best ham words"].ham_lost == 0.0
    assert list(rows)[-2:] == ["10 % wrong labels", "10 % poison"]


def test_poison_meets_every_target_and_the_rest_only_the_first() -> None:
    lessons = [(mail(label, i), label) for i in range(20) for label in Label]
    told: list[tuple[str, int, int]] = []
    rows = assault(
        lessons,
        FEW,
        Reader(TokenizerOptions(), 1),
        {"": CountsWords, "other, ": AnotherFilter},
        progress=lambda *step: told.append(step),
    )
    assert [row.attack for row in rows][-3:] == [
        "10 % wrong labels",
        "10 % poison",
        "other, 10 % poison",
    ]
    assert told[-1] == ("attacks", len(rows) - 1, len(rows) - 1)


def test_the_attacker_knows_the_words_that_speak_most_clearly() -> None:
    words = Words(
        [(["report", "the", "free7"], Label.HAM)] * 9
        + [(["report", "the", "pills"], Label.SPAM)]
        + [(["pills", "the"], Label.SPAM)] * 9
    )
    assert words.best(1) == ["report"]
    assert words.best(1, Label.SPAM) == ["pills"]
    assert words.frequent() == ["report", "the"]
    assert words.dictionary() == ["report", "the"]


def test_poison_comes_at_the_wanted_share_and_wrong_labels_too() -> None:
    lessons = [(mail(label, i), label) for i in range(500) for label in Label]
    words = Words([(["report", "minutes", "agenda"], Label.HAM)] * 2)
    doses = dict(doses_of(lessons, words, AttackOptions(poisoned=(0.02,))))
    venom = [lesson for lesson in doses["2 % poison"] if b"report" in lesson[0]]
    assert len(venom) == 20
    assert len({raw for raw, _ in venom}) > 3
    assert {label for _, label in venom} == {Label.SPAM}
    wrong = sum(a[1] is not b[1] for a, b in zip(doses["5 % wrong labels"], lessons, strict=True))
    assert 20 < wrong < 90


def test_a_seed_gives_the_same_attacks_again() -> None:
    words = Words([(HAM, Label.HAM)] * 2)
    raw = mail(Label.SPAM, 1)
    first = [evade(raw) for _, evade in evasions_of(words, AttackOptions(seed=3, added=(5,)))]
    again = [evade(raw) for _, evade in evasions_of(words, AttackOptions(seed=3, added=(5,)))]
    assert first == again


def test_the_product_is_attacked_with_and_without_its_cap(tmp_path: Path) -> None:
    rows = attack(mailbox(tmp_path, 150), FEW, BayesOptions(), TokenizerOptions()).rows
    by_name = {row.attack: row for row in rows}
    assert by_name["none"].caught > 90.0
    assert set(by_name["none"].classifiers) == set(BayesOptions().fusion.classifiers)
    assert "without the cap, 10 % poison" in by_name
    assert by_name["30 best ham words"].to_json()["attack"] == "30 best ham words"


@pytest.mark.parametrize(
    "options", [{"added": (-1,)}, {"poisoned": (1.0,)}, {"wrong_labels": (-0.1,)}, {"jobs": 0}]
)
def test_impossible_options_are_refused(options: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AttackOptions(**options)  # type: ignore[arg-type]  # numbers all


def test_an_attacker_whose_mail_is_kept_gains_at_most_what_one_honest_move_gains() -> None:
    lessons = [(mail(label, i), label) for i in range(150) for label in Label]

    move, *kept = kept_attack(lessons, Reader(TokenizerOptions(), 1), BayesOptions(), 0)

    assert move.lessons == 1.0
    assert move.carried > 0.5
    assert kept[-1].lessons > 0
    assert all(row.carried <= move.carried for row in kept)
    assert all(row.plain <= move.plain for row in kept)
