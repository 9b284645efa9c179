"""The store behind the views, in the process that makes them.

    views = Views(settings)
    answered = await views.answer(asked)
    await views.close()

The store is opened for the first view; while the database is away, each view says so and the next
one tries again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spamd import resources
from spamd.admin.administration import Administration
from spamd.bayes.decision import thresholds
from spamd.errors import StorageUnavailable
from spamd.listeners.web.pages.apart import Answered, Asked
from spamd.listeners.web.pages.making import ASKED, Maker
from spamd.ports import Check
from spamd.settings import Settings
from spamd.site import DaemonSite, StoreKnowledge, administration
from spamd.store_opening import OpenStore

if TYPE_CHECKING:
    from spamd.lists.senders import Senders
    from spamd.storage.store import Store

POOL = 2
"""Connections to PostgreSQL that are kept: few people look at once."""


class Views:
    """Makes views; `settings` are those in force."""

    def __init__(self, settings: Settings) -> None:
        database = replace(settings.database, pool=min(POOL, settings.database.pool))
        self._settings = settings.model_copy(update={"database": database})
        self._site = DaemonSite(lambda: settings, Told())
        self._opening = asyncio.Lock()
        self._store: Store | None = None
        self._found: Administration | None = None
        self._maker = Maker(self._administration, thresholds(settings.decision))

    async def answer(self, asked: Asked) -> Answered:
        """Return a view."""
        async with self._opening:
            if self._found is None:
                self._found = await self._opened()
        return await self._maker.answer(asked)

    async def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            await self._store.close()

    def _administration(self) -> Administration:
        if self._found is None:
            raise StorageUnavailable("the database does not answer")
        return self._found

    async def _opened(self) -> Administration | None:
        """Return what stands behind the views, None while the database does not answer."""
        settings = self._settings
        try:
            if self._store is None:
                self._store = await resources.new_store(settings)
            secret = await self._store.secret()
        except StorageUnavailable:
            return None
        store = self._store
        observer = resources.log_observer(settings)
        names = resources.directory(settings, observer)
        return administration(
            OpenStore(store=store, secret=secret),
            settings,
            self._site,
            resources.durable_teacher(store, settings, observer, lambda: names),
            observer,
            lambda: names,
            knowledge=FreshKnowledge(store, settings),
        )


class FreshKnowledge(StoreKnowledge):
    """What was learned, where nobody else reads again what is known of senders."""

    def __init__(self, store: "Store", settings: Settings) -> None:
        super().__init__(store, settings)
        self._turn = asyncio.Lock()

    async def senders(self) -> "Senders":
        """Return what is known of senders."""
        async with self._turn:
            return await self._store.load_senders()


class Told:
    """How the daemon is, as it was told with what is being answered (`ports.Health`)."""

    async def checks(self) -> Sequence[Check]:
        """Return what mail needs, and whether it is there."""
        return ASKED.get().checks

    async def metrics(self) -> bytes:
        """Return nothing: it is the daemon that counts."""
        return b""
