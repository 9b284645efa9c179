"""Threads for work that blocks and may never return: a mail server, a file system gone away.

The pools of `asyncio` and `concurrent.futures` wait for their threads when a process ends, so one
call that hangs keeps the process alive. Here a call that was given up is waited for `LEAVE_S` at
most, and keeps nothing alive. The pool that mail is scanned in stays free of it as well.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LEAVE_S = 2.0
"""How long a call that was given up may take to end."""


class BlockingThreads:
    """Threads that make calls; one thread makes them one after the other.

    Args:
        name: of the threads.
        count: how many threads, at most; they are started when there is work.
    """

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._missing = count
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    async def call(
        self,
        give_up: Callable[[], None],
        work: Callable[P, T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what `work` returns in a thread.

        When we are cancelled `give_up` is called, which may make it end; then it is left alone.
        """
        future = self._put(work, *args, **kwargs)
        done = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(_seen)
            give_up()
            await asyncio.wait([done], timeout=LEAVE_S)
            raise

    async def end(self, last: Callable[[], None]) -> None:
        """Make one last call, whatever it raises, and end the thread that makes it."""
        future = self._put(last)
        self._calls.put(None)
        done = asyncio.wrap_future(future)
        done.add_done_callback(_seen)
        await asyncio.wait([done], timeout=LEAVE_S)

    def _put(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
                future.set_exception(error)

        if self._missing:
            self._missing -= 1
            Thread(target=self._work, name=self._name, daemon=True).start()
        self._calls.put(call)
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def nothing() -> None:
    """Give up a call that can't be ended."""


def _seen(done: "asyncio.Future[T]") -> None:
    """Take note of what a call raised that nobody waits for any more."""
    if not done.cancelled():
        done.exception()
