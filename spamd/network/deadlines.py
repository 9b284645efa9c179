"""All time-outs of a relay by one timer of the event loop.

Setting a deadline is an assignment. A timer of its own for each wait would cost 5 to 12 µs a
command, about half of what a whole message costs; one for each session would cost a session of one
message a tenth of its CPU.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Self

from spamd.errors import DeadlineExceeded


class DeadlineTimer:
    """Expires the deadlines that are due; its timer is never later than the first of them."""

    __slots__ = ("_timer", "deadlines", "due")

    def __init__(self) -> None:
        self.deadlines: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.due = inf

    def arm(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Set the timer."""
        self.stop()
        self.due = due
        self._timer = loop.call_at(due, self._fire, loop)

    def stop(self) -> None:
        """Take the timer away."""
        self.due = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop()
        now = loop.time()
        try:
            for deadline in list(self.deadlines):
                if deadline.due <= now:
                    deadline.expire()
        finally:
            due = min((deadline.due for deadline in self.deadlines), default=inf)
            if due < self.due:
                self.arm(loop, due)


class Deadline:
    """Calls `on_expired` once the deadline set last has passed; `clear` takes the deadline away."""

    __slots__ = ("_added", "_loop", "_on_expired", "_timer", "due")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, timer: DeadlineTimer, on_expired: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._timer = timer
        self._on_expired = on_expired
        self._added = False
        self.due = inf

    def set(self, timeout_s: float) -> None:
        """Set the deadline, in seconds from now; it replaces the one before."""
        self.due = deadline = self._loop.time() + timeout_s
        if not self._added:
            self._added = True
            self._timer.deadlines.add(self)
        if deadline < self._timer.due:
            self._timer.arm(self._loop, deadline)

    def clear(self) -> None:
        """Take the deadline away; the timer stays and finds nothing to do."""
        self.due = inf

    def stop(self) -> None:
        """Clear the deadline and leave the timer."""
        self.due = inf
        if self._added:
            self._added = False
            self._timer.deadlines.discard(self)

    def expire(self) -> None:
        """Call `on_expired`, for the deadline has passed."""
        self.due = inf
        self._on_expired()


class TimeLimit(Deadline):
    """A time limit on `with` blocks of one task, as `asyncio.timeout` is one.

    Raises:
        DeadlineExceeded: out of the block, when the time is up.
    """

    __slots__ = ("_expired", "_task", "_timeout_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, timer: DeadlineTimer) -> None:
        super().__init__(loop, timer, self._cancel_task)
        self._task: asyncio.Task[object] | None = None
        self._timeout_s = 0.0
        self._expired = False

    def of(self, timeout_s: float) -> Self:
        """Set the limit of the next block."""
        self._timeout_s = timeout_s
        return self

    def __enter__(self) -> None:
        """Begin to count."""
        self._expired = False
        if self._task is None:
            self._task = asyncio.current_task(self._loop)
        self.set(self._timeout_s)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop counting; a cancellation of our own becomes the error it stands for."""
        self.due = inf
        ours = self._expired and self._task is not None and self._task.uncancel() <= 0
        if ours and kind is asyncio.CancelledError:
            raise DeadlineExceeded("the time limit of the message has passed")

    def _cancel_task(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()
