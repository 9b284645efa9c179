"""The unit of work: one transaction that teaches or takes back (the port `UnitOfWork`).

Entering it locks the corpus row (SQLite: the file), so lessons have one order, revisions grow in
the order of commits, and no two writers can be caught in a deadlock. `model` gives a model of just
the words at hand; `commit` writes the differences between it and what was there, the journal, and a
`change` row that tells other processes what to fetch again.

Reading less is what makes it quick. The counts of the words come from this process' snapshot when
it stands at the current revision, or once so many were asked for that loading everything costs no
more than looking them up did; else they are looked up. Facts, gram table, fusion and the scores of
the last lessons are kept from one unit of work to the next, and of what others wrote in between
only the news are read (`kept_parts`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import HAM, SPAM, TokenCounts, TokenTable, Totals
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.bayes.model import BayesOptions, Model
from spamd.ports import Clock
from spamd.sample import FactSchema
from spamd.storage import tables
from spamd.storage.corpus import corpus_tables, held_lessons, imported_counts, journal, token_table
from spamd.storage.corpus.codec import encode_gram_changes, encode_ids
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.corpus.imported_counts import ImportedCounts
from spamd.storage.corpus.kept_parts import Kept, caught_up
from spamd.storage.corpus.snapshot import Snapshot, Update, mark_of
from spamd.storage.engine import Database
from spamd.storage.mapped.shared_tables import SharedTables
from spamd.storage.times import to_number
from spamd.training.ports import Lesson, LessonSummary, Selection

LOOKUP_COST = 3
"""Looking up a word costs about three times what reading it costs in a load of the whole table."""

GROWTH_COST = 40
"""Looking up a word costs some forty times what copying it costs when the table in memory grows."""

HOUR = 3_600_000_000
"""Microseconds."""


class ModelCache:
    """What a process keeps in memory between its units of work.

    kept        taken out while a transaction changes it, so that one that fails leaves nothing
    asked_for   words that were asked for so far
    turn        held by the one unit of work that may run: they would only wait for each other in
                the database, each with a connection
    """

    def __init__(
        self, schema: FactSchema, options: BayesOptions, shared: SharedTables | None = None
    ) -> None:
        self.schema = schema
        self.options = options
        self.snapshot = Snapshot(schema, options, shared)
        self.kept: Kept | None = None
        self.asked_for = 0
        self.turn = asyncio.Lock()


class SqlUnitOfWork:
    """One transaction on what was taught."""

    def __init__(self, database: Database, cache: ModelCache, clock: Clock) -> None:
        self._database = database
        self._cache = cache
        self._clock = clock

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._cache.turn)
            self._connection = await stack.enter_async_context(self._database.writing())
            self._version = await corpus_tables.version(self._connection, lock=True)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None and self._connection.in_transaction():
            await self._connection.rollback()
        await self._stack.__aexit__(kind, error, at)

    async def listed(self, selection: Selection) -> Sequence[LessonSummary]:
        return await journal.listed(self._connection, selection)

    async def lessons(self, digests: Sequence[bytes]) -> Mapping[bytes, Lesson]:
        return await journal.lessons(self._connection, digests)

    async def model(self, ids: NDArray[np.int64]) -> Model:
        cache = self._cache
        cache.asked_for += len(ids)
        loaded = cache.snapshot.loaded
        cost = GROWTH_COST * len(ids) if loaded else LOOKUP_COST * cache.asked_for
        self._bulk = cost >= self._version.totals.vocabulary
        kept = await self._kept()
        self._model = model = Model(
            tokens=await self._tokens(ids),
            totals=self._version.totals,
            facts=kept.facts,
            grams=kept.grams,
            history=kept.history,
            fusion=kept.fusion,
            options=self._cache.options,
        )
        self._before = _Before(
            cells=_cells(model.tokens),
            totals=model.totals,
            facts=model.facts.copy(),
            fusion=model.fusion,
        )
        return model

    async def settle(self, digests: Sequence[bytes]) -> int:
        return await held_lessons.settle(self._connection, digests)

    async def commit(self, learned: Sequence[Lesson], taken_back: Sequence[Lesson]) -> None:
        model, connection = self._model, self._connection
        await journal.remove(connection, [lesson.digest for lesson in taken_back])
        self._newest = await journal.add(connection, learned)
        self._lessons += len(learned) - len(taken_back)
        if taken_back:
            # The fusion looks back on a window of lessons; with some gone older ones come into it.
            window = model.history.window
            model.history, self._newest = await journal.history(connection, window)
        # Whatever led here, the fusion is that of the journal, as after an export and an import.
        model.refit()
        steps = [(each.sample.grams, each.effect.gram_step) for each in learned]
        steps += [(each.sample.grams, -each.effect.gram_step) for each in taken_back]
        await self._write(steps)

    async def add_imported_counts(self, mine: ImportedCounts) -> bool:
        """Add counts of another program and commit; False when they are there already."""
        if await imported_counts.find(self._connection, mine.digest):
            return False
        imported_counts.apply(await self.model(mine.ids), mine, 1)
        await imported_counts.write(self._connection, mine)
        await self._write([])
        return True

    async def take_back_imported_counts(self, digest: bytes) -> bool:
        """Take counts of another program back and commit; False when there are none."""
        mine = await imported_counts.find(self._connection, digest)
        if mine is None:
            return False
        imported_counts.apply(await self.model(mine.ids), mine, -1)
        await imported_counts.remove(self._connection, digest)
        await self._write([])
        return True

    async def _write(self, steps: Sequence[tuple[NDArray[np.uint32], int]]) -> None:
        """Write how the model differs from what was there, commit, and keep it for the next."""
        model, before, connection = self._model, self._before, self._connection
        cells = _cells(model.tokens)
        touched = (cells != before.cells).any(axis=1)
        await self._write_tokens(cells, touched)
        await corpus_tables.add_facts(connection, before.facts, model.facts)
        await corpus_tables.add_totals(connection, before.totals, model.totals)
        if model.fusion is not before.fusion:
            await corpus_tables.write_fusion(connection, model.fusion)
        version = replace(self._version, revision=self._version.revision + 1, totals=model.totals)
        changes, mark = await self._write_change(version.revision, touched, steps)
        await connection.commit()
        self._cache.kept = Kept(
            at=version.at,
            facts=model.facts,
            grams=model.grams,
            history=model.history,
            fusion=model.fusion,
            lessons=self._lessons,
            newest=self._newest,
        )
        await self._cache.snapshot.adopt(
            Update(
                version=version,
                mark=mark,
                ids=model.tokens.ids[touched],
                counts=TokenCounts.of_cells(cells[touched]),
                facts=model.facts.copy(),
                fusion=model.fusion,
                grams=[changes] if changes else model.grams.copy(),
            ),
            grow=self._bulk,
        )

    async def _tokens(self, ids: NDArray[np.int64]) -> TokenTable:
        snapshot = self._cache.snapshot
        if self._bulk:
            await snapshot.follow(self._connection, self._version)
        if snapshot.version and snapshot.version.at == self._version.at:
            known = snapshot.model.tokens
        else:
            known = await token_table.load(self._connection, ids)
        return TokenTable(ids, known.counts(known.find(ids)))

    async def _kept(self) -> Kept:
        cache, window = self._cache, self._cache.options.fusion.window
        kept, cache.kept = cache.kept, None
        kept = await caught_up(self._connection, kept, self._version, cache.schema, window)
        self._lessons, self._newest = kept.lessons, kept.newest
        return kept

    async def _write_tokens(self, cells: NDArray[np.int32], touched: NDArray[np.bool_]) -> None:
        ids = self._model.tokens.ids
        gone = touched & (cells[:, SPAM] + cells[:, HAM] == 0)
        await token_table.remove(self._connection, ids[gone])
        stays = touched & ~gone
        await token_table.change(
            self._connection, ids[stays], cells[stays] - self._before.cells[stays]
        )

    async def _write_change(
        self,
        revision: int,
        touched: NDArray[np.bool_],
        steps: Sequence[tuple[NDArray[np.uint32], int]],
    ) -> tuple[bytes, bytes]:
        """Tell other processes what to fetch; return the changes of the gram table, and the mark.

        They are empty when it is its turn to be written whole.
        """
        connection, model, change = self._connection, self._model, tables.change
        now = to_number(self._clock.now())
        written = self._version.grams_revision
        if max(len(steps), revision - written) >= corpus_tables.GRAMS_EVERY:
            changes = b""
            await corpus_tables.write_grams(connection, model.grams, revision)
            old = now - self._database.options.changes_hours * HOUR
            await connection.execute(delete(change).where(change.c.time < old))
        else:
            changes = encode_gram_changes(steps, len(model.grams))
        tokens = encode_ids(model.tokens.ids[touched])
        row = {"revision": revision, "time": now, "tokens": tokens, "grams": changes}
        await connection.execute(insert(change).values(row))
        return changes, mark_of(now, len(tokens), len(changes))


async def load_model(
    connection: AsyncConnection,
    version: CorpusVersion,
    ids: NDArray[np.int64],
    schema: FactSchema,
    options: BayesOptions,
) -> Model:
    """Return a model that knows these tokens only; its history is empty."""
    known = await token_table.load(connection, ids)
    return Model(
        tokens=TokenTable(ids, known.counts(known.find(ids))),
        totals=version.totals,
        facts=await corpus_tables.facts(connection, schema),
        grams=await corpus_tables.grams(connection),
        history=ScoreHistory(options.fusion.window),
        fusion=await corpus_tables.fusion(connection),
        options=options,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Before:
    """The model as `SqlUnitOfWork.model` gave it."""

    cells: NDArray[np.int32]
    totals: Totals
    facts: FactCounts
    fusion: FusionWeights


def _cells(table: TokenTable) -> NDArray[np.int32]:
    return table.counts(np.arange(len(table))).cells
