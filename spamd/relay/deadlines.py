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


class Kennel:
    """Wakes the watchdogs that are due; its timer is never later than the first of them."""

    __slots__ = ("_dogs", "_timer", "due")

    def __init__(self) -> None:
        self._dogs: set[Watchdog] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.due = inf

    def enter(self, dog: "Watchdog") -> None:
        """Look after a watchdog from now on."""
        self._dogs.add(dog)

    def leave(self, dog: "Watchdog") -> None:
        """Look after a watchdog no longer."""
        self._dogs.discard(dog)

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
            for dog in list(self._dogs):
                if dog.deadline <= now:
                    dog.wake()
        finally:
            due = min((dog.deadline for dog in self._dogs), default=inf)
            if due < self.due:
                self.arm(loop, due)


class Watchdog:
    """Calls `bark` once the deadline set last has passed; `calm` takes the deadline away."""

    __slots__ = ("_bark", "_inside", "_kennel", "_loop", "deadline")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, kennel: Kennel, bark: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._kennel = kennel
        self._bark = bark
        self._inside = False
        self.deadline = inf

    def watch(self, timeout_s: float) -> None:
        """Set the deadline, in seconds from now; it replaces the one before."""
        self.deadline = deadline = self._loop.time() + timeout_s
        if not self._inside:
            self._inside = True
            self._kennel.enter(self)
        if deadline < self._kennel.due:
            self._kennel.arm(self._loop, deadline)

    def calm(self) -> None:
        """Take the deadline away; the timer stays and finds nothing to do."""
        self.deadline = inf

    def stop(self) -> None:
        """Watch no more."""
        self.deadline = inf
        if self._inside:
            self._inside = False
            self._kennel.leave(self)

    def wake(self) -> None:
        """Bark, for the deadline has passed."""
        self.deadline = inf
        self._bark()


class TimeLimit(Watchdog):
    """A time limit on `with` blocks of one task, as `asyncio.timeout` is one.

    Raises:
        DeadlineExceeded: out of the block, when the time is up.
    """

    __slots__ = ("_over", "_task", "_timeout_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, kennel: Kennel) -> None:
        super().__init__(loop, kennel, self._end)
        self._task: asyncio.Task[object] | None = None
        self._timeout_s = 0.0
        self._over = False

    def of(self, timeout_s: float) -> Self:
        """Set the limit of the next block."""
        self._timeout_s = timeout_s
        return self

    def __enter__(self) -> None:
        """Begin to count."""
        self._over = False
        if self._task is None:
            self._task = asyncio.current_task(self._loop)
        self.watch(self._timeout_s)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop counting; a cancellation of our own becomes the error it stands for."""
        self.deadline = inf
        ours = self._over and self._task is not None and self._task.uncancel() <= 0
        if ours and kind is asyncio.CancelledError:
            raise DeadlineExceeded("time is up")

    def _end(self) -> None:
        self._over = True
        if self._task is not None:
            self._task.cancel()
