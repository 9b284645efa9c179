"""Style sheets → rules in the order of their text (CSS Syntax 3, Media Queries 4, CSS Nesting).

Media queries are answered as a desktop reader does: a screen of 1024 × 768 with a mouse. What
stands in `@supports`, `@container`, `@font-face`, `@keyframes` or behind `@import` is left out:
mail readers drop it.

Own code, as tinycss2 took 0.7 s for the style sheets of the corpora (728 KB, 5 % of the time of
all scans, beside as much for style attributes), this takes a fifth of it.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from spamd.message.css import selector
from spamd.message.css.declarations import Declaration, length, parse, without_comments


class Rule(NamedTuple):
    """One rule: who it is for, and what it says about being seen."""

    selectors: tuple[selector.Selector, ...]
    declarations: tuple[Declaration, ...]


_SHEET_CHARS = 65_536
_RULES_MAX = 4_000
_DEPTH = 8
_STRING = r'"(?>(?:[^"\\\n]|\\[\s\S])*)(?:"|\n|\Z)|' + r"'(?>(?:[^'\\\n]|\\[\s\S])*)(?:'|\n|\Z)"
_PIECE = re.compile(
    rf"((?>(?:[^{{}};\"'\\(]++|{_STRING}|\\[\s\S]|\((?>(?:[^()\"'\\]++|{_STRING}|\\[\s\S])*)\)|[(\\])*))"
    r"([{};]|\Z)"
)
_AT = re.compile(r"@([\w-]++)\s*+")


def rules(css: str, *, folded: bool = False) -> tuple[Rule, ...]:
    """Return the rules of a style sheet that a desktop reader obeys.

    `folded` tells that the page is in quirks mode, where case of classes and ids means nothing.
    """
    return _rules(css[:_SHEET_CHARS], folded)


@lru_cache(maxsize=64)  # a sender's pages have one style sheet
def _rules(css: str, folded: bool) -> tuple[Rule, ...]:  # noqa: FBT001 - a part of the cache's key
    css = css.replace("<!--", " ").replace("-->", " ").replace("\0", "\ufffd")
    if "/*" in css:
        css = without_comments(css)
    reader = _Sheet(css, folded=folded)
    reader.read()
    return tuple(reader.found)


class _Block(NamedTuple):
    """An open block: the selector its rules stand under, whether it counts, what it declares."""

    selector: str
    counts: bool
    declares: bool
    said: list[str]


class _Sheet:
    """Walks from bracket to bracket."""

    def __init__(self, css: str, *, folded: bool) -> None:
        self.css = css
        self.folded = folded
        self.found: list[Rule] = []
        self.spoilt = False
        self.blocks = [_Block("", counts=True, declares=False, said=[])]

    def read(self) -> None:
        """Read the whole sheet; what is left open at its end is closed."""
        css, at, end = self.css, 0, len(self.css)
        while at < end and len(self.found) < _RULES_MAX:
            match = _PIECE.match(css, at)
            if match is None:  # a closing bracket of nothing
                at += 1
                continue
            text, sign = match.groups()
            at = match.end()
            block = self.blocks[-1]
            if sign == "{":
                self._open(text, block)
                continue
            if block.declares and block.counts and not text.isspace():
                block.said.append(text)
            if sign == "}":
                if len(self.blocks) > 1:
                    self._close()
                else:
                    self.spoilt = True  # it belongs to the selector behind it
        while len(self.blocks) > 1:
            self._close()

    def _open(self, text: str, above: _Block) -> None:
        counts = above.counts and len(self.blocks) <= _DEPTH
        text = text.strip()
        at = _AT.match(text)
        if at is not None:
            name, rest = at[1].lower(), text[at.end() :]
            if name == "media":
                counts = counts and screen_matches(rest)
            elif name != "layer":
                counts = False
            self.blocks.append(_Block(above.selector, counts, above.declares, []))
            return
        own = text
        counts = counts and own != "" and not self.spoilt
        self.spoilt = False
        if above.selector and counts:
            inside = f":is({above.selector})"
            own = own.replace("&", inside) if "&" in own else f"{inside} {own}"
        self.blocks.append(_Block(own, counts and len(own) < 2_000, declares=True, said=[]))

    def _close(self) -> None:
        block = self.blocks.pop()
        if not block.counts or not block.said:
            return
        declarations = parse(";".join(block.said))
        if declarations and (
            selectors := selector.parse_list(block.selector.strip(), folded=self.folded)
        ):
            self.found.append(Rule(selectors, declarations))


_WIDTH, _HEIGHT = 1024.0, 768.0
_FEATURES = {
    "hover": "hover", "any-hover": "hover", "pointer": "fine", "any-pointer": "fine",
    "orientation": "landscape", "prefers-color-scheme": "light", "update": "fast",
    "prefers-reduced-motion": "no-preference", "prefers-contrast": "no-preference",
    "scripting": "none", "display-mode": "browser", "forced-colors": "none",
    "inverted-colors": "none", "scan": "progressive", "overflow-block": "scroll",
    "overflow-inline": "scroll", "color-gamut": "srgb", "dynamic-range": "standard",
}  # fmt: skip
_SIZES = {
    "width": _WIDTH, "device-width": _WIDTH, "height": _HEIGHT, "device-height": _HEIGHT,
    "resolution": 96.0, "color": 8.0, "aspect-ratio": 4 / 3, "device-aspect-ratio": 4 / 3,
    "-webkit-device-pixel-ratio": 1.0, "device-pixel-ratio": 1.0, "monochrome": 0.0, "grid": 0.0,
    "color-index": 0.0,
}  # fmt: skip
_EM = {"em": 16.0, "rem": 16.0, "px": 1.0, "": 1.0, "cm": 37.8, "mm": 3.78, "in": 96.0, "pt": 4 / 3}
_RESOLUTION = {"dpi": 1.0, "dppx": 96.0, "x": 96.0, "dpcm": 2.54}
_TYPE = re.compile(r"(?:(not|only)\s+)?([a-z-]+)(?:\s+and\s+(.*))?", re.DOTALL)
_RANGE = re.compile(r"([<>]=?|=)")
_RATIO = re.compile(r"(\d{1,6})\s*/\s*(\d{1,6})")


@lru_cache(maxsize=512)
def screen_matches(query: str) -> bool:
    """Tell whether a list of media queries holds for a desktop reader."""
    query = query.lower().strip()[:1_000]
    return not query or any(_matches(each.strip()) for each in _split(query, ","))


def _split(text: str, by: str) -> list[str]:
    """Split outside of brackets."""
    parts, depth, start, size = [], 0, 0, len(by)
    for at, sign in enumerate(text):
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        elif depth == 0 and at >= start and text.startswith(by, at):
            parts.append(text[start:at])
            start = at + size
    return [*parts, text[start:]]


def _matches(query: str) -> bool:
    match = _TYPE.fullmatch(query)
    if match is None or match[2] in ("not", "and", "or"):
        return _condition(query)
    fits = match[2] in ("all", "screen") and (match[3] is None or _condition(match[3]))
    return not fits if match[1] == "not" else fits


def _condition(text: str, depth: int = 0) -> bool:
    text = text.strip()
    if depth > 6:
        return False
    if len(either := _split(text, " or ")) > 1:
        return any(_condition(each, depth + 1) for each in either)
    if len(every := _split(text, " and ")) > 1:
        return all(_condition(each, depth + 1) for each in every)
    if text.startswith(("not ", "not(")):
        return not _condition(text[3:], depth + 1)
    if not (text.startswith("(") and text.endswith(")")):
        return False
    inner = text[1:-1].strip()
    return _condition(inner, depth + 1) if inner.startswith(("(", "not ")) else _feature(inner)


def _feature(text: str) -> bool:
    name, colon, value = (each.strip() for each in text.partition(":"))
    if not colon:
        if len(parts := _RANGE.split(text)) > 1:
            return _in_range([each.strip() for each in parts])
        return (name in _FEATURES and _FEATURES[name] != "none") or _SIZES.get(name, 0) > 0
    if name in _FEATURES:
        return value == _FEATURES[name]
    webkit = name.startswith("-webkit-m")
    bare = name.removeprefix("-webkit-") if webkit else name
    side, _, base = bare.partition("-") if bare[:4] in ("min-", "max-") else ("", "", bare)
    if webkit:
        base = f"-webkit-{base}"
    have, want = _SIZES.get(base), _quantity(value)
    if have is None or want is None:
        return False
    if side == "min":
        return have >= want
    return have <= want if side == "max" else abs(have - want) < 0.001


def _in_range(parts: list[str]) -> bool:
    """Answer `400px <= width`, or `400px <= width <= 700px`, taken apart at its signs."""
    if len(parts) == 5:
        have = _SIZES.get(parts[2])
        return _compare(_quantity(parts[0]), parts[1], have) and _compare(
            have, parts[3], _quantity(parts[4])
        )
    if len(parts) != 3:
        return False
    first, sign, second = parts
    if first in _SIZES:
        return _compare(_SIZES[first], sign, _quantity(second))
    return _compare(_quantity(first), sign, _SIZES.get(second))


def _compare(one: float | None, sign: str, other: float | None) -> bool:
    if one is None or other is None:
        return False
    match sign:
        case "<":
            return one < other
        case "<=":
            return one <= other
        case ">":
            return one > other
        case ">=":
            return one >= other
        case _:
            return one == other


def _quantity(value: str) -> float | None:
    if (match := _RATIO.fullmatch(value)) is not None:
        return int(match[1]) / (int(match[2]) or 1)
    for unit, factor in _RESOLUTION.items():
        number = length(value.removesuffix(unit)) if value.endswith(unit) else None
        if number is not None and not number.unit:
            return number.value * factor
    found = length(value)
    return None if found is None or found.unit not in _EM else found.value * _EM[found.unit]
