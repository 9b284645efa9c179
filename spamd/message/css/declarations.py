"""CSS declarations → the values that decide whether text is seen; the others are left out.

A value that a browser doesn't understand is left out too, so that it doesn't hide an earlier one.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from spamd.message.css.colour import UNKNOWN, Colour, css_colour
from spamd.message.html.elements import names


class Length(NamedTuple):
    """A number with its unit; "" for a bare number."""

    value: float
    unit: str


class Move(NamedTuple):
    """What a transformation does: how large the text is after it, and where it goes."""

    scale: float
    x: Length
    y: Length


Value = str | float | Colour | Length | Move
"""A keyword, a number, a colour, a length, a transformation."""


class Declaration(NamedTuple):
    """One property with its value; `important` ones win."""

    name: str
    value: Value
    important: bool


_STYLE_CHARS = 8_192
_PIECE_CHARS = 128  # longer ones are rare, and would fill the memory
_STRING = (
    r'"(?>(?:[^"\\\n]|\\[\s\S])*)(?:"|\n|\\?\Z)|'
    r"'(?>(?:[^'\\\n]|\\[\s\S])*)(?:'|\n|\\?\Z)"
)
_DECLARATION = re.compile(
    rf"((?>(?:[^;\"'\\(\[{{]++|\\[\s\S]|\((?>(?:[^()\"'\\]++|{_STRING}|\\[\s\S])*)\)|{_STRING}"
    r"|[\"'(\[{\\])+))(?:;|\Z)"
)
_COMMENT = re.compile(rf"{_STRING}|/\*(?>(?:[^*]++|\*(?!/))*)(?:\*/|\Z)")
_COLOURS = re.compile(r"[^\s()]++(?:\([^()]*+\))?")
_BETWEEN = re.compile(r"[\s,]++")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n]?|([^\n]))")
_NUMBER = re.compile(r"([+-]?(?:\d{1,9}\.?\d{0,12}|\.\d{1,12})(?:e[+-]?\d{1,2})?)([a-z]{1,5}|%)?")
_CALC = re.compile(r"(?:-webkit-)?calc\(([^()]*+)\)")
_CALL = re.compile(r"([a-z0-9-]{1,20})\(([^()]{0,200})\)")
_UNITS = names(
    "px pt pc in cm mm q em rem ex ch % vw vh vmin vmax svw svh lvw lvh dvw dvh lh rlh cap"
)
ZERO = Length(0.0, "")
UNSET = frozenset({"inherit", "initial", "unset", "revert", "revert-layer"})
_SIZES = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0,
    "x-large": 24.0, "xx-large": 32.0, "xxx-large": 48.0,
}  # fmt: skip
_DISPLAYS = names(
    "none inline block inline-block list-item flex inline-flex grid inline-grid flow-root "
    "contents table inline-table table-row table-cell table-column table-column-group "
    "table-row-group table-header-group table-footer-group table-caption ruby ruby-text "
    "-webkit-box -webkit-inline-box math"
)
_NO_PICTURE = ("none", "")


def without_comments(css: str) -> str:
    """Return a CSS text without its comments; a string holds none."""
    return _COMMENT.sub(lambda match: " " if match[0].startswith("/*") else match[0], css)


def unescaped(text: str) -> str:
    r"""Return a CSS text with its escapes resolved: `d\69splay` is `display`."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


@lru_cache(maxsize=4096)  # a sender's pages say the same again and again
def parse(text: str) -> tuple[Declaration, ...]:
    """Return what the declarations of a style attribute or of a rule say about being seen."""
    text = text[:_STYLE_CHARS]
    if "/*" in text:
        text = without_comments(text)
    if "\\" in text or '"' in text or "'" in text or "(" in text:
        pieces = _DECLARATION.findall(text)
    else:
        pieces = text.split(";")
    found: list[Declaration] = []
    for piece in pieces:
        if len(piece) > _PIECE_CHARS:
            found += _declared.__wrapped__(piece)
        else:
            found += _declared(piece)
    return tuple(found)


@lru_cache(maxsize=4096)  # and pages of all senders say much the same
def _declared(piece: str) -> tuple[Declaration, ...]:
    """Return what one declaration says."""
    name, colon, value = piece.partition(":")
    name = (unescaped(name) if "\\" in name else name).strip()
    if not colon or not (name[:2] == "--" or (name := name.lower()) in _RULES):
        return ()
    value = unescaped(value.strip()).lower()
    important = False
    if "!" in value:
        value, _, mark = value.rpartition("!")
        if mark.strip() != "important":
            return ()
        important, value = True, value.strip()
    if name not in _RULES or "var(" in value:
        return (Declaration(name, value, important),)
    return tuple([Declaration(each, what, important) for each, what in said(name, value)])


def said(name: str, value: str) -> list[tuple[str, Value]]:
    """Return the properties that one declaration sets, none when its value isn't understood."""
    rule = _RULES[name]
    names, read = rule
    if value in UNSET:
        return [(each, value) for each in names]
    return read(value, names)


def length(value: str) -> Length | None:
    """Return the length or number that a value is."""
    if (match := _CALC.fullmatch(value)) is not None:
        value = match[1].strip()
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    unit = match[2] or ""
    return Length(float(match[1]), unit) if not unit or unit in _UNITS else None


_Said = list[tuple[str, Value]]
_Read = Callable[[str, tuple[str, ...]], _Said]


def _one_of(words: frozenset[str]) -> _Read:
    def read(value: str, names: tuple[str, ...]) -> _Said:
        return [(names[0], value)] if value in words else []

    return read


def _words(value: str, names: tuple[str, ...]) -> _Said:
    return [(names[0], value)]


def _length(value: str, names: tuple[str, ...]) -> _Said:
    found = length(value)
    if found is not None:
        return [(each, found) for each in names]
    return [(each, "auto") for each in names] if value[:1].isalpha() else []


def _sides(value: str, names: tuple[str, ...]) -> _Said:
    """Read one to four lengths: top, right, bottom, left."""
    parts = value.split()[:4]
    if not parts:
        return []
    found: list[Value] = [each if (each := length(part)) is not None else "auto" for part in parts]
    right = found[1] if len(found) > 1 else found[0]
    sides = (
        found[0],
        right,
        found[2] if len(found) > 2 else found[0],
        found[3] if len(found) > 3 else right,
    )
    return list(zip(names, sides, strict=True))


def _share(value: str, names: tuple[str, ...]) -> _Said:
    found = length(value)
    if found is None or found.unit not in ("", "%"):
        return []
    share = found.value / 100 if found.unit else found.value
    return [(names[0], min(1.0, max(0.0, share)))]


def _colour(value: str, names: tuple[str, ...]) -> _Said:
    if value == "currentcolor":
        return [(names[0], value)]
    found = css_colour(value)
    return [] if found is None else [(names[0], found)]


def _background(value: str, names: tuple[str, ...]) -> _Said:
    """Read the colour and whether there is a picture out of the shorthand."""
    picture = "url(" in value or "gradient(" in value or "image" in value
    last = value.rpartition(",")[2] if picture or "(" not in value else value
    colour: Value = css_colour("transparent") or UNKNOWN
    for part in _COLOURS.findall(last)[:40]:
        if part == "currentcolor":
            colour = part
        elif (found := css_colour(part)) is not None:
            colour = found
    return [
        (names[0], colour),
        (names[1], "picture" if picture else "none"),
        (names[2], "text" if "text" in value.split() else "border-box"),
    ]


def _picture(value: str, names: tuple[str, ...]) -> _Said:
    return [(names[0], "none" if value in _NO_PICTURE else "picture")]


def _font_size(value: str, names: tuple[str, ...]) -> _Said:
    if value in _SIZES:
        return [(names[0], Length(_SIZES[value], "px"))]
    if value in ("smaller", "larger"):
        return [(names[0], Length(1.2 if value == "larger" else 1 / 1.2, "em"))]
    found = length(value)
    return [] if found is None or found.value < 0 else [(names[0], found)]


def _font(value: str, names: tuple[str, ...]) -> _Said:
    """Read the size out of `bold 12px/1.5 Arial`: the first one that is no weight."""
    for part in value.split()[:6]:
        size, _, _ = part.partition("/")
        found = _font_size(size, names)
        if found and isinstance(each := found[0][1], Length) and (each.unit or not each.value):
            return found
    return []


def _overflow(value: str, names: tuple[str, ...]) -> _Said:
    words = value.split()
    if not 1 <= len(words) <= 2:
        return []
    return list(zip(names, (words[0], words[-1]), strict=False))


def _clip(value: str, names: tuple[str, ...]) -> _Said:
    """Read `rect(…)`: gone when less than two pixels stay."""
    match = _CALL.fullmatch(value)
    if match is None or match[1] != "rect":
        return [(names[0], "auto")] if value == "auto" else []
    sides = [each for part in _BETWEEN.split(match[2].strip()) if (each := length(part))]
    if len(sides) != 4:
        return [(names[0], "auto")]
    top, right, bottom, left = (side.value for side in sides)
    return [(names[0], "gone" if bottom - top < 2 or right - left < 2 else "auto")]


def _clip_path(value: str, names: tuple[str, ...]) -> _Said:
    """Read `inset`, `circle`, `ellipse` and `polygon`: gone when nothing is left inside."""
    match = _CALL.match(value)
    if match is None:
        return [(names[0], "auto")]
    parts = match[2].partition(" round ")[0].partition(" at ")[0]
    sizes = [each for part in _BETWEEN.split(parts.strip()) if (each := length(part))]
    gone = False
    if match[1] == "inset" and sizes:
        sides = [side for _, side in _sides(" ".join(f"{a:f}{b}" for a, b in sizes), ("",) * 4)]
        top, right, bottom, left = (
            (each.value if each.unit == "%" else each.value / 10)
            if isinstance(each, Length) else 0.0
            for each in sides
        )  # fmt: skip
        gone = top + bottom >= 100 or left + right >= 100
    elif match[1] in ("circle", "ellipse"):
        gone = any(each.value == 0 for each in sizes)
    elif match[1] == "polygon":
        gone = len(set(sizes[::2])) <= 1 or len(set(sizes[1::2])) <= 1
    return [(names[0], "gone" if gone else "auto")]


def _transform(value: str, names: tuple[str, ...]) -> _Said:
    scale, x, y = 1.0, ZERO, ZERO
    for name, arguments in _CALL.findall(value[:400]):
        parts = [part.strip() for part in arguments.split(",")]
        numbers = [each for part in parts if (each := length(part)) is not None]
        if name.startswith("scale") and numbers:
            flat = [each.value / 100 if each.unit == "%" else each.value for each in numbers]
            scale *= min(abs(each) for each in flat[:2])
        elif name.startswith("matrix") and len(numbers) in (6, 16):
            across, down = (0, 3) if len(numbers) == 6 else (0, 5)
            turned = (1, 2) if len(numbers) == 6 else (1, 4)
            scale *= abs(
                numbers[across].value * numbers[down].value
                - numbers[turned[0]].value * numbers[turned[1]].value
            )
            x, y = (Length(each.value, "px") for each in numbers[-2:]) if down == 3 else (x, y)
        elif name in ("translate", "translate3d") and numbers:
            x, y = numbers[0], numbers[1] if len(numbers) > 1 else y
        elif name == "translatex" and numbers:
            x = numbers[0]
        elif name == "translatey" and numbers:
            y = numbers[0]
        elif name in ("rotatex", "rotatey"):
            scale *= 0.0 if parts[0] in ("90deg", "270deg", "-90deg", "100grad", ".25turn") else 1.0
    return [(names[0], Move(scale, x, y))]


def _scale(value: str, names: tuple[str, ...]) -> _Said:
    return _transform(f"scale({','.join(value.split())})", names)


def _translate(value: str, names: tuple[str, ...]) -> _Said:
    return _transform(f"translate({','.join(value.split())})", names)


def _filter(value: str, names: tuple[str, ...]) -> _Said:
    for name, arguments in _CALL.findall(value):
        if name == "opacity":
            return _share(arguments.strip(), names)
    return [(names[0], 1.0)]


def _shadow(value: str, names: tuple[str, ...]) -> _Said:
    return [(names[0], "none" if value == "none" else "some")]


def _zoom(value: str, names: tuple[str, ...]) -> _Said:
    found = length(value)
    if found is None:
        return [(names[0], 1.0)]
    return [(names[0], (found.value / 100 if found.unit == "%" else found.value) or 1.0)]


_LENGTHS = names(
    "height width max-height max-width min-height min-width left right top bottom "
    "margin-left margin-top padding-top padding-bottom padding-left padding-right text-indent"
)


def _rules() -> dict[str, tuple[tuple[str, ...], _Read]]:
    rules: dict[str, tuple[tuple[str, ...], _Read]] = {
        "display": (("display",), _one_of(_DISPLAYS)),
        "visibility": (("visibility",), _one_of(frozenset({"visible", "hidden", "collapse"}))),
        "opacity": (("opacity",), _share),
        "color": (("color",), _colour),
        "-webkit-text-fill-color": (("-webkit-text-fill-color",), _colour),
        "background-color": (("background-color",), _colour),
        "background-image": (("background-image",), _picture),
        "background": (("background-color", "background-image", "background-clip"), _background),
        "background-clip": (("background-clip",), _words),
        "-webkit-background-clip": (("background-clip",), _words),
        "font-size": (("font-size",), _font_size),
        "font": (("font-size",), _font),
        "line-height": (("line-height",), _length),
        "overflow": (("overflow-x", "overflow-y"), _overflow),
        "overflow-x": (("overflow-x",), _words),
        "overflow-y": (("overflow-y",), _words),
        "clip": (("clip",), _clip),
        "clip-path": (("clip-path",), _clip_path),
        "-webkit-clip-path": (("clip-path",), _clip_path),
        "position": (("position",), _words),
        "float": (("float",), _words),
        "margin": (("margin-top", "margin-right", "margin-bottom", "margin-left"), _sides),
        "inset": (("top", "right", "bottom", "left"), _sides),
        "padding": (("padding-top", "padding-right", "padding-bottom", "padding-left"), _sides),
        "transform": (("transform",), _transform),
        "-webkit-transform": (("transform",), _transform),
        "scale": (("scale",), _scale),
        "translate": (("translate",), _translate),
        "zoom": (("zoom",), _zoom),
        "filter": (("filter",), _filter),
        "text-shadow": (("text-shadow",), _shadow),
        "content-visibility": (("content-visibility",), _words),
        "mso-hide": (("mso-hide",), _words),
    }
    for name in _LENGTHS:
        rules[name] = ((name,), _length)
    return rules


_RULES = _rules()
