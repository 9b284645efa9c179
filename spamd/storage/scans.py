"""What was said about mails, kept for some days: the ports `ScanLog` and `History`.

A scan is noted in memory and written by `flush` (the daemon does so every second), so that neither
a slow nor an absent database delays a mail; so are the answer that it got, and how many mails there
were in an hour. What waits is bounded: the oldest notes are dropped
first. A person then finds a mail that was judged but is not known here, and it is taught from the
copy in the folder instead.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import Known
from spamd.message.features import Features
from spamd.ports import Clock
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.storage.corpus.codec import decode_features, encode_features
from spamd.storage.engine import Database, chunks, upsert
from spamd.storage.tables import lesson, mail_hour, scan, storable
from spamd.storage.times import from_number, to_number

WAITING = 2_000
"""Scans that may wait to be written: some seconds of a busy worker, about 40 MB of features."""

YIELD_EVERY = 8
"""Scans packed before mail that waits gets a turn: about 3 ms."""


MailHour = tuple[int, str, str, str]
"""When an hour began, listener, verdict, action: what mails are counted by."""


class Scans:
    """Scans of the last days."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: deque[tuple[ScanReport, datetime]] = deque(maxlen=WAITING)
        self._answers: dict[str, tuple[str, str]] = {}
        self._hours: Counter[MailHour] = Counter()

    def record(self, report: ScanReport) -> None:
        """Keep a report for some days; never blocks, never fails."""
        if report.features is not None:
            self._waiting.append((report, self._clock.now()))

    def answered(self, report: ScanReport, listener: str, queue_id: str) -> None:
        """Note by which listener a message came and the next hop's id of it; count it."""
        hour = self._clock.now().replace(minute=0, second=0, microsecond=0)
        self._hours[to_number(hour), listener, report.verdict.value, report.action.value] += 1
        if report.features is not None and len(self._answers) < WAITING:
            self._answers[report.id] = (listener, queue_id)

    @property
    def waiting(self) -> int:
        """Return how many scans were not written yet."""
        return len(self._waiting)

    async def flush(self) -> int:
        """Write what waits; return how many scans that were.

        Raises:
            StorageUnavailable: they go on waiting.
        """
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        answers, self._answers = self._answers, {}
        hours, self._hours = self._hours, Counter()
        if not (batch or answers or hours):
            return 0
        rows = []
        try:
            for number, (report, time) in enumerate(batch, start=1):
                if report.features is not None:
                    answer = answers.get(report.id, ("", ""))
                    rows.append(_row(report, report.features, time, answer))
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            there = {row["id"] for row in rows}
            late = {name: answer for name, answer in answers.items() if name not in there}
            async with self._database.writing() as connection:
                rows.sort(key=lambda row: str(row["id"]))  # two writers lock them in one order
                await _write(connection, rows, late, hours)
        except BaseException:
            # Newer ones may have come meanwhile; if there is no room for all, the oldest go.
            room = WAITING - len(self._waiting)
            self._waiting.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))
            self._answers = answers | self._answers
            self._hours += hours
            raise
        return len(rows)

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Known]:
        found = {row.id: row for row in await self._rows(scan.c.id, ids)}
        lessons = await self._lessons([row.digest for row in found.values()])
        return {name: _known(row.digest, row, lessons) for name, row in found.items()}

    async def by_digest(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        rows = await self._rows(scan.c.digest, digests)
        scans = {row.digest: row for row in sorted(rows, key=lambda row: row.time)}
        lessons = await self._lessons(digests)
        return {
            digest: _known(digest, scans.get(digest), lessons)
            for digest in digests
            if digest in scans or digest in lessons
        }

    async def kept(self, digest: bytes) -> Features | None:
        """Return the features as they were scanned last, None when they are no longer kept."""
        newest = (
            select(scan.c.content)
            .where(scan.c.digest == digest)
            .order_by(scan.c.time.desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            blob = (await connection.execute(newest)).scalar()
        return None if blob is None else decode_features(blob)

    async def _rows(
        self, key: ColumnElement[Any], values: Sequence[object]
    ) -> list[Row[*tuple[Any, ...]]]:
        columns = (scan.c.id, scan.c.digest, scan.c.time, scan.c.verdict, scan.c.probability)
        rows: list[Row[*tuple[Any, ...]]] = []
        async with self._database.reading() as connection:
            for part in chunks(values):
                wanted = select(*columns).where(key.in_(part))
                rows += (await connection.execute(wanted)).all()
        return rows

    async def _lessons(self, digests: Sequence[bytes]) -> dict[bytes, Row[*tuple[Any, ...]]]:
        columns = (
            lesson.c.digest,
            lesson.c.label,
            lesson.c.source,
            lesson.c.probability_before,
            lesson.c.probability_after,
        )
        rows: dict[bytes, Row[*tuple[Any, ...]]] = {}
        async with self._database.reading() as connection:
            for part in chunks(digests):
                wanted = select(*columns).where(lesson.c.digest.in_(part))
                rows.update((row.digest, row) for row in await connection.execute(wanted))
        return rows


async def _write(
    connection: AsyncConnection,
    rows: Sequence[Mapping[str, object]],
    late: Mapping[str, tuple[str, str]],
    hours: Mapping[MailHour, int],
) -> None:
    """Write scans, the answers to scans that were written before, and the counts of hours."""
    insert = upsert(connection)
    if rows:
        await connection.execute(insert(scan).on_conflict_do_nothing(), rows)
    if late:
        of_late = scan.update().where(scan.c.id == bindparam("name"))
        await connection.execute(
            of_late.values(listener=bindparam("way"), queue_id=bindparam("queue")),
            [{"name": name, "way": way, "queue": queue} for name, (way, queue) in late.items()],
        )
    if hours:
        fresh = insert(mail_hour)
        await connection.execute(
            fresh.on_conflict_do_update(
                index_elements=list(mail_hour.primary_key.columns),
                set_={"mails": mail_hour.c.mails + fresh.excluded.mails},
            ),
            [
                {"hour": hour, "listener": way, "verdict": verdict, "action": action, "mails": n}
                for (hour, way, verdict, action), n in sorted(hours.items())
            ],
        )


def _row(
    report: ScanReport, features: Features, time: datetime, answer: tuple[str, str]
) -> dict[str, object]:
    return {
        "id": report.id,
        "digest": report.digest,
        "time": to_number(time),
        "verdict": report.verdict.value,
        "action": report.action.value,
        "probability": report.probability,
        "user": report.user,
        "listed": report.standing.listed.short(),
        "content": encode_features(features),
        "listener": answer[0],
        "queue_id": storable(answer[1]),
    }


def _known(
    digest: bytes,
    scanned: Row[*tuple[Any, ...]] | None,
    lessons: Mapping[bytes, Row[*tuple[Any, ...]]],
) -> Known:
    known = Known(digest=digest)
    if scanned is not None:
        known = replace(
            known,
            scanned=from_number(scanned.time),
            verdict=Verdict(scanned.verdict),
            probability=scanned.probability,
        )
    if digest in lessons:
        taught = lessons[digest]
        known = replace(
            known,
            label=Label(taught.label),
            source=taught.source,
            before=taught.probability_before,
            after=taught.probability_after,
        )
    return known
