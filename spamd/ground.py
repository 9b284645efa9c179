"""The ground of the daemon: the open store, the work that is done on it, and how both begin.

A database that does not answer at the start stops nothing: the log says `storage.lost` once, mail
is taken and follows `relay.on_fault` (it goes on unscanned, or is deferred), and once the database
answers all begins as if it had just been started. What can't get better by waiting (a wrong
password, another version's tables) stops the start.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from spamd.clock import WallClock
from spamd.errors import ConfigError, StorageUnavailable
from spamd.feedback.report_address import reported_as
from spamd.message.envelope import Envelope
from spamd.message.facts import SCHEMA
from spamd.observe.log import LogObserver
from spamd.ports import Job
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.scanning import Scanner
from spamd.settings import Settings
from spamd.storage.corpus.lookup import Ahead
from spamd.storage.engine import volume_warning
from spamd.storage.store import Store
from spamd.training.trainer import Trainer

LAST_WRITE_S = 5.0
"""At the end the last second's scans are written within this, or lost: who stops a daemon whose
database is locked does not want to wait for the lock."""

OPEN_S = 10.0
"""A server has this long to answer when it is opened; then mail is taken without it."""

REOPEN_S = 1.0
"""Between two tries to open a database that did not answer at the start."""


class Storage:
    """The open store, and what teaches: the ground that everything else stands on.

    A database that does not answer at the start is waited for by the job `wait`; until `opened` is
    set there is no store, and mail is taken as `relay.on_fault` says.
    """

    def __init__(
        self, settings: Settings, clock: WallClock, observer: LogObserver, ahead: Ahead | None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._ahead = ahead
        self.opened = asyncio.Event()
        self.store: Store
        self.secret: bytes
        self.trainer: Trainer

    async def start(self) -> None:
        """Open the store and read the model, or say that the database does not answer.

        Raises:
            ConfigError: the setting can't be right.
        """
        try:
            await self._open()
        except StorageUnavailable as error:
            self._observer.failed("storage.lost", error, job="start")

    async def wait(self) -> None:
        """Try until the store is open; tell of each new reason why it isn't."""
        told = ""
        while not self.opened.is_set():
            await asyncio.sleep(REOPEN_S)
            try:
                await self._open()
            except StorageUnavailable:
                continue  # told at the start
            except ConfigError as error:  # it answers now, and a person must act: no restart needed
                if str(error) != told:
                    self._observer.failed("storage.lost", error, job="start")
                told = str(error)
            else:
                self._observer.happened("storage.regained", job="start")

    async def _open(self) -> None:
        options = self._settings.database
        try:
            # A file may be brought to another schema first, which takes as long as it takes.
            async with asyncio.timeout(None if options.path else OPEN_S):
                store = await Store.open(
                    options, schema=SCHEMA, bayes=self._settings.bayes, clock=self._clock
                )
        except TimeoutError as error:
            raise StorageUnavailable(f"the database did not answer in {OPEN_S:g} s") from error
        try:
            if self._ahead is not None:
                await store.begin_with(self._ahead)
            await store.refresh()
            self.secret = await store.secret()
        except BaseException:
            await store.close()
            raise
        if options.path is not None and (warning := volume_warning(options.path)):
            self._observer.happened("storage.unsafe", warning=warning)
        self.store = store
        self.trainer = Trainer(
            unit_of_work=store.unit_of_work,
            clock=self._clock,
            options=self._settings.training,
            observer=self._observer,
        )
        self.opened.set()

    async def stop(self) -> None:
        """Write what waits, if that can be done soon, and close."""
        if not self.opened.is_set():
            return
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
    observer: LogObserver

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WhenOpen:
    """A job that needs the store, and begins when it is open."""

    name: str
    storage: Storage
    made: Callable[[], Job]

    async def run(self) -> None:
        """Wait for the store, then work for ever."""
        await self.storage.opened.wait()
        await self.made().run()


class NoVerdicts:
    """Stands in as inspector and report handler of the relay until the store is open."""

    def __init__(self, settings: Settings, scanner: Scanner) -> None:
        self._reported = reported_as(settings.feedback)
        self._scanner = scanner

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at."""
        return self._scanner.reads_bytes

    async def inspect(
        self,
        read: Callable[[], bytes],  # noqa: ARG002 - the port
        size_bytes: int,  # noqa: ARG002 - the port
        envelope: Envelope,  # noqa: ARG002 - the port
        rest: Callable[[], bytes],  # noqa: ARG002 - the port
    ) -> ScanReport:
        """Raise StorageUnavailable; `relay.on_fault` says what follows."""
        raise StorageUnavailable("the database has not answered since the start")

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        return self._scanner.unscanned(reason, size_bytes)

    def label_for(self, recipient: bytes) -> Label | None:
        """Return what mail to this address will teach."""
        return self._reported(recipient)

    async def take(self, content: bytes, label: Label, actor: str) -> str:  # noqa: ARG002 - the port
        """Raise StorageUnavailable; the client comes again."""
        raise StorageUnavailable("the database has not answered since the start")
