"""Colours as CSS and HTML attributes write them (CSS Color 4 §4 to §8, WHATWG HTML §2.3.6)."""

import re
from functools import lru_cache
from typing import NamedTuple


class Colour(NamedTuple):
    """Red, green, blue from 0 to 255, and how much of it covers what is behind, 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0


UNKNOWN = Colour(-1, -1, -1)
"""A colour that is named in a way we don't work out: nothing is known about it."""

TRANSPARENT = Colour(0, 0, 0, 0.0)
BLACK = Colour(0, 0, 0)
WHITE = Colour(255, 255, 255)

_TABLE = """
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50
cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan
008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b
darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000
darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey
2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray
696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 forestgreen 228b22
fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 gray 808080
green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c
indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00
lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow
fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a
lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 lightslategrey 778899
lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6 magenta
ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3
mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a
mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa mistyrose
ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 olivedrab
6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98
paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink
ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown
bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57
seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090
slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080
thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff
whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32
"""


def _of_digits(digits: str) -> Colour:
    if len(digits) < 6:
        digits = "".join(sign * 2 for sign in digits)
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return Colour(red, green, blue, int(digits[6:] or "ff", 16) / 255)


_WORDS = _TABLE.split()
NAMED = {name: _of_digits(digits) for name, digits in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_SYSTEM = {
    "transparent": TRANSPARENT,
    "canvas": WHITE,
    "canvastext": BLACK,
    "linktext": Colour(0, 0, 238),
    "windowtext": BLACK,
    "window": WHITE,
}
_HEX = re.compile(r"#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_FUNCTION = re.compile(r"(rgb|hsl|hwb)a?\(([^()]{1,80})\)?")
_OTHER = re.compile(r"(?:lab|lch|oklab|oklch|color|color-mix|light-dark|rgba?|hsla?|hwb|calc)\(")
_PART = re.compile(r"[+-]?(?:\d{1,9}\.?\d{0,9}|\.\d{1,9})|none")
_SEPARATOR = re.compile(r"[\s,/]+")
_TURNS = {"deg": 1 / 360, "": 1 / 360, "grad": 1 / 400, "rad": 0.15915494, "turn": 1.0}
_LEGACY_CHARS = 128


@lru_cache(maxsize=1024)
def css_colour(value: str) -> Colour | None:
    """Return the colour of a CSS value in lower case, None when it is none."""
    named = NAMED.get(value) or _SYSTEM.get(value)
    if named is not None:
        return named
    if value.startswith("#"):
        return _of_digits(value[1:]) if _HEX.fullmatch(value) else None
    match = _FUNCTION.fullmatch(value)
    if match is not None:
        return _function(match[1], match[2])
    return UNKNOWN if _OTHER.match(value) else None


def _function(kind: str, arguments: str) -> Colour | None:
    numbers: list[tuple[float, str]] = []
    for part in _SEPARATOR.split(arguments.strip()):
        match = _PART.match(part)
        if match is None:
            return None
        numbers.append((0.0 if match[0] == "none" else float(match[0]), part[match.end() :]))
    if len(numbers) not in {3, 4}:
        return None
    alpha = 1.0
    if len(numbers) == 4:
        number, unit = numbers[3]
        alpha = _within(number / 100 if unit == "%" else number)
    if kind == "rgb":
        red, green, blue = (
            255 * _within(number / 100 if unit == "%" else number / 255)
            for number, unit in numbers[:3]
        )
        return Colour(red, green, blue, alpha)
    if numbers[0][1] not in _TURNS:
        return None
    hue = numbers[0][0] * _TURNS[numbers[0][1]] % 1
    second, third = (_within(number / 100) for number, _ in numbers[1:3])
    if kind == "hwb":
        total = max(1.0, second + third)
        white, black = second / total, third / total
        channels = [channel * (1 - white - black) + white for channel in _hsl(hue, 1, 0.5)]
    else:
        channels = _hsl(hue, second, third)
    red, green, blue = (255 * channel for channel in channels)
    return Colour(red, green, blue, alpha)


def _hsl(hue: float, saturation: float, lightness: float) -> list[float]:
    """Return the three channels, 0 to 1 (CSS Color 4 §7.1)."""
    reach = saturation * min(lightness, 1 - lightness)
    found = []
    for place in (0, 8, 4):
        k = (place + hue * 12) % 12
        found.append(lightness - reach * max(-1.0, min(k - 3, 9 - k, 1.0)))
    return found


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


@lru_cache(maxsize=1024)
def html_colour(value: str) -> Colour | None:
    """Return the colour of an HTML attribute (WHATWG HTML §2.3.6, legacy colours)."""
    value = value.strip().lower()
    if value in {"", "transparent"}:
        return None
    if (named := NAMED.get(value)) is not None:
        return named
    if len(value) == 4 and _HEX.fullmatch(value):
        return _of_digits(value[1:])
    signs = value[:_LEGACY_CHARS].removeprefix("#")
    digits = "".join(sign if sign in "0123456789abcdef" else "0" for sign in signs)
    digits = digits + "0" * (-len(digits) % 3) if digits else "000"
    length = len(digits) // 3
    parts = [digits[at : at + length][-8:] for at in (0, length, 2 * length)]
    while len(parts[0]) > 2 and all(part[0] == "0" for part in parts):
        parts = [part[1:] for part in parts]
    red, green, blue = (int(part[:2], 16) for part in parts)
    return Colour(red, green, blue)


def over(colour: Colour, behind: Colour) -> Colour:
    """Return what is seen of a colour in front of another, opaque one."""
    share = colour.alpha
    if share == 1:
        return colour
    red, green, blue = (
        back + (front - back) * share for front, back in zip(colour[:3], behind[:3], strict=True)
    )
    return Colour(red, green, blue)


def distance(one: Colour, other: Colour) -> float:
    """Return the greatest difference of the two in a channel."""
    return max(abs(one[0] - other[0]), abs(one[1] - other[1]), abs(one[2] - other[2]))
