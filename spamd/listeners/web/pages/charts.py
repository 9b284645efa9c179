"""Charts as numbers: where each shape stands. The templates draw them as SVG.

Sizes are in the units of the chart's own box, which the page stretches to its width. No chart says
anything that does not stand beside it as text or in a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, log10

WIDTH, HEIGHT = 720.0, 150.0
GAP = 0.18
"""Share of a column that stays empty between two bars."""

CLUE_WIDTH = 160.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Mails within one span of time, by verdict."""

    begins: datetime
    ends: datetime
    ham: int
    unsure: int
    spam: int
    unscanned: int = 0

    @property
    def mails(self) -> int:
        """Return all of them."""
        return self.ham + self.unsure + self.spam + self.unscanned


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One part of a bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: its place, its parts from the bottom up, and what it counts."""

    x: float
    width: float
    pieces: tuple[Piece, ...]
    slot: Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line across the chart at a round number."""

    y: float
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Mails by time."""

    width: float
    height: float
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    peak: Slot | None
    total: int


def columns(slots: Sequence[Slot]) -> Columns:
    """Return stacked bars, one for each span of time."""
    most = max((slot.mails for slot in slots), default=0)
    top = round_up(most)
    wide = WIDTH / max(1, len(slots))
    bars = []
    for place, slot in enumerate(slots):
        y, pieces = HEIGHT, []
        parts = (
            ("ham", slot.ham),
            ("unscanned", slot.unscanned),
            ("unsure", slot.unsure),
            ("spam", slot.spam),
        )
        for kind, count in parts:
            if count:
                height = max(1.0, HEIGHT * count / top)
                y -= height
                pieces.append(Piece(kind=kind, y=_units(y), height=_units(height)))
        bars.append(
            Bar(
                x=_units(place * wide + wide * GAP / 2),
                width=_units(wide * (1 - GAP)),
                pieces=tuple(pieces),
                slot=slot,
            )
        )
    marks = (top // 2, top) if top > 1 else (top,)
    return Columns(
        width=WIDTH,
        height=HEIGHT,
        bars=tuple(bars),
        lines=tuple(Line(y=_units(HEIGHT - HEIGHT * mark / top), value=mark) for mark in marks),
        peak=max(slots, key=lambda slot: slot.mails) if most else None,
        total=sum(slot.mails for slot in slots),
    )


def round_up(value: int) -> int:
    """Return the next round number (1, 2, 4, 5, 10, 20, 40, 50, …), at least 1."""
    if value <= 1:
        return 1
    power: int = 10 ** (len(str(value)) - 1)
    return next(
        step for step in (power, 2 * power, 4 * power, 5 * power, 10 * power) if step >= value
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """A bar to the right of the middle for spam, to the left for ham."""

    width: float
    middle: float
    x: float
    length: float
    kind: str


def around_zero(value: float, largest: float) -> Around:
    """Return the bar of a clue, as long as it is strong beside the strongest."""
    half = CLUE_WIDTH / 2
    length = _units(half * min(1.0, abs(value) / largest)) if largest else 0.0
    return Around(
        width=CLUE_WIDTH,
        middle=half,
        x=half if value >= 0 else _units(half - length),
        length=length,
        kind="spam" if value >= 0 else "ham",
    )


def widest(values: Sequence[float]) -> float:
    """Return the strongest of some effects."""
    return max((abs(value) for value in values), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line through points, and the points."""

    width: float
    height: float
    path: str
    points: tuple[tuple[float, float], ...]


def curve(
    points: Sequence[tuple[float, float]], width: float = 320.0, height: float = 200.0
) -> Curve:
    """Return a line through points that lie between 0 and 1 both ways."""
    placed = tuple((_units(width * x), _units(height * (1 - y))) for x, y in points)
    path = " ".join(f"{'L' if place else 'M'}{x:g} {y:g}" for place, (x, y) in enumerate(placed))
    return Curve(width=width, height=height, path=path, points=placed)


def tens(share: float, *, least: float = 1e-4) -> float:
    """Return where a share stands on an axis of powers of ten, from `least` to 1."""
    return 1 - log10(max(share, least)) / log10(least)


def named(slots: Sequence[Slot], names: int, unit: int = 1) -> list[Slot | None]:
    """Return the slots that are named below a chart, at most so many, None for the others.

    From one name to the next it is a whole number of units, each of so many slots.

    Each name has the room of all slots up to the next one.
    """
    step = unit * max(1, ceil(len(slots) / (names * unit)))
    whole = len(slots) - step
    return [
        slot if place % step == 0 and place <= whole else None for place, slot in enumerate(slots)
    ]


def _units(value: float) -> float:
    return round(value, 2)
