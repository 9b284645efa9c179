"""An explanation as plain text: the words of `spamd explain`, and no more than a page."""

import re

import pytest

from spamd.bayes.evidence import Explanation, explain
from spamd.bayes.model import BayesOptions, Model
from spamd.cli.explanation import show
from spamd.explanation import CLUES, TEXT_BYTES, as_text
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
    show("NAME", found, features)
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
