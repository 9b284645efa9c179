"""docs/tokens.md can't fall behind."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tokens.md").read_text(encoding="utf-8")
SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "spamd" / "message").rglob("*.py")
)


@pytest.mark.parametrize("limit", fields(Limits()), ids=lambda limit: limit.name)
def test_every_limit_is_documented_with_its_default(limit: object) -> None:
    name = getattr(limit, "name", "")
    assert f"| `{name}` | {getattr(Limits(), name):,} |" in PAGE


@pytest.mark.parametrize("limit", fields(Limits()), ids=lambda limit: limit.name)
def test_every_limit_that_is_a_defect_when_it_is_reached_is_documented(limit: object) -> None:
    name = getattr(limit, "name", "")
    smallest = {"token_chars": 64, "depth": 2, "header_bytes": 20}.get(name, 1)
    inner = (
        "Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: text/html\n\n"
        "<p>a word</p> <p>a word</p> <a href=http://a.example/>b</a><a href=http://b.example/>"
        f"{'c' * 70}</a>\n"
    )
    for boundary in "ba":
        inner = f"Content-Type: multipart/mixed; boundary={boundary}\n\n--{boundary}\n{inner}"
    found = extract(
        f"Subject: Good offer\nTo: Ann Bell <a@a.example>\n{inner}".encode(),
        TokenizerOptions(limits=Limits(**{name: smallest})),
    )
    sentence = PAGE.partition("Reaching `")[2].partition(" is a defect")[0]
    assert bool(found.defects) == (f"{name}`" in sentence)


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.name)
def test_every_kind_of_token_is_documented(kind: Kind) -> None:
    assert f"| `{kind.name}` |" in PAGE


def test_every_fact_is_documented() -> None:
    for name in [*(name for name, _ in SCHEMA.discrete), *SCHEMA.continuous]:
        assert f"`{name}`" in PAGE


def test_every_trick_and_every_defect_is_documented() -> None:
    for trick in re.findall(r'tricks(?:\[|\.append\()"([a-z-]+)"', SOURCE):
        assert f"`trick:{trick}`" in PAGE
    for defect in re.findall(r'defects\["([a-z ]+)"\]', SOURCE):
        assert defect.replace(" ", "-") in PAGE


def test_every_prefix_is_documented() -> None:
    for prefix in re.findall(r'f"([a-z]+:)\{', SOURCE):
        assert f"`{prefix}" in PAGE, prefix
