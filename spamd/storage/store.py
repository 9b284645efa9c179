"""Everything that is stored, as scanning, training and feedback need it (their ports).

store = await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=clock)
store.unit_of_work             for `training.Trainer`
store.snapshot.model           for `scanning.Scanner`, after `await store.refresh()`
store.scans                    ScanLog and History
store.senders, store.entries   what is known of senders, in memory; the lists as people keep them
store.wishes                   what people wish; `wishes_in_memory` follows it
store.layers                   users' own lessons, in memory as they are asked for
store.mailboxes, store.kept, store.accounts, store.held, store.leases
store.taken                    for the relay: what a retry need not repeat
store.records, store.sessions  what the page and the API show, and who looks
await store.close()
"""

from asyncio import wrap_future
from contextlib import suppress
from datetime import datetime
from math import nan
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import inspect, select, text

from spamd.bayes.counts import Totals
from spamd.bayes.model import BayesOptions, Model
from spamd.errors import StorageUnavailable
from spamd.lists.known import DEFAULTS, KnownOptions
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import NOTHING_TRUSTED, AuthOptions
from spamd.ports import Clock
from spamd.sample import FactSchema
from spamd.storage.corpus import corpus_tables, journal
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.corpus.news import News
from spamd.storage.corpus.snapshot import Snapshot
from spamd.storage.corpus.sqlite_lookup import Preload
from spamd.storage.corpus.unit_of_work import ModelCache, load_model
from spamd.storage.engine import Database
from spamd.storage.kept_messages import SqlKeptMessages
from spamd.storage.layers.memory import LayersInMemory
from spamd.storage.layers.unit_of_work import SqlUserUnitOfWork
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.mapped.shared_tables import SharedTables
from spamd.storage.options import SCHEMA, DatabaseOptions
from spamd.storage.outcomes import Outcomes, outcomes
from spamd.storage.people.wishes import SqlWishes, WishesInMemory
from spamd.storage.records.records import SqlRecords
from spamd.storage.records.sessions import SqlSessions
from spamd.storage.scans import Scans
from spamd.storage.senders.entries import SqlEntries
from spamd.storage.senders.known_addresses import SqlKnownAddresses
from spamd.storage.senders.memory import SendersInMemory
from spamd.storage.tables import corpus
from spamd.storage.watched_accounts import SqlAccounts
from spamd.storage.workers.leases import SqlLeases
from spamd.storage.workers.taken import SqlTaken
from spamd.training.ports import Lesson, LessonSummary, Selection

VERSION = "alembic_version"
"""The table in which the migrations note the revision."""


class Store:
    """An open store."""

    def __init__(
        self,
        database: Database,
        schema: FactSchema,
        bayes: BayesOptions,
        clock: Clock,
        *,
        auth: AuthOptions = NOTHING_TRUSTED,
        known: KnownOptions = DEFAULTS,
        shared: SharedTables | None = None,
    ) -> None:
        self.database = database
        self.scans = Scans(database, clock)
        self.mailboxes = SqlMailboxes(database)
        self.kept = SqlKeptMessages(database)
        self.held = SqlHeldLessons(database)
        self.accounts = SqlAccounts(database)
        self.leases = SqlLeases(database, clock)
        self.news = News(database)
        self.taken = SqlTaken(database, clock)
        self.records = SqlRecords(database)
        self.sessions = SqlSessions(database)
        self.entries = SqlEntries(database)
        self.known_addresses = SqlKnownAddresses(database, known)
        self.wishes = SqlWishes(database, clock)
        self.wishes_in_memory = WishesInMemory()
        self.layers = LayersInMemory(database, clock)
        self._senders = SendersInMemory(auth, known, clock)
        self._cache = ModelCache(schema, bayes, shared)
        self._clock = clock
        self._newest_at: float | None = None

    @classmethod
    async def open(
        cls,
        options: DatabaseOptions,
        *,
        schema: FactSchema,
        bayes: BayesOptions,
        clock: Clock,
        auth: AuthOptions = NOTHING_TRUSTED,
        known: KnownOptions = DEFAULTS,
        shared: bool = False,
    ) -> Self:
        """Return the store; a SQLite database is brought to this version's schema first.

        `shared`: the token table is shared with other daemons of this machine.

        Raises:
            ConfigError: the setting can't be right, or the schema is another version's.
            StorageUnavailable: the server does not answer.
        """
        database = await Database.open(options)
        try:
            if await _revision(database) != SCHEMA:
                await _bring_up(database)
        except BaseException:
            await database.close()
            raise
        tables = SharedTables(Path(options.local)) if shared else None
        return cls(database, schema, bayes, clock, auth=auth, known=known, shared=tables)

    @property
    def snapshot(self) -> Snapshot:
        """The model in memory; refreshed by `refresh`."""
        return self._cache.snapshot

    @property
    def senders(self) -> Senders:
        """What is known of senders, in memory; refreshed by `refresh`."""
        return self._senders.senders

    async def load_senders(self) -> Senders:
        """Return what is known of senders now."""
        await self._senders.refresh(self.database)
        return self.senders

    async def begin_with(self, preload: Preload) -> None:
        """Take over what a preload read (`Lookup.preload`); `refresh` brings what is newer.

        What could not be read is left to `refresh` too: it reads all, or says what is wrong.
        """
        with suppress(StorageUnavailable):
            version, model = await wrap_future(preload)
            self.snapshot.version, self.snapshot.model = version, model

    async def refresh(self) -> bool:
        """Bring the snapshot to the database's revision; return whether anything changed."""
        asked_at = self._clock.monotonic()
        changed = await self.snapshot.refresh(self.database)
        await self._senders.refresh(self.database)
        await self.wishes_in_memory.refresh(self.database)
        await self.layers.refresh(self.database)
        self._newest_at = asked_at
        return changed

    async def follow(self, within_s: float) -> None:
        """Refresh once there is news of other processes' lessons, or after some seconds."""
        await self.news.wait(within_s)
        await self.refresh()

    @property
    def behind_s(self) -> float:
        """Return since when at most the snapshot may lack a lesson; NaN: it was never read."""
        return nan if self._newest_at is None else self._clock.monotonic() - self._newest_at

    def unit_of_work(self) -> SqlUserUnitOfWork:
        """Return a new transaction on what was taught; lessons of the site change users' layers."""
        return SqlUserUnitOfWork(self.database, self._cache, self._clock)

    async def load_model(self, ids: NDArray[np.int64]) -> Model:
        """Return a model that knows these tokens only: enough to scan the mails that hold them.

        For a single scan it is much quicker than loading everything.
        """
        async with self.database.reading() as connection:
            version = await corpus_tables.version(connection, lock=False)
            cache = self._cache
            return await load_model(connection, version, ids, cache.schema, cache.options)

    async def totals(self) -> Totals:
        """Return how much was taught."""
        async with self.database.reading() as connection:
            return (await corpus_tables.version(connection, lock=False)).totals

    async def lessons(self, selection: Selection) -> list[LessonSummary]:
        """Return the lessons that fit, in the order of learning."""
        async with self.database.reading() as connection:
            return await journal.listed(connection, selection)

    async def latest(self, number: int) -> list[LessonSummary]:
        """Return the lessons given last, the newest first."""
        async with self.database.reading() as connection:
            return await journal.latest(connection, number)

    async def lesson(self, digest: bytes) -> Lesson | None:
        """Return the lesson in force about a mail, with what it taught."""
        async with self.database.reading() as connection:
            return (await journal.lessons(connection, [digest])).get(digest)

    async def summary(self) -> journal.Summary:
        """Return the lessons in force, counted by the database: quick however many there are."""
        async with self.database.reading() as connection:
            return await journal.summary(connection)

    async def outcomes(self, since: datetime, until: datetime) -> Outcomes:
        """Return what became of the messages that were judged in a time."""
        async with self.database.reading() as connection:
            return await outcomes(connection, since, until)

    async def secret(self) -> bytes:
        """Return the installation's secret, the key of our message ids' check."""
        async with self.database.reading() as connection:
            found: bytes = (await connection.execute(select(corpus.c.secret))).scalar_one()
            return found

    async def close(self) -> None:
        """Close all connections; scans that were not flushed are lost."""
        await self.news.close()
        await self.database.close()


async def _revision(database: Database) -> str | None:
    """Return the revision of the schema as the migrations noted it, None where nothing is."""
    async with database.reading() as connection:
        if not await connection.run_sync(lambda plain: inspect(plain).has_table(VERSION)):
            return None
        return (await connection.execute(text(f"SELECT version_num FROM {VERSION}"))).scalar()  # noqa: S608


async def _bring_up(database: Database) -> None:
    """Upgrade a SQLite database, refuse any other whose schema is not ours."""
    from spamd.storage.migrate import check_schema, upgrade  # noqa: PLC0415 - alembic is large

    if database.is_sqlite:
        await upgrade(database)
    else:
        await check_schema(database)
