"""Time-outs: many deadlines, one timer."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from spamd.network.deadlines import Deadline, DeadlineTimer


class FakeTimer:
    """A timer that is only noted."""

    def __init__(self, due: float, fire: Callable[[], None]) -> None:
        self.due = due
        self.fire = fire
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """A loop whose time goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, due: float, fire: Callable[..., None], *arguments: Any) -> FakeTimer:
        self.timers.append(FakeTimer(due, lambda: fire(*arguments)))
        return self.timers[-1]

    def go_on(self, seconds: float) -> None:
        """Fire what comes due within `seconds`, in order."""
        end = self.now + seconds
        while ready := [timer for timer in self.pending if timer.due <= end]:
            first = min(ready, key=lambda timer: timer.due)
            self.now = first.due
            self.timers.remove(first)
            first.fire()
        self.now = end

    @property
    def pending(self) -> list[FakeTimer]:
        return [timer for timer in self.timers if not timer.cancelled]


class Deadlines:
    """A loop, a timer, and who has expired."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.timer = DeadlineTimer()
        self.expired: list[tuple[str, float]] = []

    def deadline(self, name: str) -> Deadline:
        def on_expired() -> None:
            self.expired.append((name, self.loop.now - 1000))

        return Deadline(cast("asyncio.AbstractEventLoop", self.loop), self.timer, on_expired)


def test_each_deadline_expires_at_its_own_time() -> None:
    deadlines = Deadlines()
    deadlines.deadline("late").set(30)
    deadlines.deadline("early").set(10)
    deadlines.loop.go_on(60)
    assert deadlines.expired == [("early", 10), ("late", 30)]


def test_many_deadlines_share_one_timer() -> None:
    deadlines = Deadlines()
    for number in range(100):
        deadlines.deadline(str(number)).set(10 + number)
    assert len(deadlines.loop.pending) == 1


def test_a_deadline_put_off_is_kept() -> None:
    deadlines = Deadlines()
    deadline = deadlines.deadline("deadline")
    deadline.set(10)
    deadlines.loop.go_on(5)
    deadline.set(10)
    deadlines.loop.go_on(60)
    assert deadlines.expired == [("deadline", 15)]


def test_a_cleared_deadline_does_not_expire_and_the_others_do() -> None:
    deadlines = Deadlines()
    cleared, other = deadlines.deadline("cleared"), deadlines.deadline("other")
    cleared.set(10)
    other.set(20)
    cleared.clear()
    deadlines.loop.go_on(60)
    assert deadlines.expired == [("other", 20)]


def test_a_stopped_deadline_may_be_set_again() -> None:
    deadlines = Deadlines()
    deadline = deadlines.deadline("deadline")
    deadline.set(10)
    deadline.stop()
    deadlines.loop.go_on(15)
    deadline.set(10)
    deadlines.loop.go_on(60)
    assert deadlines.expired == [("deadline", 25)]


def test_an_expired_deadline_may_stop_another_that_is_due() -> None:
    deadlines = Deadlines()
    all_of_them: list[Deadline] = []
    expired = []

    def on_expired() -> None:
        expired.append("one of them")
        for deadline in all_of_them:
            deadline.stop()

    loop = cast("asyncio.AbstractEventLoop", deadlines.loop)
    all_of_them += [Deadline(loop, deadlines.timer, on_expired) for _ in range(2)]
    for deadline in all_of_them:
        deadline.set(10)
    deadlines.loop.go_on(60)
    assert expired == ["one of them"]
    assert deadlines.loop.pending == []
