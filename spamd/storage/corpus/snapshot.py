"""What was learned, in memory: the model that scans weigh with.

    snapshot = Snapshot(schema, options)
    await snapshot.refresh(database)     # at the start, then every `database.refresh_s`
    snapshot.model                       # always whole, always there

Scoring never waits for the database: between two refreshes it isn't asked, and while it is down the
last model stays. A refresh reads the revision; when it is ours that was all. Else the `change` rows
since ours name the tokens to fetch again; when they are gone, or it is another generation (reset),
everything is read again.

The token table of a large corpus is a file that all processes of this machine share (`mapped`), the
words that changed since are each process' own. The first process that finds no file of use writes
one, the others wait for it; when many words have changed, one of them writes the next.

A refresh first gathers, then changes the model between two awaits: whoever runs on the same loop
sees it before or after, never in between. Growing the token table (60 MB copied at a million
tokens) happens on a copy in a thread.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenCounts, TokenTable, distinct
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.bayes.layered import LayeredTable
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import FactSchema
from spamd.storage.corpus import corpus_tables, token_bulk, token_table
from spamd.storage.corpus.codec import add_gram_changes, decode_ids
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.engine import Database
from spamd.storage.mapped.shared_tables import SharedTables
from spamd.storage.mapped.table_file import MappedTable, TableFile, TableKey
from spamd.storage.tables import change, corpus

MARK_BYTES = 16

NO_MARK = bytes(MARK_BYTES)
"""Of a revision whose change row is gone, or never was."""

REPLACED_SHARE = 1 / 4
"""When more of a file's words have changed, reading all again is as quick."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """What a refresh brings.

    ids, counts   tokens to insert or replace; a token without messages is to be removed
    mark          tells its revision from another history's (`mark_of`)
    grams         the differences of the gram table as blobs, or the whole table
    """

    version: CorpusVersion
    mark: bytes
    ids: NDArray[np.int64]
    counts: TokenCounts
    facts: FactCounts
    fusion: FusionWeights
    grams: list[bytes] | NDArray[np.int32]


class Snapshot:
    """A model that follows the database; `shared` keeps the tables of a machine's processes."""

    def __init__(
        self, schema: FactSchema, options: BayesOptions, shared: SharedTables | None = None
    ) -> None:
        """Begin with a model that was taught nothing; it belongs to no revision."""
        self.model = Model.empty(schema, options)
        self.version: CorpusVersion | None = None
        self.shared = shared
        self._mapped: MappedTable | None = None
        self._mark = NO_MARK
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
        async with self._one_at_a_time:
            async with database.reading() as connection:
                version = await corpus_tables.version(connection, lock=False)
                changed = await self._follow(connection, version, read_all=False)
            if changed is None and self.shared is not None:
                changed = await self._read_all(database, self.shared)
        if self.shared is not None:
            await self._write_next(database, self.shared)
        return bool(changed)

    async def follow(self, connection: AsyncConnection, version: CorpusVersion) -> None:
        """Bring the model to `version`, the one that `connection` sees."""
        async with self._one_at_a_time:
            await self._follow(connection, version, read_all=True)

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

    async def _follow(
        self, connection: AsyncConnection, version: CorpusVersion, *, read_all: bool
    ) -> bool | None:
        """Bring the model to a version; return whether anything changed.

        None: it needs the whole table, which is not read without `read_all`.
        """
        mine, shared = self.version, self.shared
        if shared is not None and not shared.named:
            shared.name(await _identity(connection))
        new_file = shared is not None and shared.newer_than(self._mapped)
        if new_file and await self._take_mapped(connection, version):
            return True
        update = None
        if mine and not await self._another_history(connection, mine):
            if mine.at == version.at:
                return False
            update = await self._changes(connection, version, mine)
        if update is not None:
            await self._apply(update)
        elif read_all or shared is None or version.totals.vocabulary < shared.least:
            await self._load(connection, version, await token_table.load(connection))
        else:
            return None
        return True

    async def _read_all(self, database: Database, shared: SharedTables) -> bool:
        """Read everything, as the one process of this machine that does; others take its file."""
        try:
            async with shared.alone(), database.reading() as connection:
                version = await corpus_tables.version(connection, lock=False)
                marked = await _mark(connection, version.revision) != NO_MARK
                if marked and not await self._take_mapped(connection, version):
                    await self._write_whole(connection, version, shared)
                    await self._take_mapped(connection, version)
        except (OSError, ValueError) as error:
            shared.failed(error)
        async with database.reading() as connection:
            version = await corpus_tables.version(connection, lock=False)
            await self._follow(connection, version, read_all=True)
        return True

    async def _write_whole(
        self, connection: AsyncConnection, version: CorpusVersion, shared: SharedTables
    ) -> None:
        """Write the file of a version, some rows in memory at a time."""
        rows = await token_table.number(connection)
        key = await _key(connection, version, await _mark(connection, version.revision))
        with TableFile.writing(shared.path, key, rows) as file:
            async for ids, cells in token_table.pieces(connection, rows):
                order = np.argsort(ids, kind="stable")
                await asyncio.to_thread(file.add, ids[order], cells[order])
        await _forget_pages(connection)

    async def _write_next(self, database: Database, shared: SharedTables) -> None:
        """Write the next file when it is due; all processes take it at their next refresh."""
        table, version, mark = self.model.tokens, self.version, self._mark
        due = shared.due(table, self._mapped, len(table))
        if version is None or mark == NO_MARK or not due:
            return
        copied = table.copied()  # lessons go on in this one
        if not isinstance(copied, LayeredTable):
            copied = LayeredTable(copied)
        async with database.reading() as connection:
            key = await _key(connection, version, mark)
        await asyncio.to_thread(shared.write, key, copied)

    async def _take_mapped(self, connection: AsyncConnection, version: CorpusVersion) -> bool:
        """Take the newest file with what has changed since; return whether it served."""
        shared = self.shared
        mapped = None if shared is None else await asyncio.to_thread(shared.current)
        if shared is None or mapped is None:
            return False
        key = mapped.key
        if key.generation == version.generation and key.revision > version.revision:
            return False  # written by a process that is ahead of this transaction
        since = await _since(connection, version, key.revision)
        usable = (
            (key.database, key.generation) == (await _identity(connection), version.generation)
            and since is not None
            and key.mark == await _mark(connection, key.revision)
        )
        ids = distinct(decode_ids(row.tokens) for row in since or ())
        if not usable or len(ids) > max(REPLACED_SHARE * len(mapped.table), shared.least):
            shared.refuse(mapped)
            return False
        table = LayeredTable(mapped.table)
        if len(ids):
            rows = await token_table.load(connection, ids)
            await asyncio.to_thread(_put, table, ids, rows.counts(rows.find(ids)))
        await self._load(connection, version, table)
        self._mapped = mapped
        return True

    async def _load(
        self, connection: AsyncConnection, version: CorpusVersion, table: TokenTable
    ) -> None:
        mark = await _mark(connection, version.revision)
        model = Model(
            tokens=table,
            totals=version.totals,
            facts=await corpus_tables.facts(connection, self._schema),
            grams=await corpus_tables.grams(connection),
            history=ScoreHistory(self._options.fusion.window),
            fusion=await corpus_tables.fusion(connection),
            options=self._options,
        )
        self.model, self.version, self._mark, self._mapped = model, version, mark, None
        await _forget_pages(connection)

    async def _changes(
        self, connection: AsyncConnection, version: CorpusVersion, mine: CorpusVersion
    ) -> Update | None:
        """Return what changed since our revision, None when that can't be told any more."""
        if mine.generation != version.generation:
            return None
        since = await _since(connection, version, mine.revision)
        if since is None:
            return None
        ids = distinct(decode_ids(row.tokens) for row in since)
        rows = await token_table.load(connection, ids)
        return Update(
            version=version,
            mark=await _mark(connection, version.revision),
            ids=ids,
            counts=rows.counts(rows.find(ids)),
            facts=await corpus_tables.facts(connection, self._schema),
            fusion=await corpus_tables.fusion(connection),
            grams=await corpus_tables.grams(connection)
            if version.grams_revision > mine.revision
            else [row.grams for row in since],
        )

    async def _another_history(self, connection: AsyncConnection, mine: CorpusVersion) -> bool:
        """Return whether our revision is not the one of that number in the database by now.

        A server that took over may lack the last lessons, and be taught others.
        """
        mark = await _mark(connection, mine.revision)
        return NO_MARK not in (mark, self._mark) and mark != self._mark

    def _stays(self, update: Update) -> bool:
        """Return whether no token appears or vanishes."""
        return bool((_alive(update) == (self.model.tokens.find(update.ids) >= 0)).all())

    async def _apply(self, update: Update) -> None:
        table, alive = self.model.tokens, _alive(update)
        if self._stays(update) and table.stands(update.ids[alive]):
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
        self.version, self._mark = update.version, update.mark


def _grown(table: TokenTable, update: Update, alive: NDArray[np.bool_]) -> TokenTable:
    """Return a copy of a table with rows inserted, replaced and removed."""
    table = table.copied()
    table.merge(update.ids[alive], _of(update.counts, alive))
    if not alive.all():
        table.remove(update.ids[~alive])
    return table


def _put(table: TokenTable, ids: NDArray[np.int64], counts: TokenCounts) -> None:
    """Give tokens their counts; a token without messages is removed."""
    alive: NDArray[np.bool_] = counts.seen > 0
    table.merge(ids[alive], _of(counts, alive))
    table.remove(ids[~alive])


def mark_of(time: int, tokens_bytes: int, grams_bytes: int) -> bytes:
    """Return the mark of a revision, by the time and the lengths of its change row."""
    text = f"{time} {tokens_bytes} {grams_bytes}".encode()
    return blake2b(text, digest_size=MARK_BYTES).digest()


async def _mark(connection: AsyncConnection, revision: int) -> bytes:
    """Return the mark of a revision; `NO_MARK` when its change row is gone."""
    lengths = func.length(change.c.tokens), func.length(change.c.grams)
    wanted = select(change.c.time, *lengths).where(change.c.revision == revision)
    row = (await connection.execute(wanted)).first()
    return NO_MARK if row is None else mark_of(*row)


async def _identity(connection: AsyncConnection) -> bytes:
    """Return what no other database has."""
    secret = (await connection.execute(select(corpus.c.secret))).scalar_one()
    return blake2b(secret, digest_size=16, person=b"spamd tokens").digest()


async def _key(connection: AsyncConnection, version: CorpusVersion, mark: bytes) -> TableKey:
    return TableKey(
        database=await _identity(connection),
        generation=version.generation,
        revision=version.revision,
        mark=mark,
    )


async def _since(
    connection: AsyncConnection, version: CorpusVersion, revision: int
) -> Sequence[Row[Any, Any]] | None:
    """Return the change rows after a revision; None when they are not complete."""
    newer = change.c.revision > revision
    wanted = select(change.c.tokens, change.c.grams).where(newer).order_by(change.c.revision)
    rows = (await connection.execute(wanted)).all()
    return rows if len(rows) == version.revision - revision else None


async def _forget_pages(connection: AsyncConnection) -> None:
    """Give memory back that reading the whole token table took."""
    if connection.dialect.name == "sqlite":  # which keeps the pages of the whole token table
        await connection.exec_driver_sql("PRAGMA shrink_memory")
    token_bulk.give_memory_back()


def _alive(update: Update) -> NDArray[np.bool_]:
    alive: NDArray[np.bool_] = update.counts.seen > 0
    return alive


def _of(counts: TokenCounts, rows: NDArray[np.bool_]) -> TokenCounts:
    return TokenCounts.of_cells(counts.cells[rows])
