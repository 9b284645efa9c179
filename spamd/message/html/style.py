"""How the text of an element is shown: what CSS and HTML attributes say about being seen.

Hidden is: `display:none`, `visibility:hidden` (until something inside is visible again), text whose
colour, alpha and opacity leave less than 24 of 255 between it and its background, a font below
three pixels (sizes, zoom and scale of all around it multiplied), a box outside of the screen,
clipped away, or without height or width and its overflow cut, `mso-hide:all` on anything but a
link (honest mail hides buttons from Outlook, which gets a drawn one). In front of a background
that isn't understood, as a picture, colour alone hides nothing.
"""

from typing import NamedTuple

from spamd.message.css.colour import BLACK, UNKNOWN, WHITE, Colour, distance, over
from spamd.message.css.declarations import UNSET, Length, Move, Value
from spamd.message.css.lengths import FAR_PX, ROOT_PX, WIDTH_PX, Context
from spamd.message.html.box import PLACING, Box, is_gone
from spamd.message.html.elements import names

NEAR = 24  # of 255 in each channel: nobody reads text that close to its background
_TINY_PX = 3


class Style(NamedTuple):
    """How the text of an element is shown: what it inherits, and what becomes of it with the rest.

    gone      by the box of an element around it     unseen  by `visibility`
    alpha     opacity of all around it, multiplied   size    of the font in px
    scale     zoom and transformations               indented  its first line is off the screen
    shadowed  shadow or background may show the letters whatever their colour is
    """

    gone: bool = False
    unseen: bool = False
    alpha: float = 1.0
    size: float = ROOT_PX
    scale: float = 1.0
    colour: Colour = BLACK
    background: Colour = WHITE
    indented: bool = False
    shadowed: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    hidden: bool = False

    @property
    def boxless(self) -> bool:
        """Whether a picture is hidden too, which has neither font nor colour."""
        return self.gone or self.unseen or self.alpha * 255 <= NEAR


ROOT = Style()


def _is_hidden(style: Style) -> bool:
    if style.gone or style.unseen or style.indented or style.size * style.scale < _TINY_PX:
        return True
    if style.shadowed:
        return style.alpha * 255 <= NEAR
    alpha = style.alpha * style.colour.alpha
    if style.background is UNKNOWN or style.colour is UNKNOWN:
        return alpha * 255 <= NEAR
    return distance(style.colour, style.background) * alpha <= NEAR


def changed(style: Style, *, gone: bool) -> Style:
    """Return the style of an element that is shown, or not, besides."""
    return style._replace(gone=style.gone or gone, hidden=style.hidden or gone)


def styled(above: Style, tag: str, said_of: dict[str, Value], context: Context, box: Box) -> Style:
    """Return the style of an element from its parent's and from what is said of it."""
    said = said_of.get
    size = above.size if (value := said("font-size")) is None else _font_size(above, value, context)
    inline = box.inline
    gone = above.gone or box.display == "none"
    if not (gone or PLACING.isdisjoint(said_of)):
        gone = is_gone(said_of, tag, size, box, context)
    alpha, scale = above.alpha, above.scale
    if not _RARE.isdisjoint(said_of):
        alpha *= _number(said("opacity")) * _number(said("filter"))
        scale *= _number(said("zoom"))
        for name in () if inline else ("transform", "scale"):
            if isinstance(move := said_of.get(name), Move):
                scale *= move.scale
    colour = _colour(above.colour, said_of)
    shadow = said("text-shadow")
    shadowed = (above.shadowed if shadow is None or shadow in UNSET else shadow != "none") or (
        said("background-clip") == "text"
    )
    unseen = above.unseen if (value := said("visibility")) is None else _unseen(above, value)
    indented = above.indented
    if not inline and (value := said("text-indent")) is not None:
        indented = _indented(above, value, size, context)
    style = Style(
        gone, unseen, alpha, size, scale, colour, _background(above.background, colour, said_of),
        indented, shadowed, box.variables, False,  # noqa: FBT003 - by its place, for speed
    )  # fmt: skip
    if style == above:
        return above
    return style._replace(hidden=True) if _is_hidden(style) else style


_RARE = names("opacity filter zoom transform scale")


def _number(value: Value | None) -> float:
    return value if isinstance(value, float) else 1.0


def _unseen(above: Style, value: Value) -> bool:
    if value in ("inherit", "unset", "revert"):
        return above.unseen
    return value in ("hidden", "collapse")


def _indented(above: Style, value: Value, size: float, context: Context) -> bool:
    if not isinstance(value, Length):
        return above.indented and value != "initial"
    px = value.value * WIDTH_PX / 100 if value.unit == "%" else context.px(value, size)
    return px is not None and px <= -FAR_PX


def _font_size(above: Style, value: Value, context: Context) -> float:
    if isinstance(value, Length):
        if value.unit == "%":
            return above.size * value.value / 100
        px = context.px(value, above.size)
        return above.size if px is None else px
    return ROOT_PX if value == "initial" else above.size


def _colour(above: Colour, said_of: dict[str, Value]) -> Colour:
    colour = above
    for name in ("color", "-webkit-text-fill-color"):
        value = said_of.get(name)
        if isinstance(value, Colour):
            colour = value
        elif value == "initial":
            colour = BLACK
    return colour


def _background(above: Colour, colour: Colour, said_of: dict[str, Value]) -> Colour:
    if said_of.get("background-image") == "picture":
        return UNKNOWN
    value = said_of.get("background-color")
    if value == "currentcolor":
        value = colour
    if not isinstance(value, Colour) or value.alpha == 0:
        return above
    if value is UNKNOWN or value.alpha == 1:
        return value
    return UNKNOWN if above is UNKNOWN else over(value, above)
