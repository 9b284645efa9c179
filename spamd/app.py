"""Builds every object of a process, once, and says in which order they start.

    ground   the store: open, its model in memory
    jobs     follow the corpus, write scans down, expire old ones, watch folders
    doors    the relay, the metrics endpoint

Only here do the rooms meet: the relay gets an inspector and never learns that there is a database;
feedback gets a trainer and never learns that there is a relay.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from math import nan
from typing import TYPE_CHECKING

from spamd.clock import WallClock
from spamd.errors import ConfigError
from spamd.extraction.extractor import Extractor
from spamd.feedback.report_address import ReportAddress
from spamd.feedback.teacher import Teacher
from spamd.ground import NoVerdicts, Periodic, Storage, WhenOpen
from spamd.message.features import Features, extract
from spamd.observe.lag import LoopLag
from spamd.observe.log import LogObserver
from spamd.observe.metrics import Metrics
from spamd.ports import Job, Service
from spamd.relay.listener import Relay
from spamd.relay.options import OnOverload
from spamd.relay.outbound.open_relay import OpenRelayCheck
from spamd.relay.ports import Inspector, ReportHandler
from spamd.relay.sockets import unbound
from spamd.sample import Label
from spamd.scanning import Scanner, ScanningInspector
from spamd.settings import Settings
from spamd.storage.corpus.lookup import Ahead

if TYPE_CHECKING:
    from spamd.feedback.service import Feedback

WRITE_SCANS_S = 1.0
"""Between two writes of the scans that were noted: a person can't move a mail much sooner."""

FIRST = (
    b"From: a@first.example\nContent-Type: text/html\n\n<p>M\xfcll <a href='http://first.example/'>"
)
"""Read while the model is still being read, and scanned before the doors open: tables that are made
on first use must not delay a client."""

EXPIRE_S = 3600.0
"""Between two looks for what is too old."""

AT_ONCE = ("log", "feedback")
"""Sections that a reload changes; for the others the log names a restart."""


class Watching:
    """The job of the feedback watchers."""

    name = "feedback"

    def __init__(self, application: "Application") -> None:
        self._application = application
        self._anew = asyncio.Event()

    async def run(self) -> None:
        """Watch all accounts while the lease is ours."""
        while True:
            self._anew.clear()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch())
                await self._anew.wait()
                watching.cancel()

    def begin_anew(self) -> None:
        """Watch by other settings."""
        self._anew.set()

    async def _watch(self) -> None:
        if self._application.watches:
            await self._application.feedback().run()


class Opening:
    """The job that opens a store that did not open at the start, and then lets mail be judged."""

    name = "opening"

    def __init__(self, storage: Storage, door: "RelayDoor") -> None:
        self._storage = storage
        self._door = door

    async def run(self) -> None:
        """Work until the store is open."""
        await self._storage.wait()
        self._door.judge()


class RelayDoor:
    """The relay, built when the ground stands."""

    def __init__(self, application: "Application", sockets: Sequence[socket.socket]) -> None:
        self._application = application
        self._sockets = sockets
        self._relay: Relay | None = None

    async def start(self) -> None:
        """Take mail.

        Raises:
            ConfigError: a setting of the relay, the next hop or TLS can't be used.
        """
        self._relay = self._application.relay(self._sockets)
        await self._relay.start()

    def judge(self) -> None:
        """Judge mail from now on: the store is open."""
        if self._relay is not None:
            self._relay.judge_by(*self._application.judges())

    async def stop(self) -> None:
        """Take no more mail and finish what is in flight."""
        if self._relay is not None:
            await self._relay.stop()
        await self._application.extractor.close()

    def reload(self) -> None:
        """Read certificates again."""
        if self._relay is not None:
            self._relay.reload_tls()


class MetricsDoor:
    """The HTTP endpoint of metrics and health."""

    def __init__(self, metrics: Metrics, storage: Storage, worker: int) -> None:
        self._metrics = metrics
        self._storage = storage
        self._worker = worker
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Answer Prometheus.

        Raises:
            ConfigError: the address is taken or not ours.
        """
        self._metrics.follow_corpus(self._messages, self._tokens)
        try:
            await self._stack.enter_async_context(self._metrics.served(self._worker))
        except OSError as error:
            raise ConfigError(f"metrics.listen: {unbound(error)}") from error

    async def stop(self) -> None:
        """Close the endpoint."""
        await self._stack.aclose()

    def _messages(self, label: Label) -> float:
        if not self._storage.opened.is_set():
            return nan
        totals = self._storage.store.snapshot.model.totals
        return totals.spam if label is Label.SPAM else totals.ham

    def _tokens(self) -> float:
        if not self._storage.opened.is_set():
            return nan
        return len(self._storage.store.snapshot.model.tokens)


class Application:
    """Everything one process runs (`ports.Application`)."""

    def __init__(
        self,
        settings: Settings,
        sockets: Sequence[socket.socket],
        worker: int,
        ahead: Ahead | None,
        read_again: Callable[[], Settings],
    ) -> None:
        self._settings = settings
        self._read_again = read_again
        self._watching = Watching(self)
        self._clock = WallClock()
        self._metrics = metrics = Metrics(settings.metrics)
        self._log = LogObserver(settings.log, metrics, self._clock, fields={"worker": worker})
        self._log.capture_libraries()
        self._storage = Storage(settings, self._clock, self.observer, ahead)
        self._door = RelayDoor(self, sockets)
        self._first = worker == 0
        third_s = settings.relay.inspect_timeout_s / 3  # the last one is for its start
        self.extractor = Extractor(settings.tokenizer, wait_s=third_s, work_s=third_s)
        self._extract(FIRST)
        self.ground: Sequence[Service] = (self._storage,)
        self.doors: Sequence[Service] = (self._door, MetricsDoor(metrics, self._storage, worker))

    @property
    def observer(self) -> LogObserver:
        """Return whom to tell of starts, stops and faults."""
        return self._log

    @property
    def jobs(self) -> Sequence[Job]:
        """Return what runs beside."""
        storage, options = self._storage, self._settings.database
        work: list[tuple[str, Callable[[], Job]]] = [
            ("corpus", lambda: self._periodic("corpus", options.refresh_s, storage.store.refresh)),
            (
                "scans",
                lambda: self._periodic("scans", WRITE_SCANS_S, storage.store.scans.flush),
            ),
            ("expiry", lambda: self._periodic("expiry", EXPIRE_S, self._expire)),
            ("feedback", lambda: self._watching),
        ]
        jobs: list[Job] = [Opening(storage, self._door), LoopLag(self._metrics)]
        jobs += [WhenOpen(name=name, storage=storage, made=made) for name, made in work]
        if self._first:
            jobs.append(
                OpenRelayCheck(self._settings.relay, self._settings.next_hop, self.observer)
            )
        return jobs

    @property
    def watches(self) -> bool:
        """Return whether there are accounts to watch."""
        return bool(self._settings.feedback.accounts)

    async def _expire(self) -> None:
        """Let go of what is too old, and say how much that was."""
        gone = await self._storage.store.expire(self._settings.ages, dry_run=False)
        if gone.total:
            self.observer.happened("storage.expired", **asdict(gone))

    def reload(self) -> None:
        """Read certificates and settings again; of these the log and feedback change at once.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        wanted, now = self._read_again(), self._settings
        self._door.reload()
        changed = [
            name for name in Settings.model_fields if getattr(wanted, name) != getattr(now, name)
        ]
        self._settings = now.model_copy(update={name: getattr(wanted, name) for name in AT_ONCE})
        if "log" in changed:
            self._log.follow(self._settings.log)
            self._log.capture_libraries()
        if "feedback" in changed:
            if self._storage.opened.is_set():
                self._door.judge()
            self._watching.begin_anew()
        self.observer.happened(
            "settings.reloaded",
            changed=", ".join(name for name in changed if name in AT_ONCE) or "nothing",
            restart_for=", ".join(name for name in changed if name not in AT_ONCE) or "nothing",
        )

    def relay(self, sockets: Sequence[socket.socket]) -> Relay:
        """Return the relay with its inspector."""
        settings = self._settings
        inspector, reports = self.judges()
        return Relay(
            options=settings.relay,
            next_hop=settings.next_hop,
            tls=settings.tls,
            inspector=inspector,
            observer=self.observer,
            clock=self._clock,
            report_handler=reports,
            sockets=sockets,
        )

    def judges(self) -> tuple[Inspector, ReportHandler]:
        """Return who judges mail and who takes reports, as far as the store is open."""
        settings, storage = self._settings, self._storage
        opened = storage.opened.is_set()
        scanner = Scanner(
            model=lambda: storage.store.snapshot.model,
            decision=settings.decision,
            tokenizer=settings.tokenizer,
            clock=self._clock,
            key=storage.secret if opened else os.urandom(16),
            random=os.urandom,
        )
        if not opened:
            stand_in = NoVerdicts(settings, scanner)
            return stand_in, stand_in
        scanner.scan(FIRST)
        scans = storage.store.scans
        limits = settings.tokenizer.limits
        reports = ReportAddress(settings.feedback, scans, self._teacher(), self._extract, limits)
        inspector = ScanningInspector(
            scanner,
            self.extractor,
            self._clock,
            scans,
            self.observer,
            defer=settings.relay.on_overload is OnOverload.DEFER,
        )
        return inspector, reports

    def feedback(self) -> "Feedback":
        """Return the watchers of all accounts."""
        # Not before there is an account: loading them takes as long as loading the relay.
        from spamd.feedback.service import Feedback, Surroundings  # noqa: PLC0415
        from spamd.feedback.watching.watcher import Memory  # noqa: PLC0415

        store = self._storage.store
        memory = Memory(
            mailboxes=store.mailboxes,
            history=store.scans,
            teacher=self._teacher(),
            extract=self._extract,
        )
        return Feedback(
            self._settings.feedback,
            Surroundings(memory=memory, clock=self._clock, observer=self.observer),
            store.leases,
            f"{socket.gethostname()}:{os.getpid()}",
            store.accounts,
        )

    def _teacher(self) -> Teacher:
        store = self._storage.store
        trainer, options = self._storage.trainer, self._settings.feedback
        return Teacher(trainer, store.held, self._clock, options, self.observer)

    def _extract(self, content: bytes) -> Features:
        return extract(content, self._settings.tokenizer)

    def _periodic(self, name: str, every_s: float, work: Callable[[], Awaitable[object]]) -> Job:
        return Periodic(name=name, every_s=every_s, work=work, observer=self.observer)


def build(
    settings: Settings,
    sockets: Sequence[socket.socket],
    worker: int,
    ahead: Ahead | None,
    read_again: Callable[[], Settings],
) -> Application:
    """Return the application of one process; nothing is opened yet.

    Args:
        settings: of all rooms.
        sockets: listening ones, one for each of `relay.listeners`.
        worker: its number among equal workers, from 0.
        ahead: the model, when somebody reads it already.
        read_again: returns the settings as they are by then.
    """
    return Application(settings, sockets, worker, ahead, read_again)
