"""Numbers, probabilities, times and strangers' text as the page writes them.

What the server writes reads well without JavaScript: `1,204`, `50.7 %`, `2026-11-28 14:05`, in UTC.
Each stands in an element that says what it is (`<data>`, `<time>`), which `page.js` writes anew as
the browser's language and time zone have it. A probability is never shown as 0 or 1.
"""

from datetime import UTC, datetime
from math import isnan

from markupsafe import Markup, escape

from spamd.listeners.web.pages.texts import Section
from spamd.wording import printable

SHOWN = 120
"""Characters of a stranger's text that are shown, at most."""

CERTAIN = 0.001
"""Probabilities nearer to 0 or 1 than that are shown as "<0.001" and ">0.999"."""

PARTS = {"minute": "%Y-%m-%d %H:%M", "hour": "%H:%M", "day": "%m-%d"}
"""Of a time, as it is written."""


def number(value: float) -> Markup:
    """Return a count: 1,204."""
    if isnan(value):
        return Markup("–")
    return Markup('<data value="{}">{}</data>').format(int(value), f"{int(value):,}")


def percent(share: float, digits: int = 1) -> Markup:
    """Return a share of 1 as percent: 50.7 %."""
    return Markup('<data value="{}" data-percent="{}">{}</data>').format(
        f"{share:.6f}", digits, f"{100 * share:.{digits}f} %"
    )


def rate(value: float) -> Markup:
    """Return a rate that is in percent already, with the digits that it needs."""
    digits = 2 if 0 < value < 1 else 1
    return percent(value / 100, digits)


def probability(value: float | None) -> str:
    """Return a probability of spam: 0.993, never 0 or 1."""
    if value is None:
        return "–"
    if value < CERTAIN:
        return "<0.001"
    return ">0.999" if value > 1 - CERTAIN else f"{value:.3f}"


def octets(value: int) -> str:
    """Return a size: 512 B, 38 GB."""
    size = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def signed(value: float) -> str:
    """Return log-odds with their sign: +2.31, −0.40."""
    return f"{value:+.2f}".replace("-", "−")


def moment(time: datetime, part: str = "minute") -> Markup:
    """Return a time to the minute; of it only the hour or the day, where that is enough."""
    utc = time.astimezone(UTC)
    return Markup('<time datetime="{}" data-part="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", part, utc.strftime(PARTS[part])
    )


def shown(text: str, limit: int = SHOWN) -> Markup:
    r"""Return a stranger's text: bounded, and what could steer its reader as escapes (`\u202e`)."""
    whole = Markup('<bdi class="raw">{}</bdi>').format(printable(text, limit=limit))
    if len(text) <= limit:
        return whole
    return Markup('<span class="cut">{}</span>').format(whole)


def filled(text: str, **values: object) -> Markup:
    """Return a text with what stands in its braces filled in."""
    return escape(text).format(**values)


def plural(forms: Section, count: float, **values: object) -> Markup:
    """Return the form of a text that a number wants, with the number filled in as `n`."""
    form = forms["one"] if count == 1 else forms["other"]
    return filled(str(form), n=number(count), **values)
