"""Mail without its route: the named fields go, every other byte stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.evaluation.rewrite import header_and_body, without_route

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
