"""What every use case needs of the outside world: time, and somebody to tell.

What only one of them needs stands next to it: `relay/ports.py`, `feedback/ports.py`,
`training/ports.py`.
"""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, so that no test waits for it."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        ...


class Observer(Protocol):
    """Whom we tell what happened: log lines and metrics."""

    def happened(self, event: str, **details: str | float) -> None:
        """Tell of an event (`noun.past_participle`) worth a line at info."""
        ...

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Tell of a fault to look at; the traceback goes to the log, never to a peer."""
        ...
