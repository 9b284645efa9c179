"""Time-outs: many watchdogs, one timer."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from spamd.relay.deadlines import Kennel, Watchdog


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


class Yard:
    """A loop, a kennel, and who has barked."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.kennel = Kennel()
        self.barked: list[tuple[str, float]] = []

    def dog(self, name: str) -> Watchdog:
        def bark() -> None:
            self.barked.append((name, self.loop.now - 1000))

        return Watchdog(cast("asyncio.AbstractEventLoop", self.loop), self.kennel, bark)


def test_each_watchdog_barks_at_its_own_deadline() -> None:
    yard = Yard()
    yard.dog("late").watch(30)
    yard.dog("early").watch(10)
    yard.loop.go_on(60)
    assert yard.barked == [("early", 10), ("late", 30)]


def test_many_watchdogs_share_one_timer() -> None:
    yard = Yard()
    for number in range(100):
        yard.dog(str(number)).watch(10 + number)
    assert len(yard.loop.pending) == 1


def test_a_deadline_put_off_is_kept() -> None:
    yard = Yard()
    dog = yard.dog("dog")
    dog.watch(10)
    yard.loop.go_on(5)
    dog.watch(10)
    yard.loop.go_on(60)
    assert yard.barked == [("dog", 15)]


def test_a_calm_watchdog_is_silent_and_the_others_are_not() -> None:
    yard = Yard()
    calm, other = yard.dog("calm"), yard.dog("other")
    calm.watch(10)
    other.watch(20)
    calm.calm()
    yard.loop.go_on(60)
    assert yard.barked == [("other", 20)]


def test_a_watchdog_that_stopped_may_watch_again() -> None:
    yard = Yard()
    dog = yard.dog("dog")
    dog.watch(10)
    dog.stop()
    yard.loop.go_on(15)
    dog.watch(10)
    yard.loop.go_on(60)
    assert yard.barked == [("dog", 25)]


def test_a_bark_may_stop_another_watchdog_that_is_due() -> None:
    yard = Yard()
    dogs: list[Watchdog] = []
    barked = []

    def bark() -> None:
        barked.append("one of them")
        for dog in dogs:
            dog.stop()

    loop = cast("asyncio.AbstractEventLoop", yard.loop)
    dogs += [Watchdog(loop, yard.kennel, bark) for _ in range(2)]
    for dog in dogs:
        dog.watch(10)
    yard.loop.go_on(60)
    assert barked == ["one of them"]
    assert yard.loop.pending == []
