"""Lengths in pixels, and what a whole page says that its elements are measured by."""

from typing import NamedTuple

from spamd.message.css.colour import BLACK, Colour
from spamd.message.css.declarations import Length

_LINK = Colour(0, 0, 238)
ROOT_PX = 16.0
WIDTH_PX = 1024.0
FAR_PX = 500
"""So far to the left nobody looks; half a page to the left centres something."""

_UNITS = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945,
    "vw": 10.24, "vh": 7.68, "vmin": 7.68, "vmax": 10.24, "svw": 10.24, "svh": 7.68,
    "lvw": 10.24, "lvh": 7.68, "dvw": 10.24, "dvh": 7.68,
}  # fmt: skip


class Context(NamedTuple):
    """What a whole page says: its mode, the size of its root, its links' colour, its text's."""

    quirks: bool
    root_px: float = ROOT_PX
    link: Colour = _LINK
    text: Colour = BLACK

    def px(self, length: Length, size: float) -> float | None:
        """Return a length in pixels inside an element of that font size, None for a share."""
        value, unit = length
        if unit in _UNITS:
            return value * _UNITS[unit]
        if unit == "em":
            return value * size
        if unit in ("ex", "ch", "cap"):
            return value * size / 2
        if unit in ("rem", "rlh"):
            return value * self.root_px
        if unit == "":
            return value if self.quirks or not value else None
        return None
