"""Scans by the time at which they were made, newest first, in parts.

All that a list shows stands in the index `ix_scan_listed`, in its order: no part reads the rows.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.admin.ports import HourCount, Place, ScanFilter, ScanRow
from spamd.bayes.decision import Action, Verdict
from spamd.message.features import Features
from spamd.sample import Label
from spamd.storage.corpus.codec import decode_features
from spamd.storage.tables import lesson, mail_hour, scan, storable
from spamd.storage.times import from_number, to_number

ScanRecord = Row[*tuple[Any, ...]]

COLUMNS = (
    scan.c.time,
    scan.c.id,
    scan.c.verdict,
    scan.c.action,
    scan.c.listener,
    scan.c.probability,
    scan.c.queue_id,
    scan.c.digest,
)

HOUR = 3_600_000_000
"""In microseconds."""

DIGEST_HEX = 32
"""Characters of an identity in hex, at least; our ids are shorter or hold other letters."""


async def listed(
    connection: AsyncConnection, chosen: ScanFilter, at: Place | None, limit: int
) -> Sequence[ScanRow]:
    """Return scans, newest first."""
    statement = select(*COLUMNS).where(*_conditions(chosen), *_beyond(at)).limit(limit)
    newer = at is not None and at.newer
    order = (scan.c.time, scan.c.id) if newer else (scan.c.time.desc(), scan.c.id.desc())
    rows = list((await connection.execute(statement.order_by(*order))).all())
    labels = await _labels(connection, [row.digest for row in rows])
    return [_row(row, labels) for row in (reversed(rows) if newer else rows)]


async def horizon(
    connection: AsyncConnection, chosen: ScanFilter, at: Place | None, scans: int
) -> datetime | None:
    """Return the time of the scan so many scans behind a place."""
    newer = at is not None and at.newer
    order = (scan.c.time, scan.c.id) if newer else (scan.c.time.desc(), scan.c.id.desc())
    within = select(scan.c.time).where(*_within(chosen), *_beyond(at)).order_by(*order)
    time = (await connection.execute(within.offset(scans).limit(1))).scalar()
    return None if time is None else from_number(time)


async def counted(connection: AsyncConnection, chosen: ScanFilter, most: int) -> int:
    """Return how many scans fit, at most so many."""
    some = select(scan.c.time).where(*_conditions(chosen)).limit(most).subquery()
    found: int = (await connection.execute(select(func.count()).select_from(some))).scalar_one()
    return found


async def one(connection: AsyncConnection, name: str) -> tuple[ScanRow, Features] | None:
    """Return a scan by its id, else the last one of the message that has this identity."""
    which: ColumnElement[bool] = scan.c.id == storable(name)
    statement = select(*COLUMNS, scan.c.content)
    row = (await connection.execute(statement.where(which))).first()
    if row is None and (digest := digest_of(name)):
        newest = statement.where(scan.c.digest == digest).order_by(scan.c.time.desc()).limit(1)
        row = (await connection.execute(newest)).first()
    if row is None:
        return None
    labels = await _labels(connection, [row.digest])
    return _row(row, labels), decode_features(row.content)


async def hours(connection: AsyncConnection, since: datetime, step: int) -> Sequence[HourCount]:
    """Return how many mails there were by the hour, or by so many hours."""
    counts = mail_hour.c
    wanted = counts.hour >= to_number(since)
    statement = select(mail_hour).where(wanted).order_by(counts.hour)
    if step > 1:
        begin = (counts.hour - counts.hour % (step * HOUR)).label("hour")
        keys = (begin, counts.verdict, counts.action)
        mails = func.sum(counts.mails).label("mails")
        none = literal("").label("listener")
        statement = select(*keys, none, mails).where(wanted).group_by(*keys).order_by(begin)
    rows = await connection.execute(statement)
    return [
        HourCount(
            hour=from_number(row.hour),
            listener=row.listener,
            verdict=Verdict(row.verdict),
            action=Action(row.action),
            mails=int(row.mails),
        )
        for row in rows
    ]


def digest_of(name: str) -> bytes:
    """Return the identity that a name is in hex, empty when it is none."""
    try:
        return bytes.fromhex(name) if len(name) >= DIGEST_HEX else b""
    except ValueError:
        return b""


def _conditions(chosen: ScanFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if chosen.verdict is not None:
        found.append(scan.c.verdict == chosen.verdict.value)
    if chosen.action is not None:
        found.append(scan.c.action == chosen.action.value)
    if chosen.listener is not None:
        found.append(scan.c.listener == storable(chosen.listener))
    found += _within(chosen)
    if chosen.queue_id is not None:
        found.append(scan.c.queue_id == storable(chosen.queue_id))
    if chosen.id is not None:
        begin = storable(chosen.id)
        found.append(and_(scan.c.id >= begin, scan.c.id < f"{begin}\U0010ffff"))
    return found


def _within(chosen: ScanFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if chosen.since is not None:
        found.append(scan.c.time >= to_number(chosen.since))
    if chosen.until is not None:
        found.append(scan.c.time < to_number(chosen.until))
    return found


def _beyond(at: Place | None) -> list[ColumnElement[bool]]:
    """Return what holds of rows behind a place; the first condition lets an index be used."""
    if at is None:
        return []
    key = storable(at.key)
    if at.newer:
        later = or_(scan.c.time > at.time, and_(scan.c.time == at.time, scan.c.id > key))
        return [scan.c.time >= at.time, later]
    before = or_(scan.c.time < at.time, and_(scan.c.time == at.time, scan.c.id < key))
    return [scan.c.time <= at.time, before]


async def _labels(connection: AsyncConnection, digests: Sequence[bytes]) -> dict[bytes, Label]:
    if not digests:
        return {}
    wanted = select(lesson.c.digest, lesson.c.label).where(lesson.c.digest.in_(digests))
    return {row.digest: Label(row.label) for row in await connection.execute(wanted)}


def _row(row: ScanRecord, labels: dict[bytes, Label]) -> ScanRow:
    return ScanRow(
        id=row.id,
        mail=row.digest.hex(),
        time=from_number(row.time),
        verdict=Verdict(row.verdict),
        action=Action(row.action),
        probability=row.probability,
        listener=row.listener,
        queue_id=row.queue_id,
        label=labels.get(row.digest),
        place=Place(time=row.time, key=row.id),
    )
