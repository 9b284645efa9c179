"""The journal: what was taught, by whom, when, and all that is needed to take it back."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Row, case, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import taught
from spamd.bayes.fusion import ScoreHistory
from spamd.bayes.learning import Effect
from spamd.message.features import Texts
from spamd.sample import Label, Sample
from spamd.storage.corpus.codec import (
    BlobError,
    chosen,
    decode_floats,
    decode_sample,
    encode_floats,
    encode_sample,
)
from spamd.storage.engine import CHUNK, chunks
from spamd.storage.tables import lesson, sample, storable
from spamd.storage.times import from_number, to_number
from spamd.training.ports import Lesson, LessonSummary, Selection

JournalRow = Row[*tuple[Any, ...]]

SUMMARY_COLUMNS = (
    lesson.c.digest,
    lesson.c.label,
    lesson.c.source,
    lesson.c.actor,
    lesson.c.sender_domain,
    lesson.c.time,
    lesson.c.probability_before,
    lesson.c.probability_after,
)
COLUMNS = (*SUMMARY_COLUMNS, lesson.c.step, lesson.c.gram_step, lesson.c.scores, sample.c.content)


async def listed(connection: AsyncConnection, selection: Selection) -> list[LessonSummary]:
    """Return the lessons that fit, in the order of learning."""
    fit = conditions(selection)
    if selection.digests is None:
        queries = [fit]
    else:
        queries = [[*fit, lesson.c.digest.in_(part)] for part in chunks(selection.digests)]
    found: list[JournalRow] = []
    for query in queries:
        statement = (
            select(lesson.c.id, *SUMMARY_COLUMNS)
            .where(*query)
            .order_by(lesson.c.id if selection.oldest else lesson.c.id.desc())
            .limit(selection.oldest or selection.newest)
        )
        found += (await connection.execute(statement)).all()
    found.sort(key=lambda row: row.id)
    return [_summary(row) for row in selection.end_of(found)]


async def latest(connection: AsyncConnection, number: int) -> list[LessonSummary]:
    """Return the lessons given last, the newest first, also when they were rehearsed since."""
    statement = (
        select(*SUMMARY_COLUMNS).order_by(lesson.c.time.desc(), lesson.c.id.desc()).limit(number)
    )
    return [_summary(row) for row in await connection.execute(statement)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The lessons in force, counted.

    sources      how many came from each source, most first
    corrections  how many contradicted what the filter thought before it learned them
    """

    sources: Mapping[str, int]
    corrections: int

    @property
    def total(self) -> int:
        """Return how many lessons there are."""
        return sum(self.sources.values())


async def summary(connection: AsyncConnection) -> Summary:
    """Return the lessons in force, counted by the database."""
    wrong = (lesson.c.probability_before > 0.5) != (lesson.c.label == Label.SPAM.value)
    statement = select(
        lesson.c.source,
        func.count().label("number"),
        func.sum(case((wrong, 1), else_=0)).label("wrong"),
    ).group_by(lesson.c.source)
    found = (await connection.execute(statement)).all()
    rows = sorted(found, key=lambda row: (-row.number, row.source))
    return Summary(
        sources={row.source: row.number for row in rows}, corrections=sum(row.wrong for row in rows)
    )


async def lessons(connection: AsyncConnection, digests: Sequence[bytes]) -> dict[bytes, Lesson]:
    """Return those of these lessons that are in force, in no order that matters."""
    found = {}
    for part in chunks(digests):
        statement = select(*COLUMNS).join_from(lesson, sample).where(lesson.c.digest.in_(part))
        for row in await connection.execute(statement):
            found[row.digest] = _lesson(row)
    return found


async def walk(
    connection: AsyncConnection, damaged: list[bytes] | None = None
) -> AsyncGenerator[list[Lesson]]:
    """Give all lessons in the order of learning, some hundreds at a time.

    The digests of lessons that can't be read are added to `damaged`; without that list they raise.

    Raises:
        BlobError: a sample is damaged.
    """
    last: int | None = 0
    while last is not None:
        last, some = await after(connection, last, CHUNK, damaged)
        if last is not None:
            yield some


async def after(
    connection: AsyncConnection, last: int, number: int, damaged: list[bytes] | None = None
) -> tuple[int | None, list[Lesson]]:
    """Return so many lessons after the one with the number `last`, and where to go on.

    That is None at the end. For `damaged` see `walk`.

    Raises:
        BlobError: a sample is damaged.
    """
    statement = (
        select(lesson.c.id, *COLUMNS)
        .join_from(lesson, sample)
        .where(lesson.c.id > last)
        .order_by(lesson.c.id)
        .limit(number)
    )
    rows = (await connection.execute(statement)).all()
    whole = []
    for row in rows:
        try:
            whole.append(_lesson(row))
        except BlobError:
            if damaged is None:
                raise
            damaged.append(row.digest)
    return rows[-1].id if rows else None, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLesson:
    """One row of the journal as far as the fusion looks at it."""

    id: int
    digest: bytes
    label: str
    scores: bytes

    def append_to(self, history: ScoreHistory) -> None:
        """Add it as the newest."""
        history.append(self.digest, Label(self.label), np.frombuffer(self.scores, "<f8"))


SCORED = (lesson.c.id, lesson.c.digest, lesson.c.label, lesson.c.scores)


async def history(
    connection: AsyncConnection, window: int
) -> tuple[ScoreHistory, ScoredLesson | None]:
    """Return the scores of the last lessons, from which the fusion is fitted, and the newest."""
    statement = select(*SCORED).order_by(lesson.c.id.desc()).limit(window)
    rows = _scored((await connection.execute(statement)).all())
    scores = ScoreHistory(window)
    for row in reversed(rows):
        row.append_to(scores)
    return scores, rows[0] if rows else None


async def scored(connection: AsyncConnection, start: int) -> list[ScoredLesson]:
    """Return the lessons from this number on, in the order of learning."""
    statement = select(*SCORED).where(lesson.c.id >= start).order_by(lesson.c.id)
    return _scored((await connection.execute(statement)).all())


def _scored(rows: Sequence[JournalRow]) -> list[ScoredLesson]:
    return [
        ScoredLesson(id=row.id, digest=row.digest, label=row.label, scores=row.scores)
        for row in rows
    ]


async def add(connection: AsyncConnection, learned: Sequence[Lesson]) -> ScoredLesson | None:
    """Write new lessons at the end of the journal; return the last."""
    if not learned:
        return None
    last = (await connection.execute(select(func.coalesce(func.max(lesson.c.id), 0)))).scalar_one()
    await connection.execute(
        insert(lesson), [_row(number, each) for number, each in enumerate(learned, start=last + 1)]
    )
    await connection.execute(
        insert(sample),
        [
            {"lesson": number, "content": content(each)}
            for number, each in enumerate(learned, start=last + 1)
        ],
    )
    return ScoredLesson(
        id=last + len(learned),
        digest=learned[-1].digest,
        label=learned[-1].label.value,
        scores=encode_floats(learned[-1].effect.scores),
    )


async def remove(connection: AsyncConnection, digests: Sequence[bytes]) -> None:
    """Delete lessons; their samples go with them."""
    for part in chunks(digests):
        await connection.execute(delete(lesson).where(lesson.c.digest.in_(part)))


def content(each: Lesson) -> bytes:
    """Return what a lesson teaches as bytes."""
    return encoded(each.sample, each.texts)


def encoded(sample: Sample, texts: Texts) -> bytes:
    """Return a sample as a journal keeps it: only the tokens that count, of a very long mail."""
    rows = taught(sample)
    if rows is None:
        return encode_sample(sample, texts)
    return encode_sample(*chosen(sample, texts, rows))


def conditions(selection: Selection) -> list[ColumnElement[bool]]:
    """Return what holds of the lessons that fit."""
    found: list[ColumnElement[bool]] = []
    if selection.since is not None:
        found.append(lesson.c.time >= to_number(selection.since))
    if selection.until is not None:
        found.append(lesson.c.time < to_number(selection.until))
    if selection.source is not None:
        found.append(lesson.c.source == selection.source)
    if selection.actor is not None:
        found.append(lesson.c.actor == selection.actor)
    if selection.sender_domain is not None:
        found.append(lesson.c.sender_domain == selection.sender_domain)
    if selection.label is not None:
        found.append(lesson.c.label == selection.label)
    return found


def _row(number: int, each: Lesson) -> dict[str, object]:
    return {
        "id": number,
        "digest": each.digest,
        "label": each.label.value,
        "source": storable(each.source),
        "actor": storable(each.actor),
        "sender_domain": storable(each.sender_domain),
        "time": to_number(each.time),
        "probability_before": each.effect.probability_before,
        "probability_after": each.effect.probability_after,
        "step": each.effect.step,
        "gram_step": each.effect.gram_step,
        "scores": encode_floats(each.effect.scores),
    }


def _summary(row: JournalRow) -> LessonSummary:
    return LessonSummary(
        digest=row.digest,
        label=Label(row.label),
        source=row.source,
        actor=row.actor,
        sender_domain=row.sender_domain,
        time=from_number(row.time),
        before=row.probability_before,
        after=row.probability_after,
    )


def _lesson(row: JournalRow) -> Lesson:
    stored, texts = decode_sample(row.content)
    return Lesson(
        digest=row.digest,
        label=Label(row.label),
        source=row.source,
        actor=row.actor,
        sender_domain=row.sender_domain,
        time=from_number(row.time),
        effect=Effect(
            scores=decode_floats(row.scores),
            probability_before=row.probability_before,
            probability_after=row.probability_after,
            step=row.step,
            gram_step=row.gram_step,
        ),
        sample=stored,
        texts=texts,
    )
