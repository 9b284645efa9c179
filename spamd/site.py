"""What stands behind the page and the API, put together for one worker.

found = administration(opened, settings=…, site=DaemonSite(…), teacher=…, observer=…)
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spamd import resources
from spamd.admin.accounts import Watched
from spamd.admin.administration import Administration
from spamd.admin.evaluation import Evaluations
from spamd.admin.lessons import Lessons
from spamd.admin.mail import Mails
from spamd.admin.overview import Overviews
from spamd.admin.people.owned import Owned
from spamd.admin.ports import Knowledge, SettingRow, Volume
from spamd.admin.teaching import Teaching
from spamd.admin.words import Words
from spamd.clock import WallClock
from spamd.ports import Check, Health
from spamd.settings import Settings
from spamd.settings.keys import toml
from spamd.store_opening import OpenStore

if TYPE_CHECKING:
    from spamd.bayes.counts import Totals
    from spamd.bayes.model import Model
    from spamd.feedback.durable_teacher import DurableTeacher
    from spamd.lists.senders import Senders, Standing
    from spamd.message.features import Features
    from spamd.observe.log import LogObserver
    from spamd.report import ScanReport
    from spamd.storage.store import Store
    from spamd.users.ports import Names


_ENDS = ("", "-wal", "-shm")
"""Files of a SQLite database."""


def administration(
    opened: OpenStore,
    settings: Settings,
    site: "DaemonSite",
    teacher: "DurableTeacher",
    observer: "LogObserver",
    names: "Callable[[], Names]",
    before: Administration | None = None,
    knowledge: Knowledge | None = None,
) -> Administration:
    """Return what stands behind the page and the API.

    before      what stood there until a reload: the job of its evaluations waits for who asks
    knowledge   what was learned, if not as the store has it in memory
    """
    store = opened.store
    knowledge = knowledge or StoreKnowledge(store, settings)
    mails = Mails(store.records, knowledge, settings.decision)
    trainer = resources.trainer(store, settings, observer)
    found = Administration(
        secret=opened.secret,
        sessions=store.sessions,
        records=store.records,
        site=site,
        overview=Overviews(
            records=store.records,
            knowledge=knowledge,
            accounts=store.accounts,
            site=site,
            clock=WallClock(),
            decision=settings.decision,
        ),
        mails=mails,
        teaching=Teaching(mails, store.records, teacher, resources.extract(settings)),
        words=Words(mails, knowledge),
        lessons=Lessons(store.records, knowledge, store.held, trainer),
        accounts=Watched(store.accounts, store.mailboxes, store.leases),
        owned=Owned(resources.list_book(settings, store), store.wishes, resources.user_of(names)),
        evaluation=Evaluations(lambda: store.records, WallClock(), settings.bayes),
    )
    return found if before is None else replace(found, evaluation=before.evaluation)


class StoreKnowledge:
    """What was learned, as the store has it (`admin.ports.Knowledge`)."""

    def __init__(self, store: "Store", settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def model(self, ids: NDArray[np.int64]) -> "Model":
        """Return a model of its own that knows these tokens."""
        return await self._store.load_model(ids)

    async def totals(self) -> "Totals":
        """Return how much was taught."""
        return await self._store.totals()

    async def standing(self, features: "Features") -> "Standing":
        """Return what is known of the sender of a mail."""
        return (await self.senders()).of(features.proof)

    async def senders(self) -> "Senders":
        """Return what is known of senders."""
        return self._store.senders

    async def report(self, features: "Features", user: str) -> "ScanReport":
        """Return a user's report on a mail, by what the database holds of them now."""
        store = self._store
        model = await store.load_model(features.sample.ids)
        person = await resources.person(store, user)
        senders = await self.senders()
        judge = resources.scanner(self._settings, lambda: model, b"", lambda: senders).judge
        return await asyncio.to_thread(judge, features, WallClock().monotonic(), person)


class DaemonSite:
    """Tells it.

    Args:
        settings: returns those in force.
        health: knows what mail needs.
    """

    def __init__(self, settings: Callable[[], Settings], health: Health) -> None:
        self._settings = settings
        self._health = health

    async def checks(self) -> Sequence[Check]:
        """Return what mail needs, and whether it is there."""
        return await self._health.checks()

    def listeners(self) -> Sequence[str]:
        """Return the addresses at which we listen, each with its setting."""
        return [f"{each.key} {each}" for each in self._settings().listeners]

    async def volumes(self) -> Sequence[Volume]:
        """Return the disks: of a SQLite database, and of mail on its way."""
        settings = self._settings()
        places: list[tuple[str, Path, Path | None]] = []
        if settings.database.path is not None:
            path = settings.database.path
            places.append(("database", path.parent, path))
        if settings.relay.spool_directory:
            places.append(("spool", Path(settings.relay.spool_directory), None))
        return await asyncio.to_thread(_volumes, places)

    def settings(self) -> Sequence[SettingRow]:
        """Return the settings in force, secrets hidden."""
        settings = self._settings()
        return [
            SettingRow(key=key, value=toml(value), origin=settings.origin(key))
            for key, value in settings.shown()
        ]

    def shows_people(self) -> bool:
        """Tell whether lists may name people."""
        return self._settings().log.privacy == "full"


def _volumes(places: Sequence[tuple[str, Path, Path | None]]) -> list[Volume]:
    found = []
    for name, folder, file in places:
        try:
            disk = shutil.disk_usage(folder)
            used = sum(_size(Path(f"{file}{end}")) for end in _ENDS) if file else 0
        except OSError:
            continue
        found.append(
            Volume(name=name, used_bytes=used, free_bytes=disk.free, total_bytes=disk.total)
        )
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
