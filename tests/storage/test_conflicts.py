"""What two writers do to each other, and what no database answers the same way."""

import asyncio
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from sqlalchemy import Connection, event, text

from spamd.bayes.classifiers.logistic import GRAM_SLOTS
from spamd.feedback.ports import Cursor, Sighting
from spamd.storage.corpus import corpus_tables, token_table
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.engine import Database
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.times import from_number, to_number
from tests.storage.mails import SPAM, FixedClock, TeachingProcess, mail

BARRIER_S = 5.0


def cursor(folder: str, clock: FixedClock) -> Cursor:
    return Cursor(
        account="a", folder=folder, validity=1, next_uid=2, modseq=0, messages=1, baseline=1,
        marked="/", time=clock.now(),
    )  # fmt: skip


async def test_d17_a_transaction_that_a_deadlock_ended_is_done_again(
    database: Database, clock: FixedClock
) -> None:
    """One holds folder A and wants B; the other wrote B first and wants A."""
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    boxes = SqlMailboxes(database)
    await boxes.save("a", [cursor("A", clock), cursor("B", clock)])
    mine, theirs = asyncio.Event(), asyncio.Event()

    async def other() -> None:
        async with database.writing() as connection:
            await connection.execute(text("SET LOCAL deadlock_timeout = '10s'"))
            await connection.execute(text("UPDATE cursor SET messages = 7 WHERE folder = 'B'"))
            mine.set()
            await theirs.wait()
            await connection.execute(text("UPDATE cursor SET modseq = 7 WHERE folder = 'A'"))

    def begun(_: Connection, __: object, statement: str, *___: object) -> None:
        if statement.startswith("INSERT INTO cursor"):
            asyncio.get_running_loop().call_later(0.2, theirs.set)

    event.listen(database.engine.sync_engine, "before_cursor_execute", begun)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(other())
        await mine.wait()
        fresh = [cursor("A", clock), cursor("B", clock)]
        group.create_task(boxes.save("a", fresh, [sighting("B")]))
    found = await boxes.cursors("a")
    assert {name: one.messages for name, one in found.items()} == {"A": 1, "B": 1}
    assert len(await boxes.lying("a", "B")) == 1


def sighting(folder: str) -> Sighting:
    return Sighting(folder=folder, key="1", mail=b"m" * 16, delivered=0)


async def test_d19_an_upsert_that_changes_nothing_loses_nothing(teaching: TeachingProcess) -> None:
    await teaching.train(SPAM, mail("a", "some words"))
    async with teaching.database.writing() as connection:
        before = await token_table.load(connection)
        await token_table.change(connection, before.ids, np.zeros((len(before), 5), np.int32))
        after = await token_table.load(connection)
    rows = np.arange(len(before))
    assert np.array_equal(before.ids, after.ids)
    assert np.array_equal(before.cells(rows), after.cells(rows))


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),  # there is no such time
    ],
    ids=str,
)
async def test_f12_any_moment_of_any_zone_is_kept_as_the_moment_it_was(
    teaching: TeachingProcess, clock: FixedClock, moment: datetime
) -> None:
    clock.time = moment
    await teaching.train(SPAM, mail("a"))
    async with teaching.work() as work:
        lessons = await work.lessons([mail("a").digest])
    (lesson,) = lessons.values()
    assert lesson.time == moment.astimezone(UTC)
    assert from_number(to_number(moment)) == moment.astimezone(UTC)


async def test_who_waited_for_the_corpus_sees_what_was_written_meanwhile(
    database: Database,
) -> None:
    """Else the step of the lesson that wrote the gram table whole was lost."""
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time, and he sees all that is there")
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"

    async def second() -> CorpusVersion:
        async with database.writing() as connection:
            return await corpus_tables.version(connection, lock=True)

    async with database.writing() as connection:
        before = await corpus_tables.version(connection, lock=True)
        other = asyncio.create_task(second())
        while not (await connection.execute(text(waiting))).scalar_one():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        table = np.zeros(GRAM_SLOTS, dtype=np.int32)
        await corpus_tables.write_grams(connection, table, before.revision + 1)
        await connection.execute(text("UPDATE corpus SET revision = revision + 1"))
        await connection.commit()
    after = await other

    assert after.grams_revision == after.revision == before.revision + 1
