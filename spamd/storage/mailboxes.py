"""What feedback remembers: the ports `Mailboxes` and `HeldLessons`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Row, and_, delete, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.decision import Verdict
from spamd.ports import Cursor, Held, Parked, Place
from spamd.sample import Label
from spamd.storage import parts, tables
from spamd.storage.blobs import decode_features, encode_features
from spamd.storage.engine import Database
from spamd.storage.parts import upsert
from spamd.storage.tables import storable, trace
from spamd.storage.times import from_number, to_number

CURSOR, PARKED, HELD = tables.cursor, tables.parked, tables.held
LESSON, SCAN = tables.lesson, tables.scan

CHUNK = 500
"""Keys per statement."""


class SqlMailboxes:
    """How far each folder was read, where mails were seen, and what could not be learned."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        """Return the cursors of an account by folder."""
        async with self._database.reading() as connection:
            rows = await connection.execute(select(CURSOR).where(CURSOR.c.account == account))
            return {row.folder: _cursor(row) for row in rows}

    async def seen(self, account: str, traces: Sequence[bytes]) -> Mapping[bytes, Place]:
        """Return where mails were seen so far; those never seen are left out."""
        places: dict[bytes, Place] = {}
        async with self._database.reading() as connection:
            for start in range(0, len(traces), CHUNK):
                part = traces[start : start + CHUNK]
                rows = await connection.execute(
                    select(trace.c.mail, trace.c.places).where(
                        trace.c.account == account, trace.c.mail.in_(part)
                    )
                )
                places.update((row.mail, Place(row.places)) for row in rows)
        return places

    async def save(
        self, cursor: Cursor | None, account: str, traces: Mapping[bytes, Place]
    ) -> None:
        """Write a cursor and add places to traces, in one transaction."""
        async with self._database.writing() as connection:
            if cursor is not None:
                await _write_cursor(connection, cursor)
            if traces:
                await _add_places(connection, account, traces)

    async def forget(self, account: str, folder: str) -> None:
        """Remove the cursor of a folder that is gone; its traces stay."""
        here = (CURSOR.c.account == account, CURSOR.c.folder == folder)
        async with self._database.writing() as connection:
            await connection.execute(delete(CURSOR).where(*here))

    async def park(self, parked: Parked) -> None:
        """Insert or replace one row of the mails that could not be learned."""
        fresh = {
            "validity": parked.validity,
            "attempts": parked.attempts,
            "reason": parked.reason,
            "time": to_number(parked.time),
        }
        async with self._database.writing() as connection:
            insert = upsert(connection)(PARKED).values(
                account=parked.account, folder=parked.folder, uid=parked.uid, **fresh
            )
            await connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[
                        PARKED.c.account,
                        PARKED.c.folder,
                        PARKED.c.uid,
                    ],
                    set_={name: insert.excluded[name] for name in fresh},
                )
            )

    async def parked(self, account: str | None = None) -> Sequence[Parked]:
        """Return the mails that could not be learned, of one account or of all, oldest first."""
        wanted = select(PARKED).order_by(
            PARKED.c.time,
            PARKED.c.account,
            PARKED.c.folder,
            PARKED.c.uid,
        )
        if account is not None:
            wanted = wanted.where(PARKED.c.account == account)
        async with self._database.reading() as connection:
            return [
                Parked(
                    account=row.account,
                    folder=row.folder,
                    validity=row.validity,
                    uid=row.uid,
                    attempts=row.attempts,
                    reason=row.reason,
                    time=from_number(row.time),
                )
                for row in await connection.execute(wanted)
            ]

    async def unpark(self, account: str, folder: str, uid: str) -> None:
        """Remove a row of `park`; nothing happens when it is not there."""
        here = (
            PARKED.c.account == account,
            PARKED.c.folder == folder,
            PARKED.c.uid == uid,
        )
        async with self._database.writing() as connection:
            await connection.execute(delete(PARKED).where(*here))


async def _write_cursor(connection: AsyncConnection, fresh: Cursor) -> None:
    values = {
        "validity": fresh.validity,
        "next_uid": fresh.next_uid,
        "modseq": fresh.modseq,
        "messages": fresh.messages,
        "first_look": fresh.first_look,
        "marked": fresh.marked,
        "time": to_number(fresh.time),
    }
    insert = upsert(connection)(CURSOR).values(account=fresh.account, folder=fresh.folder, **values)
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=[CURSOR.c.account, CURSOR.c.folder],
            set_={name: insert.excluded[name] for name in values},
        )
    )


async def _add_places(
    connection: AsyncConnection, account: str, traces: Mapping[bytes, Place]
) -> None:
    insert = upsert(connection)(trace)
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=[trace.c.account, trace.c.mail],
            set_={"places": trace.c.places.op("|")(insert.excluded.places)},
        ),
        [
            {"account": account, "mail": mail, "places": int(place)}
            for mail, place in sorted(traces.items())
        ],
    )


def _cursor(row: Row[*tuple[Any, ...]]) -> Cursor:
    return Cursor(
        account=row.account,
        folder=row.folder,
        validity=row.validity,
        next_uid=row.next_uid,
        modseq=row.modseq,
        messages=row.messages,
        first_look=row.first_look,
        marked=row.marked,
        time=from_number(row.time),
    )


class SqlHeldLessons:
    """Lessons that wait for a review."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hold(self, held: Sequence[Held]) -> None:
        """Store lessons; one with the same digest as another replaces it, under a new number."""
        async with self._database.writing() as connection:
            await parts.standing(connection, lock=True)  # two may hold the same mail at once
            for each in held:
                digest = each.features.digest
                await connection.execute(delete(HELD).where(HELD.c.digest == digest))
                await connection.execute(HELD.insert().values(_held_row(each)))

    async def held(self) -> Sequence[Held]:
        """Return the lessons that wait, oldest first."""
        async with self._database.reading() as connection:
            rows = await connection.execute(select(HELD).order_by(HELD.c.number))
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

    async def drop(self, numbers: Sequence[int]) -> int:
        """Remove lessons and return how many there were."""
        async with self._database.writing() as connection:
            return await _removed(connection, HELD.c.number, numbers)

    async def contradictions(self, actor: str, since: datetime) -> int:
        """Return how many lessons of a person since then contradict a clear verdict."""
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
    for start in range(0, len(values), CHUNK):
        these = column.in_(values[start : start + CHUNK])
        removed += (await connection.execute(delete(HELD).where(these))).rowcount
    return removed


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
