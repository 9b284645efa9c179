"""What was learned, in memory: the model that scans weigh with.

    snapshot = Snapshot(schema, options)
    await snapshot.refresh(database)     # at the start, then every `database.refresh_s`
    snapshot.model                       # always whole, always there

Scoring never waits for the database: between two refreshes it isn't asked, and while it is down the
last model stays. A refresh reads the revision; when it is ours that was all. Else the `change` rows
since ours name the tokens to fetch again; when they are gone, or it is another generation (reset),
everything is read again.

A refresh first gathers, then changes the model between two awaits: whoever runs on the same loop
sees it before or after, never in between. Growing the token table (60 MB copied at a million
tokens) happens on a copy in a thread.
"""

import asyncio
import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenCounts, TokenTable, distinct
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import FactSchema
from spamd.storage.corpus import corpus_tables, token_bulk, token_table
from spamd.storage.corpus.codec import add_gram_changes, decode_ids
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.engine import Database
from spamd.storage.tables import change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """What a refresh brings.

    ids, counts   tokens to insert or replace; a token without messages is to be removed
    grams         the differences of the gram table as blobs, or the whole table
    """

    version: CorpusVersion
    ids: NDArray[np.int64]
    counts: TokenCounts
    facts: FactCounts
    fusion: FusionWeights
    grams: list[bytes] | NDArray[np.int32]


class Snapshot:
    """A model that follows the database."""

    def __init__(self, schema: FactSchema, options: BayesOptions) -> None:
        """Begin with a model that was taught nothing; it belongs to no revision."""
        self.model = Model.empty(schema, options)
        self.version: CorpusVersion | None = None
        self._schema = schema
        self._options = options
        self._one_at_a_time = asyncio.Lock()

    @property
    def loaded(self) -> bool:
        """Whether the model was read from the database at least once."""
        return self.version is not None

    async def refresh(self, database: Database) -> bool:
        """Bring the model to the database's revision; return whether anything changed.

        Raises:
            StorageUnavailable: the model stays as it was.
        """
        async with self._one_at_a_time, database.reading() as connection:
            version = await corpus_tables.version(connection, lock=False)
            return await self._follow(connection, version)

    async def follow(self, connection: AsyncConnection, version: CorpusVersion) -> None:
        """Bring the model to `version`, the one that `connection` sees."""
        async with self._one_at_a_time:
            await self._follow(connection, version)

    async def adopt(self, update: Update, *, grow: bool) -> None:
        """Take over what this process has just committed, unless a refresh was quicker.

        Without `grow` only when no token appears or vanishes: the rest waits for the next refresh,
        so that a single lesson does not copy the whole table.
        """
        async with self._one_at_a_time:
            mine, theirs = self.version, update.version
            if not mine or (mine.generation, mine.revision + 1) != theirs.at:
                return
            if grow or self._stays(update):
                await self._apply(update)

    async def _follow(self, connection: AsyncConnection, version: CorpusVersion) -> bool:
        mine = self.version
        if mine and mine.at == version.at:
            return False
        update = await self._changes(connection, version)
        if update is None:
            await self._load(connection, version)
        else:
            await self._apply(update)
        return True

    async def _load(self, connection: AsyncConnection, version: CorpusVersion) -> None:
        table = await token_table.load(connection)
        model = Model(
            tokens=table,
            totals=version.totals,
            facts=await corpus_tables.facts(connection, self._schema),
            grams=await corpus_tables.grams(connection),
            history=ScoreHistory(self._options.fusion.window),
            fusion=await corpus_tables.fusion(connection),
            options=self._options,
        )
        self.model, self.version = model, version
        if connection.dialect.name == "sqlite":  # which keeps the pages of the whole token table
            await connection.exec_driver_sql("PRAGMA shrink_memory")
        token_bulk.give_memory_back()

    async def _changes(self, connection: AsyncConnection, version: CorpusVersion) -> Update | None:
        """Return what changed since our revision, None when that can't be told any more."""
        mine = self.version
        if mine is None or mine.generation != version.generation:
            return None
        since = (
            await connection.execute(
                select(change.c.tokens, change.c.grams)
                .where(change.c.revision > mine.revision)
                .order_by(change.c.revision)
            )
        ).all()
        if len(since) != version.revision - mine.revision:
            return None
        ids = distinct(decode_ids(row.tokens) for row in since)
        rows = await token_table.load(connection, ids)
        return Update(
            version=version,
            ids=ids,
            counts=rows.counts(rows.find(ids)),
            facts=await corpus_tables.facts(connection, self._schema),
            fusion=await corpus_tables.fusion(connection),
            grams=await corpus_tables.grams(connection)
            if version.grams_revision > mine.revision
            else [row.grams for row in since],
        )

    def _stays(self, update: Update) -> bool:
        """Return whether no token appears or vanishes."""
        return bool((_alive(update) == (self.model.tokens.find(update.ids) >= 0)).all())

    async def _apply(self, update: Update) -> None:
        table, alive = self.model.tokens, _alive(update)
        if self._stays(update):
            table.merge(update.ids[alive], _of(update.counts, alive))  # where they stand
        else:
            table = await asyncio.to_thread(_grown, table, update, alive)
        model = self.model
        model.tokens = table
        model.totals = update.version.totals
        model.facts = update.facts
        model.fusion = update.fusion
        if isinstance(update.grams, list):
            for blob in update.grams:
                add_gram_changes(model.grams, blob)
        else:
            model.grams = update.grams
        self.version = update.version


def _grown(table: TokenTable, update: Update, alive: NDArray[np.bool_]) -> TokenTable:
    """Return a copy of a table with rows inserted, replaced and removed."""
    table = copy.deepcopy(table)
    table.merge(update.ids[alive], _of(update.counts, alive))
    if not alive.all():
        table.remove(update.ids[~alive])
    return table


def _alive(update: Update) -> NDArray[np.bool_]:
    alive: NDArray[np.bool_] = update.counts.seen > 0
    return alive


def _of(counts: TokenCounts, rows: NDArray[np.bool_]) -> TokenCounts:
    return TokenCounts.of_cells(counts.cells[rows])
