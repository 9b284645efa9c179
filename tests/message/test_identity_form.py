"""The stored form of identities: digests and ids that were written down stay those of their mail.

Each is put together here by hand from the bytes that docs and module describe, so that a change of
the form is seen before a database full of digests belongs to nobody.
"""

from base64 import b64encode
from hashlib import blake2b

import pytest

from spamd.message.features import extract
from spamd.message.identity import genuine, new_id, rest_of, with_rest

FIELDS = ("from", "reply-to", "to", "cc", "date", "message-id")


def digest_of(*parts: tuple[bytes, bytes]) -> bytes:
    """blake2b over `kind length:data` of each part, 128 bits, personalised."""
    framed = b"".join(b"%s %d:%s" % (kind, len(data), data) for kind, data in parts)
    return blake2b(framed, digest_size=16, person=b"spamd mail").digest()


def header(subject: bytes = b"", **fields: bytes) -> list[tuple[bytes, bytes]]:
    """The header's part of a digest: six fields and the subject, without white space."""
    given = [(name.encode(), fields.get(name.replace("-", "_"), b"")) for name in FIELDS]
    return [*given, (b"subject", subject)]


def body(
    text: bytes,
    kind: bytes = b"text/plain",
    charset: bytes = b"",
    name: bytes = b"",
    disposition: bytes = b"",
    cid: bytes = b"",
    more: bytes = b"",
) -> list[tuple[bytes, bytes]]:
    """The parts of a digest that one MIME part gives."""
    shown = b"\n".join([kind, charset, name, disposition, cid])
    return [(b"part", shown), (b"body", text), (b"more", more)]


def test_a_plain_message_has_the_digest_of_its_fields_and_its_text() -> None:
    raw = (
        b"From: Ann <ann@a.example>\r\nTo: bob@b.example\r\nDate: Mon, 1 Jan 2024\r\n"
        b"Message-ID: <1@a.example>\r\nSubject: hello  there\r\nX-Mailer: m\r\n\r\n"
        b"Some text\r\nhere\r\n"
    )
    expected = digest_of(
        *header(
            subject=b"hellothere",
            **{"from": b"Ann<ann@a.example>"},
            to=b"bob@b.example",
            date=b"Mon,1Jan2024",
            message_id=b"<1@a.example>",
        ),
        *body(b"Sometexthere"),
        (b"nested", b""),
    )

    assert extract(raw).digest == expected


def test_recipients_that_are_nobody_count_as_no_field() -> None:
    expected = digest_of(*header(), *body(b"x"), (b"nested", b""))

    assert extract(b"To: undisclosed-recipients:;\n\nx\n").digest == expected
    assert extract(b"Subject:\n\nx\n").digest == expected
    told = digest_of(*header(to=b"a:b@c.example;"), *body(b"x"), (b"nested", b""))
    assert extract(b"To: a: b@c.example;\n\nx\n").digest == told


@pytest.mark.parametrize(
    ("label", "known"),
    [(b"utf-8", b"utf-8"), (b"US-ASCII", b""), (b" KOI8-R ", b"koi8-r"), (b"unknown-8bit", b"")],
)
def test_a_charset_counts_unless_it_says_nothing(label: bytes, known: bytes) -> None:
    raw = b'Content-Type: text/plain; charset="' + label + b'"\n\nx\n'

    expected = digest_of(*header(), *body(b"x", charset=known), (b"nested", b""))
    assert extract(raw).digest == expected


def test_parts_count_with_type_name_place_and_how_they_are_nested() -> None:
    raw = (
        b"Content-Type: multipart/mixed; boundary=m\n\n"
        b"--m\nContent-Type: multipart/alternative; boundary=a\n\n"
        b"--a\n\nplain\n"
        b"--a\nContent-Type: text/html\nContent-ID: <c@d> \n\n<p>page</p>\n--a--\n"
        b"--m\nContent-Type: application/pdf\n"
        b'Content-Disposition: Attachment ; filename="f.pdf"\n\n%PDF x \n\n--m--\n'
    )
    expected = digest_of(
        *header(),
        *body(b"plain"),
        *body(b"<p>page</p>", kind=b"text/html", cid=b"<c@d>"),
        *body(b"%PDF x", kind=b"application/pdf", name=b"f.pdf", disposition=b"attachment"),
        (b"nested", b"multipart/alternative"),
    )

    assert extract(raw).digest == expected


def test_the_fields_of_a_message_inside_count_but_its_transfer_encoding() -> None:
    raw = (
        b"Content-Type: message/rfc822\n\n"
        b"Subject: in side\nContent-Transfer-Encoding: 8bit\nFrom: a@b.example\n\ntext\n"
    )
    found = extract(raw).digest

    changed = raw.replace(b"8bit", b"7bit").replace(b"in side", b"in  side")
    assert extract(changed).digest == found
    assert extract(raw.replace(b"in side", b"outside")).digest != found
    assert extract(raw.replace(b"Subject", b"Comments")).digest != found


def test_lines_among_the_fields_that_are_none_count_without_their_white_space() -> None:
    raw = b"Subject: a\nno field here\nTo: b@c.example\n\nx\n"
    expected = digest_of(
        *header(subject=b"a", to=b"b@c.example"),
        (b"stray", b"nofieldhere"),
        *body(b"x"),
        (b"nested", b""),
    )

    assert extract(raw).digest == expected
    assert extract(raw.replace(b"no field", b"no  field")).digest == expected


def test_quoted_from_lines_and_line_ends_do_not_count() -> None:
    plain = extract(b"\n\nHi\nFrom here\nend\n").digest

    assert extract(b"\r\n\r\nHi\r\n>From here\r\nend\r\n").digest == plain
    assert extract(b"\n\nHi\n>>From here\nend\n").digest == plain
    assert extract(b"\n\nHi\n> From here\nend\n").digest != plain


def test_a_text_counts_beyond_a_megabyte_too() -> None:
    start, rest = b"x" * 1_048_576, b"y" * 20 + b" z"
    raw = b"Subject:\n\n" + start + rest + b"\n"

    expected = digest_of(*header(), *body(start, more=rest), (b"nested", b""))
    assert extract(raw).digest == expected
    assert extract(raw.replace(b" z", b" w")).digest != expected


def test_what_stands_for_the_rest_of_a_large_message_is_its_body_without_blanks() -> None:
    expected = blake2b(b"abFromcd", digest_size=16, person=b"spamd rest").digest()
    whole = b"Subject: s\r\nTo: t\r\n\r\na b\r\n>From c\t\vd\f\r\n"

    assert rest_of([whole]) == expected
    for size in (1, 2, 3, 5, 7):
        blocks = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert rest_of(blocks) == expected
    assert rest_of([whole.replace(b"\r\n", b"\n")]) == expected
    assert rest_of([whole.replace(b"\r\n", b"\r")]) == expected
    assert rest_of([b"\r\na b\r\n>From cd"]) == expected
    assert (
        rest_of([b"no body"])
        == rest_of([])
        == blake2b(digest_size=16, person=b"spamd rest").digest()
    )


def test_the_identity_of_a_large_message_joins_header_and_rest() -> None:
    expected = blake2b(b"headerrest", digest_size=16, person=b"spamd large").digest()

    assert with_rest(b"header", b"rest") == expected


def test_an_id_is_its_random_bytes_and_eight_bytes_of_keyed_check() -> None:
    key = bytes(range(80))
    check = blake2b(
        b"\x01\x02\x03\x04", digest_size=8, key=key[:64], person=b"spamd id"
    ).hexdigest()

    assert new_id(b"\x01\x02\x03\x04", key) == f"01020304-{check}"
    assert genuine(f"01020304-{check}", key)
    assert not genuine(f"010203040-{check}", key)
    assert not genuine(f"x01020304-{check}", key)
    assert not genuine(check, key)


LIST = b"%s mailing list -- %s@lists.example\nTo unsubscribe send an email to %s-leave@%s\n"


@pytest.mark.parametrize(
    ("footer", "dropped"),
    [
        (b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), True),
        (b"_" * 30 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), True),
        (b"_" * 29 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), False),
        (b"-" * 50 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), True),
        (b"-" * 49 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), False),
        (b"=" * 50 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example"), True),
        (b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"ops", b"lists.example"), False),
        (b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"other.test"), False),
        (
            b"_" * 47
            + b"\nDev mailing list\nDev@lists.example\n"
            + b"https://lists.example/mailman/listinfo/dev\n",
            True,
        ),
        (
            b"-" * 68
            + b"\nTo unsubscribe, e-mail: dev-unsubscribe@x.example\n"
            + b"For additional commands, e-mail: dev-help@x.example\n",
            True,
        ),
        (b"_" * 47 + b"\ndev mailing list\n", False),
        (b"_" * 47 + b"\nBuy now: dev@lists.example\n", False),
    ],
)
def test_a_footer_is_dropped_only_if_it_is_the_form_of_one_list(
    footer: bytes,
    dropped: bool,  # noqa: FBT001 - a column of the table
) -> None:
    with_footer, without = (extract(b"Subject: s\n\nSome text\n" + end) for end in (footer, b""))

    assert (with_footer.digest == without.digest) is dropped


def test_a_footer_counts_in_a_page_and_when_text_follows_it() -> None:
    footer = b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example")
    page = b"Content-Type: text/html\n\nSome text\n"
    plain = b"Subject: s\n\nSome text\n"

    assert extract(page + footer).digest != extract(page).digest
    assert extract(plain + footer + b"more\n").digest != extract(plain + b"more\n").digest


def test_a_part_that_is_only_a_footer_is_left_out() -> None:
    footer = b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example")
    top = b"Content-Type: multipart/mixed; boundary=m\n\n--m\n\ntext\n"

    assert (
        extract(top + b"--m\n\n" + footer + b"--m--\n").digest == extract(top + b"--m--\n").digest
    )
    assert extract(top + b"--m\n\n\n--m--\n").digest != extract(top + b"--m--\n").digest


def test_line_ends_inside_an_encoding_do_not_count() -> None:
    top = b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"
    footer = b"_" * 47 + b"\n" + LIST % (b"dev", b"dev", b"dev", b"lists.example")
    text = b"one\n>From two\n" + footer

    expected = digest_of(*header(), *body(b"oneFromtwo"), (b"nested", b""))
    assert extract(top + b64encode(text) + b"\n").digest == expected
    windows = b64encode(text.replace(b"\n", b"\r\n"))
    assert extract(top + windows + b"\n").digest == expected
