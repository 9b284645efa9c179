"""Lines among the header fields that are none: readers pass over them and go on with the fields."""

import time
from base64 import b64encode

import pytest

from spamd.message.features import extract
from spamd.message.mime.charset import decode
from spamd.message.mime.parser import parse

from .helpers import tokens, words
from .test_faults_mime import multipart

BODY = b64encode(b"cheap pills").decode()
REST = f"Subject: Offer\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n{BODY}"


@pytest.mark.parametrize(
    "stray",
    ["no field", "by localhost with SMTP", "Fröm: x", "bad name: x", ": x", "a\n b\nc", " x\ny",
     "x\n" * 15 + "y", "\x00\x01", "Unknown"],
)  # fmt: skip
def test_g8_fields_behind_a_line_that_is_none_are_read(stray: str) -> None:
    raw = f"From: a@example.org\n{stray}\n{REST}".encode()
    assert words(raw) >= {"cheap", "pills"}
    assert {"subject=Offer", "from:a@example.org"} <= tokens(raw)
    assert "stray line" in extract(raw).defects or stray.startswith(" ")
    inner = multipart(f"Content-Type: message/rfc822\n\nFrom: a@b.example\n{stray}\n{REST}")
    assert words(inner) >= {"cheap", "pills"}


@pytest.mark.parametrize("sign", ["\ufeff", "\x00", "\x01\x02"])
def test_g8_a_field_behind_signs_that_are_none_is_read(sign: str) -> None:
    assert {"subject=Offer"} <= tokens(f"{sign}{REST}".encode())
    assert {"subject=Offer"} <= tokens(f"From: a@example.org\n{sign}{REST}".encode())


def test_g8_fields_of_a_part_behind_a_line_that_is_none_are_read() -> None:
    raw = multipart(f"no field\nContent-Transfer-Encoding: base64\n\n{BODY}", "\nlast")
    assert words(raw) >= {"cheap", "pills", "last"}


def test_g8_what_stands_in_a_line_that_is_no_field_is_read() -> None:
    assert {"cheap", "words"} <= words(b"From: a@b.example\ncheap words\nSubject: x\n\nbody")


@pytest.mark.parametrize(
    "body", ["Hello all\nNote: see below", "Hello\n\nSubject: x", "Hello\n--\nFrom: the team"]
)
def test_g8_a_text_without_a_blank_line_in_front_stays_text(body: str) -> None:
    raw = f"From: a@example.org\n{body}".encode()
    assert parse(raw).parts[0].body == body.encode()


def test_g8_a_delimiter_ends_the_fields_of_a_part() -> None:
    raw = multipart("Content-Type: text/plain\nno blank line", "Content-Type: text/html\n\n<b>x")
    assert [part.content_type.type for part in parse(raw).parts] == ["text/plain", "text/html"]


@pytest.mark.parametrize(
    "piece", ["a\n", "a\nSubject: b\n", "a", " \n", "a\n\0", "--\n", "a:\nb\n"]
)
def test_g8_hostile_header_sections_cost_time_in_step(piece: str) -> None:
    def seconds(count: int) -> float:
        raw, best = b"From: x\n" + piece.encode() * count, 1e9
        for _ in range(3):
            started = time.thread_time()
            parse(raw)
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(40_000) < 12 * max(seconds(10_000), 0.002)


def test_g1_utf_8_with_a_broken_character_is_utf_8_all_the_same() -> None:
    text = "Юникод запрещён здесь и там"
    assert decode(text.encode()[:-1]).text.startswith(text[:-1])
    assert decode(text.encode() + b"\xff").codec == "utf_8"
    assert decode("Grüße, schöne".encode("latin_1")).text == "Grüße, schöne"
