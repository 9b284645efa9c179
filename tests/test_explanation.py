"""An explanation as plain text: the words of `spamd explain`, and no more than a page."""

import re

import pytest

from spamd.bayes.evidence import Explanation, explain
from spamd.bayes.model import BayesOptions, Model
from spamd.cli.explanation import show
from spamd.explanation import CLUES, TEXT_BYTES, as_text, sentences
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.sample import Label
from tests.bayes.samples import teach
from tests.cli.conftest import made_up

TRICKY = "".join(f"<b style='display:none'>hid{n}</b> v\u200bi\u200bagra{n} " for n in range(30))


def explained(mail: bytes) -> tuple[Explanation, Features]:
    """Return why a mail is judged as it is by a model that was taught it and ten of each label."""
    model = Model.empty(SCHEMA, BayesOptions())
    for number in range(10):
        for label in Label:
            teach(model, extract(made_up(label, number)).sample, label, b"%d" % number)
    features = extract(mail)
    teach(model, features.sample, Label.SPAM, b"this")
    return explain(model, features.sample, CLUES), features


@pytest.mark.parametrize(
    "mail",
    [
        made_up("spam", 3),
        made_up("ham", 4),
        f"From: a@x.test\nContent-Type: text/html\n\n<p>{TRICKY}".encode(),
        b"",
    ],
    ids=["spam", "ham", "tricky", "empty"],
)
def test_the_plain_text_has_the_words_that_explain_prints(
    mail: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    found, features = explained(mail)
    show("NAME", found, features, everything=True)
    printed = re.sub("[█─]+|NAME", " ", capsys.readouterr().out).split()
    assert re.sub("--+", " ", as_text(found, features)).split() == printed


def test_a_text_is_bounded_and_ends_with_a_line_whatever_the_words_are() -> None:
    words = " ".join(f"{n}" + "\U000e0041\U0001f4a9\ufdfd" * 30 for n in range(200))
    mail = f"Subject: x\nContent-Type: text/plain; charset=utf-8\n\n{words}\n{TRICKY}".encode()
    text = as_text(*explained(mail))
    assert len(text.encode()) <= TEXT_BYTES
    assert text.endswith("\n")


def test_a_text_that_is_too_long_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = as_text(*explained(made_up("spam", 3)))
    monkeypatch.setattr("spamd.explanation.TEXT_BYTES", 500)
    cut = as_text(*explained(made_up("spam", 3)))
    assert len(cut.encode()) <= 500
    assert cut.endswith("\n…\n")
    assert whole.startswith(cut.removesuffix("…\n"))


def test_an_explanation_begins_with_what_it_is_why_and_what_would_change_it() -> None:
    found, features = explained(made_up("spam", 3))
    what, why, change = sentences(found, features)
    assert what.startswith("This is spam: the probability of spam is ")
    assert what.endswith("and it is marked as spam.")
    strongest = [features.texts[word.index] for word in found.words if word.effect > 0]
    assert f"for spam above all “{strongest[0]}”" in why
    assert change.startswith(("Without th", "No small set of words"))
    assert as_text(found, features).splitlines()[1:4] == [what, why, change]


def test_without_lessons_the_sentences_say_what_is_missing() -> None:
    features = extract(made_up("spam", 3))
    found = explain(Model.empty(SCHEMA, BayesOptions()), features.sample, CLUES)
    what, why, _ = sentences(found, features)
    assert what.startswith("There is no verdict yet (too little training: ham 0 of 10")
    assert why.startswith("No word of it says anything")
    assert found.words == ()


def test_only_with_all_each_classifier_has_its_own_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, features = explained(made_up("spam", 3))
    show("NAME", found, features)
    short = capsys.readouterr().out
    show("NAME", found, features, everything=True)
    assert "The words that moved the verdict most" in short
    assert "Graham: the strongest tokens" not in short
    assert "Graham: the strongest tokens" in capsys.readouterr().out


def test_words_share_out_what_the_classifiers_add_and_the_strongest_come_first() -> None:
    found, _ = explained(made_up("spam", 3))
    effects = [word.effect for word in found.words]
    assert effects == sorted(effects, key=abs, reverse=True)
    most = sum(abs(each.effect) for each in found.classifiers)
    assert 0 < sum(effects) <= most
