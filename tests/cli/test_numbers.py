"""Faults of counting and of numbers that other filters had, at the command line."""

import math
from pathlib import Path

import pytest

from tests.cli.conftest import Spamd, made_up

REJECT = ("--set", "decision.reject=true")


def scanned(spamd: Spamd, path: Path, *arguments: str) -> dict[str, object]:
    found = spamd("scan", path, "--json", *arguments).json
    assert isinstance(found, dict)
    return found


def written(home: Path, content: bytes) -> Path:
    path = home / "mail.eml"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("label", ["spam", "ham"])
def test_d1_with_one_label_only_every_mail_is_unsure(spamd: Spamd, home: Path, label: str) -> None:
    spamd("train", label, label)
    other = "ham" if label == "spam" else "spam"
    for path in (home / label / "00.eml", home / other / "00.eml"):
        found = scanned(spamd, path, *REJECT)
        assert (found["verdict"], found["action"]) == ("unsure", "accept")
        assert f"{other} 0 of 5" in str(found["reason"])


@pytest.mark.parametrize(("spam", "ham", "ready"), [(5, 4, False), (4, 5, False), (5, 5, True)])
def test_d2_both_labels_must_reach_the_minimum(
    spamd: Spamd, home: Path, spam: int, ham: int, *, ready: bool
) -> None:
    for label, number in (("spam", spam), ("ham", ham)):
        spamd("train", label, *[f"{label}/{n:02}.eml" for n in range(number)])
    found = scanned(spamd, home / "spam" / "11.eml")
    assert ("too little training" not in str(found["reason"])) == ready


@pytest.mark.parametrize(
    "body",
    ["", " \n\n", "xyzzy plugh never seen", "\N{GRINNING FACE}\N{PARTY POPPER}", "\ufffd\x00\x07"],
)
def test_d3_a_mail_without_evidence_has_a_finite_probability(
    taught: Spamd, home: Path, body: str
) -> None:
    found = scanned(taught, written(home, b"\n" + body.encode()))
    probability = found["probability"]
    assert isinstance(probability, float)
    assert 0 < probability < 1
    classifiers = found["classifiers"]
    assert isinstance(classifiers, dict)
    assert all(math.isfinite(score) for score in classifiers.values())


def test_d4_tokens_that_say_nothing_are_no_evidence(spamd: Spamd, home: Path) -> None:
    for label in ("spam", "ham"):
        folder = home / f"same-{label}"
        folder.mkdir()
        for number in range(6):
            content = f"From: {label}{number}@x.example\n\nthe same words everywhere\n"
            (folder / f"{number}.eml").write_text(content)
        spamd("train", label, folder)
    found = scanned(spamd, written(home, b"\nthe same words everywhere\n"))
    assert isinstance(found["probability"], float)
    assert found["verdict"] != "spam"


def test_d5_the_hammiest_mail_still_has_a_number(taught: Spamd, home: Path) -> None:
    found = scanned(taught, home / "ham" / "01.eml")
    assert found["verdict"] == "ham"
    assert isinstance(found["probability"], float)
    assert found["probability"] < 0.1


@pytest.mark.parametrize("label", ["spam", "ham"])
def test_d6_a_very_long_mail_stays_finite_and_explainable(
    taught: Spamd, home: Path, label: str
) -> None:
    words = b" ".join(b"word%d" % number for number in range(20_000))
    content = made_up(label, 50) + words + b"\r\n"
    path = written(home, content)
    taught("train", label, path)
    found = scanned(taught, path)
    assert isinstance(found["probability"], float)
    assert 0 < found["probability"] < 1
    assert found["verdict"] == label
    assert taught("explain", path).code == 0
