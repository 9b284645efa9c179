"""The mail of a request: what of it is judged, and that it comes back whole."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spamd.errors import MessageTooLarge
from spamd.listeners.preface import Preface
from spamd.listeners.spamc.mail import body_start, fields_for, header_of
from spamd.message.features import extract
from spamd.message.spam_fields import render, strip_and_prepend
from spamd.network.spool import Budget, SpooledMessage
from tests.cli.conftest import made_up
from tests.fakes import SPAM

EXIM = (
    b"From anna@x.test Sat Nov 28 10:00:00 2026\n"
    b"X-Envelope-From: <anna@x.test>\n"
    b"X-Envelope-To: bert@y.test, carl@y.test\n"
)


def message_of(content: bytes, *, spool_above: int = 1_000_000) -> SpooledMessage:
    """Return a message in memory."""
    budget = Budget(memory_bytes=10**7, spool_bytes=10**7, spool_above_bytes=spool_above)
    message = SpooledMessage(budget.share(""))
    message.append(content)
    return message


def spamc_body(mail: bytes) -> bytes | None:
    """Return what spamc takes for the body of a mail (libspamc.c, _append_original_body)."""
    for place in range(len(mail)):
        for mark in (b"\r\n\r\n", b"\n\n"):
            if mail.startswith(mark, place):
                return mail[place + len(mark) :]
    return None


PIECES = st.sampled_from([
    b"From a@x.test Sat\n", b"Subject: a", b"X-Spam-Flag: YES", b"X-Spam-Status: No", b"\n",
    b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\n\r\n", b" folded", b"body", b"\xef\xbb\xbf",
    b"no field", b"\0", b"X-Envelope-From: <a>\n", b"From: b@y.test",
])  # fmt: skip
MAILS = st.lists(PIECES, max_size=12).map(b"".join)


@given(MAILS)
@example(b"Subject: a\n\r\nbody\n\nmore")
@example(b"\nbody\n\nmore")
@example(b"Subject: a")
def test_headers_and_the_clients_own_body_are_the_whole_mail(mail: bytes) -> None:
    message = message_of(mail)
    header, start = header_of(message, 1000)
    top = strip_and_prepend(header, fields_for(header, SPAM))
    stop = body_start(message.blocks())
    processed, headers = top + mail[start:], top + mail[start:stop]
    body = spamc_body(mail)
    assert headers + (body or b"") == processed
    assert stop == len(mail) or body is not None


@given(MAILS)
def test_all_bytes_that_are_no_field_of_ours_come_back_in_place(mail: bytes) -> None:
    message = message_of(mail)
    header, start = header_of(message, 1000)
    block = render(SPAM.fields(), b"\n")
    cleaned = strip_and_prepend(header, b"") + mail[start:]
    with_ours = (
        strip_and_prepend(header, fields_for(header, SPAM)).replace(b"\r\n", b"\n") + mail[start:]
    )
    assert block in with_ours
    bare = with_ours.replace(block, b"", 1)
    left = re.sub(rb"\s|X-Front:", b"", bare)
    assert left == re.sub(rb"\s", b"", cleaned)


@given(MAILS, st.integers(1, 5))
def test_the_body_begins_at_the_same_place_however_the_blocks_are_cut(
    mail: bytes, size: int
) -> None:
    blocks = [mail[at : at + size] for at in range(0, len(mail), size)]
    assert body_start(blocks) == body_start([mail])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_our_fields_have_the_line_ends_of_the_mail(newline: bytes) -> None:
    mail = b"Subject: a\n\nbody\n".replace(b"\n", newline)
    header, start = header_of(message_of(mail), 1000)
    whole = strip_and_prepend(header, fields_for(header, SPAM)) + mail[start:]
    assert whole.count(newline) == whole.count(b"\n")
    assert whole.endswith(b"X-Spam-Id: fake-id" + newline + mail)


def test_our_fields_stand_behind_an_mbox_line() -> None:
    mail = EXIM + b"Subject: a\n\nbody\n"
    header, _ = header_of(message_of(mail), 1000)
    lines = strip_and_prepend(header, fields_for(header, SPAM)).splitlines()
    assert lines[0] == EXIM.splitlines()[0]
    assert lines[1].startswith(b"X-Spam-Status: Yes")


async def test_a_header_section_larger_than_what_is_read_is_refused_if_it_is_one() -> None:
    fields = message_of(b"Subject: a\n" * 100, spool_above=10)
    await fields.settled()
    with pytest.raises(MessageTooLarge):
        header_of(fields, 500)
    text = message_of(b"only text\n" * 100, spool_above=10)
    await text.settled()
    assert header_of(text, 505) == (b"only text\n" * 50, 500)
    fields.close()
    text.close()


@pytest.mark.parametrize("mail", [made_up("spam", 1), made_up("ham", 2)])
def test_the_lines_of_exim_are_no_part_of_the_mail(mail: bytes) -> None:
    mail = mail.replace(b"\r\n", b"\n")
    found = Preface.of(EXIM + mail)
    assert (found.sender, found.recipients) == (b"anna@x.test", (b"bert@y.test", b"carl@y.test"))
    judged = extract((EXIM + mail)[found.length :], arriving=True)
    plain = extract(mail, arriving=True)
    assert judged.digest == plain.digest
    assert (judged.sample.ids == plain.sample.ids).all()


@pytest.mark.parametrize(
    "mail",
    [
        b"From a@x.test Sat\nSubject: x\n\n",
        b"Subject: x\nX-Envelope-From: <a>\n\n",
        b"X-Envelope-From: <a>\n\n",
        b"",
    ],
)
def test_other_mail_has_no_lines_in_front(mail: bytes) -> None:
    assert Preface.of(mail) == Preface()


def test_a_bounce_has_no_sender_and_maybe_no_recipients() -> None:
    start = b"From MAILER-DAEMON Sat Nov 28 10:00:00 2026\n"
    found = Preface.of(start + b"X-Envelope-To: bert@y.test\nSubject: x\n\n")
    assert (found.sender, found.recipients) == (b"", (b"bert@y.test",))
    found = Preface.of(start + b"X-Envelope-From: <a@x.test>\r\nSubject: x\n\n")
    assert (found.sender, found.recipients) == (b"a@x.test", ())
