"""Runs of marks and signs that NFKC makes many of: bounded, and put in order in linear time."""

import re
import sys
import unicodedata
from unicodedata import combining

import pytest

from spamd.message import unicode
from spamd.message.features import extract
from spamd.message.html.page import render
from spamd.message.unicode import normalize, words

from .helpers import mail, page
from .linear import cpu_s, growth

MARKS = [
    chr(point)
    for point in range(0x300, 0x1F000)
    if unicodedata.combining(chr(point)) or unicodedata.normalize("NFKD", chr(point))[0] == "\u3099"
]
RUNS = [
    "\u0301\u0323", "\u0323\u0301", "\u0345\u0301\u0323", "\u0f73\u0344", "\u0f74\u0f71",
    "\uff9e\u0323", "\U0001d165\U0001d17b", "\u0591\u05b0", "\u064b\u0651", "\u0e48\u0e38",
    "\u3099\u302a", "\U0001e8d0\u0301", "\u0340\u0323",
]  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_g4_a_run_of_marks_is_put_in_order_in_linear_time(run: str) -> None:
    assert growth(normalize, "a" + run * 2_000, "a" + run * 8_000) <= 7


def test_g4_every_mark_there_is_counts_as_one() -> None:
    text = "a" + "".join(mark + "\u0323" for mark in MARKS)
    assert cpu_s(normalize, text * 20, 3) < 0.1


@pytest.mark.parametrize("run", RUNS)
def test_g4_thirty_marks_stay_on_a_letter(run: str) -> None:
    text, _ = normalize("a" + run * 1_000 + "b")
    marks = unicodedata.normalize("NFD", text).partition("b")[0][1:]
    assert len(marks) <= 2 * 30  # a few marks are two when they are taken apart
    assert text.endswith("b")


@pytest.mark.parametrize(
    "text", ["Cafe\u0301", "Việt Nam", "שָׁלוֹם", "नमस्ते", "ガ", "e\u0301" * 500, "각"]
)
def test_g4_writing_that_people_use_is_left_as_it_is(text: str) -> None:
    assert normalize(text)[0] == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    "sign", ["\ufdfa", "\ufdfb", "\ufdf2", "\u3300", "\u33a2", "\ufc5e", "\u2057", "㌀a"]
)
def test_g4_a_text_becomes_twice_as_long_at_most(sign: str) -> None:
    assert len(normalize(sign * 10_000)[0]) <= 20_000 * len(sign)
    assert normalize(sign * 10)[0]


@pytest.mark.parametrize(
    "unit",
    [
        "\u0301\u0323",
        "&#x301;&#x323;",
        "&#769;&#803;",
        "\u1161\u11a8",
        "\u1100",
        "\ufdfa",
        "ﷲ",
        "㌀",
    ],
)
@pytest.mark.parametrize("kind", ["plain", "html", "subject", "title", "alt", "file"])
def test_g4_sixty_thousand_marks_cost_no_more_than_other_text(unit: str, kind: str) -> None:
    text = "a" + unit * (120_000 // len(unit))
    raw = {
        "plain": mail(text),
        "html": page(text),
        "subject": mail("b", f"Subject: {text}"),
        "title": page(f"<title>{text}</title>"),
        "alt": page(f"<img alt='{text}'>" * 2),
        "file": mail("b", f'Content-Type: application/x; name="{text}"'),
    }[kind]
    assert cpu_s(extract, raw, 3) < 0.5


def test_g4_marks_written_as_references_are_marks() -> None:
    assert words(normalize(render("<p>e&#x301;</p>").text.strip())[0]) == ["é"]


def test_g4_no_mark_stands_where_none_is_looked_for() -> None:
    looked_at = re.compile(unicode._MAYBE_MARK)
    signs = [sign for sign in map(chr, range(sys.maxunicode + 1)) if not looked_at.match(sign)]
    marks = [
        sign
        for sign in signs
        if not "\ud800" <= sign <= "\udfff"
        and all(map(combining, unicodedata.normalize("NFKD", sign)))
    ]
    assert len(signs) > 40_000
    assert marks == []
