"""The small parts of what was learned: corpus row, facts, gram table, fusion, change rows.

The gram table is 4 MB and changes with each lesson, so it is written whole only now and then; each
`change` row holds what its revision added, and reading adds up what is newer than the table.
"""

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.classifiers.logistic import GRAM_SLOTS
from spamd.bayes.counts import Totals
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights
from spamd.errors import ConfigError
from spamd.sample import FactSchema
from spamd.storage import tables
from spamd.storage.corpus.codec import add_gram_changes, decode_floats, encode_floats
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.corpus.news import announce
from spamd.storage.engine import put, upsert

GRAMS_EVERY = 64
"""Revisions after which the whole gram table is written: reading adds up that many changes of some
10 kB at most, writing 4 MB costs about as much as a lesson."""


async def version(connection: AsyncConnection, *, lock: bool) -> CorpusVersion:
    """Return where the corpus stands; `lock` makes other writers wait (SQLite's already do).

    Raises:
        ConfigError: the database was never set up.
    """
    if lock:
        # Apart: who has waited for the row sees it as it is now, but what the same statement reads
        # of other tables as it was before. The revision of the grams would be too old.
        await connection.execute(select(tables.corpus.c.id).with_for_update())
    written = select(tables.grams.c.revision).scalar_subquery()
    statement = select(tables.corpus, written.label("grams_revision"))
    row = (await connection.execute(statement)).first()
    if row is None:
        raise ConfigError(
            "database.url: the database is empty, or a copy to it was not finished; run: spamd"
            " database upgrade, or spamd database copy again"
        )
    return CorpusVersion(
        revision=row.revision,
        generation=row.generation,
        grams_revision=row.grams_revision or 0,
        totals=Totals(
            spam=row.spam,
            ham=row.ham,
            spam_occurrences=row.spam_occurrences,
            ham_occurrences=row.ham_occurrences,
            vocabulary=row.vocabulary,
        ),
    )


async def add_totals(
    connection: AsyncConnection, before: Totals, after: Totals, *, told: bool = True
) -> None:
    """Add the difference of two totals, and one to the revision; tell who listens, if `told`."""
    row = tables.corpus.c
    await connection.execute(
        update(tables.corpus).values(
            spam=row.spam + (after.spam - before.spam),
            ham=row.ham + (after.ham - before.ham),
            spam_occurrences=row.spam_occurrences
            + (after.spam_occurrences - before.spam_occurrences),
            ham_occurrences=row.ham_occurrences + (after.ham_occurrences - before.ham_occurrences),
            vocabulary=row.vocabulary + (after.vocabulary - before.vocabulary),
            revision=row.revision + 1,
        )
    )
    if told:
        await announce(connection)


async def facts(connection: AsyncConnection, schema: FactSchema) -> FactCounts:
    """Return the counts of the facts."""
    row = tables.fact.c
    rows = (await connection.execute(select(row.key, row.spam, row.ham))).all()
    return FactCounts.from_rows([(each.key, each.spam, each.ham) for each in rows], schema)


async def add_facts(connection: AsyncConnection, before: FactCounts, after: FactCounts) -> None:
    """Add the difference of two counts; a row that becomes zero is deleted."""
    old = {key: (spam, ham) for key, spam, ham in before.to_rows()}
    new = {key: (spam, ham) for key, spam, ham in after.to_rows()}
    differences = []
    for key in sorted(old.keys() | new.keys()):
        spam_before, ham_before = old.get(key, (0, 0))
        spam, ham = new.get(key, (0, 0))
        if (spam, ham) != (spam_before, ham_before):
            differences.append({"key": key, "spam": spam - spam_before, "ham": ham - ham_before})
    if not differences:
        return
    fresh = upsert(connection)(tables.fact)
    row = tables.fact.c
    await connection.execute(
        fresh.on_conflict_do_update(
            index_elements=[row.key],
            set_={"spam": row.spam + fresh.excluded.spam, "ham": row.ham + fresh.excluded.ham},
        ),
        differences,
    )
    if old.keys() - new.keys():
        await connection.execute(delete(tables.fact).where(and_(row.spam == 0, row.ham == 0)))


async def fusion(connection: AsyncConnection) -> FusionWeights:
    """Return the weights of the classifiers."""
    row = (await connection.execute(select(tables.fusion))).first()
    if row is None:
        return FusionWeights.default()
    return FusionWeights.of(decode_floats(row.weights).tolist(), row.lessons)


async def write_fusion(connection: AsyncConnection, weights: FusionWeights) -> None:
    """Replace the weights of the classifiers."""
    row = {"id": 1, "lessons": weights.lessons, "weights": encode_floats(weights.values)}
    await put(connection, tables.fusion, [row])


async def grams(connection: AsyncConnection) -> NDArray[np.int32]:
    """Return the gram table as of now."""
    row = (await connection.execute(select(tables.grams))).first()
    if row is None:
        table, revision = np.zeros(GRAM_SLOTS, dtype=np.int32), 0
    else:
        table, revision = np.frombuffer(row.content, "<i4").astype(np.int32), row.revision
    newer = select(tables.change.c.grams).where(tables.change.c.revision > revision)
    for blob in (await connection.execute(newer)).scalars():
        add_gram_changes(table, blob)
    return table


async def write_grams(connection: AsyncConnection, table: NDArray[np.int32], revision: int) -> None:
    """Replace the gram table; the changes up to `revision` are in it."""
    row = {"id": 1, "revision": revision, "content": table.astype("<i4").tobytes()}
    await put(connection, tables.grams, [row])
