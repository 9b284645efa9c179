"""How one process of the daemon is put together: `Application`, read from top to bottom.

    the store        open, its model in memory; or waited for (`store_opening.py`)
    the jobs         follow the corpus, write scans down, expire old ones, watch mailboxes
    the listeners    the relay, milter, SPAMC, HTTP

They begin in this order and end in the reverse one: nobody comes in before all stands, and the last
message still finds everything in place. Only here do the packages meet: the relay gets an inspector
and never learns that there is a database; feedback gets a trainer and never learns that there is a
relay. What the commands need too is built by `resources.py`.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from math import nan
from typing import TYPE_CHECKING

from spamd import resources
from spamd.admin.measured import note
from spamd.bayes.decision import thresholds
from spamd.bayes.model import Model
from spamd.clock import WallClock
from spamd.errors import StorageUnavailable
from spamd.extraction.extractor import Extractor
from spamd.feedback.message_teacher import MessageTeacher
from spamd.feedback.report_address import ReportAddress
from spamd.health import DaemonHealth
from spamd.jobs import Job, Once, Periodic, RunningListener, running
from spamd.listeners.milter.listener import milter_listener
from spamd.listeners.spamc.listener import spamc_listener
from spamd.network.shared import Shared
from spamd.observe.error_rates import error_rates, span
from spamd.observe.lag import LoopLag
from spamd.observe.log import queue_id
from spamd.observe.metrics import Metrics
from spamd.pruning import prune_daily
from spamd.relay.listener import Relay
from spamd.relay.options import OnOverload
from spamd.relay.outbound.open_relay import OpenRelayCheck
from spamd.sample import Label
from spamd.scanning import ScanningInspector
from spamd.settings import Settings
from spamd.site_opening import SiteOpening
from spamd.storage.corpus.sqlite_lookup import Preload
from spamd.storage.maintenance.expiry import expire
from spamd.storage.store import Store
from spamd.store_opening import FOLLOW, NoVerdicts, StoreOpening

if TYPE_CHECKING:
    from spamd.listeners.web.server import HttpListener
    from spamd.storage.senders.outgoing import OutgoingMail
    from spamd.users.directory import Directory

REFRESH_PAUSE_S = 0.05
"""Between two refreshes, however many lessons come: each takes some milliseconds."""

WRITE_SCANS_S = 1.0
"""Between two writes of the scans that were noted: a person can't move a mail much sooner."""

FIRST = (
    b"From: a@first.example\nContent-Type: text/html\n\n"
    b"<p>M\xfcll p&#1072;y&shy;pal <a href='http://first.example/'>"
)
"""Read while the model is still being read, and scanned before the listeners open: tables that are
made on first use must not delay a client."""

FOLLOW_TAKEN_S = 5.0
"""Between two looks at what became of messages at other workers: nobody comes again sooner, but to
the next address of the same name, and then the database is asked."""

WRITE_OUTGOING_S = 5.0
"""Between two writes of to whom our users have written: nobody answers sooner."""

WAITING_S = 1.0
"""Between two looks whether lessons wait on the disk and can be learned now."""

EXPIRE_S = 3600.0
"""Between two runs that remove what is too old, and that look back."""

PRUNE_S = 600.0
"""Between two looks whether tokens were deleted within the last day."""

AT_ONCE = ("log", "feedback", "users")
"""Sections that a reload changes; for the others the log names a restart."""


class Application:
    """Everything one process runs (`daemon.Application`); made on a running event loop.

    Args:
        settings: of all packages.
        sockets: listening ones, one for each of `settings.listeners`.
        worker: its number among equal workers, from 0.
        metrics: where it counts.
        preload: the model, when somebody reads it already.
        read_again: returns the settings as they are by then.

    Attributes:
        observer: whom all of it tells what happened.
        health: tells how it is.

    Raises:
        ConfigError: a setting of the relay, the next hop or TLS can't be used.
    """

    def __init__(
        self,
        settings: Settings,
        sockets: Sequence[socket.socket],
        worker: int,
        metrics: Metrics,
        preload: Preload | None,
        read_again: Callable[[], Settings],
    ) -> None:
        self._settings = settings
        self._sockets = sockets
        self._worker = worker
        self._read_again = read_again
        self._metrics = metrics
        self.observer = resources.log_observer(settings, self._metrics, worker=worker)
        self.observer.capture_libraries()
        self._directory = resources.directory(settings, self.observer)
        self._replaced: asyncio.Queue[Directory] = asyncio.Queue()
        self._opening = StoreOpening(settings, self.observer, preload, WallClock())
        third_s = settings.relay.inspect_timeout_s / 3  # the last one is for its start
        self._extractor = Extractor(settings.reading, wait_s=third_s, work_s=third_s)
        no_verdicts = NoVerdicts(resources.scanner(settings, _no_model, os.urandom(16)))
        self._teacher = resources.durable_teacher(None, settings, self.observer, self._names)
        self._shared = Shared.of(
            settings.relay,
            no_verdicts,
            MessageTeacher(self._teacher, resources.extract(settings)),
            self.observer,
            WallClock(),
        )
        self._relay = Relay(
            options=settings.relay,
            next_hop=settings.next_hop,
            tls=settings.tls,
            shared=self._shared,
            report_handler=self._report_address(),
            sockets=_of_section("relay", settings, sockets),
        )
        away = self._relay.next_hop_away if settings.relay.listeners else None
        self.health = DaemonHealth(
            self._opening, away, metrics, lambda: self._teacher.waiting_bytes
        )
        self._site = SiteOpening(lambda: self._settings, self._names, self.health, self.observer)
        self._web = self._http_listener() if settings.web.listeners else None
        self._outgoing: OutgoingMail | None = None
        self._feedback_changed = asyncio.Event()
        resources.extract(settings)(FIRST)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take mail while the context lasts.

        Raises:
            ConfigError: a setting makes it impossible.
        """
        async with (
            self._opening.begun(),
            running(self._jobs(), self.observer),
            self._taking_mail(),
        ):
            yield

    def _jobs(self) -> Iterator[Job]:
        """Yield what runs beside the listeners."""
        settings = self._settings
        if self._opening.opened is None:
            yield Once(name="opening", work=self._judge_when_open)
        yield LoopLag(self._metrics)
        database = settings.database
        yield self._periodic(
            FOLLOW, REFRESH_PAUSE_S, lambda store: store.follow(database.refresh_s)
        )
        taken = self._relay.context.taken
        yield self._periodic("taken", FOLLOW_TAKEN_S, lambda _: taken.follow())
        yield self._periodic("scans", WRITE_SCANS_S, lambda store: store.scans.flush())
        yield self._periodic("outgoing mail", WRITE_OUTGOING_S, lambda _: self._write_outgoing())
        yield self._periodic("expiry", EXPIRE_S, self._expire)
        yield self._periodic("waiting lessons", WAITING_S, self._learn_waiting)
        yield Once(name="feedback", work=self._watch_mailboxes)
        yield Once(name="directories", work=self._close_replaced)
        if self._web is not None:
            yield Once(name="evaluation", work=self._site.evaluate)
        if self._worker == 0:
            yield self._periodic("error_rates", EXPIRE_S, self._look_back)
            yield self._periodic(
                "tokens", PRUNE_S, lambda store: prune_daily(store, database, self.observer)
            )
            yield OpenRelayCheck(settings.relay, settings.next_hop, self.observer)

    def _periodic(
        self, name: str, every_s: float, work: Callable[[Store], Awaitable[object]]
    ) -> Periodic:
        return Periodic(name=name, every_s=every_s, work=work, opening=self._opening)

    async def _judge_when_open(self) -> None:
        await self._opening.retried()
        self._judge()

    async def _look_back(self, store: Store) -> None:
        """Show how often mail was judged wrong lately."""
        since, until = span(
            WallClock().now(),
            scans_days=self._settings.database.scans_days,
            kept_days=self._settings.feedback.kept_days,
        )
        rates = error_rates(await store.outcomes(since, until))
        self._metrics.error_rates(rates)
        if self._web is not None:
            await note(store.records, WallClock().now(), rates.to_json())

    async def _expire(self, store: Store) -> None:
        """Remove what is too old, and say how much that was."""
        gone = await expire(store.database, WallClock(), self._settings.ages, dry_run=False)
        if gone.total:
            self.observer.happened("storage.expired", **asdict(gone))

    async def _write_outgoing(self) -> None:
        """Write down to whom our users have written."""
        if self._outgoing is not None:
            await self._outgoing.flush()

    async def _learn_waiting(self, store: Store) -> None:  # noqa: ARG002 - it must be open
        """Learn what was taught while the database was away."""
        await self._teacher.learn_waiting(self.observer)

    async def _watch_mailboxes(self) -> None:
        """Watch all accounts while the lease is ours; by other settings once they are changed."""
        store = await self._opening.ready()
        while True:
            self._feedback_changed.clear()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(store))
                await self._feedback_changed.wait()
                watching.cancel()

    async def _watch(self, store: Store) -> None:
        if self._settings.feedback.accounts:  # before, loading what watches is time lost
            names = self._names
            await resources.feedback(store, self._settings, self.observer, names).run()

    def _names(self) -> "Directory":
        return self._directory

    async def _close_replaced(self) -> None:
        """Close what named users before a reload."""
        while True:
            await (await self._replaced.get()).close()

    @asynccontextmanager
    async def _taking_mail(self) -> AsyncIterator[None]:
        try:
            self._judge()
            started: list[RunningListener] = []
            try:
                for listener in self._listeners():
                    await listener.start()
                    started.append(listener)
                yield
            finally:
                async with asyncio.TaskGroup() as group:
                    for listener in started:
                        group.create_task(listener.stop())
        finally:
            self._shared.close()
            await self._extractor.close()
            await self._site.views.close()
            await self._directory.close()

    def _listeners(self) -> Iterator[RunningListener]:
        """Yield all ways in."""
        settings = self._settings
        yield self._relay
        if settings.milter.listeners:
            sockets = _of_section("milter", settings, self._sockets)
            yield milter_listener(settings.milter, self._shared, sockets)
        if settings.spamc.listeners:
            sockets = _of_section("spamc", settings, self._sockets)
            yield spamc_listener(settings.spamc, self._shared, sockets)
        if self._web is not None:
            yield self._web

    def _http_listener(self) -> "HttpListener":
        from spamd.listeners.web.server import HttpListener  # noqa: PLC0415 - it takes 0.1 s

        settings = self._settings
        return HttpListener(
            settings.web,
            self._shared,
            _of_section("web", settings, self._sockets),
            bounds=thresholds(settings.decision),
            taught=self._messages,
            health=self.health,
            administration=self._site.administration,
            apart=self._site.views,
        )

    def _judge(self) -> None:
        """Have mail judged and reports taken, if the store is open."""
        if (opened := self._opening.opened) is None:
            return
        settings, scans = self._settings, opened.store.scans
        store = opened.store
        scanner = resources.scanner(
            settings, lambda: store.snapshot.model, opened.secret, lambda: store.senders
        )
        scanner.scan(FIRST)
        people = resources.people(settings, store, self.observer, self._directory)
        self._outgoing = self._outgoing or resources.outgoing(settings, store, self._names)
        inspector = ScanningInspector(
            scanner,
            self._extractor,
            WallClock(),
            scans,
            self.observer,
            people=people,
            outgoing=self._outgoing,
            defer=settings.relay.on_overload is OnOverload.DEFER,
        )
        self._teacher = resources.durable_teacher(
            opened.store, settings, self.observer, self._names
        )
        self._shared.answered = lambda report, listener, reply: scans.answered(
            report, listener, queue_id(reply) or ""
        )
        extract = resources.extract(settings)
        self._shared.judge_by(inspector, MessageTeacher(self._teacher, extract), people)
        if self._web is not None:
            self._site.follow(opened, self._teacher)
        self._relay.context.taken.store = opened.store.taken
        self._relay.reports_to(self._report_address())

    def _report_address(self) -> ReportAddress:
        settings, extract = self._settings, resources.extract(self._settings)
        limits = settings.tokenizer.limits
        return ReportAddress(settings.feedback, self._teacher, extract, limits)

    def _messages(self, label: Label) -> float:
        if (opened := self._opening.opened) is None:
            return nan
        totals = opened.store.snapshot.model.totals
        return totals.spam if label is Label.SPAM else totals.ham

    def reload(self) -> None:
        """Read certificates, settings and tables of users again.

        Of the settings the log, feedback and users change at once.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        wanted, now = self._read_again(), self._settings
        directory = resources.directory(wanted, self.observer)
        self._relay.reload_tls()
        if self._web is not None:
            self._web.reload()
        changed = [
            name for name in Settings.model_fields if getattr(wanted, name) != getattr(now, name)
        ]
        self._settings = now.model_copy(update={name: getattr(wanted, name) for name in AT_ONCE})
        if "log" in changed:
            self.observer.follow(self._settings.log)
            self.observer.capture_libraries()
        self._replaced.put_nowait(self._directory)
        self._directory = directory
        self._judge()
        if "feedback" in changed:
            self._feedback_changed.set()
        self.observer.happened(
            "settings.reloaded",
            changed=", ".join(name for name in changed if name in AT_ONCE) or "nothing",
            restart_for=", ".join(name for name in changed if name not in AT_ONCE) or "nothing",
        )


def _of_section(
    section: str, settings: Settings, sockets: Sequence[socket.socket]
) -> list[socket.socket]:
    """Return the sockets of the addresses that a section of the settings names."""
    pairs = zip(settings.listeners, sockets, strict=True)
    return [sock for listener, sock in pairs if listener.key.startswith(f"{section}.")]


def _no_model() -> Model:
    raise StorageUnavailable("the database has not answered since the start")
