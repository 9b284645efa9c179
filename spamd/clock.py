"""The time of this machine, for whoever needs a `Clock`."""

from datetime import UTC, datetime
from time import monotonic


class WallClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        return monotonic()
