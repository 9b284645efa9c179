"""People one knows, over public mail: their mail is unsure half as often, forged mail never helped.

All of both corpora, in five orders: `python -m tests.evaluation.known_people SA MODERN`, by hand.
"""

from pathlib import Path

import pytest

from spamd.bayes.model import BayesOptions
from spamd.evaluation.index import read_index
from spamd.evaluation.material import prepare
from spamd.evaluation.protocol import EvaluationOptions, transfer
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label
from tests.evaluation.known_people import figures, letter_of, met, read

LEARNED, JUDGED = 1000, 1500
"""Mails; all would take a minute."""

pytestmark = pytest.mark.timeout(600)


def test_at_the_start_ham_of_known_people_is_unsure_half_as_often_and_no_forgery_is_helped(
    spamassassin_corpus: Path, modern_corpus: Path
) -> None:
    learned = read_index(modern_corpus / "index")[:LEARNED]
    index = read_index(spamassassin_corpus / "index")[:JUDGED]
    taught, judged = (prepare(each, TokenizerOptions()) for each in (learned, index))
    result = transfer(taught, judged, EvaluationOptions(), BayesOptions())
    found = figures(read(index), result.fused.log_odds)
    assert found["before"] >= 10
    assert found["after"] <= found["before"] / 2
    assert found["forged"] > 500
    assert found["helped"] == 0
    assert found["harder"] == found["forged"] / 2  # those that are disproven
    assert found["passed"] <= 0.1 * found["taken"]  # what a taken account sends is still seen


def mail(number: int, sender: str, *fields: str) -> tuple[Label, bytes]:
    lines = [f"Message-ID: <{number}@x.test>", f"From: {sender}@x.test", *fields]
    return Label.HAM, ("\n".join(lines) + "\n\nHi.\n").encode()


def test_who_was_answered_is_known_from_then_on_to_his_friend_as_his_own() -> None:
    mails = [
        mail(0, "ann"),
        mail(1, "bob", "In-Reply-To: <0@x.test>"),
        mail(2, "ann", "References: <1@x.test>"),
        mail(3, "ann"),
        mail(4, "bob"),
        mail(5, "eve", "To: cy@x.test"),
        mail(6, "cy", "Cc: ann@x.test"),
    ]
    found = [one for one, _ in met([(label, letter_of(raw)) for label, raw in mails])]
    assert [(one.place, one.sender.address, one.reader) for one in found] == [
        (2, "ann@x.test", "bob@x.test"),
        (3, "ann@x.test", ""),
        (4, "bob@x.test", ""),
        (6, "cy@x.test", ""),
    ]
