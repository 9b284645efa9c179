import time
from base64 import b64encode

import pytest

from spamd.message.mime.charset import header_text
from spamd.message.spam_fields import render, strip_and_prepend

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
    assert strip_and_prepend(b"\nbody", BLOCK) == BLOCK + b"\nbody"
    assert strip_and_prepend(b"", BLOCK) == BLOCK


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    head = b"Subject: \xff\xfe\x00\r\nX-Odd: \x80\r\n\t\x81\r\n\r\n\x00\xff"
    assert strip_and_prepend(head, BLOCK) == BLOCK + head


BEFORE = [
    b"no field\r\n",
    b"a b: x\r\n",
    b"\xe4: x\r\n",
    b": x\r\n",
    b"From x\r\n",
    b"\0\r\n",
    b"no\r\n fold\r\n",
]
FORGED = [
    b"X-Spam-Flag: YES\r\n",
    b"x-spam-FLAG\t: YES\r\n fold\r\n",
    b"X-Spam-Flag\r\n : YES\r\n",
    b"X-Spam-\r\n Flag: YES\r\n",
    b"X-Spam\0-Flag: YES\r\n",
    b"X-Spam\x7f-Flag: YES\r\n",
    b"X- Spam-Flag: YES\r\n",
    b"X-Spam-Flag\xff: YES\r\n",
    b"\xef\xbb\xbfX-Spam-Flag: YES\r\n",
    b"X\xc2\xad-Spam-Flag: YES\r\n",
    b"\x0bX-Spam-Flag: YES\r\n",
]


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("before", BEFORE)
def test_k3_what_may_pass_for_ours_is_removed_before_the_first_empty_line(
    before: bytes, forged: bytes
) -> None:
    body = b"\r\nX-Spam-Flag: YES\r\nbody"
    kept = b"Subject: a\r\n" + before
    assert strip_and_prepend(kept + forged + b"To: b\r\n" + body, BLOCK) == (
        BLOCK + kept + b"To: b\r\n" + body
    )


def test_k3_a_fold_of_a_field_is_text_of_that_field() -> None:
    head = b"Subject: a\r\n X-Spam-Flag: YES\r\n\tX-Spam-Id: 1\r\n\r\n"
    assert strip_and_prepend(head, b"") == head
    assert strip_and_prepend(b"no field\r\n X-Spam-Flag: YES\r\nTo: b\r\n", b"") == (
        b"no field\r\nTo: b\r\n"
    )


@pytest.mark.parametrize(
    "front",
    [
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\0",
        b"no field\r\n",
        b"no\r\n fold\r\n",
        b": x\r\n",
        b"\x7f\r\n",
    ],
)
def test_g8_what_is_no_field_stays_behind_ours_and_the_fields_stay_fields(front: bytes) -> None:
    mail = front + b"Subject: a\r\nDate: b\r\n\r\nbody"
    assert strip_and_prepend(mail, BLOCK) == BLOCK + mail


@pytest.mark.parametrize("front", [b" indented\r\n", b"\t\r\n", b" ", b" a\r\n b\r\nno field\r\n"])
def test_g8_an_indented_front_continues_no_field_of_ours(front: bytes) -> None:
    mail = front + b"Subject: a\r\nDate: b\r\n\r\nbody"
    once = BLOCK + b"X-Front:\r\n" + mail
    assert strip_and_prepend(mail, BLOCK) == once
    assert strip_and_prepend(once, BLOCK) == once


@pytest.mark.parametrize(
    "line",
    [
        b"a\r\n",
        b" \r\n",
        b"X-Spam-\r\n",
        b"X-Spam-A: b\r\n",
        b" X-Spam-A: b\r\n",
        b"x\r\n \r\n",
        b"\0\0\0\0",
    ],
)
@pytest.mark.parametrize("before", [b"X-Spam-B: c\r\n", b"no field\r\nX-Spam-B: c\r\nno field\r\n"])
def test_k3_a_header_of_any_lines_is_gone_through_in_linear_time(
    line: bytes, before: bytes
) -> None:
    def work_s(number: int) -> float:
        head = before + line * number
        best = 1e9
        for _ in range(3):
            started = time.thread_time()
            strip_and_prepend(head, BLOCK)
            best = min(best, time.thread_time() - started)
        return best

    assert work_s(200_000) < 10 * work_s(50_000) + 0.01


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


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        # the header section ends at the first empty line, of either kind
        (b"a: b\nX-Spam-A: c\n\nX-Spam-B: d\n", b"a: b\n\nX-Spam-B: d\n"),
        (b"a: b\nX-Spam-A: c\n\nX-Spam-B: d\r\n\r\n", b"a: b\n\nX-Spam-B: d\r\n\r\n"),
        (b"a: b\r\nX-Spam-A: c\r\n\r\nX-Spam-B: d\n\n", b"a: b\r\n\r\nX-Spam-B: d\n\n"),
        # a name of one letter is one
        (b"a: b\r\nX-Spam\0-Flag: NO\r\n\r\n", b"a: b\r\n\r\n"),
        (b"To: b\r\nk: v\r\n X-Spam-A: c\r\n", b"To: b\r\nk: v\r\n X-Spam-A: c\r\n"),
        # behind a fold that stays, and behind one that goes, the search goes on
        (
            b"Subject: a\r\n X-Spam-A: b\r\nX-Spam-B: c\r\nTo: d\r\n",
            b"Subject: a\r\n X-Spam-A: b\r\nTo: d\r\n",
        ),
        (b"X-Spam-A: b\r\n X-Spam-B: c\r\nTo: d\r\nX-Spam-C: e\r\n", b"To: d\r\n"),
        # a fold belongs to the line right before it
        (
            b"Subject: a\r\nno field\r\n X-Spam-A: b\r\nTo: c\r\n",
            b"Subject: a\r\nno field\r\nTo: c\r\n",
        ),
        (b" X-Spam-A: b\r\nSubject: a\r\n\r\n", b"X-Front:\r\nSubject: a\r\n\r\n"),
    ],
)
def test_k3_what_passes_for_ours_is_cut_out_to_the_octet(head: bytes, expected: bytes) -> None:
    assert strip_and_prepend(head, BLOCK) == BLOCK + expected


@pytest.mark.parametrize(
    ("mbox_line", "rest"),
    [
        (b"From a Thu\n", b"\nbody"),
        (b"From x-spam-a\n", b"\nbody"),
        (b"From a Thu\n", b"Subject: a\r\n X-Spam-A: b\r\n\r\n"),
    ],
)
def test_behind_an_mbox_line_all_stays_that_is_no_field_of_ours(
    mbox_line: bytes, rest: bytes
) -> None:
    assert strip_and_prepend(mbox_line + rest, BLOCK) == mbox_line + BLOCK + rest


def test_k3_an_indented_line_like_ours_goes_from_behind_an_mbox_line() -> None:
    mbox_line, rest = b"From a Thu\n", b"Subject: a\r\n\r\n"
    expected = mbox_line + BLOCK + b"X-Front:\r\n" + rest
    assert strip_and_prepend(mbox_line + b" X-Spam-A: b\r\n" + rest, BLOCK) == expected


def test_k3_a_line_behind_a_bare_cr_is_no_fold_of_the_field_above() -> None:
    head = b"Subject: a\n\r X-Spam-A: b\nTo: c\n"
    assert b"spam" not in strip_and_prepend(head, b"").lower()


def test_with_lf_all_lines_that_are_added_end_in_lf() -> None:
    block = b"X-Spam-Flag: YES\n"

    assert strip_and_prepend(b"no field\n", block) == block + b"\nno field\n"
    assert strip_and_prepend(b" a\nTo: b\n", block) == block + b"X-Front:\n a\nTo: b\n"


def test_fields_follow_one_another() -> None:
    assert render([("A", "b"), ("C", "d")], b"\r\n") == b"A: b\r\nC: d\r\n"


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


@pytest.mark.parametrize("filler", [b"a: b\r\n", b"no field\r\n", b" fold\r\n", b"X-Spam-A: b\r\n"])
def test_k3_a_forged_field_is_found_wherever_it_stands_in_a_long_header(filler: bytes) -> None:
    for size in range(65_500, 65_560):
        before = (
            b"To: b\r\n" + filler * (size // len(filler)) + b"k: " + b"v" * (size % 50) + b"\r\n"
        )
        head = (
            before
            + b"X-\r\n Spam-Flag: YES\r\nno\r\n"
            + b"X-Spam-Flag\r\n : YES\r\nno\r\nX-Spam-Flag: YES\r\n"
            + filler * 9
            + b"\r\n"
        )
        assert b"spam" not in strip_and_prepend(head, b"").lower()


def encoded(text: str) -> str:
    return f"=?utf-8?B?{b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("x" * 70, ["N-ame: " + "x" * 70]),
        ("x" * 71, ["N-ame: " + "x" * 71]),
        ("x" * 900, ["N-ame: " + "x" * 900]),
        ("x" * 901, ["N-ame: " + "x" * 900, " x"]),
        ("a" * 35 + " " + "b" * 35, ["N-ame: " + "a" * 35 + " " + "b" * 35]),
        ("a" * 35 + " " + "b" * 36, ["N-ame: " + "a" * 35, " " + "b" * 36]),
        ("a" * 35 + "\t" + "b" * 35, ["N-ame: " + "a" * 35 + " " + "b" * 35]),
        ("a\x7fb", ["N-ame: a b"]),
        ("a  b", ["N-ame: a b"]),
        (" a ", ["N-ame: a"]),
        ("\ud800", ["N-ame: " + encoded("?")]),
        (" a  b\tc ", ["N-ame: a b c"]),
        ("é" * 21, ["N-ame: " + encoded("é" * 21)]),
        ("é" * 22, ["N-ame: " + encoded("é" * 21), " " + encoded("é")]),
        ("é" * 20 + "abc", ["N-ame: " + encoded("é" * 20 + "ab"), " " + encoded("c")]),
    ],
)
def test_a_field_is_folded_and_encoded_to_the_octet(value: str, lines: list[str]) -> None:
    expected = "".join(f"{line}\r\n" for line in lines)

    assert render([("N-ame", value)], b"\r\n") == expected.encode()
