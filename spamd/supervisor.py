"""The process above several workers: it keeps one alive for each list of sockets.

SIGTERM, SIGINT   every worker finishes and ends
SIGHUP            workers are replaced one by one, each once its successor takes mail; signals that
come meanwhile make one more round
a worker crashes  another takes its place and its sockets, at once if its successor is ready, later
and later if it goes on; what it has counted stays (`observe.cells`)

systemd is told when all take mail, when they are replaced, when they end, and, if it wants to know
that (WatchdogSec), that no worker hangs.
"""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spamd.backoff import Backoff
from spamd.observe.cells import Board

if TYPE_CHECKING:
    from spamd.ports import Observer

FROM_SUPERVISOR = "WORKER_OF_SPAMD"
"""Environment variable of a worker: its number, descriptors of the memory for what it counts and
its region there, of its line to us, and of its sockets."""

EXIT_CONFIG = 78  # sysexits.h EX_CONFIG
READY = b"R"


@dataclass(slots=True, kw_only=True)
class Child:
    """One worker process and our end of the line to it."""

    process: asyncio.subprocess.Process
    line: socket.socket
    region: int

    async def ready(self) -> bool:
        """Wait until it takes mail; False when it ended before."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            return await loop.sock_recv(self.line, 1) == READY
        return False

    def stop(self) -> None:
        """Tell it to finish."""
        with suppress(ProcessLookupError):
            self.process.terminate()


class Supervisor:
    """Keeps one child process per list of sockets.

    Args:
        command: what a child runs.
        columns: the sockets of each child.
        observer: is told of children that end.
        environment: the children's; ours by default.
        board: where the children count.

    children   who takes mail, in the order of their sockets; None while one is started again
    coming     replacements under way, by the place in `children`
    leaving    children that are not ready yet, and those that finish
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: Sequence[Sequence[socket.socket]],
        observer: "Observer",
        environment: Mapping[str, str] | None = None,
        board: Board | None = None,
    ) -> None:
        self._command = command
        self._columns = columns
        self._observer = observer
        self._board = board or Board.shared()
        self._environment = os.environ if environment is None else environment
        self.children: list[Child | None] = [None] * len(columns)
        self.leaving: list[Child] = []
        self.coming: dict[int, asyncio.Task[bool]] = {}
        self._group = asyncio.TaskGroup()
        self._unready = len(columns)
        self._stopped = asyncio.Event()
        self._code = 0

    @property
    def processes(self) -> list[int]:
        """Return the ids of the children that are there, in the order of their sockets."""
        return [child.process.pid for child in self.children if child is not None]

    @property
    def ready(self) -> bool:
        """Tell whether every child has taken mail."""
        return self._unready == 0

    def stop(self) -> None:
        """Let every child finish and end."""
        self._stopped.set()
        for child in (*self.children, *self.leaving):
            if child is not None:
                child.stop()

    async def run(self) -> int:
        """Run until told to stop; return the exit code."""
        loop = asyncio.get_running_loop()
        reload = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, reload.set)
        watchdog = Watchdog(loop, self._nobody_hangs)
        async with self._group as group:
            keepers = [group.create_task(self._keep(slot)) for slot in range(len(self._columns))]
            reloader = group.create_task(self._reload_for_ever(reload))
            await asyncio.wait(keepers)
            notify("STOPPING=1")
            reloader.cancel()
        for child in list(self.leaving):  # a replacement that was not ready yet
            child.stop()
            await self._left(child)
        watchdog.stop()
        return self._code

    def _nobody_hangs(self, within_s: float) -> bool:
        """Tell whether every child that has begun went on lately."""
        now = time.monotonic()
        beats = [region.beat for region in self._board.regions() if region.live and region.beat]
        return all(now - beat < within_s for beat in beats)

    async def _left(self, child: Child) -> None:
        """Wait until a child that leaves has ended."""
        await child.process.wait()
        self.leaving.remove(child)
        self._ended(child)

    def _ended(self, child: Child) -> None:
        """Take back what a child had that has ended."""
        child.line.close()
        self._board.release(child.region)

    async def _keep(self, slot: int) -> None:
        """Keep one place filled until we stop."""
        backoff = Backoff()
        first = True
        while not self._stopped.is_set():
            child = self.children[slot] = await self._start(slot)
            if self._stopped.is_set():
                child.stop()  # `stop` came while it was being started
            if await child.ready() and first:
                first = False
                self._one_more_ready()
            child = await self._last(slot, child)
            code = child.process.returncode or 0
            if first and code == EXIT_CONFIG:
                self._code = code
                self.stop()
            if self._stopped.is_set():
                return
            self._lost(child)
            await self._pause(backoff.next())

    def _lost(self, child: Child) -> None:
        code = child.process.returncode or 0
        self._observer.happened("worker.lost", process=child.process.pid, code=code)

    async def _last(self, slot: int, child: Child) -> Child:
        """Wait until a place is empty; return the child that was the last there."""
        while True:
            await child.process.wait()
            coming = self.coming.get(slot)
            if coming is not None and self.children[slot] is child:
                await asyncio.wait([coming])  # a successor may be about to be ready: it is the best
                if self.children[slot] is not child:
                    self._lost(child)
            successor = self.children[slot]
            if successor is child or successor is None:
                break
            child = successor  # the old one ended as it should, or its successor was there
        self._ended(child)
        self.children[slot] = None
        return child

    def _one_more_ready(self) -> None:
        self._unready -= 1
        if self.ready:
            notify(ready(len(self.children)))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    async def _reload_for_ever(self, reload: asyncio.Event) -> None:
        while True:
            await reload.wait()
            reload.clear()
            notify(reloading())
            for slot in range(len(self._columns)):
                if not self._stopped.is_set():
                    coming = asyncio.ensure_future(self._replace(slot))
                    self.coming[slot] = coming
                    try:
                        await coming
                    finally:
                        del self.coming[slot]
            if self.ready and not self._stopped.is_set():
                notify(ready(len(self.children)))

    async def _replace(self, slot: int) -> bool:
        """Put a new child in the place of the old one once it is ready; tell whether it was."""
        old = self.children[slot]
        if old is None:
            return False  # `_keep` starts one
        new = await self._start(slot)
        self.leaving.append(new)  # unless it stays
        if self._stopped.is_set():
            new.stop()  # `stop` came while it was being started
        ready = await new.ready()
        # Meanwhile we may have been told to stop; the old one may have died, and is replaced so.
        if ready and self.children[slot] is old and not self._stopped.is_set():
            self.children[slot], self.leaving[-1] = new, old
            old.stop()
            self._group.create_task(self._left(old))
        else:
            ready = False
            new.stop()
            await self._left(new)
            self._observer.happened("worker.kept", code=new.process.returncode or 0)
        return ready

    async def _start(self, slot: int) -> Child:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the library's own argument
        descriptors = [theirs.fileno(), *(sock.fileno() for sock in self._columns[slot])]
        region = self._board.take()
        numbers = (slot, self._board.fd, region, *descriptors)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                pass_fds=(self._board.fd, *descriptors),
                env={**self._environment, FROM_SUPERVISOR: ",".join(map(str, numbers))},
            )
        return Child(process=process, line=ours, region=region)


class Watchdog:
    """Tells systemd again and again that we go on, if it wants to know (WatchdogSec).

    Args:
        loop: tells it; a loop that hangs doesn't.
        alive: says whether all is well as of so many seconds.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, alive: Callable[[float], bool] = lambda _: True
    ) -> None:
        self._loop = loop
        self._alive = alive
        self._every_s = watchdog_s() / 3
        self._handle: asyncio.TimerHandle | None = None
        if self._every_s:
            self._tell()

    def stop(self) -> None:
        """Tell no more."""
        if self._handle is not None:
            self._handle.cancel()

    def _tell(self) -> None:
        if self._alive(self._every_s):
            notify("WATCHDOG=1")
        self._handle = self._loop.call_later(self._every_s, self._tell)


def watchdog_s() -> float:
    """Return how long systemd waits for a sign of ours; 0.0: for none (sd_watchdog_enabled(3))."""
    usec, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    ours = not pid or pid == str(os.getpid())
    return int(usec) / 1e6 if ours and usec.isascii() and usec.isdigit() else 0.0


def ready(workers: int) -> str:
    """Return what systemd is told once all take mail."""
    noun = "worker takes" if workers == 1 else "workers take"
    return f"READY=1\nSTATUS={workers} {noun} mail"


def reloading() -> str:
    """Return what systemd is told before settings are read again."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}\nSTATUS=Reloading"


def notify(state: str) -> None:
    """Tell systemd our state, where it wants to know (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode("ascii"), "\0" + path[1:] if path.startswith("@") else path)
