"""Content-Type and its relatives, and the transfer encodings. Nothing here raises on content.

Parameters follow RFC 2045 §5.1 as mail readers take it: white space around `=`, names in any
case, unquoted values with odd signs, and RFC 2231 continuations joined in numeric order and
decoded once.
"""

import re
from binascii import Error as BinasciiError
from binascii import a2b_base64, a2b_qp, a2b_uu
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from spamd.message.charset import decode, header_text

_PARAMETER = re.compile(
    r""";\s*([^\s=;"]{1,80})\s*=\s*(?:"((?:[^"\\]|\\.)*)(?:"|$)|([^;]*))""", re.DOTALL
)
_SECTION = re.compile(r"([^*]+)(?:\*([0-9]{1,4}))?(\*)?$")
_MAX_PARAMETERS = 100  # a real field has 1 to 5; continuations of a long name need some more
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")


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
_TYPE = re.compile(r"\s*([^\s;/\"(]{1,60}/[^\s;/\"(]{1,60})")


def content_type(value: bytes | None) -> ContentType:
    """Return the parsed Content-Type; a missing or senseless one is text/plain (RFC 2045 §5.2)."""
    if value is None:
        return PLAIN
    text = value.replace(b"\n", b"").decode("latin_1")
    match = _TYPE.match(text)
    name = match[1].lower() if match else "text/plain"
    if ";" not in text:
        return ContentType(name)
    return ContentType(name, parameters(text))


def parameters(text: str) -> dict[str, str]:
    """Return the parameters of a structured field; `text` holds its bytes as Latin-1."""
    found: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[str, bool]]] = {}
    for count, match in enumerate(_PARAMETER.finditer(text)):
        if count == _MAX_PARAMETERS:
            break
        name, value = match[1].lower(), match[2]
        value = match[3].strip() if value is None else re.sub(r"\\(.)", r"\1", value)
        if "*" not in name:
            found.setdefault(name, _plain(value))
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
        else header_text(value.encode("latin_1", "replace"))
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
    return decode(joined, label).text


def transfer_decode(body: bytes, encoding: str) -> bytes:
    """Return the body without its transfer encoding; damaged data gives what can be saved."""
    match encoding:
        case "base64":
            return _base64(body)
        case "quoted-printable":
            return a2b_qp(body)
        case "x-uuencode" | "uuencode" | "x-uue" | "uue":
            return _uu(body)
        case _:
            return body


def _base64(body: bytes) -> bytes:
    try:
        return a2b_base64(body)
    except BinasciiError:
        letters = _NOT_BASE64.sub(b"", body)
        return a2b_base64(letters[: len(letters) // 4 * 4])


def _uu(body: bytes) -> bytes:
    out: list[bytes] = []
    for line in body.split(b"\n"):
        if line.startswith((b"begin ", b"end")) or not line:
            continue
        try:
            out.append(a2b_uu(line))
        except BinasciiError:  # broken encoders pad with other signs: keep the counted bytes
            size = ((line[0] - 32) & 63) * 4 // 3 + 3
            try:
                out.append(a2b_uu(line[: size // 4 * 4 + 1]))
            except BinasciiError:
                continue
    return b"".join(out)
