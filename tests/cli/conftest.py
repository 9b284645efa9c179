"""A folder of its own for each test, made-up mail, and the command line as a function."""

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spamd.cli.main import run

SPAM_WORDS = "lottery winner claim prize million dollars transfer urgent offer pills casino"
HAM_WORDS = "meeting minutes agenda tomorrow project review lunch regards attached draft notes"


def made_up(label: str, number: int) -> bytes:
    """Return a mail that is plainly spam or ham, each number another one."""
    words = SPAM_WORDS if label == "spam" else HAM_WORDS
    host = "prizes.example" if label == "spam" else "work.example"
    return (
        f"From: sender{number}@{host}\r\nTo: you@example.org\r\n"
        f"Subject: {words.split()[number % 5]}\r\nMessage-ID: <{label}{number}@{host}>\r\n\r\n"
        f"{words}\r\nnumber{number} {label}like\r\n"
    ).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Spamd = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _garbage_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a command's `loading` from hiding the garbage of this process, which outlives it."""
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder with `var`, and folders `spam` and `ham` of twelve mails each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "var").mkdir()
    for label in ("spam", "ham"):
        (tmp_path / label).mkdir()
        for number in range(12):
            (tmp_path / label / f"{number:02}.eml").write_bytes(made_up(label, number))
    return tmp_path


@pytest.fixture
def spamd(home: Path, capsys: pytest.CaptureFixture[str]) -> Spamd:
    """Return the command line; verdicts start after five mails of each label."""

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        fewer = ["--set", "decision.minimum_ham=5", "--set", "decision.minimum_spam=5"]
        code = run([*fewer, *map(str, arguments)])
        said = capsys.readouterr()
        return Ran(code=code, out=said.out, err=said.err)

    return call


@pytest.fixture
def taught(spamd: Spamd) -> Spamd:
    """Return the command line after ten mails of each label were taught."""
    for label in ("spam", "ham"):
        assert (
            spamd("train", label, *[f"{label}/{number:02}.eml" for number in range(10)]).code == 0
        )
    return spamd
