"""What differs for the reader is another mail; what only hops change is not (see `identity`)."""

import pytest

from spamd.message.features import extract
from spamd.message.identity import rest_of
from spamd.message.limits import Limits
from spamd.message.tokens.tokenizer import TokenizerOptions

from .helpers import mail

RULE = "_" * 47
HEAD = ("Subject: Minutes", "Date: Thu, 22 Aug 2002 18:26:25 +0700", "Message-ID: <1@example.org>")
PLAIN = mail("Dear all,\n\nas agreed on Monday.\n\nAnn\n", *HEAD).decode()
NESTED = (
    "From: ann@example.org\nSubject: Minutes\nMessage-ID: <2@example.org>\n"
    "Content-Type: multipart/mixed; boundary=b\n\n"
    "--b\nContent-Type: text/plain; charset=koi8-r\n\nas agreed \xa4\n"
    "--b\nContent-Type: message/rfc822\n\n"
    "From: bob@example.org\nSubject: inside\nDate: yesterday\n\nthe mail inside\n"
    "--b\nContent-Type: image/png\nContent-ID: <1>\n\nAAAA\n"
    "--b\nContent-Type: application/pdf; name=minutes.pdf\n"
    "Content-Disposition: attachment; filename=minutes.pdf\nContent-Transfer-Encoding: base64\n\n"
    "JVBERi0=\n--b--\n"
)


def digest(text: str) -> bytes:
    return extract(text.encode("latin_1")).digest


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("From: bob@", "From: eve@"),
        ("Subject: inside", "Subject: outside"),
        ("Date: yesterday", "Date: today"),
        ("Date: yesterday", "Date: yesterday\nReply-To: eve@example.org"),
        ("filename=minutes.pdf", "filename=minutes.exe"),
        ("attachment; filename", "inline; filename"),
        ("image/png", "image/svg+xml"),
        ("<1>", "<2>"),
        ("koi8-r", "iso-8859-5"),
        ("JVBERi0=", "JVBERi1="),
        ("multipart/mixed", "multipart/alternative"),
        ("<2@example.org>", "<3@example.org>"),
        ("From: ann@example.org", "From: ann@example.org\nReply-To: eve@example.org"),
        ("From: ann@example.org", "From: ann@example.org\nTo: eve@example.org"),
        ("From: ann@example.org", "From: ann@example.org\nCc: eve@example.org"),
        ("From: ann@example.org", "From: ann@example.org\nnot from me\nX-A: b"),
    ],
)
def test_g11_what_differs_for_the_reader_is_another_mail(here: str, there: str) -> None:
    assert here in NESTED
    assert digest(NESTED) != digest(NESTED.replace(here, there))


@pytest.mark.parametrize(
    "below",
    [
        "To unsubscribe go to http://evil.example/\n",
        "pills mailing list\nBuy them at http://evil.example/\nlistinfo\n",
        "Pills mailing list\nPills@lists.example.org\nhttps://lists.evil.example/mailman/listinfo/pills\n",
        "Pills mailing list\nViagra@lists.example.org\n",
        "Cheap pills mailing list\nPills@lists.example.org\n",
        "Pills mailing list\nPills@lists.example.org\nunsubscribe\n",
        "Pills mailing list\nPills@lists.example.org\nhttps://lists.example.org/pay/pills\n",
    ],
)
@pytest.mark.parametrize("rule", [RULE, "-" * 60, "=" * 60])
def test_g11_text_below_a_rule_is_text(rule: str, below: str) -> None:
    assert digest(PLAIN) != digest(f"{PLAIN}{rule}\n{below}")


FOOTERS = {
    "Mailman 2": f"{RULE}\nPills mailing list\nPills@lists.example.org\n"
    "https://lists.example.org/mailman/listinfo/pills\n",
    "Mailman 3": f"{RULE}\npills mailing list -- pills@lists.example.org\n"
    "To unsubscribe send an email to pills-leave@lists.example.org\n",
    "Mailman 3 with its archive": f"\n{RULE}\npills mailing list -- pills@lists.example.org\n"
    "To unsubscribe send an email to pills-leave@lists.example.org\n"
    "https://lists.example.org/mailman3/postorius/lists/pills.lists.example.org/\n",
    "ezmlm": f"\n{'-' * 69}\nTo unsubscribe, e-mail: users-unsubscribe@httpd.example.org\n"
    "For additional commands, e-mail: users-help@httpd.example.org\n\n",
}


@pytest.mark.parametrize("footer", FOOTERS.values(), ids=FOOTERS)
def test_g11_a_list_managers_footer_is_no_other_mail(footer: str) -> None:
    assert digest(PLAIN) == digest(PLAIN + footer)
    assert digest(PLAIN) == digest((PLAIN + footer).replace("\n", "\r\n"))
    part = f"--b\nContent-Type: text/plain\n\n{footer}--b--\n"
    assert digest(NESTED) == digest(NESTED.replace("--b--\n", part))


def test_g11_a_mail_wrapped_for_a_lists_footer_is_no_other_mail() -> None:
    head, body = "From: ann@example.org\nSubject: Minutes", "as agreed\n"
    part = "--b\nContent-Type: text/plain\n\n"
    footer = f"{RULE}\nPills mailing list\nPills@lists.example.org\n--b--\n"
    wrapped = f"{head}\nContent-Type: multipart/mixed; boundary=b\n\n{part}{body}{part}{footer}"
    assert digest(f"{head}\n\n{body}") == digest(wrapped)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("From: ann", "Received: from x by y; today\nX-Virus-Scanned: yes\nFrom: ann"),
        ("Subject: Minutes", "Subject: [SPAM] Minutes"),
        ("Subject: Minutes", "Subject:\n  Minutes"),
        ("From: ann@example.org", "From: ann@example.org\nTo: undisclosed-recipients:;"),
        ("--b--", "--b--\n\n"),
        ("as agreed", "as  agreed\t"),
    ],
)
def test_g11_what_hops_change_is_no_other_mail(here: str, there: str) -> None:
    assert digest(NESTED) == digest(NESTED.replace(here, there, 1))


def test_g11_parts_do_not_run_into_each_other() -> None:
    head = "Content-Type: multipart/mixed; boundary=b\n\n"
    part = "--b\nContent-Type: application/octet-stream\n\n"
    one = f"{head}{part}A\0part 1:B\n--b--\n"
    other = f"{head}{part}A\n{part}B\n--b--\n"
    assert digest(one) != digest(other)


SMALL = TokenizerOptions(limits=Limits(message_bytes=600))
LONG = "Subject: a\n\n" + "words of a mail\n" * 100


@pytest.mark.parametrize("add", ["one more\n", "http://evil.example/\n"])
def test_g11_what_stands_beyond_what_is_read_counts(add: str) -> None:
    one, other = LONG.encode(), f"{LONG}{add}".encode()
    assert extract(one, SMALL).texts[:] == extract(other, SMALL).texts[:]
    assert extract(one, SMALL).digest != extract(other, SMALL).digest


@pytest.mark.parametrize(
    ("here", "there"),
    [("\n", "\r\n"), ("Subject", "X-Spam-Id: 1\nReceived: x\nSubject"), ("mail\n", "mail \n")],
)
def test_g11_what_hops_change_of_a_large_mail_is_no_other_mail(here: str, there: str) -> None:
    changed = LONG.replace(here, there)
    assert extract(LONG.encode(), SMALL).digest == extract(changed.encode(), SMALL).digest


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_g11_the_rest_is_the_same_in_blocks_of_any_size(end: bytes, size: int) -> None:
    raw = LONG.encode().replace(b"\n", end)
    blocks = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert rest_of(blocks) == rest_of([LONG.encode()])
    assert rest_of(blocks) != rest_of([LONG.encode() + b"x"])
