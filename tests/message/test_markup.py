import pytest

from spamd.message.charset import header_text
from spamd.message.markup import header_end, render, strip_and_prepend

BLOCK = b"X-Spam-Flag: YES\r\n"


def test_c16_forged_fields_are_removed_in_any_case_folded_and_repeated() -> None:
    head = (
        b"From: a@example.org\r\nX-SPAM-Status: No,\r\n\tscore=-9\r\n hidden=1\r\nSubject: x\r\n"
        b"x-spam-flag : NO\r\nX-Spam: yes\r\nX-Spam-Flag: NO\r\n\r\nX-Spam-Flag: body\r\n"
    )
    assert strip_and_prepend(head, BLOCK) == (
        BLOCK + b"From: a@example.org\r\nSubject: x\r\nX-Spam: yes\r\n\r\nX-Spam-Flag: body\r\n"
    )


def test_fields_that_only_look_like_ours_stay() -> None:
    head = b"X-Spammer: a\nX-Spam_Status: b\nNot-X-Spam-Flag: c\n\n"
    assert strip_and_prepend(head, b"") == head


def test_dot_stuffed_wire_form_is_spliced_the_same_way() -> None:
    wire = b"Subject: x\r\nX-Spam-Flag: NO\r\n\r\n..stuffed\r\n.\r\n"
    assert strip_and_prepend(wire, BLOCK) == BLOCK + b"Subject: x\r\n\r\n..stuffed\r\n.\r\n"
    assert strip_and_prepend(b"Subject: x\r\n.\r\n", BLOCK) == BLOCK + b"Subject: x\r\n.\r\n"


def test_an_mbox_line_stays_on_top() -> None:
    head = b"From a@example.org Thu Jan  1 00:00:00 1970\r\nSubject: x\r\n\r\nbody"
    first, _, rest = head.partition(b"Subject")
    assert strip_and_prepend(head, BLOCK) == first + BLOCK + b"Subject" + rest


@pytest.mark.parametrize("body", [b" indented body\r\n", b"no header at all\r\n"])
def test_a_message_without_fields_keeps_its_body_apart(body: bytes) -> None:
    assert strip_and_prepend(body, BLOCK) == BLOCK + b"\r\n" + body


def test_a_message_of_a_blank_line_and_a_body_gets_the_fields_in_front() -> None:
    assert strip_and_prepend(b"\r\nbody", BLOCK) == BLOCK + b"\r\nbody"
    assert strip_and_prepend(b"", BLOCK) == BLOCK


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    head = b"Subject: \xff\xfe\x00\r\nX-Odd: \x80\r\n\t\x81\r\n\r\n\x00\xff"
    assert strip_and_prepend(head, BLOCK) == BLOCK + head


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"A: b\r\n\r\nbody", 8),
        (b"A: b\n\nbody", 6),
        (b"A: b\n folded\n\nbody", 14),
        (b"A: b\nbody without blank line", 5),
        (b"A: b\r\n", 6),
        (b"\r\nbody", 2),
        (b"body", 0),
        (b"", 0),
    ],
)
def test_the_header_ends_at_the_blank_line_or_the_first_line_that_is_no_field(
    data: bytes, end: int
) -> None:
    assert header_end(data) == end


def test_c20_long_fields_are_folded_at_78_characters() -> None:
    block = render([("X-Spam-Clues", " ".join(["word:0.99"] * 40))], b"\r\n")
    lines = block.split(b"\r\n")[:-1]
    assert len(lines) > 4
    assert all(len(line) <= 78 for line in lines)
    assert all(line.startswith(b" word:0.99") for line in lines[1:])
    assert b" ".join(block.split()).count(b"word:0.99") == 40


def test_c20_words_beyond_ascii_are_encoded_and_come_back() -> None:
    text = "祝你们 Grüße 🔥 " * 20
    block = render([("X-Spam-Clues", text)], b"\n")
    assert block.isascii()
    assert header_text(block.partition(b":")[2]) == text.strip()


def test_c20_line_ends_in_a_value_make_no_second_field() -> None:
    block = render([("X-Spam-Clues", "a\r\nBcc: x@example.org\n\n\x00body\u2028b")], b"\r\n")
    assert b"\r\nBcc" not in block
    assert block.count(b"\r\n") == block.count(b"\n") == 1


def test_an_empty_value_gives_a_line_without_a_blank_one() -> None:
    assert render([("X-Spam-Clues", "")], b"\r\n") == b"X-Spam-Clues:\r\n"


def test_a_word_longer_than_a_line_is_cut() -> None:
    block = render([("X-Spam-Clues", "x" * 5000)], b"\r\n")
    assert max(map(len, block.split(b"\r\n"))) <= 998
    assert block.count(b"x") == 5000


@pytest.mark.parametrize("name", ["", "X Spam", "X-Spam:", "X\r\nBcc", "X-Späm", "x" * 80])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="can't name a header field"):
        render([(name, "x")], b"\r\n")
