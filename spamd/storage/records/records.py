"""All of it as one port (`admin.ports.Records`)."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select

from spamd.admin.ports import (
    HeldMail,
    HourCount,
    LessonGroups,
    LessonRow,
    Place,
    ScanFilter,
    ScanRow,
    SourceCount,
    Trial,
    WordLessons,
)
from spamd.message.features import Features
from spamd.sample import Label, Sample
from spamd.storage.engine import Database, put
from spamd.storage.records import lesson_list, scan_list
from spamd.storage.records.word_lessons import lessons_of
from spamd.storage.tables import trial
from spamd.storage.times import from_number, to_number
from spamd.training.ports import Selection


class SqlRecords:
    """The tables as lists."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def scans(self, chosen: ScanFilter, at: Place | None, limit: int) -> Sequence[ScanRow]:
        async with self._database.reading() as connection:
            return await scan_list.listed(connection, chosen, at, limit)

    async def horizon(self, chosen: ScanFilter, at: Place | None, scans: int) -> datetime | None:
        async with self._database.reading() as connection:
            return await scan_list.horizon(connection, chosen, at, scans)

    async def count_scans(self, chosen: ScanFilter, most: int) -> int:
        async with self._database.reading() as connection:
            return await scan_list.counted(connection, chosen, most)

    async def scan(self, name: str) -> tuple[ScanRow, Features] | None:
        async with self._database.reading() as connection:
            return await scan_list.one(connection, name)

    async def hours(self, since: datetime, step: int = 1) -> Sequence[HourCount]:
        async with self._database.reading() as connection:
            return await scan_list.hours(connection, since, step)

    async def lessons(
        self, selection: Selection, at: Place | None, limit: int
    ) -> Sequence[LessonRow]:
        async with self._database.reading() as connection:
            return await lesson_list.listed(connection, selection, at, limit)

    async def lesson(self, digest: bytes) -> LessonRow | None:
        async with self._database.reading() as connection:
            return await lesson_list.one(connection, digest)

    async def sources(self) -> Sequence[SourceCount]:
        async with self._database.reading() as connection:
            return await lesson_list.sources(connection)

    async def count_held(self) -> int:
        async with self._database.reading() as connection:
            return await lesson_list.count_held(connection)

    async def held(self, most: int) -> Sequence[HeldMail]:
        async with self._database.reading() as connection:
            return await lesson_list.waiting(connection, most)

    async def groups(
        self, selection: Selection, most: int | None = None, *, people: bool = True
    ) -> LessonGroups:
        async with self._database.reading() as connection:
            return await lesson_list.groups(connection, selection, most, people=people)

    async def word(self, text: str, behind: int | None, within_s: float) -> WordLessons:
        return await lessons_of(self._database, text, behind, within_s)

    async def samples(self, newest: int) -> Sequence[tuple[Sample, Label, str]]:
        async with self._database.reading() as connection:
            rows = await lesson_list.samples(connection, newest)
        return await asyncio.to_thread(lesson_list.unpacked, rows)

    async def trial(self, name: str) -> Trial | None:
        async with self._database.reading() as connection:
            wanted = select(trial).where(trial.c.name == name)
            row = (await connection.execute(wanted)).first()
        return None if row is None else Trial(time=from_number(row.time), content=row.content)

    async def write_trial(self, name: str, written: Trial | None) -> None:
        async with self._database.writing() as connection:
            if written is None:
                await connection.execute(delete(trial).where(trial.c.name == name))
            else:
                row = {"name": name, "time": to_number(written.time), "content": written.content}
                await put(connection, trial, [row])
