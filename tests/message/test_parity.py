"""The same mail is the same mail on every path: same tokens, same identity."""

import pytest

from spamd.message.features import Features, extract
from spamd.message.spam_fields import strip_and_prepend
from spamd.relay.content.newlines import normalized

from .helpers import mail

PLAIN = mail(
    "Dear list,\n\n>From now on the pills are cheap.  \nBuy 3 at http://pills.example/now\n\nAnn\n",
    "Subject: Cheap pills",
    "Date: Thu, 22 Aug 2002 18:26:25 +0700",
    "Message-ID: <1@example.org>",
    "MIME-Version: 1.0",
)
NESTED = (
    b"From: Ann <ann@example.org>\nTo: bob@example.net\nSubject: Two faces\n"
    b"Message-ID: <2@example.org>\n"
    b'MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary="b"\n\n'
    b"--b\nContent-Type: text/plain\n\nplain face\n"
    b"--b\nContent-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n"
    b"<p>html fa=\nce <b>bold=20</b>\n--b--\n"
)
MAILS = [pytest.param(PLAIN, id="plain"), pytest.param(NESTED, id="nested")]

MAILMAN = (
    "\n_______________________________________________\nPills mailing list\n"
    "Pills@lists.example.org\nhttps://lists.example.org/mailman/listinfo/pills\n"
)
HOPS = (
    b"Return-Path: <ann@example.org>\nDelivered-To: bob@example.net\n"
    b"X-Original-To: bob@example.net\nReceived: from mx.example.net (mx.example.net [192.0.2.1])\n"
    b"\tby imap.example.net with LMTP id x1\n"
    b"\tfor <bob@example.net>; Thu, 22 Aug 2002 12:36:23 +0100\n"
    b"Authentication-Results: mx.example.net; spf=pass; dkim=pass\nReceived-SPF: pass\n"
    b"X-MIME-Autoconverted: from 8bit to quoted-printable\n"
    b"ARC-Seal: i=1; a=rsa-sha256; b=abc\nX-Virus-Scanned: amavis at example.net\n"
    b"X-Rspamd-Server: mx\n"
)
OURS = (
    b"Received: from client.example ([192.0.2.5])\n\tby gate.example.net (spamd) with ESMTP;\n"
    b"\tThu, 22 Aug 2002 12:36:22 +0000\n"
    b"X-Spam-Status: No, score=-3.0 required=3.4\nX-Spam-Probability: 0.047426\n"
    b"X-Spam-Id: 00112233445566778899-0011223344556677\n"
)


def assert_same_mail(one: Features, other: Features) -> None:
    assert list(one.texts) == list(other.texts)
    assert one.digest == other.digest
    for name in ("ids", "occurrences", "kinds", "grams", "continuous"):
        assert getattr(one.sample, name).tolist() == getattr(other.sample, name).tolist(), name


@pytest.mark.parametrize("raw", MAILS)
def test_crlf_and_lf_twins_are_one_mail(raw: bytes) -> None:
    assert_same_mail(extract(raw), extract(raw.replace(b"\n", b"\r\n")))


@pytest.mark.parametrize("raw", MAILS)
def test_d14_the_delivered_copy_has_the_tokens_of_the_mail_scanned(raw: bytes) -> None:
    assert_same_mail(extract(raw, arriving=True), extract(HOPS + strip_and_prepend(raw, OURS)))


@pytest.mark.parametrize("raw", MAILS)
def test_c16_our_own_fields_and_forged_ones_are_never_tokens(raw: bytes) -> None:
    forged = (
        b"X-Spam: No\nx-spam-STATUS: No, score=-5\n\tfolded=yes\n"
        b"X-Spam-Id: 00-11\nX-Spam-Flag: NO\n"
    )
    assert_same_mail(extract(raw), extract(forged + raw))


@pytest.mark.parametrize("raw", MAILS)
def test_a_mail_that_we_tagged_is_the_mail_that_came(raw: bytes) -> None:
    tagged = strip_and_prepend(
        raw, b"X-Spam-Status: Yes, score=9\n\trequired=5\nX-Spam-Id: 00-11\n"
    )
    assert_same_mail(extract(raw), extract(tagged))


@pytest.mark.parametrize("mark", ["[SPAM] ", "***SPAM*** ", "{Spam?} ", "[JUNK MAIL]: "])
def test_another_filters_mark_in_the_subject_changes_nothing(mark: str) -> None:
    marked = PLAIN.replace(b"Subject: ", b"Subject: " + mark.encode())
    assert_same_mail(extract(PLAIN), extract(marked))


@pytest.mark.parametrize("tag", ["[Spambayes]", "[SAtalk]", "[Hamburg]", "{Bulkheads}"])
def test_a_tag_that_is_no_mark_of_a_filter_stays_in_the_subject(tag: str) -> None:
    tagged = extract(PLAIN.replace(b"Subject: ", f"Subject: {tag} ".encode()))
    assert f"subject={tag[1:-1]}" in list(tagged.texts)


def test_a_list_footer_changes_nothing() -> None:
    assert extract(PLAIN).digest == extract(PLAIN + MAILMAN.encode()).digest
    assert list(extract(PLAIN).texts) == list(extract(PLAIN + MAILMAN.encode()).texts)


def test_a_list_footer_in_a_part_of_its_own_leaves_the_identity() -> None:
    part = f"--b\nContent-Type: text/plain\n{MAILMAN}--b--\n".encode()
    with_footer = NESTED.replace(b"--b--\n", part)
    assert extract(NESTED).digest == extract(with_footer).digest


@pytest.mark.parametrize("quoting", [b"From ", b">From ", b">>From "])
def test_f2_mbox_quoting_of_from_lines_leaves_the_identity(quoting: bytes) -> None:
    assert extract(PLAIN).digest == extract(PLAIN.replace(b">From ", quoting)).digest


def test_white_space_at_line_ends_and_at_the_end_leaves_the_identity() -> None:
    assert (
        extract(PLAIN).digest
        == extract(PLAIN.replace(b"\n\nAnn", b" \n\t\nAnn") + b"\n\n \n").digest
    )


def test_another_transfer_encoding_leaves_tokens_and_identity() -> None:
    plain = mail("Grüße, Ann = Ännchen\n", "Content-Transfer-Encoding: 8bit")
    quoted = mail(
        "Gr=C3=BC=C3=9Fe, Ann =3D =C3=84nn=\nchen\n", "Content-Transfer-Encoding: quoted-printable"
    )
    assert extract(plain).digest == extract(quoted).digest
    assert list(extract(plain).texts) == list(extract(quoted).texts)


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (b"the pills are cheap", b"the pills are dear"),
        (b"Subject: Cheap pills", b"Subject: Cheap bills"),
        (b"<1@example.org>", b"<9@example.org>"),
        (b"18:26:25", b"18:26:26"),
    ],
)
def test_two_different_mails_are_two_mails(there: bytes, here: bytes) -> None:
    assert there in PLAIN
    assert extract(PLAIN).digest != extract(PLAIN.replace(there, here)).digest


def test_two_mails_that_differ_in_an_attachment_only_are_two_mails() -> None:
    raw = (
        b"Message-ID: <1@example.org>\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n"
        b"--b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nAAAA\n--b--\n"
    )
    assert extract(raw).digest != extract(raw.replace(b"AAAA", b"AAAB")).digest


@pytest.mark.parametrize("raw", MAILS)
@pytest.mark.parametrize("newline", [b"\r\r\n", b"\r\r\r\n", b"\r"])
def test_g9_a_file_whose_line_ends_were_converted_twice_is_the_same_mail(
    raw: bytes, newline: bytes
) -> None:
    assert_same_mail(extract(raw), extract(raw.replace(b"\n", newline)))


@pytest.mark.parametrize("raw", MAILS)
def test_g9_a_file_of_mixed_line_ends_is_the_same_mail(raw: bytes) -> None:
    ends = [b"\n", b"\r\n", b"\r\r\n"]
    lines = raw.split(b"\n")
    mixed = b"".join(line + ends[number % 3] for number, line in enumerate(lines[:-1])) + lines[-1]
    assert_same_mail(extract(raw), extract(mixed))


@pytest.mark.parametrize("raw", MAILS)
def test_g9_a_file_of_cr_cr_lf_has_the_words_that_it_has_by_the_relay(raw: bytes) -> None:
    twice = raw.replace(b"\n", b"\r\r\n")
    file, relayed = extract(twice), extract(b"".join(normalized([twice])), arriving=True)
    assert list(file.texts) == list(relayed.texts)
    assert file.digest == relayed.digest
