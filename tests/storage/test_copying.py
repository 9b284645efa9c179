"""A copy is the same database, whichever server holds it, and however often it was ended."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.errors import ConfigError, SpamdError
from spamd.message.facts import SCHEMA
from spamd.storage import tables
from spamd.storage.corpus import corpus_tables
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.engine import Database
from spamd.storage.maintenance import copying
from spamd.storage.maintenance.copying import copy
from spamd.storage.maintenance.verify import verify
from spamd.storage.migrate import downgrade, upgrade
from spamd.storage.options import DatabaseOptions
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail
from tests.storage.rows import content, fill
from tests.storage.test_ports import held


@pytest.fixture
async def other(
    database: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Database]:
    """An empty database on the other server."""
    url = (
        request.getfixturevalue("postgresql_url")
        if database.is_sqlite
        else f"sqlite:///{tmp_path}/other.db"
    )
    opened = await Database.open(DatabaseOptions(url=url))
    yield opened
    await opened.close()


@pytest.fixture
async def third(tmp_path: Path) -> AsyncIterator[Database]:
    """A database to copy back to."""
    opened = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/third.db"))
    yield opened
    await opened.close()


async def test_every_row_of_every_table_comes_through_there_and_back(
    database: Database, other: Database, third: Database
) -> None:
    await fill(database)
    whole = await content(database)
    assert all(whole.values()), "a table has no row"

    done = await copy(database, other)
    assert await content(other) == whole
    assert (done.resumed, done.written) == (False, sum(done.rows.values()))
    assert done.rows == {name: len(rows) for name, rows in whole.items()}
    await copy(other, third)
    assert await content(third) == whole


async def test_a_copy_works_as_the_original_does(
    teaching: TeachingProcess, other: Database, clock: FixedClock
) -> None:
    await teaching.train(SPAM, mail("a", "cheap pills"), mail("b", "cheap"))
    await teaching.train(HAM, mail("c", "lunch"))
    await copy(teaching.database, other)
    assert (await verify(other, SCHEMA)).faults == ()
    there = TeachingProcess(other, clock)
    for process in (teaching, there):
        await process.train(HAM, mail("d", "more lunch"))
        await process.forget(mail("a", "cheap pills"))
    assert await counts(other, weights=True) == await counts(teaching.database, weights=True)
    assert await there.probability(mail("e", "cheap")) == await teaching.probability(
        mail("e", "cheap")
    )


async def test_i3_no_number_that_was_given_out_is_given_out_again_by_a_copy(
    database: Database, other: Database, third: Database, clock: FixedClock
) -> None:
    lessons = SqlHeldLessons(database)
    await lessons.hold([held(clock, "a"), held(clock, "b")])
    shown = (await lessons.held())[-1].number
    await lessons.drop([shown])
    await copy(database, other)
    await copy(other, third)
    for each in (other, third):
        await SqlHeldLessons(each).hold([held(clock, "c")])
        assert (await SqlHeldLessons(each).held())[-1].number == shown + 1


class Ended(BaseException):
    """The process is killed here."""


def ending(after: int) -> copying.Told:
    """Return what ends a copy after so many writes."""
    left = iter(range(after))

    def told(table: str, done: int, total: int) -> None:
        if next(left, None) is None:
            raise Ended

    return told


@pytest.mark.parametrize("changed", [False, True], ids=["", "the source changed meanwhile"])
async def test_a_copy_that_was_ended_goes_on_and_is_whole(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch, *, changed: bool
) -> None:
    monkeypatch.setattr(copying, "ROWS", 10)
    await fill(database, rows=25)
    for after in (3, 40):
        with pytest.raises(Ended):
            await copy(database, other, ending(after))
        with pytest.raises(ConfigError, match="a copy to it was not finished"):
            async with other.reading() as connection:
                await corpus_tables.version(connection, lock=False)
        if changed:
            await _change(database, after)
    done = await copy(database, other)
    assert done.resumed
    assert await content(other) == await content(database)
    if not changed:
        assert done.written < sum(done.rows.values())
    async with other.reading() as connection:
        names = await connection.run_sync(lambda plain: set(inspect(plain).get_table_names()))
    assert names == {*tables.metadata.tables, "alembic_version"}


async def _change(database: Database, number: int) -> None:
    """Remove rows, change others, swap what is unique, add new ones."""
    lesson, scan = tables.lesson, tables.scan
    async with database.writing() as connection:
        rows = (await connection.execute(lesson.select().order_by(lesson.c.id))).all()
        last = rows[-2:]
        await connection.execute(delete(lesson).where(lesson.c.id.in_([row.id for row in last])))
        swapped = [dict(zip(lesson.c.keys(), row, strict=True)) for row in last]
        swapped[0]["id"], swapped[1]["id"] = swapped[1]["id"], swapped[0]["id"]
        await connection.execute(insert(lesson), swapped)
        await connection.execute(scan.update().values(verdict=f"other {number}"))
        await connection.execute(delete(tables.token).where(tables.token.c.id % 7 == number % 7))
        await connection.execute(
            text("INSERT INTO token VALUES (:id, 1, 1, 1, 1, 1)"), {"id": 5_000 + number}
        )


async def test_a_database_that_holds_anything_is_no_target(
    database: Database, other: Database, third: Database, clock: FixedClock
) -> None:
    await TeachingProcess(database, clock).train(SPAM, mail("a"))
    await upgrade(other)
    await TeachingProcess(other, clock).train(HAM, mail("b"))
    before = await content(other)
    with pytest.raises(SpamdError, match=r"is not empty \(there are rows in the table"):
        await copy(database, other)
    assert await content(other) == before
    with pytest.raises(Ended):
        await copy(other, third, ending(1))
    with pytest.raises(SpamdError, match="part of a copy of another database"):
        await copy(database, third)
    with pytest.raises(SpamdError, match="is empty, or itself a copy that was ended"):
        await copy(third, other)


async def test_a_row_that_another_process_writes_meanwhile_is_noticed(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = copying._end

    async def meddled(reader: AsyncConnection, target: Database, rows: dict[str, int]) -> None:
        async with target.writing() as connection:
            row = {"name": "feedback", "holder": "x", "renewed": 1, "expires": 2}
            await connection.execute(insert(tables.lease), [row])
        await end(reader, target, rows)

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_end", meddled)
        with pytest.raises(SpamdError, match="has 1 rows in the table lease, not 0"):
            await copy(database, other)
    await copy(database, other)
    assert await content(other) == await content(database)


async def test_a_database_of_another_schema_is_neither_source_nor_target(
    database: Database, other: Database
) -> None:
    await upgrade(other)
    await downgrade(other, "0001")
    with pytest.raises(ConfigError, match="run: spamd database upgrade"):
        await copy(database, other)
    with pytest.raises(ConfigError, match="run: spamd database upgrade"):
        await copy(other, database)
