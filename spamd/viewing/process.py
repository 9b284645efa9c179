"""Has views made by a process of its own (`apart.Apart`), as the process that takes mail sees it.

    apart = ViewProcess(lambda: settings)
    answered = await apart.answer(asked)
    apart.renew()                # the next view is made by the settings as they are by then
    await apart.close()

A view takes some 50 ms of Python and of the database's own work: in the process that takes mail,
mail would wait for that long while people look. The process starts with the first view, which takes
a second or two longer for it, makes several at once, and ends when nobody has looked for a while.
One that was killed is replaced, and what it was at is asked once more: views change nothing.
"""

import asyncio
import os
import pickle
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from spamd.listeners.web.pages.apart import Answered, Asked
from spamd.settings import Settings

IDLE_S = 600.0
"""It ends after that time without work and gives back its 100 MB."""

MOST_S = 60.0
"""For one view, the start of the process included; browsers and proxies wait about as long."""

TRIES = 2

NICE = 5
"""Enough that mail goes first, and little enough that views get on."""


class ViewFailedError(Exception):
    """A view could not be made; the text is for the log."""


def framed(content: bytes) -> bytes:
    """Return a content as a frame."""
    return len(content).to_bytes(4, "big") + content


class ViewProcess:
    """Makes views in a process of its own; `settings` returns those in force."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._line: Line | None = None
        self._leaving: list[Line] = []
        self._starting = asyncio.Lock()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the process, None while there is none."""
        return None if self._line is None or self._line.ended else self._line.process.pid

    @property
    def busy(self) -> bool:
        """Tell whether a view is being made."""
        return self._line is not None and self._line.busy

    async def answer(self, asked: Asked) -> Answered:
        """Return a view.

        Raises:
            ViewFailedError: it could not be made.
        """
        try:
            async with asyncio.timeout(MOST_S):
                for _ in range(TRIES):
                    line = await self._running()
                    with suppress(EOFError):
                        return await line.ask(asked)
        except OSError as error:  # TimeoutError among them
            if self._line is not None:
                self._line.stop()
            raise ViewFailedError("the process that makes views does not answer") from error
        finally:
            self._rest()
        raise ViewFailedError("the process that makes views has ended")

    def renew(self) -> None:
        """Have the next view made by a new process; this one ends when it has answered."""
        if self._line is not None:
            self._leaving = [line for line in self._leaving if not line.ended]
            self._leaving.append(self._line)
            self._line.finish()
            self._line = None

    async def close(self) -> None:
        """End it."""
        if self._alarm is not None:
            self._alarm.cancel()
        self.renew()
        for line in self._leaving:
            line.stop()
            await line.process.wait()

    async def _running(self) -> "Line":
        async with self._starting:
            if self._line is None or self._line.ended:
                self._line = await Line.opened(self._settings)
            return self._line

    def _rest(self) -> None:
        """Have it ended after a while without work."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(IDLE_S, self.renew)


class Line(asyncio.Protocol):
    """The line to one process, from its start to its end.

    ended   nothing comes from there any more
    """

    process: Process

    def __init__(self) -> None:
        self.ended = False
        self._finishing = False
        self._received = bytearray()
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[Answered]] = {}

    @classmethod
    async def opened(cls, settings: Callable[[], Settings]) -> "Line":
        """Start a process, with the settings as they are once it runs.

        Raises:
            OSError: the system has no room for one.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            _, line = await asyncio.get_running_loop().create_unix_connection(cls, sock=ours)
            try:
                line.process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", "spamd.viewing.worker", str(theirs.fileno()),
                    pass_fds=(theirs.fileno(),), env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                )  # fmt: skip
            except BaseException:
                line.finish()
                raise
        line.send(settings())
        return line

    @property
    def busy(self) -> bool:
        """Tell whether somebody waits for an answer."""
        return bool(self._waiting)

    async def ask(self, asked: Asked) -> Answered:
        """Return the answer to a question.

        Raises:
            EOFError: the process has ended.
            ViewFailedError: this view could not be made.
        """
        if self.ended:
            raise EOFError
        self._asked += 1
        number = self._asked
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send((number, asked))
        try:
            found: Answered = await answer
        finally:
            self._waiting.pop(number, None)
            self._close_if_done()
        return found

    def send(self, content: object) -> None:
        """Send a frame."""
        self._transport.write(framed(pickle.dumps(content, pickle.HIGHEST_PROTOCOL)))

    def finish(self) -> None:
        """End once all is answered."""
        self._finishing = True
        self._close_if_done()

    def stop(self) -> None:
        """End at once; whoever waits hears of it."""
        self._transport.abort()
        with suppress(ProcessLookupError):
            self.process.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of our end."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is of another class

    def data_received(self, data: bytes) -> None:
        """Give answers to those who wait for them."""
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                break
            number, answer = pickle.loads(self._received[4:end])  # noqa: S301 - from our child
            del self._received[:end]
            waiting = self._waiting.get(number)
            if waiting is None or waiting.done():
                continue  # whoever asked has gone
            if isinstance(answer, Answered):
                waiting.set_result(answer)
            else:
                waiting.set_exception(ViewFailedError(answer))

    def connection_lost(self, _: Exception | None) -> None:
        """Tell who waits that nothing comes any more."""
        self.ended = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(EOFError())

    def _close_if_done(self) -> None:
        if self._finishing and not self.busy:
            self._transport.close()
