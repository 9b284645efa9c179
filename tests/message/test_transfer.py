"""Transfer encodings as senders write them are removed as mail readers remove them."""

import time
from base64 import b64encode
from binascii import b2a_uu

import pytest

from spamd.message.features import extract
from spamd.message.mime.charset import header_text
from spamd.message.mime.parser import parse
from spamd.message.mime.transfer import base64, encoding_of, quoted_printable, uuencoded
from spamd.message.reading import read

from .helpers import words
from .test_faults_mime import multipart

HAM, SPAM = "dear friends of the garden", "cheap pills here"


def blocks(*texts: str) -> str:
    """Return each text in base64 with its own padding."""
    return "\n".join(b64encode(text.encode()).decode() for text in texts)


PADDED = [  # (text of one padding sign, of two): both followed by another block
    pytest.param(HAM, id="one sign"),
    pytest.param(HAM[:-1], id="two signs"),
]


@pytest.mark.parametrize("ham", PADDED)
@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/calendar"])
def test_g1_base64_in_two_blocks_is_read_to_its_end(ham: str, kind: str) -> None:
    assert blocks(ham).endswith("=")
    head = f"Content-Type: {kind}\nContent-Transfer-Encoding: base64"
    raw = multipart(f"{head}\n\n{blocks(ham, f' {SPAM} ', HAM)}")
    assert set(SPAM.split()) <= words(raw)


@pytest.mark.parametrize("ham", PADDED)
def test_g1_an_attached_message_in_two_blocks_is_read_to_its_end(ham: str) -> None:
    inner = blocks(f"Subject: {HAM}\n\n{ham}", f" {SPAM}")
    raw = multipart(f"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}")
    assert set(SPAM.split()) <= words(raw)


def test_g1_an_encoded_word_in_two_blocks_is_read_to_its_end() -> None:
    both = blocks(f"{HAM} ", SPAM).replace("\n", "")
    assert both.count("=") >= 1
    assert header_text(f"=?utf-8?B?{both}?=".encode()) == f"{HAM} {SPAM}"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("QQ==QkM=REVG", "ABCDEF"),
        ("QQ==\r\n\r\nQg==\n", "AB"),
        ("Q Q = = Q g = =", "AB"),
        ("QQ==!*-QkM=", "ABC"),
        ("====QUJD====REVG", "ABCDEF"),
        ("QUJD=REVG", "ABCDEF"),  # a lone sign where no block can end
        ("QUJDR=EVG", "ABCDEF"),
        ("QUJDRA", "ABCD"),
        ("QUJDR", "ABC"),
        ("QQ==R", "A"),
        ("", ""),
        ("=", ""),
        ("é".encode().decode("latin_1") + "QUJD", "ABC"),
    ],
)
def test_g1_padding_and_signs_of_no_meaning_end_nothing(data: str, text: str) -> None:
    assert base64(data.encode("latin_1")) == text.encode()


def test_g1_many_blocks_cost_as_many_times_as_one() -> None:
    def seconds(count: int) -> float:
        data, best = b"QQ==" * count, 1e9
        for _ in range(3):
            started = time.thread_time()
            assert len(base64(data)) == count
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(80_000) < 10 * max(seconds(20_000), 0.001)


@pytest.mark.parametrize(
    "spelled",
    [
        "base64;", "base64; x=y", "base64 (comment)", "(comment) base64", '"base64"', "'base64'",
        " \t base64 \t ", "BASE64", "Base64,", "base64.", "x-base64", "base-64", "base 64",
        "<base64>", "=?utf-8?Q?base64?=", "\n base64", "base64\n\t", "base64 7bit",
        "(a (nested) one) base64", " " * 300 + "base64", "base64 ;charset=utf-8", ";base64",
    ],
)  # fmt: skip
def test_g2_base64_is_decoded_however_it_is_spelled(spelled: str) -> None:
    raw = multipart(f"Content-Transfer-Encoding: {spelled}\n\n{blocks(SPAM)}")
    assert words(raw) == set(SPAM.split())


@pytest.mark.parametrize(
    "spelled",
    ["quoted-printable;", '"Quoted-Printable"', "quoted-printable (c)", "QUOTEDPRINTABLE",
     "quoted printable", "x-quoted-printable", "\tquoted-printable\t"],
)  # fmt: skip
def test_g2_quoted_printable_is_decoded_however_it_is_spelled(spelled: str) -> None:
    raw = multipart(f"Content-Transfer-Encoding: {spelled}\n\npi=\nlls gr=C3=BC=c3=9fe")
    assert words(raw) == {"pills", "grüße"}


@pytest.mark.parametrize("spelled", ["x-uuencode;", "UUENCODE", "x-uue (c)", '"uue"'])
def test_g2_uuencode_is_decoded_however_it_is_spelled(spelled: str) -> None:
    data = b2a_uu(SPAM.encode()).decode()
    raw = multipart(
        f"Content-Transfer-Encoding: {spelled}\n\nsee:\nbegin 644 a.txt\n{data}`\nend\n"
    )
    assert words(raw) == set(SPAM.split())


@pytest.mark.parametrize("spelled", ["7bit", "8bit", "binary", "", "none", "bogus;", "(base64)"])
def test_g2_what_names_no_encoding_is_none(spelled: str) -> None:
    assert encoding_of(spelled) == ""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("pi=  \nlls", "pills"),
        ("pi= \t\nlls", "pills"),
        ("pi=\nlls=", "pills"),
        ("pi= \t", "pi"),
        ("a==41", "a=A"),
        ("a===41", "a==A"),
        ("=4a=4A", "JJ"),
        ("a=4", "a=4"),
        ("a = b", "a = b"),
        ("a=zz", "a=zz"),
        ("=", ""),
    ],
)
def test_g2_quoted_printable_oddities_are_read_as_readers_do(data: str, text: str) -> None:
    assert quoted_printable(data.encode()) == text.encode()


def test_g2_blanks_behind_equals_signs_cost_time_in_step() -> None:
    def seconds(count: int) -> float:
        data, best = (b"=" + b" " * 50 + b"x") * count, 1e9
        for _ in range(3):
            started = time.thread_time()
            assert len(quoted_printable(data)) == len(data)
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(8_000) < 10 * max(seconds(2_000), 0.001)


def test_g2_several_uuencoded_files_and_base64_ones_are_read() -> None:
    data = b"begin 644 a\n#86)C\n`\nend\nbetween\nbegin-base64 644 b\nREVG\n====\nafter"
    assert uuencoded(data) == b"abcDEF"


@pytest.mark.parametrize(
    "fields",
    [
        "Content-Transfer-Encoding: 7bit\nContent-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: base64\nContent-Transfer-Encoding: 7bit",
        "Content-Transfer-Encoding: quoted-printable\nContent-Transfer-Encoding: base64",
    ],
)
def test_g2_of_two_encodings_that_one_counts_which_the_body_has(fields: str) -> None:
    assert words(multipart(f"{fields}\n\n{blocks(SPAM)}")) == set(SPAM.split())
    plain = words(multipart(f"{fields}\n\ncheap pills here, as they are"))
    assert set(SPAM.split()) <= plain


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ('"text/html"', "html"), ("(c)text/html", "html"), ("text / html", "html"),
        ("text/html charset=utf-8", "html"), ("text/html, charset=utf-8", "html"),
        ("\n text/html", "html"), ("\ttext/html\t;", "html"), ("text/(c)html", "html"),
        ("Content-Type: text/html", "html"), ("TEXT/HTML;;", "html"), ("'text/html'", "html"),
        ("text", "plain"), ("text/", "plain"), ("", "plain"), ("bogus", "plain"),
    ],
)  # fmt: skip
def test_g2_a_content_type_is_understood_however_it_is_spelled(field: str, form: str) -> None:
    reading = read(parse(f"Content-Type: {field}\n\nso <i>cheap</i> pills".encode()))
    assert (reading.pages, reading.plain) == ((1, 0) if form == "html" else (0, 1))


@pytest.mark.parametrize(
    "field",
    [
        'multipart/mixed; boundary="b', "multipart/mixed; boundary='b'",
        "multipart/mixed; boundary=(c)b", "multipart/mixed; boundary=b (comment)",
        "multipart/mixed boundary=b", "multipart/mixed; charset=utf-8 boundary=b",
        "multipart/mixed, boundary=b", 'multipart/mixed; boundary="b  "', "multipart; boundary=b",
        "multipart/mixed;\n\tBoundary\t=\t\"b\"", "multipart/mixed; boundary*=us-ascii''b",
        'multipart/mixed; boundary*0="b"', '"multipart/mixed"; boundary=b',
        "multipart/mixed; (boundary=c) boundary=b", "multipart/x-odd; x=\"boundary=c\"; boundary=b",
        "text/plain\nContent-Type: multipart/mixed; boundary=b",
        "multipart/mixed; boundary=b\nContent-Type: text/plain", "multipart/mixed",
    ],
)  # fmt: skip
def test_g2_a_boundary_is_found_however_it_is_spelled(field: str) -> None:
    part = f"Content-Transfer-Encoding: base64\n\n{blocks(SPAM)}"
    raw = f"Content-Type: {field}\n\n--b\n{part}\n--b--\n".encode()
    assert words(raw) == set(SPAM.split())


@pytest.mark.parametrize("boundary", ["grün", "=?utf-8?Q?b?=", "a  b", " lead", 'q"q'])
def test_g2_a_boundary_of_odd_signs_is_compared_as_it_is(boundary: str) -> None:
    quoted = boundary.replace('"', '\\"')
    raw = f'Content-Type: multipart/mixed; boundary="{quoted}"\n\n--{boundary}\n\npills\n'
    found = parse(f"{raw}--{boundary}--\nnot read".encode())
    assert [part.body for part in found.parts] == [b"pills"]


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
@pytest.mark.parametrize("kind", ["message/rfc822", "message/global", "multipart/mixed"])
def test_g2_a_message_or_multipart_encoded_as_a_whole_is_read(encoding: str, kind: str) -> None:
    inner = f"Subject: x\n\n{SPAM}" if kind.startswith("message") else f"--=_i\n\n{SPAM}\n--=_i--"
    body = b64encode(inner.encode()).decode() if encoding == "base64" else inner.replace("=", "=3D")
    head = f'Content-Type: {kind}; boundary="=_i"\nContent-Transfer-Encoding: {encoding}'
    assert set(SPAM.split()) <= words(multipart(f"{head}\n\n{body}"))
    assert set(SPAM.split()) <= words(f"{head}\n\n{body}".encode())


@pytest.mark.parametrize("kind", ["message/rfc822", "multipart/mixed"])
def test_g2_a_message_or_multipart_said_to_be_base64_and_in_clear_text_is_read(kind: str) -> None:
    inner = f"Subject: x\n\n{SPAM}" if kind.startswith("message") else f"--i\n\n{SPAM}\n--i--"
    head = f"Content-Type: {kind}; boundary=i\nContent-Transfer-Encoding: base64"
    assert set(SPAM.split()) <= words(multipart(f"{head}\n\n{inner}"))


def test_g2_messages_encoded_inside_each_other_are_opened_up_to_a_size() -> None:
    body = b"x" * 900_000
    for _ in range(20):
        body = (
            b"Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n" + body
        )
    started = time.thread_time()
    assert "message cut" in extract(body).defects
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=?utf-8?q?gr=c3=bc=C3=9fe?=", "grüße"),
        ('"=?utf-8?Q?a=20b?=" <a@b.example>', '"a b" <a@b.example>'),
        ("=?utf-8?B?ww==?= =?utf-8?B?vA==?=", "ü"),
        ("=?utf-8?Q?gr=C3?=\n =?utf-8?Q?=BC=C3=9Fe?=", "grüße"),
        ("=?UTF-8?Q?a?= \t =?utf-8?b?Yg==?=", "ab"),
        ("=?utf-8?Q?a\tb?=", "a\tb"),
        ("=?utf-8?Q?a==41?=", "a=A"),
        ("=?utf-8?B?YWJj!ZGVm?=", "abcdef"),
        ("=?utf-7?Q?+AOQ-?=", "ä"),
        ("grüße =?utf-8?Q?=C3=A4?=", "grüße ä"),
    ],
)
def test_g1_encoded_words_are_read_as_readers_do(value: str, text: str) -> None:
    assert header_text(value.encode()) == text
