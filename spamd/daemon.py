"""Processes, signals, start and stop: what `spamd serve` is when it runs.

One worker runs in this process. Several are equal child processes, each started anew from the same
command line, each with listening sockets of its own on the same ports; this process only holds the
sockets and keeps the children alive:

    SIGTERM, SIGINT   every worker stops taking mail, finishes what is in flight, ends; exit code 0
    SIGHUP            one worker reads its certificates again; several are replaced one by one, so
                      the settings are read again too, and no connection is lost; the addresses we
                      listen on and the number of workers stay those of the start
    a worker crashes  another takes its place and its sockets, later and later if it goes on
    we are killed     the workers notice and stop by themselves

A mistake in the settings stops the start with `ConfigError`, or with exit code 78 of a child that
said so itself. READY=1 goes to systemd once all sockets listen and all workers are ready.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spamd.clock import WallClock
from spamd.errors import ConfigError
from spamd.loading import loading
from spamd.message.facts import SCHEMA
from spamd.observe.options import MetricsOptions, host_and_port
from spamd.relay.sockets import open_sockets, probe, require, unbound
from spamd.settings import Settings
from spamd.storage.lookup import Lookup

if TYPE_CHECKING:
    from spamd.ports import Application, Job, Observer

HANDED_OVER = "WORKER_OF_SPAMD"
"""Environment variable of a worker: its number, descriptors of its line to us and its sockets."""

EXIT_CONFIG = 78  # sysexits.h EX_CONFIG
READY = b"R"

PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Before a crashed worker or job is started again: at once, then later, but never so late that
clients give up on the connections that wait in its queue."""

STEADY_S = 10.0
"""Who ran this long has recovered: its next failure counts as the first."""


def serve(settings: Settings, read_from: str) -> int:
    """Run the daemon until it is told to stop; return the exit code.

    Args:
        settings: of all rooms.
        read_from: the settings file, for the log.

    Raises:
        ConfigError: the start is impossible; the text begins with the key.
    """
    if HANDED_OVER in os.environ:
        return run_as_worker(lambda sockets, worker: _rebuilt(settings, sockets, worker), read_from)
    workers = settings.relay.workers or len(os.sched_getaffinity(0))
    columns = open_sockets(settings.relay.listeners, workers)
    _probe(settings.metrics, workers)
    if workers == 1:
        return _run(_work(_built(settings, columns[0], 0), None, read_from))
    return _run(_supervisor(settings, columns).run())


def _supervisor(settings: Settings, columns: Sequence[Sequence[socket.socket]]) -> "Supervisor":
    from spamd.observe.log import LogObserver  # noqa: PLC0415 - it would delay `_built`
    from spamd.observe.metrics import Metrics  # noqa: PLC0415

    command = [sys.executable, "-P", "-m", "spamd", *sys.argv[1:]]
    metrics = Metrics(settings.metrics)
    observer = LogObserver(settings.log, metrics, WallClock(), fields={"worker": "supervisor"})
    return Supervisor(command, columns, observer)


def _probe(options: MetricsOptions, workers: int) -> None:
    """See that nobody has the ports of the metrics; a worker shares its own with its successor.

    Raises:
        ConfigError: somebody has one.
    """
    if not options.listen:
        return
    host, port = host_and_port(options.listen)
    for number in range(port, port + workers if port else 0):
        try:
            probe(host, number)
        except OSError as error:
            where = f"metrics.listen: {host}:{number}"
            raise ConfigError(f"{where}: {unbound(error)}") from error


def _rebuilt(settings: Settings, sockets: Sequence[socket.socket], worker: int) -> "Application":
    require(settings.relay.listeners, sockets)
    return _built(settings, sockets, worker)


def _built(settings: Settings, sockets: Sequence[socket.socket], worker: int) -> "Application":
    lookup = Lookup.of(settings.database, schema=SCHEMA, bayes=settings.bayes)
    ahead = None if lookup is None else lookup.ahead()
    with loading():
        from spamd.app import build  # noqa: PLC0415 - only workers need it, and it takes a while

    return build(settings, sockets, worker, ahead)


def run_as_worker(
    build_worker: "Callable[[Sequence[socket.socket], int], Application]", read_from: str
) -> int:
    """Run what a supervisor started us for, on the sockets it handed over."""
    worker, line, *descriptors = (int(number) for number in os.environ.pop(HANDED_OVER).split(","))
    sockets = [socket.socket(fileno=number) for number in descriptors]
    return _run(_work(build_worker(sockets, worker), socket.socket(fileno=line), read_from))


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it is installed; it halves the CPU of the relay."""
    try:
        import uvloop  # noqa: PLC0415 - an optional extra
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


async def run_worker(
    application: "Application",
    *,
    ready: Callable[[], None],
    stopped: asyncio.Event,
) -> None:
    """Run one application until `stopped` is set; `ready` is called once it takes mail."""
    async with AsyncExitStack() as stack:
        for service in application.ground:
            await service.start()
            stack.push_async_callback(service.stop)
        fault: Exception | None = None
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_kept_up(job, application.observer), name=job.name)
                for job in application.jobs
            ]
            try:
                await _open_doors(application, ready, stopped)
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group
                fault = error
            finally:
                for task in tasks:
                    task.cancel()
        if fault is not None:
            raise fault


async def _open_doors(
    application: "Application", ready: Callable[[], None], stopped: asyncio.Event
) -> None:
    async with AsyncExitStack() as stack:
        for service in application.doors:
            await service.start()
            stack.push_async_callback(service.stop)
        ready()
        await stopped.wait()


async def _kept_up(job: "Job", observer: "Observer") -> None:
    """Run a job for ever: the border around one service."""
    pauses = Pauses()
    while True:
        try:
            await job.run()
        except Exception as error:  # noqa: BLE001 - one job's fault must not end the others
            observer.failed("job.failed", error, job=job.name)
        else:
            return
        await asyncio.sleep(pauses.next())


async def _work(application: "Application", line: socket.socket | None, read_from: str) -> int:
    """Run one worker; `line` leads to its supervisor, if it has one."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, application)

    def ready() -> None:
        application.observer.happened("worker.started", process=os.getpid(), settings=read_from)
        if line is None:
            notify("READY=1")
        else:
            line.send(READY)
            loop.add_reader(line, stopped.set)  # its end closes when the supervisor dies

    try:
        await run_worker(application, ready=ready, stopped=stopped)
    finally:
        if line is None:
            notify("STOPPING=1")
        else:
            loop.remove_reader(line)
            line.close()
    application.observer.happened("worker.stopped", process=os.getpid())
    return 0


def _reload(application: "Application") -> None:
    try:
        application.reload()
    except ConfigError as error:
        application.observer.failed("reload.failed", error)


@dataclass(slots=True)
class Pauses:
    """How long to wait before the next try of something that keeps failing."""

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


@dataclass(slots=True, kw_only=True)
class Child:
    """One worker process and our end of the line to it."""

    process: asyncio.subprocess.Process
    line: socket.socket

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
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: Sequence[Sequence[socket.socket]],
        observer: "Observer",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._columns = columns
        self._observer = observer
        self._environment = os.environ if environment is None else environment
        self._children: list[Child | None] = [None] * len(columns)
        self._leaving: list[Child] = []
        self._unready = len(columns)
        self._stopped = asyncio.Event()
        self._code = 0

    @property
    def processes(self) -> list[int]:
        """Return the ids of the children that are there, in the order of their sockets."""
        return [child.process.pid for child in self._children if child is not None]

    @property
    def ready(self) -> bool:
        """Tell whether every child has taken mail."""
        return self._unready == 0

    def stop(self) -> None:
        """Let every child finish and end."""
        self._stopped.set()
        for child in self._children:
            if child is not None:
                child.stop()

    async def run(self) -> int:
        """Run until told to stop; return the exit code."""
        loop = asyncio.get_running_loop()
        reloads: asyncio.Queue[None] = asyncio.Queue()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, reloads.put_nowait, None)
        async with asyncio.TaskGroup() as group:
            keepers = [group.create_task(self._keep(slot)) for slot in range(len(self._columns))]
            reloader = group.create_task(self._reload_for_ever(reloads))
            await asyncio.wait(keepers)
            notify("STOPPING=1")
            reloader.cancel()
        for child in self._leaving:
            child.stop()
            await child.process.wait()
            child.line.close()
        return self._code

    async def _keep(self, slot: int) -> None:
        """Keep one place filled until we stop."""
        pauses = Pauses()
        first = True
        while not self._stopped.is_set():
            child = self._children[slot] = await self._start(slot)
            if self._stopped.is_set():
                child.stop()  # `stop` came while it was being started
            if await child.ready() and first:
                first = False
                self._one_more_ready()
            await child.process.wait()
            while (successor := self._children[slot]) is not child and successor is not None:
                child = successor  # replaced on a reload; the old one ended as it should
                await child.process.wait()
            child.line.close()
            self._children[slot] = None
            code = child.process.returncode or 0
            if first and code == EXIT_CONFIG:
                self._code = code
                self.stop()
            if self._stopped.is_set():
                return
            self._observer.happened("worker.lost", process=child.process.pid, code=code)
            await self._pause(pauses.next())

    def _one_more_ready(self) -> None:
        self._unready -= 1
        if self.ready:
            notify("READY=1")

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    async def _reload_for_ever(self, reloads: "asyncio.Queue[None]") -> None:
        while True:
            await reloads.get()
            for slot in range(len(self._columns)):
                await self._replace(slot)

    async def _replace(self, slot: int) -> None:
        """Put a new child beside the old one and let the old one go once the new one is ready."""
        old = self._children[slot]
        new = await self._start(slot)
        self._leaving.append(new)  # unless it stays
        ready = old is not None and await new.ready()
        # Meanwhile the old one may have died and been replaced, or we are to stop.
        if ready and self._children[slot] is old is not None and not self._stopped.is_set():
            self._children[slot], self._leaving[-1] = new, old
            old.stop()
        else:
            new.stop()
            await new.process.wait()
            self._observer.happened("worker.kept", code=new.process.returncode or 0)
        for child in [child for child in self._leaving if child.process.returncode is not None]:
            child.line.close()
            self._leaving.remove(child)

    async def _start(self, slot: int) -> Child:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the library's own argument
        descriptors = [theirs.fileno(), *(sock.fileno() for sock in self._columns[slot])]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                pass_fds=descriptors,
                env={**self._environment, HANDED_OVER: ",".join(map(str, (slot, *descriptors)))},
            )
        return Child(process=process, line=ours)


def notify(state: str) -> None:
    """Tell systemd our state, where it wants to know (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode("ascii"), "\0" + path[1:] if path.startswith("@") else path)
