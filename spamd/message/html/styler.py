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
from spamd.message.html.attributes import NO_SAID, Said
from spamd.message.html.box import Box, display_of
from spamd.message.html.style import ROOT, Style, changed, styled

if TYPE_CHECKING:
    from spamd.message.html.node import Node

_CONTROLS = elements.names("button input select textarea")
_CONTROL_PX = 40 / 3
_SIZES = {"h1": 2.0, "h2": 1.5, "h3": 1.17, "h5": 0.83, "h6": 0.67, "small": 5 / 6, "big": 1.2}
_SIZES |= {"sub": 5 / 6, "sup": 5 / 6}
_FONT_SIZES = {"1": 10.0, "2": 13.0, "3": 16.0, "4": 18.0, "5": 24.0, "6": 32.0, "7": 48.0}
_OWN_LOOK = (
    _CONTROLS
    | elements.NOT_RENDERED
    | elements.REPLACED
    | elements.names("a area body html table details summary option optgroup mark font svg math")
    | frozenset(_SIZES)
)
"""Elements that a browser shows in a way of their own, without any attribute."""


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
        parent, said, tag, sheets = node.parent, node.values.look, node.name, self.sheets
        above = ROOT if parent is None else parent.style
        matched = sheets.matching(node) if sheets.any else ()
        if said is None and not matched and tag not in _OWN_LOOK and not node.foreign:
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
            look = _look(above, tag, said or NO_SAID, matched, self._context, linked)
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
    said_of = declared(said[0] or "", _hints(tag, said, context), matched)
    block = None
    style = above
    variables = above.variables
    if says_variables(said_of):
        variables, said_of = with_variables(variables, said_of)
    if said_of or variables is not above.variables:
        display, inline, floats, block = display_of(tag, said_of)
        style = styled(
            above, tag, said_of, context, Box(display, inline, floats, linked, variables)
        )
    if (tag == "details" and said[8] is None) or tag in ("select", "optgroup"):
        return Look(changed(style, gone=True), style, block)
    if tag in elements.REPLACED:
        style = changed(style, gone=True)
    return Look(style, None, block)


def _hints(tag: str, said: Said, context: Context) -> dict[str, Value]:
    """Return what the element and its attributes say, weaker than any style sheet."""
    _, hidden, colour, behind, picture, text, _, size, opened, href = said
    found = dict(_TAG_LOOKS.get(tag, _NO_LOOK))
    if (hidden is not None and tag != "marquee") or (
        tag in elements.NOT_RENDERED and not (tag == "dialog" and opened is not None)
    ):
        found["display"] = "none"
    if tag in ("a", "area") and href is not None:
        found["color"] = context.link
    elif tag == "table" and context.quirks:
        found |= {"font-size": Length(ROOT_PX, "px"), "color": context.text}
    elif tag == "font" and size in _FONT_SIZES:
        found["font-size"] = Length(_FONT_SIZES[size], "px")
    if picture and tag in _PAINTED:
        found["background-image"] = "picture"
    for name, value, tags in (
        ("background-color", behind, _COLOURED),
        ("color", text, _BODY),
        ("color", colour, _FONT),
    ):
        if value and tag in tags and (known := html_colour(value)) is not None:
            found[name] = known
    return found


_NO_LOOK: dict[str, Value] = {}
_TAG_LOOKS: dict[str, dict[str, Value]] = {
    "mark": {"color": BLACK, "background-color": Colour(255, 255, 0)},
    "dialog": {"color": BLACK, "background-color": WHITE},
    **{tag: {"font-size": Length(size, "em")} for tag, size in _SIZES.items()},
}
_PAINTED = elements.names("body table td th thead tbody tfoot tr")
_COLOURED = _PAINTED | {"marquee"}
_BODY, _FONT = elements.names("body"), elements.names("font")
_CONTROL_LOOK: dict[str, Value] = {
    "font-size": Length(_CONTROL_PX, "px"), "color": BLACK, "text-indent": ZERO,
    "background-color": Colour(239, 239, 239),
}  # fmt: skip


_TAG_LOOKS |= dict.fromkeys(_CONTROLS, _CONTROL_LOOK)


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
