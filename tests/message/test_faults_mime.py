"""Faults of other products in MIME and header parsing, one test per case."""

import base64

import pytest

from spamd.message.features import extract
from spamd.message.html.page import render
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.reading import read
from spamd.message.spam_fields import strip_and_prepend
from spamd.sample import Kind

from .helpers import mail, of_kind, page, tokens, words


def multipart(*parts: str, head: str = 'Content-Type: multipart/mixed; boundary="b"') -> bytes:
    body = "".join(f"--b\n{part}\n" for part in parts)
    return f"From: a@example.org\n{head}\n\n{body}--b--\n".encode()


@pytest.mark.parametrize(
    "label", ["bogus", "cp-850", "uft-8", "iso-8859-8-i", "1", '"', "", "x" * 9999]
)
def test_a1_a_nonsense_charset_label_still_gives_the_words(label: str) -> None:
    raw = mail("Grüße aus Köln", f"Content-Type: text/plain; charset={label}")
    assert {"Grüße", "Köln"} <= words(raw)


def test_a1_an_unknown_charset_label_is_a_token() -> None:
    assert "defect:bad-charset" in tokens(mail("Grüße", "Content-Type: text/plain; charset=bogus"))


@pytest.mark.parametrize(
    "field",
    [
        "Content-Type: text/plain; name*",
        "To: (c):",
        'To: "',
        "Message-ID: <[b378dfc5a1@microsoft.example]>",
        "Content-Type: ;;;=;",
        "Content-Type: text/plain; charset*0*=",
    ],
)
def test_a2_header_fields_that_break_the_standard_library_do_no_harm(field: str) -> None:
    raw = f"From: a@example.org\n{field}\nSubject: kept\n\nvisible words".encode()
    assert {"visible", "words"} <= words(raw)
    assert "subject=kept" in tokens(raw)


def test_a3_an_encoded_word_with_a_tab_inside_is_plain_text() -> None:
    raw = b"Subject: =?ISO-8859-1?Q\t?compl=E9ter=20?= d\xc3\xa9j\xc3\xa0\n\nx"
    assert "subject=déjà" in tokens(raw)


def test_a4_a_character_cut_across_two_encoded_words_is_whole() -> None:
    data = "Grüße".encode()
    first, second = (base64.b64encode(piece).decode() for piece in (data[:3], data[3:]))
    raw = mail("x", f"Subject: =?utf-8?B?{first}?=\n =?utf-8?B?{second}?=")
    assert "subject=Grüße" in tokens(raw)


def test_a4_white_space_between_encoded_words_is_dropped_but_kept_next_to_text() -> None:
    raw = mail("x", "Subject: =?utf-8?Q?Ange?= =?utf-8?Q?bot?= heute =?utf-8?Q?neu?=")
    assert read(parse(raw)).subject == "Angebot heute neu"


def test_a5_a_raw_8_bit_header_stays_as_it_is_when_fields_are_spliced_in() -> None:
    raw = b"Subject: gr\xfc\xdfe =?utf-8?Q?=C3=A4?= " + b"\xff" * 900 + b"\n\nbody"
    assert strip_and_prepend(raw, b"X-Spam-Flag: YES\n") == b"X-Spam-Flag: YES\n" + raw
    assert {"subject=grüße"} <= tokens(b"Subject: gr\xfc\xdfe\n\nbody")


def test_a6_8_bit_text_in_the_preamble_changes_nothing() -> None:
    part = "Content-Type: text/plain\n\nseen words"
    raw = multipart(part).replace(b"\n\n--b", b"\n\nNo\xc2\xa0space\n--b", 1)
    assert b"\xc2\xa0" in raw
    assert words(raw) == {"seen", "words"}


def test_a7_lone_surrogates_do_not_stop_the_scan() -> None:
    raw = mail("x").replace(b"\n\nx", b"\n\nPr\xed\xb3\x83is \xc3\xab buy")
    assert "buy" in words(raw)
    utf7 = mail("buy +2AA- now", "Content-Type: text/plain; charset=utf-7")
    assert {"buy", "now"} <= words(utf7)
    assert {"a", "b"} <= words(page("a &#xD800; b"))


def test_a8_the_last_line_of_a_multipart_without_closing_delimiter_is_kept() -> None:
    raw = multipart("\nfirst", "\nlast line").removesuffix(b"\n--b--\n")
    assert {"first", "last", "line"} <= words(raw)


@pytest.mark.parametrize(
    ("head", "boundary"),
    [
        ('Content-Type: multipart/mixed; boundary = "b"', "b"),
        ("Content-Type: multipart/mixed; BOUNDARY='~~~'", "'~~~'"),
        ("Content-Type: multipart/mixed; boundary==_b==", "=_b=="),
        ('Content-Type: multipart/signed; protocol="x/y";\n\tmicalg=sha1; boundary="b c"', "b c"),
        ("Content-Type: multipart/mixed; boundary=-----", "-----"),
        ("CONTENT-TYPE: Multipart/Mixed;boundary=b:c", "b:c"),
        ('Content-Type: multipart/mixed; charset="x;y"; boundary="b;c"', "b;c"),
        ("Content-Type: multipart/mixed; boundary*0=ab; boundary*1=cd", "abcd"),
    ],
)
def test_a9_odd_but_common_boundary_spellings_are_found(head: str, boundary: str) -> None:
    raw = (
        f"{head}\n\npreamble\n--{boundary}\nContent-Type: text/plain\n\none\n"
        f"--{boundary} \nContent-Transfer-Encoding: base64\n\ndHdv\n--{boundary}--\nepilogue\n"
    ).encode()
    assert words(raw) == {"one", "two"}


def test_a9_a_multipart_without_a_boundary_parameter_is_split_by_its_first_delimiter() -> None:
    raw = b"Content-Type: multipart/mixed\n\n--zz\n\none\n--zz\n\ntwo\n--zz--\n"
    assert words(raw) == {"one", "two"}
    assert "defect:no-boundary" in tokens(raw)


def test_a10_a_header_that_ends_at_the_delimiter_has_its_body_recognised() -> None:
    raw = b"Content-Type: multipart/mixed; boundary=b:c\n--b:c\n\nbody text\n--b:c--\n"
    assert words(raw) == {"body", "text"}


def test_a10_the_last_header_field_counts_without_any_line_end() -> None:
    raw = b"From: a@example.org\nSubject: last"
    assert "subject=last" in tokens(raw)


def test_a11_the_first_body_line_is_no_header_field() -> None:
    assert {"Note", "see", "below"} <= words(
        multipart("Content-Type: text/plain\n\nNote: see below")
    )
    assert {"Note", "see", "below"} <= words(multipart("\nNote: see below"))


def test_a11_one_very_long_base64_line_is_decoded() -> None:
    data = base64.b64encode(b"word " * 20_000 + b"end").decode()
    raw = multipart(f"Content-Transfer-Encoding: base64\n\n{data}")
    assert words(raw) == {"word", "end"}


@pytest.mark.parametrize("tag", ["style", "script"])
def test_a12_an_unclosed_style_or_script_does_not_swallow_the_mail(tag: str) -> None:
    raw = page(f"<html><body>before<{tag}>p {{ color: red }}<p>after all</p>")
    assert {"before", "after", "all"} <= words(raw)
    assert "defect:html-cut" in tokens(raw)


def test_a13_two_thousand_nested_multiparts_end_at_the_depth_limit() -> None:
    raw = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(2000)
    )
    found = extract(raw.encode() + b"\ndeep text\n")
    assert "nested too deep" in found.defects
    assert "defect:nested-too-deep" in set(found.texts)


def test_a13_two_thousand_nested_messages_end_at_the_limit() -> None:
    raw = b"Content-Type: message/rfc822\n\n" * 2000 + b"Subject: deep\n\ntext"
    assert "too many parts" in extract(raw).defects


def test_a13_messages_encoded_inside_each_other_end_at_the_depth_limit() -> None:
    head = b"Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n"
    body = b"Subject: deep\n\ntext"
    for _ in range(200):
        body = head.replace(b"=", b"=3D") + body
    assert extract(head + body).size_bytes > 0


def test_a14_a_hundred_thousand_parts_end_at_the_part_limit() -> None:
    raw = b"Content-Type: multipart/mixed; boundary=a\n\n" + b"--a\n\n\n" * 100_000
    message = parse(raw)
    assert len(message.parts) <= Limits().parts
    assert "too many parts" in message.defects


def test_a15_boundaries_that_reopen_an_ancestor_give_a_strict_tree() -> None:
    inner = 'Content-Type: multipart/mixed; boundary="b"\n\n--b\n\ninner'
    raw = multipart(inner, inner, "\nouter")
    assert {"inner", "outer"} <= words(raw)
    assert len(parse(raw * 50).parts) <= Limits().parts


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"\r\n\r\n\r\n",
        b"\n" * 5000,
        b"Subject: only a header\n",
        b"only a body",
        b"Content-Type: text/plain\n\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n--b--\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n--b\n--b--\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b",
        b"From nobody\n",
    ],
)
def test_a16_empty_things_have_features(raw: bytes) -> None:
    found = extract(raw)
    assert len(found.texts) == len(found.sample.ids)
    assert len(found.digest) == 16


def test_a17_illegal_characters_in_base64_are_passed_over() -> None:
    data = base64.b64encode(b"cheap pills and more of them").decode()
    broken = data[:8] + "!\x00*" + data[8:]
    raw = multipart(f"Content-Transfer-Encoding: base64\n\n{broken}")
    assert {"cheap", "pills", "more"} <= words(raw)


def test_a17_a_footer_in_clear_text_behind_base64_does_no_harm() -> None:
    data = base64.b64encode(b"cheap pills and more").decode()
    raw = multipart(f"Content-Transfer-Encoding: base64\n\n{data}\n_____\nlist footer here!")
    assert {"cheap", "pills", "more"} <= words(raw)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a18_quoted_printable_gives_the_same_words_with_either_line_end(newline: bytes) -> None:
    raw = mail(
        "soft br=\neak caf=C3=A9\nGr=C3=BC=C3=9Fe =\nand end=",
        "Content-Transfer-Encoding: quoted-printable",
    ).replace(b"\n", newline)
    assert words(raw) == {"soft", "break", "café", "Grüße", "and", "end"}


def test_a19_a_uuencoded_part_with_odd_padding_is_decoded() -> None:
    body = "begin 644 a.txt\n$=&5X= !!\n#86%A\n`\nend"
    raw = multipart(f"Content-Transfer-Encoding: x-uuencode\n\n{body}")
    assert extract(raw).size_bytes > 0
    assert any("aaa" in word for word in words(raw))


def test_a19_an_inline_uuencoded_file_is_an_attachment_and_no_words() -> None:
    lines = "\n".join(["M" + "86%A" * 15] * 30)
    raw = mail(f"see this\nbegin 644 game.exe\n{lines}\n`\nend\nbye")
    assert words(raw) == {"see", "this", "bye"}
    assert {"ending:exe", "file:game"} <= tokens(raw)


@pytest.mark.parametrize(
    ("parameters", "ending"),
    [
        (
            "; ".join(f"filename*{n}=a{n}" for n in reversed(range(11))) + "; filename*11=.exe",
            "exe",
        ),
        ("filename*0=a; filename*7=.exe", "exe"),
        (f"filename*{'9' * 5000}=x; filename=b.exe", "exe"),
        ("filename*0*=utf-8''a%C3; filename*1*=%A4.exe", "exe"),
        ("filename*0=a.; filename*1*=%65xe", "exe"),
        ("file-name*0*=x; filename=c.exe", "exe"),
        ('filename="=?utf-8?Q?rechnung=2Eexe?="', "exe"),
        ("filename*=nonsense''%ff%fd.exe", "exe"),
    ],
)
def test_a20_continued_parameters_are_joined_in_numeric_order(parameters: str, ending: str) -> None:
    part = f"Content-Type: application/x\nContent-Disposition: attachment; {parameters}\n\nMZ"
    assert f"ending:{ending}" in tokens(multipart(part))


def test_a20_the_character_cut_over_two_sections_is_whole() -> None:
    part = "Content-Type: application/x; name*0*=utf-8''%C3; name*1*=%A4rger.pdf\n\nMZ"
    assert "file:ärger" in tokens(multipart(part))


@pytest.mark.parametrize("kind", ["delivery-status", "disposition-notification"])
def test_a21_delivery_reports_are_read_as_text(kind: str) -> None:
    part = f"Content-Type: message/{kind}\n\nReporting-MTA: dns; mx.example.org\n\nAction: failed"
    assert {"Reporting-MTA", "Action", "failed"} <= words(multipart(part))


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a22_utf_16_text_is_decoded(codec: str) -> None:
    body = base64.b64encode("Grüße vom Händler".encode(codec)).decode()
    subject = base64.b64encode("Angebot für Sie".encode(codec)).decode()
    raw = mail(
        body,
        f"Subject: =?{codec}?B?{subject}?=",
        f"Content-Type: text/plain; charset={codec}",
        "Content-Transfer-Encoding: base64",
    )
    assert {"Grüße", "Händler"} <= words(raw)
    assert {"subject=Angebot", "subject=für"} <= tokens(raw)


@pytest.mark.parametrize(
    "value",
    [
        "(" * 3000,
        ", ".join(f"a{n}@example.org" for n in range(5000)),
        ":" * 50_000,
        '"' * 9999,
        "<" * 9999,
    ],
)
def test_a23_address_bombs_are_bounded(value: str) -> None:
    raw = f"To: {value}\nSubject: x\n\nbody".encode()
    found = extract(raw)
    assert len(found.texts) < 500
    assert "body" in set(found.texts)


def test_a24_a_blank_field_does_not_swallow_the_next() -> None:
    message = parse(b"Subject:\nX-Foo: bar\n\nx")
    assert message.first("subject") == b""
    assert message.first("x-foo") == b" bar"


@pytest.mark.parametrize(
    "line", [b"From a@b Thu Jan  1 00:00:00 1970\n", b">From a@b Thu Jan  1\n"]
)
def test_a25_one_mbox_line_on_top_is_skipped(line: bytes) -> None:
    raw = mail("Hello", "Subject: offer")
    assert tokens(line + raw) == tokens(raw)
    assert extract(line + raw).digest == extract(raw).digest


@pytest.mark.parametrize(
    "first", [b"From eve@example.com Tue May 10 11:28:07 2005\n", b">From x\n"]
)
def test_a25_one_mbox_line_on_top_of_a_message_inside_is_skipped(first: bytes) -> None:
    inner = b"Subject: Pills\nContent-Type: text/html; charset=utf-8\n\n<b>Buy</b> now"
    message = parse(b"Content-Type: message/rfc822\n\n" + first + inner)
    assert [field.name for field in message.nested] == ["subject", "content-type"]
    assert [part.content_type.type for part in message.parts] == ["text/html"]


@pytest.mark.parametrize(
    "markup",
    [
        "<!--" + "x" * 1_000_000 + " after it",
        "<a " + "y" * 1_000_000 + "> after it",
        "<a b='" + "z" * 1_000_000 + " after it",
    ],
)
def test_a26_a_comment_or_tag_of_a_megabyte_leaves_the_rest(markup: str) -> None:
    assert "before" in render(f"before {markup}").text
    assert "after it" in render(f"before {markup}").text


def test_a27_fifty_thousand_nested_elements_and_comments_are_bounded() -> None:
    assert "text" in render("<div>" * 50_000 + "text").text
    assert "text" in render("<!--x-->" * 100_000 + "text").text
    assert "text" in render(f"<style>{'/* x */' * 100_000}</style>text").text
    assert "text" in render("".join(f"<b a={n}>" for n in range(50_000)) + "<p>text").text


def test_a28_text_behind_a_binary_attachment_is_read() -> None:
    raw = multipart(
        "\nfirst",
        "Content-Type: application/octet-stream; name=x.bin\n\n\x01\x02\x03",
        "Content-Type: text/plain\n\nlater words",
    )
    assert {"first", "later", "words"} <= of_kind(raw, Kind.WORD)
