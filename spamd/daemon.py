"""Processes, signals, start and stop: what `spamd serve` is when it runs.

One worker runs in this process. Several are equal child processes, each started anew from the same
command line, each with listening sockets of its own on the same ports; this process only holds the
sockets and keeps the children alive:

    SIGTERM, SIGINT   every worker stops taking mail, finishes what is in flight, ends; exit code 0
    SIGHUP            one worker reads its certificates and settings again and says in the log what
                      changed and what needs a restart; several are replaced one by one, so all
                      settings change, and no connection is lost; the addresses we listen on and
                      the number of workers stay those of the start
    a worker crashes  another takes its place and its sockets (`supervisor.py`)
    we are killed     the workers notice and stop by themselves

A mistake in the settings stops the start with `ConfigError`, or with exit code 78 of a child that
said so itself. READY=1 goes to systemd once all sockets listen and all workers are ready,
RELOADING=1 and READY=1 around a reload, STOPPING=1 when the end begins, WATCHDOG=1 while nothing
hangs, where it wants to know.
"""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from spamd import resources
from spamd.errors import ConfigError
from spamd.loading import loading
from spamd.message.facts import SCHEMA
from spamd.network.sockets import open_sockets, require
from spamd.observe.cells import Board
from spamd.settings import Settings
from spamd.settings.files import NO_LISTENER
from spamd.storage.corpus.sqlite_lookup import Lookup
from spamd.supervisor import (
    FROM_SUPERVISOR,
    READY,
    Supervisor,
    Watchdog,
    notify,
    ready,
    reloading,
)

if TYPE_CHECKING:
    from spamd.ports import Observer


class Application(Protocol):
    """Everything one process runs (`app.Application`)."""

    @property
    def observer(self) -> "Observer":
        """Return whom to tell of starts, stops and faults."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """Take mail while the context lasts.

        Raises:
            ConfigError: a setting makes it impossible.
        """
        ...

    def reload(self) -> None:
        """Read certificates and settings again.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        ...


def serve(settings: Settings, read_from: str, read_again: Callable[[], Settings]) -> int:
    """Run the daemon until it is told to stop; return the exit code.

    Args:
        settings: of all packages.
        read_from: the settings file, for the log.
        read_again: returns the settings as they are by then.

    Raises:
        ConfigError: the start is impossible; the text begins with the key.
    """
    raise_file_limit()
    said = {"settings": read_from}
    if page := settings.web.page:
        said["page"] = page
    if FROM_SUPERVISOR in os.environ:
        return run_as_worker(partial(_rebuilt, settings, read_again), said)
    workers = settings.relay.workers or len(os.sched_getaffinity(0))
    if not settings.listeners:
        raise ConfigError(f"relay.listen: {NO_LISTENER}")
    columns = open_sockets(settings.listeners, workers)
    if workers == 1:
        alone = Place(worker=0, board=Board(), region=0)
        build = partial(_built, settings, read_again, columns[0], alone)
        return _run(_work(build, None, said))
    _upgrade(settings)
    return _run(_supervisor(settings, columns).run())


def _upgrade(settings: Settings) -> None:
    """Bring a SQLite file to this version's schema before any worker opens it.

    In a process of its own, as it takes modules that this one never needs again. What goes wrong
    there goes wrong in each worker too, which says it.
    """
    database = settings.database
    if database.path is None or Lookup.of(database, schema=SCHEMA, bayes=settings.bayes):
        return
    url = f"database.url={database.url}"
    command = [sys.executable, "-P", "-m", "spamd", "--set", url, "database", "upgrade"]
    environment = {**os.environ, "SPAMD_CONFIG": os.devnull}
    subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - ours


def raise_file_limit() -> None:
    """Let the process have as many files open as it may: 1,024 are 300 sessions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # "unlimited" where the kernel has another limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _supervisor(settings: Settings, columns: Sequence[Sequence[socket.socket]]) -> "Supervisor":
    from spamd.observe.metrics import Metrics  # noqa: PLC0415 - as `resources` does

    command = [sys.executable, "-P", "-m", "spamd", *sys.argv[1:]]
    board = Board.shared()
    counts = Metrics(board, board.take())
    observer = resources.log_observer(settings, counts, worker="supervisor")
    return Supervisor(command, columns, observer, board=board)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A worker's place among equal workers, from 0, and where it counts."""

    worker: int
    board: Board
    region: int


def _rebuilt(
    settings: Settings,
    read_again: Callable[[], Settings],
    sockets: Sequence[socket.socket],
    place: Place,
) -> Application:
    require(settings.listeners, sockets)
    return _built(settings, read_again, sockets, place)


def _built(
    settings: Settings,
    read_again: Callable[[], Settings],
    sockets: Sequence[socket.socket],
    place: Place,
) -> Application:
    lookup = Lookup.of(settings.database, schema=SCHEMA, bayes=settings.bayes)
    preload = None if lookup is None else lookup.preload()
    with loading():
        from spamd.app import Application  # noqa: PLC0415 - only workers need it, it takes a while
        from spamd.observe.metrics import Metrics  # noqa: PLC0415

    metrics = Metrics(place.board, place.region)
    return Application(settings, sockets, place.worker, metrics, preload, read_again)


def run_as_worker(
    build_worker: Callable[[Sequence[socket.socket], Place], Application],
    said: Mapping[str, str],
) -> int:
    """Run what a supervisor started us for, on the sockets it passed to us.

    `said`: what the log tells of the worker's start.
    """
    worker, memory, region, line, *descriptors = (
        int(number) for number in os.environ.pop(FROM_SUPERVISOR).split(",")
    )
    sockets = [socket.socket(fileno=number) for number in descriptors]
    place = Place(worker=worker, board=Board(memory), region=region)
    build = partial(build_worker, sockets, place)
    return _run(_work(build, socket.socket(fileno=line), said))


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


async def _work(
    build: Callable[[], Application], line: socket.socket | None, said: Mapping[str, str]
) -> int:
    """Run one worker; `line` leads to its supervisor, if it has one."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    application = build()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    alone = line is None
    loop.add_signal_handler(signal.SIGHUP, _once(loop, lambda: _reload(application, alone=alone)))
    watchdog = Watchdog(loop) if alone else None
    try:
        async with application.running():
            application.observer.happened("worker.started", process=os.getpid(), **said)
            if line is None:
                notify(ready(1))
            else:
                line.send(READY)
                loop.add_reader(line, stopped.set)  # its end closes when the supervisor dies
            await stopped.wait()
            if line is None:
                notify("STOPPING=1")
    finally:
        if line is not None:
            loop.remove_reader(line)
            line.close()
        if watchdog is not None:
            watchdog.stop()
    application.observer.happened("worker.stopped", process=os.getpid())
    return 0


def _reload(application: Application, *, alone: bool) -> None:
    if alone:
        notify(reloading())
    try:
        application.reload()
    except ConfigError as error:
        application.observer.failed("reload.failed", error)
    if alone:
        notify(ready(1))


def _once(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> Callable[[], None]:
    """Return what has `action` done once for all requests that come together."""
    due = False

    def request() -> None:
        nonlocal due
        if not due:
            due = True
            loop.call_soon(act)

    def act() -> None:
        nonlocal due
        due = False
        action()

    return request
