"""Content-Type and its relatives as mail readers take them. Nothing here raises on content.

Parameters follow RFC 2045 §5.1 and how senders break it: comments, quotes around the type, white
space around `/` and `=`, names in any case, unquoted values with odd signs, a missing semicolon or
subtype, RFC 2231 continuations joined in numeric order and decoded once. Time is linear in the
bytes.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from spamd.message.mime.charset import decode, header_text

_PARAMETER = re.compile(  # every repeat is possessive: no text is read more than twice
    r"""(?<![^\s;,"'])([^\s=;,"']{1,80}+)\s*+=\s*+(?:"((?>(?:[^"\\]|\\.)*))(?:"|\Z)"""
    r"""|((?>(?:[^;\s]++|\s++(?![^\s=;"]{1,80}+\s*+=))*)))""",
    re.DOTALL,
)
_QUOTED_PAIR = re.compile(r"\\(.)")
_COMMENT = (
    re.compile(  # a quoted string and an unquoted file name may hold parentheses of their own
        r"""("(?>(?:[^"\\]|\\.)*)(?:"|\Z)|name[*0-9]*+\s*+=\s*+[^";]*+)|\((?>(?:[^()\\]|\\.)*)\)""",
        re.DOTALL | re.IGNORECASE,
    )
)
_NESTED = 3  # comments inside comments that are passed over
_SECTION = re.compile(r"([^*]+)(?:\*([0-9]{1,4}))?(\*)?$")
_MAX_PARAMETERS = 100  # a real field has 1 to 5; continuations of a long name need some more


@dataclass(frozen=True, slots=True)
class ContentType:
    """A media type in lower case ("text/plain") and its parameters, names in lower case."""

    type: str
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def main(self) -> str:
        """The part before the slash."""
        return self.type.partition("/")[0]


PLAIN = ContentType("text/plain")
_TYPE = re.compile(r"""[\s"'<]*+([^\s;,/"'()<>=]{1,60}+)(?:\s*+/\s*+([^\s;,/"'()<>=]{1,60}+))?""")
_AGAIN = re.compile(r"\s*+content-type\s*+:", re.IGNORECASE)
_WITHOUT_SUBTYPE = {"multipart": "multipart/mixed", "message": "message/rfc822"}


def content_type(value: bytes | None) -> ContentType:
    """Return the parsed Content-Type; a missing or senseless one is text/plain (RFC 2045 §5.2)."""
    if value is None:
        return PLAIN
    text = value.replace(b"\n", b"").decode("latin_1")
    if "(" in text:
        text = _without_comments(text)
    if (again := _AGAIN.match(text)) is not None:
        text = text[again.end() :]
    match = _TYPE.match(text)
    if match is None:
        name = "text/plain"
    elif match[2] is None:
        name = _WITHOUT_SUBTYPE.get(match[1].lower(), "text/plain")
    else:
        name = f"{match[1]}/{match[2]}".lower()
    return ContentType(name, parameters(text)) if "=" in text else ContentType(name)


def _without_comments(text: str) -> str:
    for _ in range(_NESTED):
        shorter = _COMMENT.sub(_kept, text)
        if shorter == text:
            break
        text = shorter
    return text


def _kept(match: re.Match[str]) -> str:
    return match[1] or " "


def disposition_parameters(value: bytes) -> dict[str, str]:
    """Return the parameters of a Content-Disposition."""
    text = value.replace(b"\n", b"").decode("latin_1")
    return parameters(_without_comments(text) if "(" in text else text)


def parameters(text: str) -> dict[str, str]:
    """Return the parameters of a structured field; `text` holds its bytes as Latin-1."""
    found: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[str, bool]]] = {}
    for count, match in enumerate(_PARAMETER.finditer(text)):
        if count == _MAX_PARAMETERS:
            break
        name, value = match[1].lower(), match[2]
        if value is None:
            value = match[3].strip()
        elif "\\" in value:
            value = _QUOTED_PAIR.sub(r"\1", value)
        if "*" not in name:
            # delimiters are compared byte by byte, whatever they look like
            found.setdefault(name, value if name == "boundary" else _plain(value))
            continue
        split = _SECTION.match(name)
        if split is not None:
            place = sections.setdefault(split[1], {})
            place.setdefault(int(split[2] or 0), (value, split[3] is not None))
    for name, pieces in sections.items():
        found.setdefault(name, _join(pieces))
    return found


def _plain(value: str) -> str:
    """Return a parameter's value; senders use encoded words here although RFC 2047 §5 says no."""
    return (
        value
        if value.isascii() and "=?" not in value
        else header_text(value.encode("latin_1", "replace"), guess=False)
    )


def _join(pieces: dict[int, tuple[str, bool]]) -> str:
    """Return an RFC 2231 value: sections in numeric order, percent-decoded and decoded once."""
    label, joined = "", b""
    for number in sorted(pieces):
        value, extended = pieces[number]
        if extended and not joined and value.count("'") >= 2:
            label, _, value = value.split("'", 2)
        data = value.encode("latin_1", "replace")
        joined += unquote_to_bytes(data) if extended else data
    return decode(joined, label, guess=False).text
