"""How long to wait before something that failed is tried again: a worker, a job."""

import asyncio
from dataclasses import dataclass, field

PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0)
"""At once, then later, but never so late that clients give up on the connections that wait in the
queue of a worker that crashed."""

STEADY_S = 10.0
"""Who ran this long has recovered: its next failure counts as the first."""


@dataclass(slots=True, kw_only=True)
class Backoff:
    """The pauses of one thing that may keep failing."""

    failures: int = 0
    _started: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def next(self) -> float:
        """Return the pause in seconds after one more failure."""
        now = asyncio.get_running_loop().time()
        if now - self._started > STEADY_S:
            self.failures = 0
        pause_s = PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1
        self._started = now + pause_s
        return pause_s
