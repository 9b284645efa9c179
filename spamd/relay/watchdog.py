"""One timer per connection for all of its time-outs.

Setting a deadline is an assignment; the timer of the event loop re-arms itself when it fires too
early. A `wait_for` around each command would cost 5 to 12 µs a command, about half of what a whole
message costs.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, Self

from spamd.errors import DeadlineExceeded


class Watchdog:
    """Calls `bark` once the deadline set last has passed; `calm` takes the deadline away."""

    __slots__ = ("_bark", "_deadline", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, bark: Callable[[], None]) -> None:
        self._loop = loop
        self._bark = bark
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, timeout_s: float) -> None:
        """Set the deadline, in seconds from now; it replaces the one before."""
        deadline = self._deadline = self._loop.time() + timeout_s
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._fire)

    def calm(self) -> None:
        """Take the deadline away; the timer stays and finds nothing to do."""
        self._deadline = None

    def stop(self) -> None:
        """End the timer for good."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._fire)
            return
        self._deadline = None
        self._bark()


class TimeLimit:
    """A time limit on a `with` block of the session's task, as `asyncio.timeout` is one.

    It shares the lazy timer of `Watchdog`, so that a message whose verdict comes at once pays for
    two assignments instead of a timer.

    Raises:
        DeadlineExceeded: out of the block, when the time is up.
    """

    __slots__ = ("_over", "_task", "_timeout_s", "_watchdog")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watchdog = Watchdog(loop, self._end)
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
        self._task = asyncio.current_task()
        self._watchdog.watch(self._timeout_s)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop counting; a cancellation of our own becomes the error it stands for."""
        self._watchdog.calm()
        ours = self._over and self._task is not None and self._task.uncancel() <= 0
        if ours and kind is asyncio.CancelledError:
            raise DeadlineExceeded("the time for the verdict is up")

    def stop(self) -> None:
        """End the timer for good."""
        self._watchdog.stop()

    def _end(self) -> None:
        self._over = True
        if self._task is not None:
            self._task.cancel()


class Heart:
    """Keeps the next hop awake while a message arrives or is judged.

    One timer per session, not per message: it ticks on while there is something to keep alive, and
    ends by itself when there is not.
    """

    __slots__ = ("_interval_s", "_loop", "_next_hop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> None:
        self._loop = loop
        self._interval_s = interval_s
        self._next_hop: Sleeper | None = None
        self._timer: asyncio.TimerHandle | None = None

    def beating(self, next_hop: "Sleeper | None") -> Self:
        """Keep `next_hop` awake inside a `with` block."""
        self._next_hop = next_hop
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self._tick)
        return self

    def __enter__(self) -> None:
        """Go on beating."""

    def __exit__(self, *_: object) -> None:
        """Rest."""
        self._next_hop = None

    def stop(self) -> None:
        """End the timer for good."""
        self._next_hop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        if self._next_hop is not None:
            self._next_hop.keep_alive()
            self._timer = self._loop.call_later(self._interval_s, self._tick)


class Sleeper(Protocol):
    """What would be ended for idleness."""

    def keep_alive(self) -> None:
        """Show that we are there."""
        ...
