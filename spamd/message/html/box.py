"""Whether the box of an element hides what stands in it: nowhere on the screen, or without size."""

from typing import NamedTuple

from spamd.message.css.declarations import UNSET, Length, Move, Value
from spamd.message.css.lengths import FAR_PX, WIDTH_PX, Context
from spamd.message.css.variables import Variables
from spamd.message.html import elements

_BEYOND_PX = 3000  # three screens to the right
_CUT_PX = 4  # height or width of what is left of a line
_TABLES = elements.TABLE_INSIDE | elements.TABLE_PARTS


class Box(NamedTuple):
    """The box of an element: none for a run of text; whether in a link; its variables."""

    display: str
    inline: bool
    floats: bool
    linked: bool
    variables: Variables


def display_of(tag: str, said_of: dict[str, Value]) -> tuple[str, bool, bool, bool | None]:
    """Return what is said of display, whether there is no box, whether it floats, stands apart."""
    value = said_of.get("display")
    display = value if isinstance(value, str) and value not in UNSET else ""
    floats = said_of.get("position") in ("absolute", "fixed") or said_of.get("float") in (
        "left", "right",
    )  # fmt: skip
    if display == "none":
        return display, False, floats, None
    if floats:
        return display, False, floats, True
    if not display:
        return display, tag not in elements.BREAKING or tag in _NO_BOX, floats, None
    inside = display.startswith(("inline", "contents"))
    return display, display in ("inline", "contents"), floats, not inside


_CELLS = elements.names("td th tr tbody thead tfoot")
_NO_BOX = elements.names("br col colgroup hr option optgroup")


_PLACED = elements.names("margin-left margin-top left right top transform translate")
PLACING = _PLACED | elements.names(
    "mso-hide position clip clip-path content-visibility overflow-x overflow-y"
)
"""Without one of these nothing hides what stands in the box."""


def is_gone(said_of: dict[str, Value], tag: str, size: float, box: Box, context: Context) -> bool:
    """Tell whether nothing is seen of what stands in the box, whatever is said inside of it."""
    if said_of.get("mso-hide") == "all" and tag != "a" and not box.linked:
        return True
    position = said_of.get("position")
    if position in ("absolute", "fixed") and said_of.get("clip") == "gone":
        return True
    if said_of.get("clip-path") == "gone":
        return True
    if not box.inline and (
        said_of.get("content-visibility") == "hidden"
        or (
            ("overflow-x" in said_of or "overflow-y" in said_of)
            and _is_cut_off(said_of, tag, size, box, context)
        )
    ):
        return True
    return _is_off_screen(said_of, tag, size, box, context)


def _is_cut_off(
    said_of: dict[str, Value], tag: str, size: float, box: Box, context: Context
) -> bool:
    """Tell whether the box has no height or width, and what doesn't fit in it is cut off."""
    table = tag in _TABLES and not box.display and not box.floats
    for axis, names, minimum, padding in _AXES:
        if said_of.get(axis, "visible") in ("visible", "unset", "initial", "inherit"):
            continue
        if any(_at_least(said_of.get(name), size, context) for name in (minimum, padding)):
            continue
        for name in ("max-width",) if table else names:
            value = said_of.get(name)
            if isinstance(value, Length) and (value.unit != "%" or axis == "overflow-x"):
                px = value.value if value.unit == "%" else context.px(value, size)
                if px is not None and px < _CUT_PX:
                    return True
        line = said_of.get("line-height")
        if axis == "overflow-y" and not table and isinstance(line, Length) and line.value == 0:
            return not isinstance(said_of.get("height"), Length)
    return False


_AXES = (
    ("overflow-y", ("height", "max-height"), "min-height", "padding-bottom"),
    ("overflow-x", ("width", "max-width"), "min-width", "padding-right"),
)


def _at_least(value: Value | None, size: float, context: Context) -> bool:
    if not isinstance(value, Length):
        return False
    px = value.value if value.unit == "%" else context.px(value, size)
    return px is not None and px >= _CUT_PX


def _is_off_screen(
    said_of: dict[str, Value], tag: str, size: float, box: Box, context: Context
) -> bool:
    if _PLACED.isdisjoint(said_of):
        return False
    position = said_of.get("position")

    def px(name: str, whole: float = WIDTH_PX) -> float:
        value = said_of.get(name)
        return reach(value, whole) if isinstance(value, Length) else 0.0

    def reach(value: Length, whole: float) -> float:
        if value.unit == "%":
            return value.value * whole / 100
        return context.px(value, size) or 0.0

    x, y = px("margin-left"), 0.0 if box.inline else px("margin-top")
    if tag in _CELLS and not box.display:
        x = y = 0.0  # cells have no margins
    if position in ("absolute", "fixed", "relative"):
        x += px("left") if isinstance(said_of.get("left"), Length) else -px("right")
        y += px("top", 768.0) if position != "relative" else px("top", 0.0)
    if not box.inline:
        for name in ("transform", "translate"):
            if isinstance(move := said_of.get(name), Move):
                x += reach(move.x, 0.0)
                y += reach(move.y, 0.0)
    return x <= -FAR_PX or y <= -FAR_PX or x >= _BEYOND_PX or (position == "fixed" and y > 2_000)
