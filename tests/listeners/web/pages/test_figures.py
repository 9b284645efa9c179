"""Numbers, times and strangers' text as the page writes them."""

from datetime import UTC, datetime
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.listeners.web.pages import figures
from spamd.listeners.web.pages.texts import Section
from spamd.wording import UNPRINTABLE

EVIL = "<script>alert(1)</script>"


def test_counts_are_read_without_javascript_and_say_what_they_are() -> None:
    assert figures.number(1204) == '<data value="1204">1,204</data>'
    assert figures.number(nan) == "–"
    assert "50.7 %" in figures.percent(0.5074)


@pytest.mark.parametrize(
    ("value", "text"), [(0.07, "0.07 %"), (2.6, "2.6 %"), (0.0, "0.0 %"), (100.0, "100.0 %")]
)
def test_a_rate_below_one_percent_has_two_digits(value: float, text: str) -> None:
    assert f">{text}<" in figures.rate(value)


@given(st.floats(0, 1))
def test_no_probability_is_shown_as_certain(p: float) -> None:
    shown = figures.probability(p)
    assert shown not in {"0.000", "1.000"}
    if shown[0] not in "<>":
        assert abs(float(shown) - p) <= 0.0005000001


def test_times_are_utc_for_who_has_no_javascript() -> None:
    time = datetime(2026, 11, 28, 14, 5, tzinfo=UTC)
    assert figures.moment(time) == (
        '<time datetime="2026-11-28T14:05:00Z" data-part="minute">2026-11-28 14:05</time>'
    )
    assert ">14:05<" in figures.moment(time, "hour")


@given(st.text())
def test_whatever_a_stranger_writes_is_text_without_a_character_that_steers(text: str) -> None:
    shown = figures.shown(text).unescape()
    inner = shown.partition(">")[2]
    assert not any(ord(char) < 32 or char in "\u202a\u202e\u2066\u200b" for char in inner)
    assert "Cf" in UNPRINTABLE


def test_markup_of_a_stranger_stays_text_and_long_text_is_cut() -> None:
    assert EVIL not in figures.shown(EVIL)
    assert "&lt;script&gt;" in figures.shown(EVIL)
    assert len(figures.shown("W" * 10_000)) < 250
    assert EVIL not in figures.filled("by {who}", who=EVIL)


def test_a_text_has_a_form_for_one_and_for_several() -> None:
    forms = Section({"one": "{n} mail", "other": "{n} mails"})
    assert figures.plural(forms, 1) == '<data value="1">1</data> mail'
    assert figures.plural(forms, 0).endswith(" mails")
