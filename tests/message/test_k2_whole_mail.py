"""The limits of reading count for the whole mail, however many parts it has."""

from dataclasses import replace

import pytest

from spamd.message.features import extract
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import Reading, read
from spamd.message.tokens.tokenizer import TokenizerOptions
from tests.hostile import MULTIPART

from .linear import cpu_s

PAGE = b"--b\nContent-Type: text/html\n\n"
PLAIN = b"--b\nContent-Type: text/plain\n\n"


def reading(content: bytes, **limits: int) -> Reading:
    changed = replace(Limits(), **limits)
    return read(parse(content, changed), changed)


def numbered(start: bytes, count: int, text: bytes = b"word%d more") -> bytes:
    return MULTIPART + b"".join(start + text % number + b"\n" for number in range(count))


def test_k2_four_megabytes_in_490_parts_cost_no_more_than_in_one() -> None:
    content = MULTIPART + (PAGE + b"<p>" * 2_800 + b"\n") * 490
    assert cpu_s(extract, content, 3) < 1.5


def test_k2_tags_are_counted_over_all_parts() -> None:
    parts = numbered(PAGE, 10, b"<i>" * 10 + b"word%d")
    assert "html cut" not in reading(parts, html_nodes=101).defects
    cut = reading(parts, html_nodes=50)
    assert "html cut" in cut.defects
    assert "word9" in cut.text  # stripped of its tags in one sweep, and read


def test_k2_decoded_bytes_are_counted_over_all_parts() -> None:
    cut = reading(numbered(PLAIN, 100), text_bytes=500)
    assert "text cut" in cut.defects
    assert "word3 " in cut.text
    assert "word99" not in cut.text


@pytest.mark.parametrize("start", [PLAIN, PAGE], ids=["plain", "html"])
def test_k2_of_too_much_text_the_first_and_the_last_half_are_read(start: bytes) -> None:
    cut = reading(numbered(start, 400), text_chars=1_000)
    assert "text cut" in cut.defects
    assert len(cut.text) <= 1_000 + 200  # and a line end for each part
    assert {"word0", "word5", "word395", "word399"} <= set(cut.text.split())
    assert "word200" not in cut.text


def test_k2_text_within_the_limit_is_read_whole() -> None:
    whole = reading(numbered(PLAIN, 400))
    assert "text cut" not in whole.defects
    assert {f"word{number}" for number in range(400)} <= set(whole.text.split())


def test_k2_a_mail_that_is_cut_is_judged_by_what_was_read() -> None:
    options = TokenizerOptions(limits=replace(Limits(), text_chars=1_000))
    found = extract(numbered(PLAIN, 400), options)
    assert {"word0", "word399", "defect:text-cut"} <= set(found.texts)


@pytest.mark.parametrize("chars", [1, 2, 3, 5, 100])
def test_k2_no_limit_is_too_small_to_read_by(chars: int) -> None:
    assert len(reading(numbered(PLAIN, 5), text_chars=chars).text) <= chars + 5
