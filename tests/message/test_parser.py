import pytest

from spamd.message.limits import Limits
from spamd.message.mime.charset import header_text
from spamd.message.mime.content_type import content_type, parameters
from spamd.message.mime.parser import parse
from spamd.message.mime.transfer import encoding_of, transfer_decode

from .helpers import words


def test_names_are_lower_case_and_the_spelling_is_kept() -> None:
    field = parse(b"MIME-version : 1.0\n\n").fields[0]
    assert (field.name, field.spelled, field.value) == ("mime-version", "MIME-version", b" 1.0")


def test_folded_values_keep_their_folds() -> None:
    assert parse(b"To: a,\n\tb\n c\nCc: d\n\n").first("to") == b" a,\n\tb\n c"


def test_all_fields_of_a_name_are_found_topmost_first() -> None:
    assert parse(b"A: 1\nB: 2\na: 3\n\n").all("a") == [b" 1", b" 3"]
    assert parse(b"A: 1\n\n").first("b") is None


def test_the_structure_is_a_list_of_leaves_and_of_containers() -> None:
    message = parse(
        b'Content-Type: multipart/mixed; boundary="a"\n\n--a\n'
        b'Content-Type: multipart/alternative; boundary="b"\n\n'
        b"--b\nContent-Type: text/plain\n\nplain\n--b\nContent-Type: text/html\n\n<p>html\n--b--\n"
        b"epilogue\n--a\nContent-Type: image/png\n\npixels\n--a--\nepilogue"
    )
    assert message.containers == ("multipart/mixed", "multipart/alternative")
    assert [part.content_type.type for part in message.parts] == [
        "text/plain",
        "text/html",
        "image/png",
    ]
    assert [part.body for part in message.parts] == [b"plain", b"<p>html", b"pixels"]
    assert [part.depth for part in message.parts] == [2, 2, 1]
    assert message.defects == ()


def test_a_delimiter_of_an_outer_multipart_ends_the_inner_one() -> None:
    message = parse(
        b"Content-Type: multipart/mixed; boundary=a\n\n--a\n"
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--a\n\ntwo\n--a--\n"
    )
    assert [part.body for part in message.parts] == [b"one", b"two"]


def test_a_multipart_without_any_delimiter_is_text() -> None:
    raw = b"Content-Type: multipart/mixed; boundary=a\n\nshown all the same\n"
    assert "shown" in words(raw)
    assert parse(raw).defects == ("no delimiter",)
    inner = b"Content-Type: multipart/mixed; boundary=o\n\n--o\n" + raw + b"--o\n\nnext\n--o--\n"
    assert "next" in words(inner)


def test_a_multipart_without_boundary_and_delimiter_is_text() -> None:
    assert "shown" in words(b"Content-Type: multipart/mixed\n\nshown all the same\n")


def test_parts_of_a_digest_are_messages() -> None:
    raw = (
        b"Content-Type: multipart/digest; boundary=a\n\n--a\n\nSubject: inner offer\n\nbody one\n"
        b"--a\n\nSubject: second\n\nbody two\n--a--\n"
    )
    assert {"offer", "body", "one", "second", "two"} <= words(raw)


def test_a_message_inside_encoded_as_base64_is_opened() -> None:
    raw = (
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
        b"U3ViamVjdDogaW5uZXIKCmhpZGRlbiB3b3Jkcwo=\n"
    )
    assert {"inner", "hidden", "words"} <= words(raw)


def test_a_message_larger_than_the_limit_is_cut() -> None:
    message = parse(b"A: b\n\n" + b"x" * 100, Limits(message_bytes=50))
    assert "message cut" in message.defects
    assert message.size_bytes == 106
    assert len(message.parts[0].body) == 50


def test_a_mail_is_cut_at_one_place_with_either_line_end_and_with_fields_on_top() -> None:
    lines = b"".join(b"%d\n" % number for number in range(100))
    raw = b"Subject: long\n\n" + lines
    crlf = raw.replace(b"\n", b"\r\n")
    limits = Limits(message_bytes=101, header_bytes=100)
    for some in (raw, crlf, b"Received: from a\n\tby b\n" + raw, b"From a@b  1 Jan\n" + raw):
        message = parse(some, limits)
        assert message.parts[0].body == lines[:101]
        assert "message cut" in message.defects
    for some in (raw, crlf):
        assert parse(some, Limits(message_bytes=len(lines), header_bytes=100)).defects == ()


def test_a_header_longer_than_the_limit_is_cut() -> None:
    message = parse(b"A: b\n" * 50 + b"\nbody", Limits(header_bytes=100))
    assert "header too long" in message.defects


@pytest.mark.parametrize(
    ("value", "kind", "given"),
    [
        (b"Text/HTML; Charset=UTF-8", "text/html", {"charset": "UTF-8"}),
        (b"text/plain (note); charset = utf-8 ", "text/plain", {"charset": "utf-8"}),
        (b'text/plain; name="a\\"b;c"; x=y', "text/plain", {"name": 'a"b;c', "x": "y"}),
        (b"nonsense", "text/plain", {}),
        (b"", "text/plain", {}),
        (None, "text/plain", {}),
        (b"text/plain; charset=a; charset=b", "text/plain", {"charset": "a"}),
        (b'text/plain; name="open', "text/plain", {"name": "open"}),
    ],
)
def test_content_types_are_read_as_mail_readers_do(
    value: bytes | None, kind: str, given: dict[str, str]
) -> None:
    found = content_type(value)
    assert (found.type, found.parameters) == (kind, given)


def test_more_parameters_than_any_mail_has_are_not_read() -> None:
    assert len(parameters("x" + "".join(f"; p{n}=v" for n in range(500)))) == 100


@pytest.mark.parametrize(
    ("body", "encoding", "decoded"),
    [
        (b"YWJj", "base64", b"abc"),
        (b"YW\nJj\n", "base64", b"abc"),
        (b"YWJjZ", "base64", b"abc"),
        (b"=41=\nB=C", "quoted-printable", b"AB=C"),
        (b"begin 644 x\n#86)C\n`\nend\n", "x-uuencode", b"abc"),
        (b"begin 644 x\n\xff\xfe bad\n#86)C\nend", "uuencode", b"abc"),
        (b"abc", "8bit", b"abc"),
        (b"abc", "bogus", b"abc"),
    ],
)
def test_transfer_encodings_give_what_can_be_saved(
    body: bytes, encoding: str, decoded: bytes
) -> None:
    assert transfer_decode(body, encoding_of(encoding)) == decoded


@pytest.mark.parametrize("raw", [b"\xff\xfeS\x00", b"Subject: =?utf-8?B?!!!?= x\n\n"])
def test_damaged_encoded_words_stay_as_written(raw: bytes) -> None:
    assert parse(raw).size_bytes == len(raw)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"=?utf-8?Q?ab?= =?iso-8859-1?Q?=FC?= cd", "abü cd"),
        (b"=?utf-8?Q?a_b?=x=?utf-8?Q?c?=", "a bxc"),
        (b"=?utf-8?B?YQ?=", "a"),
        (b"=?utf-8?B?a?=", "a"),
        (b"=?bogus?Q?caf=E9?=", "café"),
        (b"=?utf-8*de?Q?=C3=BC?=", "ü"),
        (b"a\n\tb", "a\tb"),
    ],
)
def test_encoded_words_are_decoded(value: bytes, text: str) -> None:
    assert header_text(value) == text
