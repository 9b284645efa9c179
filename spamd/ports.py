"""What the use cases need of the outside world, in domain words.

The relay asks an `Inspector`, training works on a `UnitOfWork`, everything that happens is told to an
`Observer`, and time comes from a `Clock`. The real ones live in `scanning`, `storage` and `observe`;
tests use the in-memory twins of `tests/fakes.py`.
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
