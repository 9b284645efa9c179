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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spamd.clock import WallClock
from spamd.errors import ConfigError, StorageUnavailable
from spamd.feedback.learn import Teacher
from spamd.feedback.report_address import ReportAddress
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, extract
from spamd.observe.log import LogObserver
from spamd.observe.metrics import Metrics
from spamd.ports import Job, Observer, Service
from spamd.relay.listener import Relay
from spamd.sample import Label
from spamd.scanning import Scanner, ScanningInspector
from spamd.settings import Settings
from spamd.storage.engine import volume_warning
from spamd.storage.lookup import Ahead
from spamd.storage.store import Store
from spamd.training.trainer import Trainer

if TYPE_CHECKING:
    from spamd.feedback.service import Feedback

WRITE_SCANS_S = 1.0
"""Between two writes of the scans that were noted: a person can't move a mail much sooner."""

FIRST = (
    b"From: a@first.example\nContent-Type: text/html\n\n<p>M\xfcll <a href='http://first.example/'>"
)
"""Read while the model is still being read, and scanned before the doors open: tables that are made
on first use must not delay a client."""

LAST_WRITE_S = 5.0
"""At the end the last second's scans are written within this, or lost: who stops a daemon whose
database is locked does not want to wait for the lock."""

EXPIRE_S = 3600.0
"""Between two looks for scans that are too old."""


class Storage:
    """The open store, and what teaches: the ground that everything else stands on."""

    def __init__(
        self, settings: Settings, clock: WallClock, observer: Observer, ahead: Ahead | None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._ahead = ahead
        self.store: Store
        self.secret: bytes
        self.trainer: Trainer

    async def start(self) -> None:
        """Open the store and read the model.

        Raises:
            ConfigError: the setting can't be right.
            StorageUnavailable: the database does not answer.
        """
        self.store = await Store.open(
            self._settings.database, schema=SCHEMA, bayes=self._settings.bayes, clock=self._clock
        )
        path = self._settings.database.path
        if path is not None and (warning := volume_warning(path)):
            self._observer.happened("storage.unsafe", warning=warning)
        if self._ahead is not None:
            await self.store.begin_with(self._ahead)
        await self.store.refresh()
        self.secret = await self.store.secret()
        self.trainer = Trainer(
            unit_of_work=self.store.unit_of_work,
            clock=self._clock,
            options=self._settings.training,
            observer=self._observer,
        )

    async def stop(self) -> None:
        """Write what waits, if that can be done soon, and close."""
        try:
            await self._write_scans(min(LAST_WRITE_S, self._settings.relay.drain_s))
        except StorageUnavailable as error:
            self._observer.failed("scans.lost", error, scans=self.store.scans.waiting)
        await self.store.close()

    async def _write_scans(self, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self.store.scans.flush()
        except TimeoutError as error:
            raise StorageUnavailable(f"the database was busy for {within_s:g} s") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A job that asks something of the database again and again, and waits while it is away."""

    name: str
    every_s: float
    work: Callable[[], Awaitable[object]]
    observer: Observer

    async def run(self) -> None:
        """Work until cancelled; the first failure of a row is told, and its end."""
        away = False
        while True:
            await asyncio.sleep(self.every_s)
            try:
                await self.work()
            except StorageUnavailable as error:
                if not away:
                    self.observer.failed("storage.lost", error, job=self.name)
                away = True
            else:
                if away:
                    self.observer.happened("storage.regained", job=self.name)
                away = False


class Watching:
    """The job of the feedback watchers."""

    name = "feedback"

    def __init__(self, application: "Application") -> None:
        self._application = application

    async def run(self) -> None:
        """Watch all accounts while the lease is ours."""
        await self._application.feedback().run()


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

    async def stop(self) -> None:
        """Take no more mail and finish what is in flight."""
        if self._relay is not None:
            await self._relay.stop()

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
            raise ConfigError(f"metrics.listen: {error.strerror or error}") from error

    async def stop(self) -> None:
        """Close the endpoint."""
        await self._stack.aclose()

    def _messages(self, label: Label) -> float:
        totals = self._storage.store.snapshot.model.totals
        return totals.spam if label is Label.SPAM else totals.ham

    def _tokens(self) -> float:
        return len(self._storage.store.snapshot.model.tokens)


class Application:
    """Everything one process runs (`ports.Application`)."""

    def __init__(
        self, settings: Settings, sockets: Sequence[socket.socket], worker: int, ahead: Ahead | None
    ) -> None:
        self._settings = settings
        self._clock = WallClock()
        metrics = Metrics(settings.metrics)
        self._log = LogObserver(settings.log, metrics, self._clock, fields={"worker": worker})
        self._log.capture_libraries()
        self._storage = Storage(settings, self._clock, self.observer, ahead)
        self._door = RelayDoor(self, sockets)
        self._extract(FIRST)
        self.ground: Sequence[Service] = (self._storage,)
        self.doors: Sequence[Service] = (self._door, MetricsDoor(metrics, self._storage, worker))

    @property
    def observer(self) -> Observer:
        """Return whom to tell of starts, stops and faults."""
        return self._log

    @property
    def jobs(self) -> Sequence[Job]:
        """Return what runs beside; asked for once the ground stands."""
        store, options = self._storage.store, self._settings.database
        watching = (Watching(self),) if self._settings.feedback.accounts else ()
        return (
            self._periodic("corpus", options.refresh_s, store.refresh),
            self._periodic("scans", WRITE_SCANS_S, store.scans.flush),
            self._periodic(
                "expiry", EXPIRE_S, lambda: store.scans.expire(options.scans_days, dry_run=False)
            ),
            *watching,
        )

    def reload(self) -> None:
        """Read certificates again.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        self._door.reload()

    def relay(self, sockets: Sequence[socket.socket]) -> Relay:
        """Return the relay with its inspector."""
        settings, store = self._settings, self._storage.store
        scanner = Scanner(
            model=lambda: store.snapshot.model,
            decision=settings.decision,
            tokenizer=settings.tokenizer,
            clock=self._clock,
            key=self._storage.secret,
            random=os.urandom,
        )
        scanner.scan(FIRST)
        return Relay(
            options=settings.relay,
            next_hop=settings.next_hop,
            tls=settings.tls,
            inspector=ScanningInspector(scanner, self._clock, store.scans),
            observer=self.observer,
            clock=self._clock,
            desk=ReportAddress(settings.feedback, store.scans, self._teacher(), self._extract),
            sockets=sockets,
        )

    def feedback(self) -> "Feedback":
        """Return the watchers of all accounts."""
        # Not before there is an account: loading them takes as long as loading the relay.
        from spamd.feedback.service import Feedback, Surroundings  # noqa: PLC0415
        from spamd.feedback.watch import Memory  # noqa: PLC0415

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
        )

    def _teacher(self) -> Teacher:
        store = self._storage.store
        return Teacher(self._storage.trainer, store.held, self._clock, self._settings.feedback)

    def _extract(self, content: bytes) -> Features:
        return extract(content, self._settings.tokenizer)

    def _periodic(self, name: str, every_s: float, work: Callable[[], Awaitable[object]]) -> Job:
        return Periodic(name=name, every_s=every_s, work=work, observer=self.observer)


def build(
    settings: Settings,
    sockets: Sequence[socket.socket],
    worker: int,
    ahead: Ahead | None,
) -> Application:
    """Return the application of one process; nothing is opened yet.

    Args:
        settings: of all rooms.
        sockets: listening ones, one for each of `relay.listeners`.
        worker: its number among equal workers, from 0.
        ahead: the model, when somebody reads it already.
    """
    return Application(settings, sockets, worker, ahead)
