"""Which lessons taught a word: the journal is looked through, newest first, for a while.

There is no list of the lessons of each word: it would be larger than the journal, and be written
with each lesson. Unpacking a sample takes some 40 µs, most of it outside of Python, so a few
thousand lessons are looked through at a time; whoever wants more looks on from there.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select

from spamd.admin.ports import WordLesson, WordLessons
from spamd.storage.corpus.codec import BlobError, decode_sample, holds_words
from spamd.storage.engine import Database
from spamd.storage.records.lesson_list import COLUMNS, row_of
from spamd.storage.tables import lesson, sample

PART = 250
"""Lessons read at a time: some MB."""

MOST = 20
"""Lessons named at a time."""


async def lessons_of(
    database: Database, text: str, behind: int | None, within_s: float
) -> WordLessons:
    """Return lessons that taught a word or pair."""
    deadline = time.monotonic() + within_s
    words = [word.encode() for word in text.split(" ")]
    found: list[WordLesson] = []
    looked = 0
    while True:
        statement = select(*COLUMNS, sample.c.content).join_from(lesson, sample)
        if behind is not None:
            statement = statement.where(lesson.c.id < behind)
        async with database.reading() as connection:
            newest = statement.order_by(lesson.c.id.desc()).limit(PART)
            rows = (await connection.execute(newest)).all()
        more = await asyncio.to_thread(_among, rows, words, text, MOST - len(found))
        found += [each for _, each in more]
        full = len(found) >= MOST
        last = more[-1][0] if full else len(rows) - 1
        looked += last + 1
        if not rows or (len(rows) < PART and not full):
            return WordLessons(found=tuple(found), looked=looked, behind=None)
        behind = rows[last].id
        if full or time.monotonic() > deadline:
            return WordLessons(found=tuple(found), looked=looked, behind=behind)


def _among(
    rows: Sequence[Row[*tuple[Any, ...]]], words: Sequence[bytes], text: str, most: int
) -> list[tuple[int, WordLesson]]:
    """Return those of the rows that taught the text, at most so many, with their places."""
    found: list[tuple[int, WordLesson]] = []
    for place, row in enumerate(rows):
        try:
            if not holds_words(row.content, words):
                continue
            taught, texts = decode_sample(row.content)
        except BlobError:
            continue
        index = next((i for i, each in enumerate(texts) if each == text), None)
        if index is not None:
            one = WordLesson(lesson=row_of(row), occurrences=int(taught.occurrences[index]))
            found.append((place, one))
            if len(found) == most:
                break
    return found
