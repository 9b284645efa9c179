"""Lessons that wait for a review (the port `HeldLessons`)."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Row, and_, delete, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import Held
from spamd.sample import Label
from spamd.storage import tables
from spamd.storage.corpus import corpus_tables
from spamd.storage.corpus.codec import decode_features, encode_features
from spamd.storage.engine import Database, chunks, retried
from spamd.storage.tables import storable
from spamd.storage.times import from_number, to_number

HELD, LESSON, SCAN = tables.held, tables.lesson, tables.scan


class SqlHeldLessons:
    """Lessons that wait for a review."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @retried
    async def hold(self, held: Sequence[Held]) -> None:
        """Store lessons; one with the same digest as another replaces it, under a new number."""
        async with self._database.writing() as connection:
            # two may hold the same mail at once
            await corpus_tables.version(connection, lock=True)
            for each in held:
                digest = each.features.digest
                await connection.execute(delete(HELD).where(HELD.c.digest == digest))
                await connection.execute(HELD.insert().values(_held_row(each)))

    async def held(self) -> Sequence[Held]:
        async with self._database.reading() as connection:
            rows = (await connection.execute(select(HELD).order_by(HELD.c.number))).all()
        return await asyncio.to_thread(_unpacked, rows)

    @retried
    async def drop(self, numbers: Sequence[int]) -> int:
        async with self._database.writing() as connection:
            return await _removed(connection, HELD.c.number, numbers)

    async def contradictions(self, actor: str, since: datetime) -> int:
        wrong = or_(
            and_(LESSON.c.label == Label.SPAM.value, SCAN.c.verdict == Verdict.HAM.value),
            and_(LESSON.c.label == Label.HAM.value, SCAN.c.verdict == Verdict.SPAM.value),
        )
        learned = select(func.count()).where(
            LESSON.c.time >= to_number(since),
            LESSON.c.actor == actor,
            exists().where(SCAN.c.digest == LESSON.c.digest, wrong),
        )
        waiting = select(func.count()).where(HELD.c.time >= to_number(since), HELD.c.actor == actor)
        async with self._database.reading() as connection:
            in_force: int = (await connection.execute(learned)).scalar_one()
            held: int = (await connection.execute(waiting)).scalar_one()
        return in_force + held


async def settle(connection: AsyncConnection, digests: Sequence[bytes]) -> int:
    """Remove what waits for a review about mails that are taught now: the last word counts."""
    return await _removed(connection, HELD.c.digest, digests)


async def _removed(
    connection: AsyncConnection, column: Column[Any], values: Sequence[object]
) -> int:
    """Remove the held lessons with these values in a column; return how many there were."""
    removed = 0
    for part in chunks(values):
        these = column.in_(part)
        removed += (await connection.execute(delete(HELD).where(these))).rowcount
    return removed


def _unpacked(rows: Sequence[Row[Any]]) -> list[Held]:
    return [
        Held(
            number=row.number,
            features=decode_features(row.content),
            label=Label(row.label),
            source=row.source,
            actor=row.actor,
            probability=row.probability,
            reason=row.reason,
            time=from_number(row.time),
        )
        for row in rows
    ]


def _held_row(each: Held) -> dict[str, object]:
    return {
        "digest": each.features.digest,
        "label": each.label.value,
        "source": storable(each.source),
        "actor": storable(each.actor),
        "probability": each.probability,
        "reason": each.reason,
        "time": to_number(each.time),
        "content": encode_features(each.features),
    }
