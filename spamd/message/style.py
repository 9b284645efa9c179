"""What HTML attributes and CSS say about being seen.

Hidden is: `display:none`, `visibility:hidden`, `opacity:0`, a font of at most one pixel, text in
the colour of its background, a box outside the screen or without height or width, the `hidden`
attribute. A font size, a colour or a background further inside can show the text again; the
others can't. In front of a background that isn't understood nothing is hidden, nor is a link that
has no colour of its own: readers give it one.

Style sheets count outside `@media` only, because the rules inside it are how honest newsletters
show one part to telephones and another to screens: what they hide by class or id, and where they
paint a background.
"""

import re
from functools import lru_cache
from typing import NamedTuple

Colour = tuple[int, int, int]

STYLING = frozenset(
    {"style", "hidden", "class", "id", "color", "bgcolor", "background", "text", "href"}
)
"""The attributes that `styled` looks at."""

_NAMED = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "green": (0, 128, 0),
    "gray": (128, 128, 128),
    "grey": (128, 128, 128),
    "silver": (192, 192, 192),
    "navy": (0, 0, 128),
    "whitesmoke": (245, 245, 245),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "lightyellow": (255, 255, 224),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "maroon": (128, 0, 0),
}
_NEAR = 24  # of 255 in each channel: nobody reads text that close to its background
_NOTHING = frozenset({"", "none", "transparent", "inherit", "initial", "unset"})  # said of a colour
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*(?:,\s*1(?:\.0*)?\s*)?\)")
_HEX = re.compile(r"#?([0-9a-f]{6}|[0-9a-f]{3})\b")
_NUMBER = re.compile(r"(-?\d{0,6}\.?\d{1,6})\s*(px|pt|em|rem|%)?")
_FONT_SIZE = re.compile(r"[0-9.]+[^0-9.]")
_SELECTOR = re.compile(r"[a-z0-9]*([.#][\w-]+)")
_LAST_NAME = re.compile(r"[.#]?(?<![\w-])[\w-]++$")
_PLACES = ("left", "top", "text-indent", "margin-left", "margin-top")
_SIZES = ("height", "max-height", "width", "max-width")
_NAME_CHARS = 64
_SHEET_CHARS = 65_536
_STYLE_CHARS = 2_000


class Style(NamedTuple):
    """How the text of an element is shown; None for a colour that isn't known."""

    hidden: bool
    gone: bool
    tiny: bool
    colour: Colour | None
    background: Colour | None


class Inline(NamedTuple):
    """What one style attribute says; None or "" for what it says nothing about."""

    gone: bool
    size: tuple[float, str] | None
    colour: str
    background: str


ROOT = Style(hidden=False, gone=False, tiny=False, colour=(0, 0, 0), background=(255, 255, 255))


class Sheet:
    """What the style sheets of one page hide, and what they paint."""

    def __init__(self) -> None:
        self._hiding: set[str] = set()  # ".class" and "#id"
        self.painted: dict[str, str] = {}  # "element", ".class" and "#id" → background

    def add(self, css: str) -> None:
        """Read a style sheet."""
        css = "".join(chunk.partition("/*")[0] for chunk in css[:_SHEET_CHARS].split("*/"))
        depth = 0
        for chunk in css.split("}"):
            opened = chunk.count("{")
            if depth == 0 and opened == 1:
                selectors, _, body = chunk.partition("{")
                self._rule(selectors, body)
            depth = max(0, depth + opened - 1)

    def _rule(self, selectors: str, body: str) -> None:
        inline = parse_style(body)
        hides = inline.gone or _is_tiny(inline.size, tiny=False)
        paints = inline.background not in _NOTHING
        if not hides and not paints:
            return
        for selector in map(str.strip, selectors.lower().replace("<!--", "").split(",")):
            if hides and (match := _SELECTOR.fullmatch(selector)) is not None:
                self._hiding.add(match[1])
            if paints and (match := _LAST_NAME.search(selector[-_NAME_CHARS:])) is not None:
                whole = match[0] == selector
                self.painted[match[0]] = inline.background if whole else "not everywhere"

    def styled(self, above: Style, tag: str, values: dict[str, str]) -> Style:
        """Return how the text of an element is shown: inherited, changed by its attributes."""
        gone, tiny = above.gone or "hidden" in values, above.tiny
        colour, background = above.colour, above.background
        if self._hiding or self.painted:
            names = [f".{name}" for name in values.get("class", "").lower().split()]
            names = [tag, *names, "#" + values.get("id", "").lower()]
            gone = gone or not self._hiding.isdisjoint(names)
            for name in names:
                background = _changed(background, self.painted.get(name, ""))
        if "background" in values:
            background = None
        background = _changed(background, values.get("bgcolor", ""))
        if "href" in values:
            colour = None
        colour = _changed(colour, values.get("color", "") or values.get("text", ""))
        if "style" in values:
            inline = parse_style(values["style"])
            gone = gone or inline.gone
            tiny = _is_tiny(inline.size, tiny=tiny)
            colour = _changed(colour, inline.colour)
            background = _changed(background, inline.background)
        faint = (
            background is not None
            and colour is not None
            and colour != ROOT.colour
            and all(abs(a - b) <= _NEAR for a, b in zip(colour, background, strict=True))
        )
        return Style(gone or tiny or faint, gone, tiny, colour, background)


def _changed(colour: Colour | None, said: str) -> Colour | None:
    """Return what becomes of a colour by what is said: None when that isn't understood."""
    return colour if said in _NOTHING else parse_colour(said)


@lru_cache(maxsize=512)  # a sender's pages say the same again and again
def parse_style(text: str) -> Inline:
    """Return what CSS declarations say about being seen."""
    said: dict[str, str] = {}
    for declaration in text[:_STYLE_CHARS].lower().split(";"):
        name, _, value = declaration.partition(":")
        said[name.strip()] = value.replace("!important", "").strip()
    picture = said.get("background-image", "")
    colour = said.get("background-color") or said.get("background", "")
    return Inline(
        gone=_is_gone(said),
        size=_size(said),
        colour=said.get("color", ""),
        background=colour if picture in _NOTHING else picture,
    )


def _size(said: dict[str, str]) -> tuple[float, str] | None:
    """Return the size of the font that CSS declarations name."""
    size = said.get("font-size")
    if size is None:  # of "bold 12px/1.5 Arial" the first number that is no weight
        words = said.get("font", "").split()
        size = next((each for each in words if each == "0" or _FONT_SIZE.match(each)), "")
    return (12, "pt") if size.endswith(("small", "medium", "large")) else _number(size)


def _is_gone(said: dict[str, str]) -> bool:
    if said.get("display") == "none" or said.get("visibility") in ("hidden", "collapse"):
        return True
    if _is_zero(said.get("opacity")):
        return True
    if any("-" in said.get(name, "") and _far(said[name]) for name in _PLACES):
        return True
    return said.get("overflow") == "hidden" and any(_is_zero(said.get(name)) for name in _SIZES)


def _number(value: str) -> tuple[float, str] | None:
    match = _NUMBER.match(value)
    return None if match is None else (float(match[1]), match[2] or "")


def _is_zero(value: str | None) -> bool:
    number = _number(value or "")
    return number is not None and number[0] == 0


def _far(value: str) -> bool:
    number = _number(value)
    return number is not None and number[0] <= -500  # half a page to the left centres it


def _is_tiny(size: tuple[float, str] | None, *, tiny: bool) -> bool:
    """Tell whether text of that size can't be read; `tiny` is what it inherits."""
    if size is None:
        return tiny
    value, unit = size
    if unit in ("em", "%"):  # shares of the size around it
        return tiny or value <= (0.1 if unit == "em" else 10)
    return value <= (0.1 if unit == "rem" else 1)


@lru_cache(maxsize=512)
def parse_colour(value: str) -> Colour | None:
    """Return the colour that HTML or CSS text names, None for one we don't know, or a picture."""
    value = value.strip().lower()
    if not value or "url(" in value or "gradient" in value:
        return None
    if (named := _NAMED.get(value.split()[0])) is not None:
        return named
    if (match := _HEX.match(value)) is not None:
        digits = match[1] if len(match[1]) == 6 else "".join(sign * 2 for sign in match[1])
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    if (match := _RGB.match(value)) is not None:
        return int(match[1]), int(match[2]), int(match[3])
    return None
