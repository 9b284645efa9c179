"""The store of the daemon: open at the start, or waited for.

A database that does not answer at the start stops nothing: the log says `storage.lost` once, mail
is taken and follows `relay.on_fault` (it goes on unscanned, or is deferred), and once the database
answers all begins as if it had just been started. What can't get better by waiting (a wrong
password, another version's tables) stops the start.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from spamd.bayes.evidence import Explanation
from spamd.errors import ConfigError, StorageUnavailable
from spamd.message.envelope import Envelope
from spamd.ports import Clock, Observer
from spamd.report import ScanReport, Verdicts
from spamd.resources import new_store
from spamd.scanning import Scanner
from spamd.settings import Settings
from spamd.storage.corpus.sqlite_lookup import Preload
from spamd.storage.engine import volume_warning
from spamd.storage.store import Store

LAST_WRITE_S = 5.0
"""At the end the last second's scans are written within this, or lost: who stops a daemon whose
database is locked does not want to wait for the lock."""

OPEN_S = 10.0
"""A server has this long to answer when it is opened; then mail is taken without it."""

REOPEN_S = 1.0
"""Between two tries to open a database that did not answer at the start."""

START, FOLLOW = "start", "corpus"
"""What opening is called in the log, and the job that asks the database all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """The store with its model in memory; `secret` is the key of our message ids' check."""

    store: Store
    secret: bytes


class StoreOpening:
    """Opens the store, once; whoever needs it waits for `ready`.

    Args:
        settings: of all packages.
        observer: is told when the database is away, and when it is back.
        preload: the model, when somebody reads it already.
        clock: for the moments.
    """

    def __init__(
        self, settings: Settings, observer: Observer, preload: Preload | None, clock: Clock
    ) -> None:
        self._clock = clock
        self._away: dict[str, datetime] = {}
        self._settings = settings
        self._observer = observer
        self._preload = preload
        self._opened: asyncio.Future[OpenStore] = asyncio.get_running_loop().create_future()

    @property
    def opened(self) -> OpenStore | None:
        """Return the open store, None while it is waited for."""
        return self._opened.result() if self._opened.done() else None

    @property
    def away_since(self) -> datetime | None:
        """Return since when the database is away; None while it answers, as of some seconds ago."""
        return self._away.get(START) or self._away.get(FOLLOW)

    def lost(self, job: str, error: Exception) -> None:
        """Take note that a job does not reach the database; the first time is told."""
        if job not in self._away:
            self._observer.failed("storage.lost", error, job=job)
            self._away[job] = self._clock.now()

    def regained(self, job: str) -> None:
        """Take note that a job has reached the database, and tell it if it had not before."""
        if self._away.pop(job, None) is not None:
            self._observer.happened("storage.regained", job=job)

    async def ready(self) -> Store:
        """Wait until the store is open."""
        return (await asyncio.shield(self._opened)).store

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[None]:
        """Open the store, or say that the database does not answer; close it at the end.

        Raises:
            ConfigError: the setting can't be right.
        """
        try:
            await self._open()
        except StorageUnavailable as error:
            self.lost(START, error)
        try:
            yield
        finally:
            if (opened := self.opened) is not None:
                await self._close(opened.store)

    async def retried(self) -> None:
        """Try until the store is open; tell of each new reason why it isn't."""
        told = ""
        while self.opened is None:
            await asyncio.sleep(REOPEN_S)
            try:
                await self._open()
            except StorageUnavailable:
                continue  # told at the start
            except ConfigError as error:  # it answers now, and a person must act: no restart needed
                if str(error) != told:
                    self._observer.failed("storage.lost", error, job=START)
                told = str(error)
            else:
                self.regained(START)

    async def _open(self) -> None:
        path = self._settings.database.path
        try:
            # A file may be brought to another schema first, which takes as long as it takes.
            async with asyncio.timeout(None if path else OPEN_S):
                store = await new_store(self._settings, shared=True)
        except TimeoutError as error:
            raise StorageUnavailable(f"the database did not answer in {OPEN_S:g} s") from error
        try:
            if self._preload is not None:
                await store.begin_with(self._preload)
            await store.refresh()
            secret = await store.secret()
        except BaseException:
            await store.close()
            raise
        if path is not None and (warning := volume_warning(path)):
            self._observer.happened("storage.unsafe", warning=warning)
        self._opened.set_result(OpenStore(store=store, secret=secret))

    async def _close(self, store: Store) -> None:
        """Write what waits, if that can be done soon, and close."""
        within_s = min(LAST_WRITE_S, self._settings.relay.drain_s)
        try:
            async with asyncio.timeout(within_s):
                await store.scans.flush()
        except (StorageUnavailable, TimeoutError) as error:
            fault = error
            if isinstance(error, TimeoutError):
                fault = StorageUnavailable(f"the database was busy for {within_s:g} s")
                fault.__cause__ = error
            self._observer.failed("scans.lost", fault, scans=store.scans.waiting)
        await store.close()


class NoVerdicts:
    """Stands in for the inspector until the store is open."""

    def __init__(self, scanner: Scanner) -> None:
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
    ) -> Verdicts:
        """Raise StorageUnavailable; `relay.on_fault` says what follows."""
        raise StorageUnavailable("the database has not answered since the start")

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        return self._scanner.unscanned(reason, size_bytes)

    def explain(self, report: ScanReport, clues: int) -> Explanation | None:  # noqa: ARG002 - the port
        """Return nothing: no message was judged."""
        return None
