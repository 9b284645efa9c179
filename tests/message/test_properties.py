"""What holds for any bytes: nothing raises, limits hold, splicing changes only our fields."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spamd.message import unicode
from spamd.message.features import extract
from spamd.message.html.page import render
from spamd.message.limits import Limits
from spamd.message.mime.parser import parse
from spamd.message.spam_fields import HEADER_NAMES, strip_and_prepend
from spamd.message.spam_fields import render as render_fields
from spamd.message.tokens.hashing import token_id
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.message.url import cut_out, take_apart

PIECES = [
    b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"\t", b"\0", b"--b", b"--b--", b"--", b"b", b";", b":",
    b"=", b'"', b"boundary=b\n \0", b"Content-Type: multipart/mixed; boundary=b\n",
    b"Content-Type: text/html; charset=utf-16\n", b"Content-Type: message/rfc822\n",
    b"Content-Transfer-Encoding: base64\n", b"charset=", b"iso-2022-jp",
    b"Content-Transfer-Encoding: quoted-printable\n", b"Content-Transfer-Encoding: x-uuencode\n",
    b"Content-Disposition: attachment; filename*0*=utf-8''%C3; filename*1=x\n",
    b"begin 644 a\nM\n`\nend\n", b"Subject: ", b"From: ", b"To: ", b"X-Spam-Status: ",
    b"X-Spam-", b"x\0-\xadspam-a:", b"no field\n", b"x-spam-ID:",
    b"From x y\n", b"=?utf-8?B?",
    b"?=", b"=?utf-8?Q?=C3?=", b"<b>", b"<!--", b"-->",
    b"<style>", b"</style>", b"<font color=white>", b"<a href='", b"http://", b"www.", b"xn--",
    b"&#xD800;", b"&nbsp;", b"%ff", b"@", b"a@b.example", b"\x1b$B", b"\xff\xfe",
    "V\u200biаgra".encode(), "祝你们".encode(), b"V I A G R A", b"-----BEGIN PGP MESSAGE-----",
    b"____" * 10, b"a" * 70,
]  # fmt: skip
MAILISH = st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=60).map(b"".join)
ANY = st.binary(max_size=400) | MAILISH
SMALL = Limits(
    message_bytes=600, header_bytes=200, fields=8, field_bytes=100, depth=3, parts=6,
    part_bytes=200, text_chars=100, html_nodes=10, links=3, word_chars=10, token_chars=34,
    tokens=40,
    occurrences=3,
)  # fmt: skip
FIELD = re.compile(rb"(\xef\xbb\xbf|\xff\xfe|\xfe\xff|[\0-\x08\x0b\x0c\x0e-\x1f])*[!-9;-~]+[ \t]*:")
NAME = re.compile(rb"[!-9;-~]+[ \t]*:")
KNOWN = re.compile(FIELD.pattern.partition(b"[!-9;")[0] + HEADER_NAMES + rb"[ \t]*:", re.IGNORECASE)
NO_SIGN = re.compile(rb"[^!-~]")


@settings(deadline=None)
@given(ANY)
def test_any_bytes_have_features_within_the_limits(raw: bytes) -> None:
    found = extract(raw)
    sample = found.sample
    assert len(sample.ids) == len(found.texts) <= Limits().tokens
    assert np.all(np.diff(sample.ids) > 0)
    assert [token_id(text) for text in found.texts] == sample.ids.tolist()
    for text in found.texts:
        assert text
        assert not set(text) & set("\0\n\r\t")
        assert text.count(" ") <= 1
        assert all(len(word) <= Limits().token_chars for word in text.split(" "))
    assert sample.occurrences.min(initial=1) >= 1
    assert sample.kinds.min(initial=1) >= 1


@settings(deadline=None)
@given(ANY)
def test_small_limits_hold_too(raw: bytes) -> None:
    found = extract(raw, TokenizerOptions(limits=SMALL))
    assert len(found.sample.ids) <= SMALL.tokens
    assert found.sample.occurrences.max(initial=0) <= SMALL.occurrences
    message = parse(raw, SMALL)
    assert len(message.parts) <= SMALL.parts
    assert len(message.fields) <= SMALL.fields
    assert all(part.depth <= SMALL.depth for part in message.parts)


@settings(deadline=None)
@given(ANY)
def test_line_ends_make_no_difference(raw: bytes) -> None:
    unix = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    one, other = extract(unix), extract(unix.replace(b"\n", b"\r\n"))
    assert list(one.texts) == list(other.texts)
    assert one.digest == other.digest
    assert one.sample.grams.tolist() == other.sample.grams.tolist()


def expected_splice(head: bytes, block: bytes) -> bytes:
    """Return what splicing means, line by line."""
    empty = re.search(rb"\A\r?\n|(?<=\n)\r?\n", head)
    end = len(head) if empty is None else empty.start()
    lines = re.findall(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", head[:end])
    before: list[bytes] = []
    if re.match(rb">*From [^\n]*\n", head[:end]):
        while not before or not before[-1].endswith(b"\n"):
            before.append(lines.pop(0))
    if lines and block and not (NAME.match(lines[0]) or any(map(KNOWN.match, lines))):
        return b"".join([*before, block, b"\n", *lines, head[end:]])
    if lines and block and lines[0][:1] in (b" ", b"\t"):
        block += b"X-Front:\n"
    return b"".join(before) + block + without_ours(lines) + head[end:]


def without_ours(lines: list[bytes]) -> bytes:
    """Return lines without those that may pass for ours, each with its folds."""
    kept: list[bytes] = []
    in_field = dropping = False
    for number, line in enumerate(lines):
        folded = line[:1] in (b" ", b"\t")
        if folded and (dropping or in_field):
            kept += [] if dropping else [line]
            continue
        folds = 1
        while lines[number + folds :][:1] and lines[number + folds][:1] in (b" ", b"\t"):
            folds += 1
        whole = NO_SIGN.sub(b"", b"".join(lines[number : number + folds])).lower()
        first = NO_SIGN.sub(b"", line).lower()
        dropping = bool(first) and bool(re.match(rb"x-spam-.*:", whole))
        in_field = FIELD.match(line) is not None if not folded else in_field
        kept += [] if dropping else [line]
    return b"".join(kept)


@settings(deadline=None)
@given(MAILISH)
def test_k3_splicing_takes_out_what_may_pass_for_ours_and_nothing_else(raw: bytes) -> None:
    block = b"X-Spam-Flag: YES\n"
    assert strip_and_prepend(raw, block) == expected_splice(raw, block)


@settings(deadline=None)
@given(ANY)
def test_splicing_twice_is_splicing_once(raw: bytes) -> None:
    block = b"X-Spam-Flag: YES\r\n"
    once = strip_and_prepend(raw, block)
    assert strip_and_prepend(once, block) == once


@settings(deadline=None)
@given(ANY)
def test_what_stands_behind_the_first_empty_line_is_never_touched(raw: bytes) -> None:
    body = re.search(rb"(\A|(?<=\n))\r?\n.*", raw, re.DOTALL)
    assert strip_and_prepend(raw, b"").endswith(body[0] if body else b"")
    assert len(strip_and_prepend(raw, b"")) <= len(raw)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["X-Spam-Clues", "X-Spam-Id"]), st.text(max_size=400))))
def test_rendered_fields_hold_no_bare_line_ends_and_no_foreign_field(
    fields: list[tuple[str, str]],
) -> None:
    block = render_fields(fields, b"\r\n")
    lines = block.split(b"\r\n")
    assert lines.pop() == b""
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    assert all(line.isascii() and len(line) <= 998 for line in lines)
    assert all(line.strip() for line in lines)
    assert sum(not line.startswith(b" ") for line in lines) == len(fields)
    assert strip_and_prepend(block + b"\r\n", b"") == b"\r\n"


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_rendered_and_searched_for_links(text: str) -> None:
    render(text)
    links, rest = cut_out(text)
    assert len(rest) <= len(text) + len(links)
    for link in links:
        take_apart(link)
    take_apart(text)


@settings(deadline=None)
@given(
    st.text(st.sampled_from("aZ09$!'-.,;\x01\x02\t ") | st.characters(codec="ascii"), max_size=60)
)
def test_words_in_ascii_are_the_same_beside_words_that_are_not(text: str) -> None:
    alone = unicode.words(text)
    assert unicode.words(f"{text}\nГрüße") == [*alone, "Грüße"]
    assert unicode.words(f"Грüße {text}") == ["Грüße", *alone]
