"""In which form a part is shown: as text, as a page, as an invitation or card, or not at all.

The type says it, and where the type says nothing (application/octet-stream) the file name or, for
a part without a name, its first bytes: a reader's programs open it by them. Markup sent as
text/plain is a page as well: its text is what the sender has to say, its tags are not.
"""

import re
from enum import StrEnum

from spamd.message.mime.calendar import is_card
from spamd.message.mime.part import Part, is_named_message

_START_BYTES = 2048
_NO_TEXT = ("text/css", "text/javascript")
_CONTROLS = bytes([*range(1, 9), *range(14, 27), *range(28, 32)])
_ELEMENTS = (
    "html|head|title|meta|link|style|script|body|table|tbody|tr|td|th|div|span|p|br|hr|font|center|a|b|i|u|em|strong|big"
    "|small|img|ul|ol|li|dl|h[1-6]|pre|blockquote|iframe|form|input|svg|text|article|section|header|nav|main|base|map"
)
_BEGINS = re.compile(  # WHATWG MIME Sniffing §7.1, and the elements that mail begins with
    rf"[\s\ufeff]*+(?:<!--|<!doctype[\s>]|<\?xml[\s?]|<(?:{_ELEMENTS})(?:[\s/][^<>@]*+)?>)",
    re.IGNORECASE,
)
_TAG = re.compile(rf"</?(?:{_ELEMENTS})(?:\s[^<>]{{0,300}})?/?>", re.IGNORECASE)
_LOOKED_AT = 4096  # characters that tell markup from text
_TAGS = 8  # in them that are no quotation of markup …
_SHARE = 5  # … when at least every fifth character belongs to one


class Form(StrEnum):
    """How a part is read."""

    TEXT = "text"
    PAGE = "page"
    CARD = "card"


_BY_TYPE = {
    "image/svg+xml": Form.PAGE, "application/xhtml+xml": Form.PAGE, "application/html": Form.PAGE,
    "text/enriched": Form.PAGE, "text/richtext": Form.PAGE,
    "text/calendar": Form.CARD, "text/x-vcalendar": Form.CARD, "text/vcard": Form.CARD,
    "text/x-vcard": Form.CARD, "text/directory": Form.CARD, "application/ics": Form.CARD,
    "application/calendar": Form.CARD,
}  # fmt: skip
_BY_ENDING = {
    **dict.fromkeys(("html", "htm", "xhtml", "xht", "shtml", "shtm", "svg", "hta"), Form.PAGE),
    **dict.fromkeys(("ics", "ical", "ifb", "vcs", "vcf", "vcard"), Form.CARD),
    **dict.fromkeys(("txt", "text"), Form.TEXT),
}


def form_of(part: Part) -> Form | None:
    """Return how a part is read; None when it is no text."""
    kind, name = part.content_type, part.name
    if is_named_message(part) or kind.type in _NO_TEXT:
        return None
    if (form := _BY_TYPE.get(kind.type)) is not None:
        return form
    named = _BY_ENDING.get(name.lower().rstrip(". \t").rpartition(".")[2]) if name else None
    match kind.main:
        case "text" | "message":
            return Form.PAGE if kind.type.endswith("html") else named or Form.TEXT
        case "image" | "audio" | "video" | "font" | "model":
            return None
        case "multipart":  # one of too many
            return Form.TEXT
        case _ if name:
            return named if named is not None and _is_text(part) else None
        case _ if kind.type == "application/octet-stream" and _is_text(part):
            return Form.CARD if is_card(part.payload(_START_BYTES)) else Form.TEXT
        case _:
            return None


def _is_text(part: Part) -> bool:
    """Tell whether a part without a telling type is text all the same."""
    start = part.payload(_START_BYTES)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return b"\0" not in start and _controls(start) * 50 <= len(start)


def is_binary(text: str) -> bool:
    """Tell whether a text begins like data: with control characters all over."""
    start = text[:8192]
    data = start.encode("latin_1", "replace")  # a byte for each sign
    return _controls(data) * 20 > len(data)


def _controls(data: bytes) -> int:
    """Return how many control characters there are that no text holds."""
    return len(data) - len(data.translate(None, _CONTROLS))


def is_markup(text: str) -> bool:
    """Tell whether a text is the source of a page: it begins as one, or is full of tags."""
    start = text[:_LOOKED_AT]
    if _BEGINS.match(text) is not None:
        return True
    if "<" not in start or ("</" not in start and "<br" not in start.lower()):
        return False
    tags = _TAG.findall(start)
    return len(tags) >= _TAGS and sum(map(len, tags)) * _SHARE >= len(start)
