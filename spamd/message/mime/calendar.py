"""Invitations and visiting cards: what a mail reader shows of text/calendar and vCard.

Lines are unfolded before their charset is decoded, since a fold may stand inside a character
(RFC 5545 §3.1, RFC 6350 §3.2); then escapes are undone (RFC 5545 §3.3.11) and parameter values
decoded (RFC 6868). Shown are the texts, the people, and every address of the web; dates, rules,
alarms and pictures are not. vCard 2.1's quoted-printable values are read too.

Nothing raises. Time is linear in the bytes.
"""

import re
from dataclasses import dataclass

from spamd.message.mime.charset import decode
from spamd.message.mime.transfer import quoted_printable

_START = re.compile(rb"BEGIN:V(?:CALENDAR|CARD)\b", re.IGNORECASE)
_BEFORE = b"\xef\xbb\xbf \t\r\n"
_FOLD = re.compile(rb"(?<!\n)\n++[ \t]")
_PROPERTY = re.compile(
    r"""([A-Za-z0-9.-]{1,80}+)((?>(?:;(?>(?:"[^"]*+"|[^":;]++)*))*)):(.*)""", re.DOTALL
)
_TEXTS = frozenset((
    "SUMMARY", "DESCRIPTION", "LOCATION", "COMMENT", "CONTACT", "CATEGORIES", "RESOURCES",
    "X-ALT-DESC", "STYLED-DESCRIPTION", "X-WR-CALNAME", "X-WR-CALDESC", "NAME",
    "FN", "N", "NICKNAME", "ORG", "TITLE", "ROLE", "NOTE", "ADR", "LABEL", "EMAIL",
))  # fmt: skip
_PEOPLE = frozenset(("ORGANIZER", "ATTENDEE"))
_NOT_SHOWN = frozenset(("TZURL", "PRODID", "PHOTO", "LOGO", "SOUND", "KEY"))
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CARET = re.compile(r"\^([n'^])")
_CARETS = {"n": "\n", "'": '"', "^": "^"}
_COMMON_NAME = re.compile(r';CN=(?:"([^"]*+)"|([^":;]*+))', re.IGNORECASE)
_QUOTED_LINK = re.compile(r'"([A-Za-z]{1,20}+://[^"]*+)"')
_CHARSET = re.compile(r";CHARSET=([^:;]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown: text, and the sources of HTML descriptions."""

    text: str
    pages: tuple[str, ...]
    codec: str


def is_card(data: bytes) -> bool:
    """Tell whether the bytes begin as a calendar or a vCard."""
    return _START.match(data.lstrip(_BEFORE)) is not None


def read(data: bytes, label: str, *, guess: bool = True) -> Card:
    """Return what a reader shows of a calendar or vCard, its bytes said to be in that charset."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"QUOTED-PRINTABLE" in data.upper():
        data = data.replace(b"=\n", b"")
    decoded = decode(_FOLD.sub(b"", data), label, guess=guess)
    texts: list[str] = []
    pages: list[str] = []
    alarm = False
    for line in decoded.text.split("\n"):
        match = _PROPERTY.match(line)
        if match is None:  # no property: a line that was broken without a fold
            texts.append(_unescaped(line))
            continue
        name, parameters, value = match.groups()
        name = name.rpartition(".")[2].upper()
        if name in ("BEGIN", "END"):
            alarm = name == "BEGIN" and value.strip().upper() == "VALARM"
        if not (alarm or name in _NOT_SHOWN or _is_binary(parameters)):
            _show(name, parameters, value, texts, pages)
    return Card("\n".join(texts), tuple(pages), decoded.codec)


def _is_binary(parameters: str) -> bool:
    upper = parameters.upper()
    return "=BINARY" in upper or "ENCODING=B" in upper


def _show(name: str, parameters: str, value: str, texts: list[str], pages: list[str]) -> None:
    """Add what is shown of a property."""
    if parameters and "://" in parameters:
        texts += _QUOTED_LINK.findall(parameters)
    if name in _PEOPLE:
        common = _COMMON_NAME.search(parameters)
        person = (common[1] or common[2] or "") if common else ""
        texts.append(f"{_CARET.sub(_uncaret, person)} {value.strip().removeprefix('mailto:')}")
    elif name in _TEXTS:
        upper = parameters.upper()
        if "QUOTED-PRINTABLE" in upper:
            charset = _CHARSET.search(parameters)
            plain = quoted_printable(value.encode("utf_8", "replace"))
            value = decode(plain, charset[1] if charset else "", guess=False).text
        if "TEXT/HTML" in upper:
            pages.append(_unescaped(value))
        else:
            texts.append(_unescaped(value))
    elif "://" in value or name == "URL":
        texts.append(_unescaped(value))


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(_escaped, value) if "\\" in value else value


def _escaped(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]


def _uncaret(match: re.Match[str]) -> str:
    return _CARETS[match[1]]
