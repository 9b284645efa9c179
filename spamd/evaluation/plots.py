"""Three pictures of an evaluation as one SVG: ROC, reliability, learning curve.

Written by hand because three panels of lines need no plotting library. The ROC has logarithmic
axes, as the TREC spam tracks draw it: all that matters lies in a corner. Runs share the panels. A
dot of the reliability diagram is the larger the more messages it stands for; on the diagonal a
probability keeps what it promises.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import log10

import numpy as np
from numpy.typing import NDArray

from spamd.evaluation.rates import Outcomes, reliability

SIZE, GAP, TOP = 300, 70, 40
"""Side of a panel, space between panels, space above them; pixels."""

COLOURS = (
    "#10476f",
    "#d1603d",
    "#3aa876",
    "#8a5fbf",
    "#c99a1c",
    "#7a8690",
    "#5aa9e6",
    "#b0416e",
    "#6b4226",
)
"""Told apart by people who don't tell red from green: they differ in lightness."""

DASHES = ("", "6 3", "2 2")
"""Lines of the first round of colours, of the second, and of all after it."""

LEGEND_COLUMNS, LEGEND_LINE = 3, 18
"""Names of runs side by side, one below each panel, and the height of their lines."""

NAME_CHARS = 50
"""Of a run's name; more would reach into the next one."""

LEAST_PERCENT = 0.01
"""The lower end of the logarithmic axes; a rate of 0 is drawn there."""

POINTS = 400
"""At most so many points of a line are drawn."""

Points = Sequence[tuple[float, float]]
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One set of axes: titles, scales (value → 0 … 1), marks on the axes, lines by name."""

    title: str
    x_title: str
    y_title: str
    x: Scale
    y: Scale
    x_marks: Sequence[float]
    y_marks: Sequence[float]
    lines: Mapping[str, Points]
    sizes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    diagonal: bool = False


def picture(runs: Mapping[str, Outcomes], beside: Mapping[str, Outcomes] | None = None) -> str:
    """Return the SVG document for these runs.

    Those `beside` are drawn thinner and without a reliability: classifiers promise no probability.
    """
    every = {**runs, **(beside or {})}
    panels = (_roc(every), _reliability(runs), _learning(every))
    styles = {
        name: _style(number, 2.4 if beside and name in runs else 1.4)
        for number, name in enumerate(every)
    }
    width = GAP + len(panels) * (SIZE + GAP)
    height = TOP + SIZE + 60 + LEGEND_LINE * -(-len(every) // LEGEND_COLUMNS)
    body = "".join(_drawn(panel, GAP + i * (SIZE + GAP), styles) for i, panel in enumerate(panels))
    legend = "".join(
        _legend(number, name, style) for number, (name, style) in enumerate(styles.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{body}{legend}</svg>\n'
    )


def roc_points(outcomes: Outcomes) -> Points:
    """Return (ham lost %, spam missed %) at every threshold, from the strictest on."""
    spam, scores = outcomes.spam, outcomes.log_odds
    ham, mail = int((~spam).sum()), int(spam.sum())
    if not ham or not mail:
        return ()
    highest_first = np.argsort(-scores, kind="stable")
    lost = np.cumsum(~spam[highest_first])
    caught = np.cumsum(spam[highest_first])
    last_of_ties = np.append(np.diff(scores[highest_first]) != 0, [True])
    x = np.append([0.0], 100.0 * lost[last_of_ties] / ham)
    y = np.append([100.0], 100.0 * (mail - caught[last_of_ties]) / mail)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _roc(runs: Mapping[str, Outcomes]) -> Panel:
    scale = _logarithmic(LEAST_PERCENT, 100.0)
    marks = (0.01, 0.1, 1.0, 10.0, 100.0)
    return Panel(
        title="ROC",
        x_title="ham lost, %",
        y_title="spam missed, %",
        x=scale,
        y=scale,
        x_marks=marks,
        y_marks=marks,
        lines={name: roc_points(run) for name, run in runs.items()},
    )


def _reliability(runs: Mapping[str, Outcomes]) -> Panel:
    lines, sizes = {}, {}
    for name, run in runs.items():
        promised, found, number = reliability(run.spam, run.probabilities)
        held = number > 0
        lines[name] = list(zip(promised[held].tolist(), found[held].tolist(), strict=True))
        sizes[name] = (2.0 + 5.0 * np.sqrt(number[held] / max(1, len(run)))).tolist()
    marks = (0.0, 0.25, 0.5, 0.75, 1.0)
    return Panel(
        title="Reliability",
        x_title="probability promised",
        y_title="share of spam found",
        x=_linear(1.0),
        y=_linear(1.0),
        x_marks=marks,
        y_marks=marks,
        lines=lines,
        sizes=sizes,
        diagonal=True,
    )


def _learning(runs: Mapping[str, Outcomes]) -> Panel:
    errors = {
        name: np.cumsum((run.log_odds > 0) != run.spam).astype(np.float64)
        for name, run in runs.items()
    }
    most = max((float(line[-1]) for line in errors.values() if len(line)), default=1.0)
    longest = max((len(line) for line in errors.values()), default=1)
    return Panel(
        title="Learning",
        x_title="messages",
        y_title="errors so far (at P = ½)",
        x=_linear(max(1.0, longest)),
        y=_linear(max(1.0, most)),
        x_marks=_round_marks(longest),
        y_marks=_round_marks(most),
        lines={name: _thinned(line) for name, line in errors.items()},
    )


def _thinned(line: NDArray[np.float64]) -> Points:
    step = max(1, len(line) // POINTS)
    return [(float(i + 1), float(line[i])) for i in range(0, len(line), step)]


def _linear(most: float) -> Scale:
    return lambda value: value / most


def _logarithmic(least: float, most: float) -> Scale:
    return lambda value: log10(max(value, least) / least) / log10(most / least)


def _round_marks(most: float) -> Sequence[float]:
    """Return about five round numbers from 0 to `most`."""
    step = 10.0 ** np.floor(np.log10(max(most, 1.0)))
    while most / step < 4:
        step /= 2
    return [float(mark) for mark in np.arange(0.0, most + step / 2, step) if mark <= most]


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _style(number: int, width: float) -> str:
    """Return how the line of a run is drawn, as attributes."""
    dashes = DASHES[min(number // len(COLOURS), len(DASHES) - 1)]
    return (
        f'stroke="{_colour(number)}" stroke-width="{width}" stroke-dasharray="{dashes or "none"}"'
    )


def _legend(number: int, name: str, style: str) -> str:
    """Return a piece of the line of a run, and its name."""
    row, column = divmod(number, LEGEND_COLUMNS)
    x, y = GAP + column * (SIZE + GAP), TOP + SIZE + 60 + LEGEND_LINE * row
    shown = escape(name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 1]}…")
    return f'<path d="M{x} {y - 4}h24" {style}/>{_text(x + 30, y, shown, anchor="start")}'


def _text(x: float, y: float, content: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{content}</text>'


def _drawn(panel: Panel, left: float, styles: Mapping[str, str]) -> str:
    middle, bottom = left + SIZE / 2, TOP + SIZE
    turned = f'<g transform="translate({left - 44},{TOP + SIZE / 2}) rotate(-90)">'
    parts = [
        _text(middle, TOP - 14, f"<tspan font-size='15'>{panel.title}</tspan>"),
        f'<rect x="{left}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#333"/>',
        _text(middle, bottom + 36, panel.x_title),
        f"{turned}{_text(0, 0, panel.y_title)}</g>",
    ]
    for mark in panel.x_marks:
        x = left + SIZE * panel.x(mark)
        parts.append(f'<path d="M{x:.1f} {TOP}v{SIZE}" stroke="#ddd"/>')
        parts.append(_text(x, bottom + 16, f"{mark:g}"))
    for mark in panel.y_marks:
        y = bottom - SIZE * panel.y(mark)
        parts.append(f'<path d="M{left} {y:.1f}h{SIZE}" stroke="#ddd"/>')
        parts.append(_text(left - 6, y + 4, f"{mark:g}", anchor="end"))
    if panel.diagonal:
        parts.append(f'<path d="M{left} {bottom}L{left + SIZE} {TOP}" stroke="#999"/>')
    for name, points in reversed([*panel.lines.items()]):  # the first run on top
        placed = [(left + SIZE * panel.x(x), bottom - SIZE * panel.y(y)) for x, y in points]
        parts.append(_line(placed, styles[name]))
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="white" {styles[name]}/>'
            for (x, y), size in zip(placed, panel.sizes.get(name, ()), strict=False)
        ]
    return "".join(parts)


def _line(points: Points, style: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke-linejoin="round" {style}/>'
