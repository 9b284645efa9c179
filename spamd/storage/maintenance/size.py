"""How large the database is, and how large it will be in 90 days: for `spamd status`.

What grows are the lessons with their words, the site's and those of users; scans come to a level,
that of `database.scans_days` days. All are reckoned by the last weeks: as many rows a day as then,
each as large as the newest ones are. Rows and indexes of all else are bounded and small
(docs/operations.md, Growth).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Table, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.storage.engine import Database
from spamd.storage.layers.tables import user_lesson, user_sample
from spamd.storage.tables import corpus, lesson, sample, scan
from spamd.storage.times import to_number

AHEAD_DAYS = 90

LESSON_DAYS, SCAN_DAYS = 30, 7
"""Days looked back at: lessons are few, and scans are many, but fewer on a Sunday."""

NEWEST = 200
"""Rows whose size is looked at."""

OVERHEAD_BYTES = {"sqlite": (320, 420, 45, 500, 120), "postgresql": (420, 520, 90, 650, 200)}
"""Of a lesson, a scan, a token, a user's lesson and a user's sample besides their content: the row,
its part of the indexes, and the space that pages leave free."""

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of the database, and what it is going to be.

    now            bytes
    ahead          bytes in `AHEAD_DAYS` days, if all goes on as in the last weeks
    lessons_a_day, user_lessons_a_day, scans_a_day
    """

    now: int
    ahead: int
    lessons_a_day: float
    user_lessons_a_day: float
    scans_a_day: float


async def size(database: Database, now: datetime, scans_days: int) -> Size:
    """Return the size and the forecast."""
    async with database.reading() as connection:
        held = await _bytes(connection)
        lessons = await _a_day(connection, lesson, now, LESSON_DAYS)
        own = await _a_day(connection, user_lesson, now, LESSON_DAYS)
        scans = await _a_day(connection, scan, now, min(SCAN_DAYS, scans_days))
        vocabulary = (await connection.execute(select(corpus.c.vocabulary))).scalar() or 0
        taught = await _rows(connection, lesson)
        kept = await _rows(connection, scan)
        of_lesson, of_scan, of_token, of_own, of_own_sample = OVERHEAD_BYTES[
            connection.dialect.name
        ]
        a_lesson = of_lesson + await _content(connection, sample.c.content, sample.c.lesson)
        a_lesson += of_token * vocabulary / taught if taught else 0
        an_own = of_own + await _content(connection, user_lesson.c.sketch, user_lesson.c.id)
        if own:  # a mail that many have taught is kept once
            share = await _rows(connection, user_sample) / await _rows(connection, user_lesson)
            an_own += share * (of_own_sample + await _own_content(connection))
        a_scan = of_scan + await _content(connection, scan.c.content, scan.c.time)
    more = AHEAD_DAYS * (lessons * a_lesson + own * an_own)
    more += max(0.0, scans * scans_days - kept) * a_scan
    return Size(
        now=held,
        ahead=round(held + more),
        lessons_a_day=lessons,
        user_lessons_a_day=own,
        scans_a_day=scans,
    )


async def _bytes(connection: AsyncConnection) -> int:
    if connection.dialect.name == "sqlite":
        used = "SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count p,"
        pages = text(f"{used} pragma_freelist_count f, pragma_page_size s")
    else:
        pages = text("SELECT pg_database_size(current_database())")
    return int((await connection.execute(pages)).scalar_one())


async def _rows(connection: AsyncConnection, table: Table) -> int:
    return (await connection.execute(select(func.count()).select_from(table))).scalar_one()


async def _a_day(connection: AsyncConnection, table: Table, now: datetime, days: int) -> float:
    """Return how many rows a day came lately, or since the first if that is not so long ago."""
    since = to_number(now - timedelta(days=days))
    wanted = select(func.count(), func.min(table.c.time)).where(table.c.time >= since)
    number, first = (await connection.execute(wanted)).one()
    older = select(func.min(table.c.time)).where(table.c.time < since)
    if first is None or (await connection.execute(older)).scalar() is not None:
        return float(number / days)
    return float(number / max(1.0, (to_number(now) - first) / DAY))


async def _content(
    connection: AsyncConnection, content: ColumnElement[bytes], newest: ColumnElement[int]
) -> float:
    """Return how many bytes the newest rows hold on average."""
    some = select(func.length(content).label("bytes")).order_by(newest.desc()).limit(NEWEST)
    found = await connection.execute(select(func.avg(some.subquery().c.bytes)))
    return float(found.scalar() or 0)


async def _own_content(connection: AsyncConnection) -> float:
    """Return how many bytes the mails of users' newest lessons hold on average."""
    newest = select(user_lesson.c.digest).order_by(user_lesson.c.id.desc()).limit(NEWEST)
    some = select(func.avg(func.length(user_sample.c.content))).where(
        user_sample.c.digest.in_(newest)
    )
    return float((await connection.execute(some)).scalar() or 0)
