"""`spamd database prune`: let go of words that were not seen for long and were rare even then.

A word goes when its newest lesson is older than `unseen_days` and it stands in `seen_in` lessons at
most. It goes from the samples of these lessons too, so the tables stay what the journal says, every
lesson can still be taken back exactly, and no count ever falls below zero.

Ages are measured against the newest lesson, not against the clock: a clock that jumped, or a year
without training, expires nothing. At least `floor` words stay, the longest unseen go first.

Which words go is found without a lock, in many short looks: one long look would keep SQLite from
emptying its log, and PostgreSQL from reusing the room of old rows. Then some lessons at a time are
made smaller, each time in a transaction after which all tables agree, with pauses in which others
write. A word that a lesson touched since the first look stays. What was killed on the way has
happened in part, and the next prune does the rest.

What else grows old goes by `storage.expiry`. Whole lessons that are too old are taken back by
`rollback`.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import (
    HAM,
    HAM_OCCURRENCES,
    SPAM,
    SPAM_OCCURRENCES,
    WEIGHT,
    TokenCounts,
    TokenTable,
    distinct,
)
from spamd.ports import Clock
from spamd.sample import Label
from spamd.storage.corpus import corpus_tables, imported_counts, journal, token_bulk, token_table
from spamd.storage.corpus.codec import chosen, decode_ids, encode_ids, encode_sample
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.engine import Database, retried
from spamd.storage.options import PruneOptions
from spamd.storage.tables import change, lesson, sample
from spamd.storage.times import to_number
from spamd.training.ports import Lesson

DAY = 86_400_000_000

LESSONS = 25
"""Lessons made smaller in one transaction: others wait for some 50 ms."""

LOOK = 500
"""Lessons read in one look: some 100 ms."""

REST = 1.0
"""Pause after a transaction, as a share of what it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What a prune let go of, or would.

    examined   words there were           removed   words that went
    spared     words old and rare enough, kept by the floor
    lessons    lessons whose samples became smaller
    """

    examined: int
    removed: int
    spared: int
    lessons: int


class _ChangedError(Exception):
    """What happened since the look at the words can't be told: the rest is left to the next run."""


async def prune(
    database: Database, clock: Clock, options: PruneOptions, *, dry_run: bool
) -> Pruned:
    """Let go of old rare words, or only count them."""
    async with database.reading() as connection:
        version = await corpus_tables.version(connection, lock=False)
    table = await _table(database)
    doomed, spared = _doomed(table, await _last_seen(database, table), options)
    done = Pruned(examined=len(table), removed=len(doomed), spared=spared, lessons=0)
    if dry_run:
        return replace(done, lessons=await _count_lessons(database, doomed))
    del table
    work = _Work(database, clock, doomed, version)
    if len(doomed):
        try:
            await work.shrink_lessons()
            await work.shrink_imported_counts()
        except _ChangedError:
            pass
    return replace(done, removed=work.removed, lessons=work.lessons)


async def _table(database: Database) -> TokenTable:
    """Return all tokens, a look for each slice of them."""
    async with database.reading() as connection:
        rows = await token_table.number(connection)
    read = []
    for bounds in token_bulk.slices(rows):
        async with database.reading() as connection:
            read.append(await token_table.piece(connection, bounds))
    ids, cells = token_bulk.joined(read)
    return TokenTable(ids, TokenCounts.of_cells(cells))


async def _walk(database: Database, number: int) -> AsyncGenerator[list[Lesson]]:
    """Give all lessons in the order of learning, some in each look."""
    last: int | None = 0
    while last is not None:
        async with database.reading() as connection:
            last, some = await journal.after(connection, last, number)
        yield some


async def _imported(database: Database) -> Sequence[bytes]:
    async with database.reading() as connection:
        return await imported_counts.digests(connection)


async def _last_seen(database: Database, table: TokenTable) -> NDArray[np.int64]:
    """Return when each token was taught last, in microseconds."""
    seen = np.zeros(len(table), dtype=np.int64)

    def taught(ids: NDArray[np.int64], time: datetime) -> None:
        rows = table.find(ids)
        rows = rows[rows >= 0]
        seen[rows] = np.maximum(seen[rows], to_number(time))

    async for lessons in _walk(database, LOOK):
        for each in lessons:
            taught(each.sample.ids, each.time)
    for digest in await _imported(database):
        async with database.reading() as connection:
            imported = await imported_counts.find(connection, digest)
        if imported is not None:
            taught(imported.ids, imported.time)
    return seen


def _doomed(
    table: TokenTable, seen: NDArray[np.int64], options: PruneOptions
) -> tuple[NDArray[np.int64], int]:
    """Return the ids that go, ascending, and how many the floor spares."""
    if not len(table):
        return table.ids, 0
    counts = table.counts(np.arange(len(table)))
    old = seen < seen.max() - options.unseen_days * DAY
    rows = np.flatnonzero(old & (counts.seen <= options.seen_in))
    room = max(0, len(table) - options.floor)
    kept = max(0, len(rows) - room)
    oldest_first = rows[np.argsort(seen[rows], kind="stable")]
    return np.sort(table.ids[oldest_first[: len(rows) - kept]]), kept


def _among(ids: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which ids are among many that ascend: a lesson's few cost nothing for the many."""
    if not len(ascending):
        return np.zeros(len(ids), np.bool_)
    places = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == ids
    return found


async def _count_lessons(database: Database, doomed: NDArray[np.int64]) -> int:
    if not len(doomed):
        return 0
    number = 0
    async for lessons in _walk(database, LOOK):
        number += sum(1 for each in lessons if _among(each.sample.ids, doomed).any())
    return number


class _Work:
    """Takes words out of lessons, some at a time."""

    def __init__(
        self, database: Database, clock: Clock, doomed: NDArray[np.int64], version: CorpusVersion
    ) -> None:
        self._database = database
        self._clock = clock
        self._doomed = doomed
        self._at = version.at
        self.removed = 0
        self.lessons = 0

    async def shrink_lessons(self) -> None:
        """Take the words out of all lessons."""
        async for some in _walk(self._database, LESSONS):
            digests = [each.digest for each in some if self._holds(each)]
            if digests:
                await self._rested(self._lessons(digests))

    async def shrink_imported_counts(self) -> None:
        """Take the words out of the counts that other programs had made."""
        for digest in await _imported(self._database):
            await self._rested(self._imported_counts(digest))

    async def _rested(self, step: Coroutine[None, None, None]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await step
        await asyncio.sleep(REST * (loop.time() - began))

    def _holds(self, each: Lesson) -> bool:
        return bool(_among(each.sample.ids, self._doomed).any())

    @retried
    async def _lessons(self, digests: Sequence[bytes]) -> None:
        async with self._database.writing() as connection:
            version = await self._current(connection)
            parts, shrunk = [_Difference.none()], 0
            for each in (await journal.lessons(connection, digests)).values():
                gone = _among(each.sample.ids, self._doomed)
                if gone.any():
                    parts.append(_Difference.of_lesson(each, gone))
                    await _rewrite(connection, each, ~gone)
                    shrunk += 1
            removed = await self._apply(connection, _Difference.sum(parts), version)
        self._committed(version, removed)
        self.lessons += shrunk

    @retried
    async def _imported_counts(self, digest: bytes) -> None:
        async with self._database.writing() as connection:
            version = await self._current(connection)
            mine = await imported_counts.find(connection, digest)
            if mine is None:
                return
            gone = _among(mine.ids, self._doomed)
            if not gone.any():
                return
            await imported_counts.write(connection, mine.without(mine.ids[gone]))
            less = _Difference.of_imported_counts(mine.ids[gone], mine.counts[gone])
            removed = await self._apply(connection, less, version)
        self._committed(version, removed)

    async def _current(self, connection: AsyncConnection) -> CorpusVersion:
        """Lock the corpus; spare the words that others have touched since our last look.

        Raises:
            _ChangedError: nobody can say any more which.
        """
        version = await corpus_tables.version(connection, lock=True)
        generation, revision = self._at
        newer = select(change.c.tokens).where(change.c.revision > revision)
        touched = (await connection.execute(newer)).scalars().all()
        if generation != version.generation or len(touched) != version.revision - revision:
            raise _ChangedError
        ids = distinct(map(decode_ids, touched))
        spared = ids[_among(ids, self._doomed)]
        if len(spared):
            self._doomed = np.delete(self._doomed, np.searchsorted(self._doomed, spared))
        self._at = version.at
        return version

    async def _apply(
        self, connection: AsyncConnection, less: "_Difference", version: CorpusVersion
    ) -> int:
        """Take counts off the tables; return how many words are gone with that."""
        stored = await token_table.load(connection, less.ids)
        left = stored.counts(stored.find(less.ids)).cells + less.cells
        gone = left[:, SPAM] + left[:, HAM] == 0
        await token_table.remove(connection, less.ids[gone])
        await token_table.change(connection, less.ids[~gone], less.cells[~gone])
        sums = less.cells.sum(axis=0, dtype=np.int64).tolist()
        totals = version.totals
        after = replace(
            totals,
            vocabulary=totals.vocabulary - int(gone.sum()),
            spam_occurrences=totals.spam_occurrences + sums[SPAM_OCCURRENCES],
            ham_occurrences=totals.ham_occurrences + sums[HAM_OCCURRENCES],
        )
        # Nobody is told: others read this with the next lesson, or within `refresh_s`.
        await corpus_tables.add_totals(connection, totals, after, told=False)
        await connection.execute(
            insert(change).values(
                revision=version.revision + 1,
                time=to_number(self._clock.now()),
                tokens=encode_ids(less.ids),
                grams=b"",
            )
        )
        return int(gone.sum())

    def _committed(self, version: CorpusVersion, removed: int) -> None:
        self._at = (version.generation, version.revision + 1)
        self.removed += removed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Difference:
    """What is added to the counts of some tokens (ids ascending, int32[n, 5]), below zero."""

    ids: NDArray[np.int64]
    cells: NDArray[np.int32]

    @classmethod
    def none(cls) -> "_Difference":
        return cls(ids=np.zeros(0, np.int64), cells=np.zeros((0, WEIGHT + 1), np.int32))

    @classmethod
    def of_lesson(cls, each: Lesson, gone: NDArray[np.bool_]) -> "_Difference":
        """Return what a lesson added to the counts of some of its tokens, taken back."""
        mine = SPAM if each.label is Label.SPAM else HAM
        cells = np.zeros((int(gone.sum()), WEIGHT + 1), np.int32)
        cells[:, mine] = -1
        cells[:, mine + SPAM_OCCURRENCES] = -each.sample.occurrences[gone].astype(np.int32)
        cells[:, WEIGHT] = -each.effect.step
        return cls(ids=each.sample.ids[gone], cells=cells)

    @classmethod
    def of_imported_counts(cls, ids: NDArray[np.int64], counts: NDArray[np.int32]) -> "_Difference":
        cells = np.zeros((len(ids), WEIGHT + 1), np.int32)
        for column, number in ((SPAM, 0), (HAM, 1), (SPAM_OCCURRENCES, 0), (HAM_OCCURRENCES, 1)):
            cells[:, column] = -counts[:, number]
        return cls.sum([cls(ids=ids, cells=cells)])

    @classmethod
    def sum(cls, parts: Sequence["_Difference"]) -> "_Difference":
        """Return all together, a row for each token."""
        ids, rows = np.unique(np.concatenate([each.ids for each in parts]), return_inverse=True)
        cells = np.zeros((len(ids), WEIGHT + 1), np.int32)
        np.add.at(cells, rows, np.concatenate([each.cells for each in parts]))
        return cls(ids=ids, cells=cells)


async def _rewrite(connection: AsyncConnection, each: Lesson, stays: NDArray[np.bool_]) -> None:
    content = encode_sample(*chosen(each.sample, each.texts, np.flatnonzero(stays)))
    number = select(lesson.c.id).where(lesson.c.digest == each.digest).scalar_subquery()
    await connection.execute(
        update(sample).where(sample.c.lesson == number).values(content=content)
    )
