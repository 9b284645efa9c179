"""`spamd database prune`: let go of words that were not seen for long and were rare even then.

A word goes when its newest lesson is older than `unseen_days` and it stands in `seen_in` lessons at
most. It goes from the samples of these lessons too, so the tables stay what the journal says, every
lesson can still be taken back exactly, and no count ever falls below zero.

Ages are measured against the newest lesson, not against the clock: a clock that jumped, or a year
without training, expires nothing. At least `floor` words stay, the longest unseen go first. All is
one transaction: a prune that is killed has not happened.

What else grows old goes by `storage.expiry`. Whole lessons that are too old are taken back by
`rollback`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenTable
from spamd.ports import Clock
from spamd.sample import Label
from spamd.storage.corpus import corpus_tables, imported_counts, journal, token_table
from spamd.storage.corpus.codec import chosen, encode_ids, encode_sample
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.engine import Database
from spamd.storage.tables import change, lesson, sample
from spamd.storage.times import to_number
from spamd.training.ports import Lesson

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneOptions:
    """What a prune lets go of.

    unseen_days   a word must not have been taught for this long; half a year holds the seasons
    seen_in       and stand in this many lessons at most; 1: the bulk of a table says nothing more
    floor         words that stay at least, whatever the other two say
    """

    unseen_days: int = 180
    seen_in: int = 1
    floor: int = 100_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.unseen_days < 1 or self.seen_in < 1 or self.floor < 0:
            raise ValueError(
                "unseen_days and seen_in must be at least 1, floor must not be below 0"
            )


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


async def prune(
    database: Database, clock: Clock, options: PruneOptions, *, dry_run: bool
) -> Pruned:
    """Let go of old rare words, or only count them."""
    async with database.reading() if dry_run else database.writing() as connection:
        version = await corpus_tables.version(connection, lock=not dry_run)
        table = await token_table.load(connection)
        doomed, spared = _doomed(table, await _last_seen(connection, table), options)
        if dry_run or not len(doomed):
            lessons = await _count_lessons(connection, doomed)
        else:
            lessons, totals = await _shrink(connection, doomed, version)
            await token_table.remove(connection, doomed)
            await corpus_tables.add_totals(connection, version.totals, totals.totals)
            await connection.execute(
                insert(change).values(
                    revision=version.revision + 1,
                    time=to_number(clock.now()),
                    tokens=encode_ids(doomed),
                    grams=b"",
                )
            )
    return Pruned(examined=len(table), removed=len(doomed), spared=spared, lessons=lessons)


async def _last_seen(connection: AsyncConnection, table: TokenTable) -> NDArray[np.int64]:
    """Return when each token was taught last, in microseconds."""
    seen = np.zeros(len(table), dtype=np.int64)
    async for lessons in journal.walk(connection):
        for each in lessons:
            rows = table.find(each.sample.ids)
            rows = rows[rows >= 0]
            seen[rows] = np.maximum(seen[rows], to_number(each.time))
    async for imported in imported_counts.walk(connection):
        rows = table.find(imported.ids)
        seen[rows] = np.maximum(seen[rows], to_number(imported.time))
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


async def _count_lessons(connection: AsyncConnection, doomed: NDArray[np.int64]) -> int:
    if not len(doomed):
        return 0
    number = 0
    async for lessons in journal.walk(connection):
        number += sum(1 for each in lessons if np.isin(each.sample.ids, doomed).any())
    return number


async def _shrink(
    connection: AsyncConnection, doomed: NDArray[np.int64], version: CorpusVersion
) -> tuple[int, CorpusVersion]:
    """Take tokens out of the samples; return how many lessons held any, and the new totals."""
    number = 0
    totals = replace(version.totals, vocabulary=version.totals.vocabulary - len(doomed))
    async for lessons in journal.walk(connection):
        for each in lessons:
            gone = np.isin(each.sample.ids, doomed)
            if not gone.any():
                continue
            number += 1
            lost = int(each.sample.occurrences[gone].sum(dtype=np.int64))
            if each.label is Label.SPAM:
                totals = replace(totals, spam_occurrences=totals.spam_occurrences - lost)
            else:
                totals = replace(totals, ham_occurrences=totals.ham_occurrences - lost)
            await _rewrite(connection, each, ~gone)
    async for imported in imported_counts.walk(connection):
        left = imported.without(doomed)
        spam, ham = imported.counts.sum(axis=0) - left.counts.sum(axis=0)
        totals = replace(
            totals,
            spam_occurrences=totals.spam_occurrences - int(spam),
            ham_occurrences=totals.ham_occurrences - int(ham),
        )
        await imported_counts.write(connection, left)
    return number, replace(version, totals=totals)


async def _rewrite(connection: AsyncConnection, each: Lesson, stays: NDArray[np.bool_]) -> None:
    content = encode_sample(*chosen(each.sample, each.texts, np.flatnonzero(stays)))
    number = select(lesson.c.id).where(lesson.c.digest == each.digest).scalar_subquery()
    await connection.execute(
        update(sample).where(sample.c.lesson == number).values(content=content)
    )
