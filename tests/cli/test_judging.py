"""scan and explain: verdicts, exit codes, words."""

import io
import re
from pathlib import Path

import pytest

from spamd.explanation import TRICKS as TRICK_NAMES
from tests.cli.conftest import Spamd, made_up


@pytest.mark.parametrize(("name", "code", "verdict"), [("spam", 0, "spam"), ("ham", 1, "ham")])
def test_scan_of_one_mail_exits_with_its_verdict(
    taught: Spamd, name: str, code: int, verdict: str
) -> None:
    ran = taught("scan", f"{name}/11.eml")

    assert ran.code == code
    assert ran.out.split()[0] == verdict
    assert ran.out.split()[2] == f"{name}/11.eml"


def test_scan_before_training_is_unsure_and_says_what_is_missing(spamd: Spamd) -> None:
    ran = spamd("scan", "spam/00.eml")

    assert ran.code == 2
    assert "(too little training: ham 0 of 5, spam 0 of 5 messages)" in ran.out


def test_scan_of_a_missing_mail_is_trouble(taught: Spamd) -> None:
    ran = taught("scan", "missing")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "spamd: missing: no such file or directory\n"


def test_scan_of_several_mails_exits_0_when_all_were_scanned(taught: Spamd) -> None:
    assert taught("scan", "spam", "ham").code == 0
    assert taught("scan", "spam", "missing").code == 3


def test_scan_reads_standard_input(taught: Spamd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(made_up("spam", 11))))

    assert taught("scan", "-").code == 0


def test_scan_as_json_prints_one_object_for_each_mail(taught: Spamd) -> None:
    found = taught("scan", "spam/11.eml", "--json").json

    assert list(found) == [
        "path",
        "id",
        "verdict",
        "probability",
        "action",
        "reason",
        "user",
        "listed",
        "classifiers",
    ]
    assert (found["path"], found["verdict"], found["action"]) == ("spam/11.eml", "spam", "tag")
    assert 0.5 < found["probability"] <= 1
    assert {"graham", "multinomial", "fisher"} <= set(found["classifiers"])


def test_the_probability_is_that_which_the_verdict_rests_on(taught: Spamd) -> None:
    rare = ("--set", "decision.prior_spam=0.0001")
    scanned = taught(*rare, "scan", "spam/11.eml", "--json").json
    explained = taught(*rare, "explain", "spam/11.eml", "--json").json
    shown = taught(*rare, "explain", "spam/11.eml", "--all").out

    assert scanned["reason"].startswith(f"probability {scanned['probability']:.4f}, ")
    assert explained["probability"] == scanned["probability"]
    effects = [classifier["effect"] for classifier in explained["classifiers"]]
    assert sum(effects, explained["bias"] + explained["prior"]) == pytest.approx(
        explained["log_odds"]
    )
    assert re.search(r"\(share of spam\) +-9\.21", shown)


def test_scan_as_json_tells_of_what_was_not_scanned(taught: Spamd) -> None:
    found = taught("scan", "missing", "--json").json

    assert (found["verdict"], found["probability"]) == ("unscanned", None)


def test_scan_changes_nothing(taught: Spamd) -> None:
    before = taught("status", "--json").json

    taught("scan", "spam", "ham")

    assert taught("status", "--json").json == before


def test_names_can_t_steer_the_terminal(taught: Spamd, home: Path) -> None:
    (home / "a\x1b[2J\n.eml").write_bytes(made_up("ham", 1))

    ran = taught("scan", "a\x1b[2J\n.eml")

    assert "\x1b" not in ran.out
    assert ran.out.count("\n") == 1


def test_a_name_that_is_not_utf_8_is_printed(taught: Spamd, home: Path) -> None:
    name = b"caf\xe9.eml"
    (home / name.decode("utf-8", "surrogateescape")).write_bytes(made_up("ham", 1))

    ran = taught("scan", name.decode("utf-8", "surrogateescape"))

    assert ran.code == 1
    assert "caf\\udce9.eml" in ran.out


def test_explain_shows_classifiers_tokens_counts_and_what_would_flip_the_verdict(
    taught: Spamd,
) -> None:
    ran = taught("explain", "spam/11.eml", "--clues", "30", "--all")

    assert ran.code == 0
    assert re.match(r"spam  [01]\.\d{4}  spam/11.eml\nThis is spam: the probability", ran.out)
    for expected in (
        "are known from 10 spam and 10 ham",
        "The words that moved the verdict most",
        "What each classifier says",
        "Graham: the strongest tokens",
        "lottery",
        "10 (100 %)",
        "sum",
    ):
        assert expected in ran.out
    assert "it would be" in ran.out or "it would still be" in ran.out


def test_explain_as_json_holds_the_same(taught: Spamd) -> None:
    found = taught("explain", "ham/11.eml", "--json").json

    graham = next(
        classifier for classifier in found["classifiers"] if classifier["name"] == "graham"
    )
    effects = sum(classifier["effect"] for classifier in found["classifiers"])
    assert found["verdict"] == "ham"
    assert set(graham["clues"][0]) == {"token", "spam", "ham", "probability", "contribution"}
    assert effects + found["bias"] == pytest.approx(found["log_odds"])


TRICKS = """\
<html><body style="background: #ffffff">
<p>The w<!-- x -->in<b></b>ner, cl&#97;im your pr\u00adize: a mil\u200blion d\u043ellars in cash</p>
<p>Buy p i l l s now, and m0ney</p>
<p style="color: #fffffe">meeting minutes agenda project review</p>
<div style="display: none">lunch regards attached draft notes</div>
<span style="font-size: 0">tomorrow</span>
<a href="http://p\u0430ypal.example/login">your account</a>
</body></html>
"""


@pytest.fixture
def tricky(home: Path) -> str:
    """The name of a mail with hidden text, look-alike letters and words that were split."""
    head = (
        "From: mallory@tricks.example\nTo: you@example.org\nSubject: an offer\nMIME-Version: 1.0\n"
        "Content-Type: text/html; charset=utf-8\n\n"
    )
    (home / "tricky.eml").write_text(head + TRICKS, "utf-8")
    return "tricky.eml"


def test_explain_shows_the_readers_words_and_the_tricks(taught: Spamd, tricky: str) -> None:
    said = taught("explain", tricky, "--clues", "30", "--all").out

    for trick in (
        "text that the reader is not shown",
        "invisible characters inside words",
        "comments or empty tags inside words",
        "words in letters of another alphabet",
        "digits for letters",
        "words written letter by letter",
        "a host name in look-alike letters",
    ):
        assert trick in said.partition("What each classifier says")[0]
    assert "Words that are shown: money, pills, dollars\n" in said
    assert (
        "Words that are hidden: meeting, minutes, agenda, project, review, lunch, regards,"
        " attached, draft, notes, tomorrow\n"
    ) in said
    graham = said.partition("Graham:")[2].partition("Multinomial")[0]
    for word in ("winner", "claim", "prize", "million", "dollars", "pills"):
        assert re.search(rf"^{word} +10 \(100 %\)", graham, re.MULTILINE)
    assert "meeting" not in graham  # what is hidden does not speak for the mail


def test_explain_as_json_holds_the_tricks(taught: Spamd, tricky: str) -> None:
    found = taught("explain", tricky, "--json").json["tricks"]

    assert set(found["names"]) == set(TRICK_NAMES) - {"punycode"}
    assert found["plain"] == ["money", "pills", "dollars"]
    assert found["hidden"][:3] == ["meeting", "minutes", "agenda"]


def test_explain_says_nothing_of_tricks_where_there_are_none(taught: Spamd) -> None:
    assert "A person" not in taught("explain", "ham/11.eml").out
    assert taught("explain", "ham/11.eml", "--json").json["tricks"] == {
        "names": [],
        "plain": [],
        "hidden": [],
    }


def test_explain_by_the_id_of_a_taught_mail(taught: Spamd) -> None:
    identity = taught("scan", "ham/00.eml", "--json").json["id"]

    found = taught("explain", identity, "--json").json

    assert (found["path"], found["verdict"]) == (identity, "ham")


def test_explain_of_an_unknown_id_is_trouble(taught: Spamd) -> None:
    ran = taught("explain", "0" * 20 + "-" + "0" * 16)

    assert ran.code == 3
    assert "no message with this id is known" in ran.err


def test_explain_of_one_known_and_one_missing_mail_is_partly_done(taught: Spamd) -> None:
    assert taught("explain", "ham/00.eml", "missing").code == 1
