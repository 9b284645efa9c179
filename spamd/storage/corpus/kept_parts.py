"""What a process keeps of the corpus from one unit of work to the next: all but the tokens.

    kept = await caught_up(connection, kept, version, schema, window)

When others have written meanwhile, only what they added is read: a site where three daemons learn
in turn would else read 4 MB of grams and 3,000 rows of scores for each lesson. Where that can't be
proven to come to the same, all is read. The proof for the scores: the lessons in force are as many
as they were and those that came since, and the newest of then still stands at its place as it was;
so none of then was taken back.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.sample import FactSchema
from spamd.storage.corpus import corpus_tables, journal
from spamd.storage.corpus.codec import add_gram_changes
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.tables import change, tally

MOST = 64
"""Lessons of others that are read one by one; after more, reading all is as quick."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """All of a model but its tokens, as of `at` (generation, revision).

    lessons   in force, newest: the last of them; None when that is not known
    """

    at: tuple[int, int]
    facts: FactCounts
    grams: NDArray[np.int32]
    history: ScoreHistory
    fusion: FusionWeights
    lessons: int
    newest: journal.ScoredLesson | None


async def caught_up(
    connection: AsyncConnection,
    kept: Kept | None,
    version: CorpusVersion,
    schema: FactSchema,
    window: int,
) -> Kept:
    """Return what is true at `version`; `kept` is changed in place where it serves."""
    if kept and kept.at == version.at:
        return kept
    lessons = version.totals.messages - await _imported(connection)
    scored = await _scores(connection, kept, version, lessons, window)
    grams = await _grams(connection, kept, version)
    return Kept(
        at=version.at,
        facts=await corpus_tables.facts(connection, schema),
        grams=grams,
        history=scored[0],
        fusion=await corpus_tables.fusion(connection),
        lessons=lessons,
        newest=scored[1],
    )


async def _imported(connection: AsyncConnection) -> int:
    """Return how many messages other programs have counted."""
    counted = select(func.coalesce(func.sum(tally.c.spam + tally.c.ham), 0))
    return int((await connection.execute(counted)).scalar_one())


def _behind(kept: Kept | None, version: CorpusVersion) -> float:
    """Return by how many revisions `kept` is behind; infinitely when it can't be followed."""
    if kept is None or kept.at[0] != version.generation:
        return inf
    return version.revision - kept.at[1]


async def _scores(
    connection: AsyncConnection,
    kept: Kept | None,
    version: CorpusVersion,
    lessons: int,
    window: int,
) -> tuple[ScoreHistory, journal.ScoredLesson | None]:
    if kept and kept.newest and _behind(kept, version) <= MOST:
        since = await journal.scored(connection, kept.newest.id)
        stands = bool(since) and since[0] == kept.newest
        if stands and lessons - kept.lessons == len(since) - 1:
            for each in since[1:]:
                each.append_to(kept.history)
            return kept.history, since[-1]
    return await journal.history(connection, window)


async def _grams(
    connection: AsyncConnection, kept: Kept | None, version: CorpusVersion
) -> NDArray[np.int32]:
    behind = _behind(kept, version)
    if kept is None or behind > MOST or version.grams_revision > kept.at[1]:
        return await corpus_tables.grams(connection)
    newer = select(change.c.grams).where(change.c.revision > kept.at[1])
    blobs = (await connection.execute(newer)).scalars().all()
    if len(blobs) != behind:
        return await corpus_tables.grams(connection)
    for blob in blobs:
        add_gram_changes(kept.grams, blob)
    return kept.grams
