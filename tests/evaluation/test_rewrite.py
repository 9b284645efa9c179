"""Mail rewritten: what is to go or to come does, and the rest stays."""

import base64
from collections.abc import Callable
from email import message_from_bytes, policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.evaluation.rewrite import (
    appended,
    commented,
    disguised,
    edited,
    header_and_body,
    hidden,
    in_header,
    lookalike,
    poison,
    spaced,
    split_invisibly,
    without_route,
)

MAIL = (
    b"Received: from a\r\n\tby b; Mon, 1 Jan\r\nSubject: an offer\r\nX-Mailer: M\r\n"
    b"List-Id: <x>\r\nDate : today\r\nFrom: a@example.org\r\n\r\nDate: in the body\r\n"
)


def test_fields_of_the_way_go_with_their_continuation_lines() -> None:
    assert without_route(MAIL) == (
        b"Subject: an offer\r\nFrom: a@example.org\r\n\r\nDate: in the body\r\n"
    )


def test_bare_line_feeds_are_lines_too() -> None:
    bare = MAIL.replace(b"\r\n", b"\n")
    assert without_route(bare) == without_route(MAIL).replace(b"\r\n", b"\n")


@pytest.mark.parametrize("raw", [b"", b"Subject: no body", b"Subject: x\n", b"\n\nonly a body"])
def test_mail_without_a_body_or_a_header_stays(raw: bytes) -> None:
    assert without_route(raw) == raw


@given(st.binary(max_size=200))
def test_header_and_body_are_the_whole_mail(raw: bytes) -> None:
    head, body = header_and_body(raw)
    assert head + body == raw


@given(st.lists(st.sampled_from([b"Subject: a", b"To: b", b" more", b"", b"text"]), max_size=8))
def test_mail_without_such_fields_is_unchanged(lines: list[bytes]) -> None:
    raw = b"\r\n".join(lines)
    assert without_route(raw) == raw


PLAIN = b"From: a@example.org\r\nSubject: s\r\n\r\nBuy now, cheap pills\r\n"
HTML = (
    b"From: a@example.org\nContent-Type: text/html; charset=iso-8859-1\n"
    b"Content-Transfer-Encoding: base64\n\n"
    + base64.b64encode("<html><body class='now'>Buy now é</body></html>".encode("latin-1"))
    + b"\n"
)


def visible(raw: bytes) -> str:
    """The words of the first text part, as any mail program decodes them."""
    message = message_from_bytes(raw, policy=policy.default)
    body = message.get_body(("plain", "html"))
    assert body is not None
    return str(body.get_content())


def test_words_are_added_below_plain_text() -> None:
    changed = visible(edited(PLAIN, appended(["meeting", "agenda"])))
    assert changed.startswith("Buy now, cheap pills")
    assert "meeting agenda" in changed


def test_words_are_added_inside_encoded_html() -> None:
    changed = visible(edited(HTML, appended(["meeting"])))
    assert "Buy now é\n<p>meeting</p>\n</body>" in changed


def test_hidden_words_turn_plain_text_into_html() -> None:
    raw = edited(PLAIN, hidden(["meeting"]), as_html=True)
    assert b"text/html" in raw
    assert '<div style="display:none">meeting</div>' in visible(raw)
    assert "<!-- meeting -->" in visible(edited(HTML, commented(["meeting"]), as_html=True))


def test_header_words_stand_in_fields_of_their_own() -> None:
    raw = in_header(PLAIN, [f"w{i}" for i in range(10)])
    assert raw.startswith(b"Keywords: w0 w1 w2 w3 w4 w5 w6 w7\r\nKeywords: w8 w9\r\nFrom:")
    assert in_header(HTML, ["x"]).startswith(b"Keywords: x\nFrom:")


@pytest.mark.parametrize(
    ("disguise", "expected"),
    [
        (lookalike, "Вuу nоw"),
        (split_invisibly, "B\u200bu\u200by n\u200bo\u200bw"),
        (spaced, "B-u-y n-o-w"),
    ],
)
def test_words_are_disguised_outside_tags(disguise: Callable[[str], str], expected: str) -> None:
    changed = visible(edited(HTML, disguised(["now", "buy"], disguise), everywhere=True))
    assert f"<body class='now'>{expected} é" in changed


def test_mail_without_text_gets_the_words_at_its_end() -> None:
    picture = b"Content-Type: image/png\n\nxyz\n"
    assert edited(picture, appended(["meeting"])) == picture + b"\n\nmeeting\n"


def test_an_unknown_charset_is_read_byte_by_byte() -> None:
    raw = PLAIN.replace(b"Subject: s", b"Content-Type: text/plain; charset=x-none") + b"\xe9"
    assert "é" in visible(edited(raw, appended(["a"])))


def test_a_header_that_cannot_be_written_again_is_left_as_it_is() -> None:
    raw = b"Content-Type: text/plain; \xe9\n\nBuy\n"
    assert edited(raw, appended(["meeting"])) == raw + b"\n\nmeeting\n"


@given(st.binary(max_size=300))
def test_any_bytes_can_be_rewritten(raw: bytes) -> None:
    assert b"meeting" in edited(raw, appended(["meeting"]))
    edited(raw, disguised(["a"], spaced), everywhere=True, as_html=True)


def test_poison_holds_every_word_once() -> None:
    words = [f"w{i}" for i in range(25)]
    assert poison(words).split(b"\n\n", 1)[1].decode().split() == words
