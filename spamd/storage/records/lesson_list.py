"""Lessons by the time at which they were given, newest first, in parts; and counted in groups."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.admin.ports import HeldMail, LessonGroup, LessonGroups, LessonRow, Place, SourceCount
from spamd.sample import Label, Sample
from spamd.storage.corpus.codec import decode_sample
from spamd.storage.corpus.journal import conditions
from spamd.storage.tables import held, lesson, sample
from spamd.storage.times import from_number
from spamd.training.ports import Selection

COLUMNS = (
    lesson.c.id,
    lesson.c.digest,
    lesson.c.label,
    lesson.c.source,
    lesson.c.actor,
    lesson.c.sender_domain,
    lesson.c.time,
    lesson.c.probability_before,
    lesson.c.probability_after,
)

HELD_COLUMNS = (
    held.c.number,
    held.c.digest,
    held.c.label,
    held.c.probability,
    held.c.actor,
    held.c.reason,
    held.c.time,
)

LABELS = {label.value: label for label in Label}


async def listed(
    connection: AsyncConnection, selection: Selection, at: Place | None, limit: int
) -> Sequence[LessonRow]:
    """Return lessons, newest first."""
    statement = select(*COLUMNS).where(*_any_label(selection), *_beyond(at)).limit(limit)
    newer = at is not None and at.newer
    order = (lesson.c.time, lesson.c.id) if newer else (lesson.c.time.desc(), lesson.c.id.desc())
    rows = list((await connection.execute(statement.order_by(*order))).all())
    return [row_of(row) for row in (reversed(rows) if newer else rows)]


async def one(connection: AsyncConnection, digest: bytes) -> LessonRow | None:
    """Return the lesson in force about a message."""
    row = (await connection.execute(select(*COLUMNS).where(lesson.c.digest == digest))).first()
    return None if row is None else row_of(row)


async def sources(connection: AsyncConnection) -> Sequence[SourceCount]:
    """Return all lessons by source and label, most first: an index is enough for that."""
    keys = (lesson.c.source, lesson.c.label)
    statement = select(*keys, func.count().label("lessons")).group_by(*keys)
    rows = (await connection.execute(statement)).all()
    return [
        SourceCount(source=row.source, label=Label(row.label), lessons=row.lessons)
        for row in sorted(rows, key=lambda row: (-row.lessons, row.source, row.label))
    ]


async def count_held(connection: AsyncConnection) -> int:
    """Return how many lessons wait for a review."""
    found: int = (await connection.execute(select(func.count()).select_from(held))).scalar_one()
    return found


async def waiting(connection: AsyncConnection, most: int) -> Sequence[HeldMail]:
    """Return the lessons that wait for a review, oldest first, without what they would teach."""
    statement = select(*HELD_COLUMNS).order_by(held.c.number).limit(most)
    return [
        HeldMail(
            number=row.number,
            mail=row.digest.hex(),
            label=LABELS[row.label],
            probability=row.probability,
            actor=row.actor,
            reason=row.reason,
            time=from_number(row.time),
        )
        for row in await connection.execute(statement)
    ]


async def groups(
    connection: AsyncConnection, selection: Selection, most: int | None, *, people: bool
) -> LessonGroups:
    """Return the lessons that fit by label, source and person; of people nothing, if so asked."""
    unnamed = literal("").label("actor")
    keys = (lesson.c.source, lesson.c.label, *((lesson.c.actor,) if people else ()))
    statement = (
        select(
            *keys,
            *(() if people else (unnamed,)),
            func.count().label("lessons"),
            func.min(lesson.c.time).label("first"),
            func.max(lesson.c.time).label("last"),
        )
        .where(*_any_label(selection))
        .group_by(*keys)
    )
    rows = (await connection.execute(statement)).all()
    counts: Counter[Label] = Counter()
    for row in rows:
        counts[LABELS[row.label]] += row.lessons
    found = [
        LessonGroup(
            label=LABELS[row.label],
            source=row.source,
            actor=row.actor,
            lessons=row.lessons,
            first=from_number(row.first),
            last=from_number(row.last),
        )
        for row in sorted(rows, key=lambda row: -row.lessons)[:most]
    ]
    return LessonGroups(found=tuple(found), number=len(rows), lessons=counts)


def _any_label(selection: Selection) -> list[ColumnElement[bool]]:
    """Return what holds of lessons; by their label no index is looked for, as half of all fit."""
    wanted = conditions(replace(selection, label=None))
    if selection.label is not None:
        wanted.append(lesson.c.label + "" == selection.label.value)
    return wanted


async def samples(connection: AsyncConnection, newest: int) -> Sequence[tuple[bytes, Label, str]]:
    """Return the samples of the newest lessons of each label as they are stored, oldest first."""
    found = []
    for label in Label:
        statement = (
            select(lesson.c.id, lesson.c.sender_domain, sample.c.content)
            .join_from(lesson, sample)
            .where(lesson.c.label == label.value)
            .order_by(lesson.c.id.desc())
            .limit(newest)
        )
        rows = (await connection.execute(statement)).all()
        found += [(row.id, row.content, label, row.sender_domain) for row in rows]
    found.sort(key=lambda each: each[0])
    return [(content, label, sender) for _, content, label, sender in found]


def unpacked(rows: Sequence[tuple[bytes, Label, str]]) -> list[tuple[Sample, Label, str]]:
    """Return stored samples as samples."""
    return [(decode_sample(content)[0], label, sender) for content, label, sender in rows]


def _beyond(at: Place | None) -> list[ColumnElement[bool]]:
    if at is None:
        return []
    key = int(at.key) if at.key.isdecimal() and len(at.key) < 19 else 0
    if at.newer:
        later = or_(lesson.c.time > at.time, and_(lesson.c.time == at.time, lesson.c.id > key))
        return [lesson.c.time >= at.time, later]
    before = or_(lesson.c.time < at.time, and_(lesson.c.time == at.time, lesson.c.id < key))
    return [lesson.c.time <= at.time, before]


def row_of(row: Row[*tuple[Any, ...]]) -> LessonRow:
    """Return a row of the journal as lists show it."""
    return LessonRow(
        id=row.digest.hex(),
        label=Label(row.label),
        source=row.source,
        actor=row.actor,
        sender_domain=row.sender_domain,
        time=from_number(row.time),
        before=row.probability_before,
        after=row.probability_after,
        place=Place(time=row.time, key=str(row.id)),
    )
