"""One tag as it is written: its name, its attributes, and what follows from these alone.

Most tags of a page stand in it many times, and in other pages of its sender: what is known of them
is kept. Those are the ones of which nothing behind their first `>` can be a part.
"""

import re
from functools import lru_cache
from html import unescape

from spamd.message.html import elements
from spamd.message.html.implied import STARTS

Said = tuple[tuple[str, str], ...]
NO_VALUES: dict[str, str] = {}

_S = r"[ \t\n\f\r]"
_VALUE = rf"""{_S}*+=(?:{_S}*+)(?:"([^"]*+)"|'([^']*+)'|((?!["'])[^ \t\n\f\r>]*+))"""
_QUOTED = _VALUE.replace("([^", "(?:[^").replace("((?!", "(?:(?!")
_NAME = r"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
_START = re.compile(r"<(/?)([A-Za-z][^ \t\n\f\r/>]*+)")
_TAG = re.compile(rf"{_START.pattern}(?>(?:[ \t\n\f\r/]++|{_NAME}(?>(?:{_QUOTED})?))*)>")
_ATTRIBUTE = re.compile(rf"({_NAME})(?>(?:{_VALUE})?)")
_TAG_CHARS = 8_192  # browsers know no limit; real tags beyond it hold pictures as data
SHORT_CHARS = 1_024
"""Longer tags are not kept."""

LINKS = dict.fromkeys(("a", "area", "base", "link"), "href")
LINKS |= dict.fromkeys(("img", "iframe", "input", "script", "embed"), "src")
LINKS |= dict.fromkeys(("body", "table", "td"), "background") | {"form": "action"}
SPOKEN = ("alt", "title", "placeholder")  # shown instead of something, or when pointed at
LABELS = {"optgroup": "label", "input": "value"}
_TELLING = frozenset({*SPOKEN, *LINKS.values(), *LABELS.values()})
_DECODED = elements.names("style class id color bgcolor text type media")
_FOLDED = elements.names("class id")
_HUGE = re.compile(r"&#[0-9]{9,}")

HEAD, TABLE_OWN, UNPUSHED, ROOT, FORMATTING, MARKED, RAW, ODD = (1 << bit for bit in range(8))
LISTED = FORMATTING | MARKED
_SETS = {
    HEAD: elements.HEAD,
    TABLE_OWN: elements.TABLE_OWN,
    UNPUSHED: elements.UNPUSHED,
    ROOT: elements.names("svg math"),
    FORMATTING: elements.FORMATTING,
    MARKED: elements.MARKED,
    RAW: elements.RAW,
    ODD: elements.names("image frameset"),
}


_ALWAYS = elements.names("style hidden")
_LOOKS = {
    **dict.fromkeys(elements.PAINTED, _ALWAYS | elements.names("bgcolor background")),
    "body": _ALWAYS | elements.names("bgcolor background text link"),
    "font": _ALWAYS | elements.names("color size"),
    "marquee": _ALWAYS | elements.names("bgcolor"),
    **dict.fromkeys(elements.names("a area"), _ALWAYS | elements.names("href")),
    **dict.fromkeys(elements.names("details dialog"), _ALWAYS | elements.names("open")),
}
"""Attributes that decide how an element is shown."""


class Kind:
    """What all tags of a name have in common.

    rule      what a start tag ends or opens before it opens its element, None for nothing
    flags     which of the sets of elements above hold it
    breaking  text before and behind it doesn't stand in one word
    inline    it may stand inside a word for honest reasons
    """

    __slots__ = ("breaking", "flags", "inline", "own_look", "rule")

    def __init__(self, name: str) -> None:
        self.rule = STARTS.get(name)
        self.flags = sum(flag for flag, names in _SETS.items() if name in names)
        self.breaking = name in elements.BREAKING
        self.inline = name in elements.INLINE
        self.own_look = name in elements.OWN_LOOK


_KINDS = {
    name: Kind(name)
    for names in (STARTS, elements.BREAKING, elements.INLINE, elements.OWN_LOOK, *_SETS.values())
    for name in names
}
_OTHER = Kind("")


class Tag:
    """A tag.

    values  its attributes                 empty  it ends with a slash
    look    what of them, without class and id, decides how the element is shown
    plain   its element is shown as the one around it, unless a style sheet says more
    tells   there is a link or something to read in it
    """

    __slots__ = (
        "breaking", "closes", "empty", "flags", "inline", "look", "name", "plain", "rule",
        "tells", "values",
    )  # fmt: skip

    def __init__(
        self, name: str, values: dict[str, str], *, closes: bool = False, empty: bool = False
    ) -> None:
        self.name = name
        self.values = values
        self.closes = closes and name != "br"
        self.empty = empty
        kind = _KINDS.get(name, _OTHER)
        self.rule = kind.rule
        self.flags = kind.flags
        self.breaking = kind.breaking
        self.inline = kind.inline
        self.look = look_of(name, values) if values else ()
        self.plain = not (self.look or kind.own_look)
        self.tells = not _TELLING.isdisjoint(values)


def look_of(tag: str, values: dict[str, str]) -> Said:
    """Return what of the attributes of an element decides how it is shown."""
    looks = _LOOKS.get(tag, _ALWAYS)
    if looks.isdisjoint(values):
        return ()
    return tuple(
        [(name, "" if name == "href" else values[name]) for name in looks if name in values]
    )


@lru_cache(maxsize=4096)
def short_tag(text: str, folded: bool) -> Tag | None:  # noqa: FBT001 - a part of the cache's key
    """Return the tag that a text in front of a `>` is, None when it is none, or may go on.

    `folded` tells that the page is in quirks mode, where case of classes and ids means nothing.
    """
    start = _START.match(text)
    if start is None:
        return None
    found = _ATTRIBUTE.findall(text, start.end())
    # a quotation that isn't closed may go on behind this `>`, and looks like a name up to there
    if "=" in [name[0] for name, _, _, _ in found]:
        return None
    return _tag(start, found, folded=folded, empty=text[-1] == "/")


def long_tag(source: str, at: int, *, folded: bool) -> tuple[Tag | None, int]:
    """Return the tag that stands at a place of a page, and where it ends."""
    match = _TAG.match(source, at, at + _TAG_CHARS)
    start = None if match is None else _START.match(source, at)
    if match is None or start is None:
        return None, at
    end = match.end()
    found = _ATTRIBUTE.findall(source, start.end(), end - 1)
    return _tag(start, found, folded=folded, empty=source[end - 2] == "/"), end


def end_of_tag(source: str, at: int) -> int:
    """Return where the tag ends that begins at a place."""
    match = _TAG.match(source, at, at + _TAG_CHARS)
    return match.end() if match is not None else source.find(">", at) + 1 or len(source)


_Found = list[tuple[str, str, str, str]]


def _tag(start: re.Match[str], found: _Found, *, folded: bool, empty: bool) -> Tag:
    slash, name = start.groups()
    values = _attributes(found, folded=folded) if found else NO_VALUES
    return Tag(name.lower(), values, closes=slash != "", empty=empty)


def _attributes(found: _Found, *, folded: bool) -> dict[str, str]:
    """Return the attributes of a tag, names in lower case; the first of equal names counts."""
    values: dict[str, str] = {}
    for spelled, double, single, bare in found:
        name = spelled.lower()
        if name in values:
            continue
        value = double or single or bare
        if name in _DECODED:
            value = unescaped(value) if "&" in value else value
            if folded and name in _FOLDED:
                value = value.lower()
        values[name] = value
    return values


def unescaped(text: str) -> str:
    """Return the text with its character references resolved.

    A number of thousands of digits stops the standard library, and names no character.
    """
    return unescape(_HUGE.sub("\ufffd", text) if "&#" in text else text)
