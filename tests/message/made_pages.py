"""Made pages: elements opened, crossed and left open; selectors × properties; values of each.

The lists stand in `made/`, one case a line. Every page holds words that tell where they stand, so
that a difference names its case.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

_FOLDER = Path(__file__).with_name("made")
_HIDING = ("display:none", "visibility:hidden", "color:#fff")
_SHEET_PAGE = "<div><p class=c id=i>para <b>bold</b></p>rest</div><p>second</p>end"
_MEDIA = ("print", "screen", "all", "", "(max-width:600px)", "screen and (min-width:10px)")
_TYPES = ("text/css", "text/plain", "", "TEXT/CSS", "text/less")
_STRICT = "<!doctype html>"


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page with what it is about."""
    yield from _of_elements()
    for odd in _lines("odd"):
        yield f"odd: {odd}", odd
    yield from _of_selectors()
    yield from _of_declarations()
    yield from _nested()
    for sheet in _lines("sheets"):
        yield f"sheet: {sheet}", f"<style>{sheet}</style>{_SHEET_PAGE}"
        yield f"sheet, strict: {sheet}", f"{_STRICT}<style>{sheet}</style>{_SHEET_PAGE}"
    for name, values in (("media", _MEDIA), ("type", _TYPES)):
        for value in values:
            page = f"<style {name}='{value}'>p{{display:none}}</style>{_SHEET_PAGE}"
            yield f"style {name}={value}", page


def _lines(name: str) -> list[str]:
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def _of_elements() -> Iterator[tuple[str, str]]:
    tags = _lines("elements")
    for kind, name in (("element", "shapes"), ("left open", "left_open")):
        for shape, tag in product(_lines(name), tags):
            yield f"{kind} {tag}: {shape}", shape.format(tag)


def _of_selectors() -> Iterator[tuple[str, str]]:
    sample = (_FOLDER / "sample.html").read_text(encoding="utf-8").strip()
    for selector in _lines("selectors"):
        for hiding in _HIDING:
            rule = f"{selector}{{{hiding}}}"
            yield f"rule: {rule}", f"<style>{rule}</style>{sample}"
        late = f"{_STRICT}{sample}<style>{selector}{{opacity:0}}</style>"
        yield f"late rule: {selector}", late


def _of_declarations() -> Iterator[tuple[str, str]]:
    for declaration in _lines("declarations"):
        style = f'style="{declaration.replace(chr(34), "&quot;")}"'
        for tag in ("div", "span", "p"):
            page = f"<p>one</p><{tag} {style}>two <b>three</b></{tag}> four"
            yield f"inline {tag}: {declaration}", page
            yield f"inline {tag}, strict: {declaration}", f"{_STRICT}{page}"
        page = f"<table><tr><td {style}>two</td><td>three</table>four"
        yield f"cell: {declaration}", page


def _nested() -> Iterator[tuple[str, str]]:
    for line, tags in product(_lines("nested"), (("div", "p", "span"), ("table", "tr", "td"))):
        outer, middle, inner = (each.strip() for each in line.split("|"))
        one, two, three = tags
        page = (
            f'<{one} style="{outer}"><{two} style="{middle}"><{three} style="{inner}">in</{three}>'
            f"</{two}></{one}>after"
        )
        yield f"nested {one}: {line}", page
        yield f"nested {one}, strict: {line}", f"{_STRICT}{page}"
