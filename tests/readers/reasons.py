"""Why readers differ. Each reason is proven on the mail; a difference without one is a fault.

The reasons are of four kinds: characters (the bytes are the same, their charset is taken for
another one), transfer encodings, structure (one side sees a part that the other doesn't), fields.
"""

import codecs
import re
from binascii import Error as BinasciiError
from binascii import a2b_base64
from collections.abc import Callable

from spamd.message.mime.charset import codec_of
from spamd.message.mime.transfer import base64, quoted_printable

from .difference import Difference
from .shown import Leaf


def reason(difference: Difference) -> str | None:
    """Return the name of the first reason that holds, None when none does."""
    one, two = difference.our_leaf, difference.their_leaf
    if difference.what != "part":
        kinds: list[dict[str, Callable[[Difference], bool]]] = [FIELDS]
    elif one is None or two is None:
        kinds = [STRUCTURE, UNPAIRED]
    elif one.lines == two.lines:
        kinds = [CHARACTERS]
    else:
        kinds = [ENCODINGS, STRUCTURE]
    for kind in kinds:
        for name, holds in kind.items():
            if holds(difference):
                return name
    return None


# Characters


def _leaf(difference: Difference) -> Leaf:
    assert difference.our_leaf is not None
    return difference.our_leaf


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not data.isascii()


def _their_codec(label: str) -> str | None:
    try:
        return codecs.lookup(label).name
    except (LookupError, ValueError):
        return None


def _no_text_to_them(difference: Difference) -> bool:
    two = difference.their_leaf
    return two is not None and two.text is None and two.type != _leaf(difference).type


def _utf_8_whatever_the_label(difference: Difference) -> bool:
    leaf = _leaf(difference)
    return _is_utf_8(leaf.content) and _their_codec(leaf.label) != "utf-8"


def _unlabelled(difference: Difference) -> bool:
    leaf = _leaf(difference)
    return not leaf.content.isascii() and _their_codec(leaf.label or "ascii") == "ascii"


def _unknown_label(difference: Difference) -> bool:
    return bool(_leaf(difference).label) and _their_codec(_leaf(difference).label) is None


def _superset(difference: Difference) -> bool:
    leaf = _leaf(difference)
    codec = codec_of(leaf.label)
    return (
        codec is not None
        and _their_codec(codec) != _their_codec(leaf.label)
        and leaf.words == leaf.content.decode(codec, "replace").replace("\0", "").split()
    )


def _not_in_charset(difference: Difference) -> bool:
    leaf = _leaf(difference)
    try:
        leaf.content.decode(codec_of(leaf.label) or "utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _shifted(difference: Difference) -> bool:
    return b"\x1b" in _leaf(difference).content


def _ends_at_nul(difference: Difference) -> bool:
    one, two = difference.our_leaf, difference.their_leaf
    return (
        one is not None
        and two is not None
        and b"\0" in one.content
        and (one.text or "").startswith((two.text or "").rstrip("\n"))
    )


CHARACTERS: dict[str, Callable[[Difference], bool]] = {
    "they do not see the type, as it is spelled": _no_text_to_them,
    "we take valid UTF-8 for UTF-8, whatever its label": _utf_8_whatever_the_label,
    "no charset is said, and each guesses": _unlabelled,
    "they don't know the charset that is said": _unknown_label,
    "we take a charset for its superset, as browsers do": _superset,
    "bytes that the charset does not have: replaced, left out, or guessed": _not_in_charset,
    "ISO-2022 is told by its shifts, not by its label": _shifted,
    "GMime's text ends at a NUL": _ends_at_nul,
}


# Transfer encodings


def _undecoded(difference: Difference) -> bool:
    one, two = difference.our_leaf, difference.their_leaf
    return (
        one is not None
        and two is not None
        and bool(one.encoding)
        and two.lines == one.encoded.strip(b"\n \t")
    )


def _read_to_the_end(difference: Difference) -> bool:
    one, two = difference.our_leaf, difference.their_leaf
    return (
        one is not None
        and two is not None
        and one.encoding == "base64"
        and b"=" in one.encoded.rstrip(b"= \t\n")
        and one.content.startswith(two.content.rstrip())
    )


def _last_group(difference: Difference) -> bool:
    one, two = difference.our_leaf, difference.their_leaf
    return (
        one is not None
        and two is not None
        and one.encoding == "base64"
        and abs(len(one.content) - len(two.content)) <= 3
        and (one.content.startswith(two.content) or two.content.startswith(one.content))
    )


def _broken_base64(difference: Difference) -> bool:
    one = difference.our_leaf
    if one is None or one.encoding != "base64":
        return False
    try:
        a2b_base64(one.encoded)
    except BinasciiError:
        return True
    return (
        b"=" in one.encoded.rstrip(b"= \t\n") or re.search(rb"[^\w+/=\s]", one.encoded) is not None
    )


_EQUALS = re.compile(rb"=|3[Dd]|[ \t\n]+")


def _equals_signs(difference: Difference) -> bool:
    one, two = difference.our_leaf, difference.their_leaf
    return (
        one is not None
        and two is not None
        and one.encoding == "quoted-printable"
        and re.search(rb"=(?![0-9A-Fa-f]{2}|\n)", one.encoded) is not None
        and _EQUALS.sub(b"", one.content) == _EQUALS.sub(b"", two.content)
    )


def _blank_break(difference: Difference) -> bool:
    one = difference.our_leaf
    return (
        one is not None
        and one.encoding == "quoted-printable"
        and re.search(rb"=[ \t]+(?:\n|\Z)", one.encoded) is not None
    )


def _uuencoded(difference: Difference) -> bool:
    one = difference.our_leaf
    return one is not None and one.encoding == "x-uuencode"


ENCODINGS: dict[str, Callable[[Difference], bool]] = {
    "they do not see the encoding, as it is spelled": _undecoded,
    "we read base64 on behind padding": _read_to_the_end,
    "we keep the bytes of an incomplete last group of base64": _last_group,
    "blanks behind a soft break of quoted-printable": _blank_break,
    "an equals sign that encodes nothing": _equals_signs,
    "base64 with other signs in it: each saves what it can": _broken_base64,
    "uuencoded parts: each saves what it can": _uuencoded,
}


# Structure


def _defect(*names: str) -> Callable[[Difference], bool]:
    return lambda difference: not set(names).isdisjoint(difference.message.defects)


def _container(*names: str) -> Callable[[Difference], bool]:
    return lambda difference: any(name in difference.message.containers for name in names)


def _type(*names: str) -> Callable[[Difference], bool]:
    return lambda difference: any(
        leaf is not None and leaf.type in names
        for leaf in (difference.our_leaf, difference.their_leaf)
    )


def _contains(pattern: bytes) -> Callable[[Difference], bool]:
    search = re.compile(pattern, re.IGNORECASE | re.MULTILINE).search
    return lambda difference: bool(search(difference.raw))


def _several_types(difference: Difference) -> bool:
    name = re.compile(rb"^content-type[ \t]*:", re.IGNORECASE | re.MULTILINE)
    return any(len(name.findall(block)) > 1 for block in difference.raw.split(b"\n\n"))


def _encoded_inside(difference: Difference) -> bool:
    inside = "message/rfc822" in difference.message.containers
    return inside and _BASE64_MESSAGE(difference)


_BASE64_MESSAGE = _contains(
    rb"^content-type:[ \t]*message/rfc822[^\n]*\n(?:[^\n]+\n)*?"
    rb"content-transfer-encoding:[ \t]*(?:base64|quoted)"
    rb"|^content-transfer-encoding:[ \t]*(?:base64|quoted)[^\n]*\n(?:[^\n]+\n)*?"
    rb"content-type:[ \t]*message/rfc822"
)


def _one_boundary_twice(difference: Difference) -> bool:
    found = re.findall(rb"boundary=\"([^\"\n]+)\"", difference.raw)
    return len(set(found)) < len(found)


def _nothing_inside(difference: Difference) -> bool:
    return not any(part.body.strip() for part in difference.message.parts)


STRUCTURE: dict[str, Callable[[Difference], bool]] = {
    "we stop at a limit": _defect(
        "too many parts", "nested too deep", "too many fields", "message cut", "header too long",
        "too many delimiters",
    ),
    "we read the fields behind a line that is none": _defect("stray line"),
    "we read a field behind a byte order mark": _contains(rb"^\xef\xbb\xbf"),
    "of two types each takes another": _several_types,
    "a header section without a blank line ends where each thinks it does": _defect(
        "no blank line"
    ),
    "a line of blanks: some take it for the empty line": _contains(rb"^[!-9;-~]+:[^\n]*\n[ \t]+\n"),
    "a header section that a delimiter ends": _contains(rb"^[!-9;-~]+:[^\n]*\n--[^\n]"),
    "a multipart without its boundary": _defect("no boundary", "no delimiter"),
    "two multiparts of one boundary": _one_boundary_twice,
    "a multipart without content: the other shows what is around its parts": _nothing_inside,
    "a boundary that ends like the last delimiter": _contains(rb"boundary=\"[^\"\n]*--\""),
    "a boundary that is folded, longer than 70 signs, or ends in a blank": _contains(
        rb"boundary=\"(?:[^\"\n]*\n[^\"]*|[^\"\n]{71,}|[^\"\n]*[ \t])\""
    ),
    "a multipart without a subtype": _contains(rb"^content-type:[ \t]*multipart[ \t]*;"),
    "a multipart that is encoded as a whole": _contains(
        rb"^content-type:[ \t]*multipart[^\n]*\n(?:[^\n]+\n)*?content-transfer-encoding:[ \t]*"
        rb"(?:base64|quoted)"
    ),
    "message/global and message/news are messages": _container("message/global", "message/news"),
    "a boundary in single quotes, with a comment, or without its last quote": _contains(
        rb"^content-type:[^\n]*boundary[ \t]*=[ \t]*(?:'|\(|[^\s\";]+[ \t]*\(|\"[^\"\n]*$)"
    ),
    "a parameter without a semicolon in front": _contains(
        rb"^content-type:[^\n]*=[\w-]+ boundary="
    ),
    "a type without the semicolon behind it": _contains(
        rb"^content-type:[ \t]*[\w/.+-]+\s+[a-z]+="
    ),
    "a message inside that is encoded": _encoded_inside,
    "a message inside without any field is kept as text": _contains(
        rb"^content-type:[ \t]*message/rfc822[^\n]*\n(?:[^\n]+\n)*\n(?![!-9;-~]+[ \t]*:)"
    ),
    "an entity inside a report that the other takes apart": _type(
        "message/delivery-status", "message/disposition-notification", "message/feedback-report",
        "message/external-body", "message/partial", "message/rfc822-headers", "text/rfc822-headers",
    ),
    "a message in pieces that the other opens": _contains(rb"^content-type:[ \t]*message/partial"),
}  # fmt: skip
UNPAIRED: dict[str, Callable[[Difference], bool]] = {
    "base64 with other signs in it: each saves what it can": _broken_base64,
    "they do not see the encoding, as it is spelled": _contains(
        rb"^content-transfer-encoding:[ \t]*[\w-]+[ \t;,(]"
    ),
}


# Fields

_WORD = re.compile(rb"=\?([^?*]*)(?:\*[^?]*)?\?([BbQq])\?([^?]*(?:\?(?!=)[^?]*)*)\?=")


def _value(difference: Difference) -> bytes:
    return (difference.message.first(difference.what.lower()) or b"").replace(b"\n", b"")


def _words(difference: Difference) -> list[tuple[str, bytes]]:
    """Return charset and bytes of each encoded word of the field."""
    return [
        (
            label.decode("latin_1"),
            base64(data) if kind in b"bB" else quoted_printable(data, header=True),
        )
        for label, kind, data in _WORD.findall(_value(difference))
    ]


def _raw_bytes(difference: Difference) -> bool:
    value = _WORD.sub(b"", _value(difference))
    return not value.isascii() and not _is_utf_8(value)


def _mixed(difference: Difference) -> bool:
    value = _value(difference)
    return not value.isascii() and b"=?" in value


def _cut_characters(difference: Difference) -> bool:
    return any(_fails(data, codec_of(label)) for label, data in _words(difference))


def _fails(data: bytes, codec: str | None) -> bool:
    try:
        data.decode(codec or "utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _superset_word(difference: Difference) -> bool:
    return any(
        _their_codec(codec_of(label) or label) != _their_codec(label) or _is_utf_8(data)
        for label, data in _words(difference)
    )


def _unknown_word(difference: Difference) -> bool:
    return any(_their_codec(label) is None for label, _ in _words(difference))


def _odd_word(difference: Difference) -> bool:
    value = _value(difference)
    return bool(
        re.search(rb"\?=[^\s]|[^\s]=\?|=\?[^?]*\?.\?[^?]*[\s=]\?=|=\?[^?]*\?.\?[^?]*\s", value)
    )


def _several(difference: Difference) -> bool:
    names = re.findall(rb"^(subject|from)[ \t]*:", difference.raw, re.IGNORECASE | re.MULTILINE)
    return [name.lower() for name in names].count(difference.what.lower().encode()) > 1


def _signs_only(difference: Difference) -> bool:
    one, two = (
        re.sub(r"[\W_]+", "", text) for text in (difference.our_text, difference.their_text)
    )
    return one == two


FIELDS: dict[str, Callable[[Difference], bool]] = {
    "a field in bytes that are no UTF-8, and each guesses": _raw_bytes,
    "a character that is cut in two between encoded words": _cut_characters,
    "an encoded word in what we take for a superset, or for UTF-8": _superset_word,
    "an encoded word in a charset that they don't know": _unknown_word,
    "bytes beside encoded words": _mixed,
    "an encoded word that touches other text, or holds blanks": _odd_word,
    "several fields of that name": _several,
    "a blank in front of the colon": _contains(rb"^(?:subject|from)[ \t]+:"),
    "we read a field behind a byte order mark": _contains(rb"^\xef\xbb\xbf"),
    "the same letters: addresses are written anew": _signs_only,
    "we read the fields behind a line that is none": _defect("stray line"),
}
