"""`spamd database verify`: recompute everything from the journal and hold it against the tables.

The counts, totals, facts and weights are sums over the lessons in force (the counts also over those
imported from other programs). Each is added to an empty model as it was learned then; what comes
out must be what is stored, number for number. Token ids are recomputed from the stored texts on the
way, so a word whose id no longer fits its text shows up too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenCounts, TokenTable, distinct
from spamd.bayes.learning import restore
from spamd.bayes.model import BayesOptions, Model
from spamd.sample import FactSchema
from spamd.storage.corpus import corpus_tables, imported_counts, journal, token_table
from spamd.storage.engine import Database
from spamd.storage.layers import user_lessons
from spamd.training.ports import Lesson


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What `verify` found.

    faults    one sentence each; none: the database agrees with its journal
    """

    lessons: int
    tokens: int
    faults: tuple[str, ...]


async def verify(database: Database, schema: FactSchema) -> Findings:
    """Return what does not agree; nothing is changed, nobody is kept waiting."""
    faults: list[str] = []
    async with database.reading() as connection:
        if database.is_sqlite:
            faults += await _file_faults(connection)
        version = await corpus_tables.version(connection, lock=False)
        damaged: list[bytes] = []
        model = Model.empty(schema, BayesOptions())
        lessons = 0
        async for some in journal.walk(connection, damaged):
            lessons += len(some)
            faults += _collisions(some)
            replay(model, some)
        async for imported in imported_counts.walk(connection):
            known(model, imported.ids)
            imported_counts.apply(model, imported, 1)
        faults += [f"the sample of lesson {digest.hex()} can't be read" for digest in damaged]
        table = await token_table.load(connection)
        faults += _token_faults(table, model.tokens)
        if version.totals != model.totals:
            faults.append(f"the totals are {version.totals}, the journal says {model.totals}")
        if await corpus_tables.facts(connection, schema) != model.facts:
            faults.append("the counts of the facts are not those of the journal")
        if not np.array_equal(await corpus_tables.grams(connection), model.grams):
            faults.append("the weights of the character grams are not those of the journal")
        faults += await user_lessons.faults(connection)
    return Findings(lessons=lessons, tokens=len(table), faults=tuple(faults))


def replay(model: Model, lessons: list[Lesson]) -> None:
    """Add lessons to a model as they were learned."""
    known(model, distinct(lesson.sample.ids for lesson in lessons))
    for lesson in lessons:
        restore(model, lesson.sample, lesson.label, lesson.effect, lesson.digest)


def known(model: Model, ids: NDArray[np.int64]) -> None:
    """Give these tokens rows in a model, where they have none."""
    unknown = ids[model.tokens.find(ids) < 0]
    model.tokens.merge(unknown, TokenCounts.zeros(len(unknown)))


async def _file_faults(connection: AsyncConnection) -> list[str]:
    said = (await connection.exec_driver_sql("PRAGMA quick_check(5)")).scalars().all()
    return [f"the file is damaged: {line}" for line in said if line != "ok"]


def _collisions(lessons: list[Lesson]) -> list[str]:
    return [
        f"two words of lesson {lesson.digest.hex()} share one id"
        for lesson in lessons
        if len(distinct([lesson.sample.ids])) != len(lesson.sample.ids)
    ]


def _token_faults(stored: TokenTable, told: TokenTable) -> list[str]:
    """Return how the stored counts differ from those that the journal tells."""
    ids = distinct([stored.ids, told.ids])
    here, there = stored.find(ids), told.find(ids)
    differing = (stored.counts(here).cells != told.counts(there).cells).any(axis=1)
    faults = []
    for number, what in (
        (np.count_nonzero(there < 0), "tokens are stored that are in no lesson"),
        (np.count_nonzero(here < 0), "tokens of lessons are missing"),
        (
            np.count_nonzero(differing & (here >= 0) & (there >= 0)),
            "tokens have other counts than the journal says",
        ),
    ):
        if number:
            faults.append(f"{number} {what}")
    return faults
