"""Counts of words that came from another program, without the mails behind them.

They stand beside the lessons: the tables are the sum of both, so `verify` can recompute them, and
they can be taken back as exactly as a lesson. They move counts and totals only: there is nothing in
them for classifiers that learn from whole mails. A word counts once for each mail with it.
"""

import zlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import HAM, HAM_OCCURRENCES, SPAM, SPAM_OCCURRENCES, TokenCounts, Totals
from spamd.bayes.model import Model
from spamd.storage.corpus.codec import BlobError, texts_of, token_ids
from spamd.storage.tables import storable, tally
from spamd.storage.times import from_number, to_number


@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedCounts:
    """The counts of one file.

    digest       identity of the file it came from: the same file counts once
    source       the program it came from
    spam, ham    mails it was counted over
    words        distinct tokens
    counts       int32[words, 2]: spam and ham mails that held each
    """

    digest: bytes
    source: str
    time: datetime
    spam: int
    ham: int
    words: tuple[str, ...]
    counts: NDArray[np.int32]

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """The id of each word, in the order of `words`."""
        return token_ids(texts_of(self.words))

    def without(self, ids: NDArray[np.int64]) -> "ImportedCounts":
        """Return these counts without some tokens."""
        stays = ~np.isin(self.ids, ids)
        words = tuple(word for word, kept in zip(self.words, stays.tolist(), strict=True) if kept)
        return replace(self, words=words, counts=self.counts[stays])


def apply(model: Model, mine: ImportedCounts, sign: int) -> None:
    """Add counts to a model that has rows for their words (sign 1), or take them back (sign −1)."""
    rows = model.tokens.find(mine.ids)
    cells = model.tokens.counts(rows).cells
    before = np.count_nonzero(cells[:, SPAM] + cells[:, HAM])
    for column, number in ((SPAM, 0), (HAM, 1), (SPAM_OCCURRENCES, 0), (HAM_OCCURRENCES, 1)):
        cells[:, column] += sign * mine.counts[:, number]
    model.tokens.merge(mine.ids, TokenCounts.of_cells(cells))
    after = np.count_nonzero(cells[:, SPAM] + cells[:, HAM])
    spam, ham = mine.counts.sum(axis=0, dtype=np.int64).tolist() if len(mine.counts) else (0, 0)
    totals = model.totals
    model.totals = Totals(
        spam=totals.spam + sign * mine.spam,
        ham=totals.ham + sign * mine.ham,
        spam_occurrences=totals.spam_occurrences + sign * spam,
        ham_occurrences=totals.ham_occurrences + sign * ham,
        vocabulary=totals.vocabulary + int(after) - int(before),
    )


async def find(connection: AsyncConnection, digest: bytes) -> ImportedCounts | None:
    """Return the counts that a file brought, None when it brought none."""
    row = (await connection.execute(select(tally).where(tally.c.digest == digest))).first()
    return None if row is None else _imported_counts(row)


async def digests(connection: AsyncConnection) -> Sequence[bytes]:
    """Return the files that brought counts."""
    return (await connection.execute(select(tally.c.digest).order_by(tally.c.id))).scalars().all()


async def walk(connection: AsyncConnection) -> AsyncGenerator[ImportedCounts]:
    """Give all imported counts, one file at a time: each may be large."""
    numbers = (await connection.execute(select(tally.c.id).order_by(tally.c.id))).scalars().all()
    for number in numbers:
        yield _imported_counts(
            (await connection.execute(select(tally).where(tally.c.id == number))).one()
        )


async def write(connection: AsyncConnection, mine: ImportedCounts) -> None:
    """Store counts in place of those of the same file."""
    await remove(connection, mine.digest)
    last = (await connection.execute(select(func.max(tally.c.id)))).scalar() or 0
    lines = [
        f"{spam} {ham} {word}"
        for word, (spam, ham) in zip(mine.words, mine.counts.tolist(), strict=True)
    ]
    await connection.execute(
        insert(tally).values(
            id=last + 1,
            digest=mine.digest,
            source=storable(mine.source),
            time=to_number(mine.time),
            spam=mine.spam,
            ham=mine.ham,
            content=zlib.compress("\n".join(lines).encode()),
        )
    )


async def remove(connection: AsyncConnection, digest: bytes) -> None:
    """Delete the counts that a file brought."""
    await connection.execute(delete(tally).where(tally.c.digest == digest))


def _imported_counts(row: Row[*tuple[Any, ...]]) -> ImportedCounts:
    try:
        lines = zlib.decompress(row.content).decode().split("\n")
        columns = [line.split(" ", 2) for line in lines if line]
        numbers = [(int(spam), int(ham)) for spam, ham, _ in columns]
    except (zlib.error, ValueError) as error:
        raise BlobError(f"stored counts are damaged: {error}") from error
    return ImportedCounts(
        digest=row.digest,
        source=row.source,
        time=from_number(row.time),
        spam=row.spam,
        ham=row.ham,
        words=tuple(word for _, _, word in columns),
        counts=np.array(numbers, dtype=np.int32).reshape(-1, 2),
    )
