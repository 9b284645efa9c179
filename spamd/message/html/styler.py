"""How each element of a page is shown: what its tag, attributes and style sheets say, put together.

An element's style follows from its parent's, its tag, the attributes that count, and the rules that
match it: the same again for most cells of a table, so that it is kept by these.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from spamd.message.css.cascade import Matched, Sheets, declared
from spamd.message.css.colour import BLACK, WHITE, Colour, html_colour
from spamd.message.css.declarations import ZERO, Length, Value
from spamd.message.css.lengths import ROOT_PX, Context
from spamd.message.css.variables import says_variables, with_variables
from spamd.message.html import elements
from spamd.message.html.box import Box, display_of
from spamd.message.html.style import ROOT, Style, changed, styled
from spamd.message.html.tag import Said

if TYPE_CHECKING:
    from spamd.message.html.node import Node

_CONTROL_PX = 40 / 3
_FONT_SIZES = {"1": 10.0, "2": 13.0, "3": 16.0, "4": 18.0, "5": 24.0, "6": 32.0, "7": 48.0}


class Look(NamedTuple):
    """What comes of an element: its style, that of some children, whether it stands apart."""

    style: Style
    outer: Style | None
    block: bool | None


class Styler:
    """Works out the styles of the elements of one page."""

    def __init__(self, sheets: Sheets, *, quirks: bool) -> None:
        self.sheets = sheets
        self._context = Context(quirks)
        self._known: dict[object, tuple[Look, Style]] = {}

    def style(self, node: "Node") -> None:
        """Set how the text of an element is shown."""
        parent, said, tag, sheets = node.parent, node.look, node.name, self.sheets
        above = ROOT if parent is None else parent.style
        matched = sheets.matching(node) if sheets.any else ()
        if not (said or matched or tag in elements.OWN_LOOK or node.foreign):
            node.style = above
            return
        if tag == "optgroup" and (parent is None or parent.outer is None):
            tag = "option"
        if parent is not None and parent.outer is not None and _is_shown_inside(node, parent):
            above = parent.outer
        linked = parent is not None and parent.tag == "a"
        key = (id(above), tag, said, matched, linked)
        known = self._known.get(key)
        if known is None:
            look = _look(above, tag, said, matched, self._context, linked)
            if node.foreign:
                look = _foreign(node, look)
            self._known[key] = (look, above)
        else:
            look = known[0]
        node.style, outer, block = look
        if outer is not None:
            node.outer = outer
        if block is not None:
            node.block = block
        if tag in {"body", "html"}:
            self._note_page(node)

    def _note_page(self, node: "Node") -> None:
        """Note what the element of the page or of its body means for all the others."""
        context = self._context
        if node.name == "html":
            context = context._replace(root_px=node.style.size or ROOT_PX)
        else:
            context = context._replace(text=node.style.colour)
            if (colour := html_colour(node.values.get("link", ""))) is not None:
                context = context._replace(link=colour)
        if context != self._context:
            self._context = context
            self._known.clear()


@lru_cache(maxsize=4096)  # a sender's pages look the same again and again
def _look(
    above: Style,
    tag: str,
    said: Said,
    matched: tuple[Matched, ...],
    context: Context,
    linked: bool,  # noqa: FBT001 - a part of the cache's key
) -> Look:
    """Return what comes of an element inside of `above`."""
    told = dict(said)
    said_of = _hints(tag, told, context)
    variables = above.variables
    if matched or "style" in told:
        said_of = declared(told.get("style", ""), said_of, matched)
        if says_variables(said_of):
            variables, said_of = with_variables(variables, said_of)
    block, style = None, above
    if said_of or variables is not above.variables:
        display, inline, floats, block = display_of(tag, said_of)
        style = styled(
            above, tag, said_of, context, Box(display, inline, floats, linked, variables)
        )
    if (tag == "details" and "open" not in told) or tag in ("select", "optgroup"):
        return Look(changed(style, gone=True), style, block)
    if tag in elements.REPLACED:
        style = changed(style, gone=True)
    return Look(style, None, block)


def _hints(tag: str, told: dict[str, str], context: Context) -> dict[str, Value]:
    """Return what the element and its attributes say, weaker than any style sheet."""
    found = dict(_TAG_LOOKS[tag]) if tag in _TAG_LOOKS else {}
    if ("hidden" in told and tag != "marquee") or (
        tag in elements.NOT_RENDERED and not (tag == "dialog" and "open" in told)
    ):
        found["display"] = "none"
    if tag == "table" and context.quirks:
        found |= {"font-size": Length(ROOT_PX, "px"), "color": context.text}
    for name, value in () if "\0" in tag else told.items():
        if name == "href":
            found["color"] = context.link
        elif name == "size" and value in _FONT_SIZES:
            found["font-size"] = Length(_FONT_SIZES[value], "px")
        elif name == "background" and value and tag in elements.PAINTED:
            found["background-image"] = "picture"
        elif name in _COLOURS and value and (known := html_colour(value)) is not None:
            found[_COLOURS[name]] = known
    return found


_COLOURS = {"bgcolor": "background-color", "text": "color", "color": "color"}
_TAG_LOOKS: dict[str, dict[str, Value]] = {
    "mark": {"color": BLACK, "background-color": Colour(255, 255, 0)},
    "dialog": {"color": BLACK, "background-color": WHITE},
    **{tag: {"font-size": Length(size, "em")} for tag, size in elements.RESIZED.items()},
}
_CONTROL_LOOK: dict[str, Value] = {
    "font-size": Length(_CONTROL_PX, "px"), "color": BLACK, "text-indent": ZERO,
    "background-color": Colour(239, 239, 239),
}  # fmt: skip


_TAG_LOOKS |= dict.fromkeys(elements.CONTROLS, _CONTROL_LOOK)


def _is_shown_inside(node: "Node", parent: "Node") -> bool:
    """Tell whether an element is shown inside of one whose content isn't."""
    if parent.name == "details":
        elder = node.previous
        while elder is not None and elder.name != "summary":
            elder = elder.previous
        return node.name == "summary" and elder is None
    return node.name in _SHOWN_INSIDE or node.name.startswith("math\0")


_SHOWN_INSIDE = elements.names("option optgroup") | elements.SVG_SHOWN


def _foreign(node: "Node", look: Look) -> Look:
    """Return what comes of an element of SVG or MathML: of a drawing only its text is shown."""
    name, parent, style = node.name, node.parent, look.style
    inside = parent is not None and parent.name in _SVG_TEXT
    if name in elements.SVG_GROUPS and not inside:
        return look._replace(style=changed(style, gone=True), outer=style)
    if name.startswith("math"):
        if name in elements.MATH_TEXT:
            return look
        outer = None if name in elements.MATH_UNSHOWN else style
        return look._replace(style=changed(style, gone=True), outer=outer)
    gone = name not in elements.SVG_SHOWN and not (inside and name in elements.SVG_IN_TEXT)
    return look._replace(style=changed(style, gone=True)) if gone else look


_SVG_TEXT = elements.names("svg\0text") | elements.SVG_IN_TEXT
