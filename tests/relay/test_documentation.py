"""Every reply of ours stands in docs/smtp.md, and every row of the checklist is a test."""

import re
from pathlib import Path

import pytest

from spamd.relay.smtp.capabilities import PASSED_ON
from spamd.relay.smtp.commands import EXTENSION_OF
from spamd.relay.smtp.replies import TABLE
from spamd.relay.urls import Scheme

ROOT = Path(__file__).parents[2]
SMTP = (ROOT / "docs" / "smtp.md").read_text("utf-8")
REPLY = re.compile(r'(?:reply\((\d{3}), f?"(\d\.\d\.\d) )')
SAID = sorted(
    {
        f"{code} {enhanced}"
        for path in (ROOT / "spamd" / "relay").rglob("*.py")
        for code, enhanced in REPLY.findall(path.read_text("utf-8"))
        if not code.startswith("2")
    }
)


@pytest.mark.parametrize("answer", SAID)
def test_a_reply_is_documented(answer: str) -> None:
    assert f"`{answer}`" in SMTP


@pytest.mark.parametrize("kind", list(TABLE), ids=lambda kind: str(kind.__name__))
def test_the_reply_to_a_fault_is_documented(kind: type) -> None:
    row = TABLE[kind]
    for code in {row.code, row.at_command or row.code}:
        assert f"`{code} {row.enhanced}`" in SMTP


@pytest.mark.parametrize("keyword", [*PASSED_ON, *EXTENSION_OF])
def test_an_extension_is_documented(keyword: bytes) -> None:
    assert keyword.decode() in SMTP


@pytest.mark.parametrize("scheme", Scheme)
def test_a_kind_of_next_hop_is_documented(scheme: Scheme) -> None:
    assert f"`{scheme}://" in SMTP


ROWS = [
    *(f"c{number:02}" for number in range(1, 18)),
    *(f"e{number:02}" for number in range(1, 11)),
    *(f"m{number:02}" for number in range(1, 16)),
    *(f"d{number:02}" for number in range(1, 25)),
    *(f"p{number:02}" for number in range(1, 16)),
    *(f"t{number:02}" for number in range(1, 15)),
    *(f"l{number:02}" for number in range(1, 7)),
]
FUNCTIONS = [
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
]
DIALOGS = [
    f"test_{name}"
    for path in (ROOT / "tests" / "relay" / "dialogs").glob("*.txt")
    for name in re.findall(r"^== (\w+)", path.read_text("utf-8"), re.MULTILINE)
]
NAMES = " ".join([*FUNCTIONS, *DIALOGS])


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_checklist_is_a_test(row: str) -> None:
    assert f"test_smtp_{row}_" in NAMES or re.search(rf"test_smtp_\w+_and_{row}_", NAMES)


@pytest.mark.parametrize("case", range(1, 27))
def test_a_fault_case_is_a_test(case: int) -> None:
    assert f"test_c{case}_" in NAMES or re.search(rf"_and_c{case}_", NAMES)
