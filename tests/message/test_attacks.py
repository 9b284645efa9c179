"""Inputs that were found to stop or slow the reading: by fuzzing, by mutated mail, by thinking.

No clock here: each was quadratic or worse, so that it would run into the time-out of the test run.
"""

import pytest

from spamd.message.features import extract
from spamd.message.html.page import render
from spamd.message.mime.charset import KNOWN, header_text
from spamd.message.mime.parser import parse

from .helpers import mail, page, tokens


def test_a_character_reference_of_thousands_of_digits_is_no_error() -> None:
    assert "seen" in render("&#" + "9" * 5000 + "; seen").text
    assert render("<a href='http://a.example/&#" + "9" * 1000 + "'>x</a>").links
    assert "seen" in render("&#x" + "f" * 100_000 + "; seen").text


@pytest.mark.parametrize("codec", sorted(set(KNOWN.values())))
def test_every_known_charset_decodes_any_bytes(codec: str) -> None:
    bytes(range(256)).decode(codec, "replace")


@pytest.mark.parametrize(
    "value",
    [
        "a" * 250_000,
        "a@" * 125_000,
        "=?x?q?" * 40_000,
        "=?x?q?a?" * 30_000,
        "=?utf-8?B?" + "?" * 200_000,
        ";a" * 100_000,
        ";" + " " * 200_000,
        '; a="' + "\\" * 200_000,
        "*" * 200_000,
        "[" * 200_000,
        "boundary" * 30_000,
        "'" * 200_000,
        "&#9" * 60_000,
        "xn--" * 50_000,
    ],
)
@pytest.mark.parametrize("name", ["To", "From", "Subject", "Content-Type", "X-Any", "Received"])
def test_a_field_of_a_quarter_megabyte_costs_linear_time(name: str, value: str) -> None:
    found = extract(f"{name}: {value}\n\nbody".encode())
    assert "body" in set(found.texts)


@pytest.mark.parametrize(
    "unit",
    [
        "http://", "www.", "www.a", "a@", "@a", "@a.", "://", "V\u200b", "a b c d ", "a-", "-a",
        "'", "1.", "1,", "\n--", "begin 644 a\n", "\nend", "-----BEGIN PGP", "A" * 70 + "\n", "發",
        "\n____________________________________________\nlist@ unsubscribe", "é", "е1", "=\n",
        "=C3", "-----BEGIN PGP SIGNED MESSAGE-----\n", ">From ", "&#", "\ufdfa", "a\u0301", "🔥",
        "[SPAM]",
        "\x1b$B", "+2AA-", "{.a{display:none}", "/*", "\u3300", "看www.a.com",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/html; x=<style>"])
def test_a_megabyte_of_anything_costs_linear_time(unit: str, kind: str) -> None:
    text = unit * (1_000_000 // len(unit.encode()))
    head = "<style>" if "style" in kind else ""
    found = extract(mail(head + text, f"Content-Type: {kind}; charset=utf-8"))
    assert len(found.texts) == len(found.sample.ids)


def test_a_header_of_a_hundred_thousand_fields_is_cut_at_the_limit() -> None:
    found = extract(b"A: b\n" * 100_000 + b"\nbody")
    assert "too many fields" in found.defects


def test_field_names_of_a_quarter_megabyte_do_no_harm() -> None:
    assert "body" in tokens(b"X-" + b"a" * 250_000 + b": b\n\nbody")


def test_a_hundred_style_sheets_cost_linear_time() -> None:
    sheet = "<style>" + "@{a{" * 10_000 + "</style>"
    assert "seen" in render(sheet * 100 + "seen").text


def test_look_alike_and_long_words_in_headers_are_bounded() -> None:
    raw = page("x", "Subject: " + "Vі" * 5000)
    assert max(map(len, tokens(raw))) <= 64


def test_encoded_words_inside_each_other_are_text() -> None:
    assert header_text(b"=?utf-8?Q?=?utf-8?Q?ab?=") == "=?utf-8?Q?ab"


def test_one_tag_of_nothing_but_equals_signs_is_passed_in_linear_time() -> None:
    assert "seen" in render(("<boundary=" + "boundary=" * 900 + " ") * 100 + "seen").text


def test_millions_of_lines_that_could_be_delimiters_are_not_all_looked_at() -> None:
    head = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nseen\n"
    message = parse(head + b"--c\n" * 3_000_000 + b"--b\n\nnot seen\n--b--\n")
    assert "too many delimiters" in message.defects
    assert message.parts[0].body.startswith(b"seen")
