"""Nothing grows for ever: each table has a bound, and the size ahead is told."""

from dataclasses import replace

import pytest
from sqlalchemy import BigInteger, func, select, text, update

from spamd.storage import tables
from spamd.storage.engine import Database
from spamd.storage.layers.tables import user_lesson
from spamd.storage.layers.unit_of_work import SqlUserUnitOfWork
from spamd.storage.maintenance.expiry import expire
from spamd.storage.maintenance.size import Size, size
from spamd.storage.scans import Scans
from spamd.training import TrainingOptions
from spamd.training.user_trainer import UserTrainer
from tests.storage.mails import SPAM, FixedClock, TeachingProcess, mail
from tests.storage.rows import fill
from tests.storage.test_expiry import AGES
from tests.storage.test_ports import report

EXPIRES = {
    "account", "change", "cursor", "held", "kept", "known_address", "list_entry",
    "mail_hour", "parked", "scan", "sighting", "taken",
}  # fmt: skip
"""Rows that are old go by themselves."""

BOUNDED = {
    "corpus": "one row, by a CHECK constraint",
    "grams": "one row, by a CHECK constraint",
    "fusion": "one row, by a CHECK constraint",
    "fact": "a row for each value of the facts, of which the code knows a fixed number",
    "removals": "a row for each table that is followed by its numbers",
    "trial": "a row for each kind of trial",
    "wish": "a row for each user or domain, by a UNIQUE constraint; no mail makes one",
    "lease": "old ones go when one is taken (feedback/test_contracts)",
    "session": "old ones go when a new one begins (test_records)",
}
"""Tables that can't grow, and why."""

JOURNAL = {
    "lesson": "what people taught; it goes by forget and rollback",
    "sample": "its content, which a prune of the tokens makes smaller",
    "token": "sums over the journal, pruned each day (test_prune)",
    "tally": "what an admin imported, until he takes it back",
    "user_lesson": "what users said for themselves: 5,000 of each at most (test_user_lessons)",
    "user_sample": "its content, once for all users; it goes with its last lesson",
    "user_layer": "a row for each user who has said something",
    "origin_users": "a row at most for each origin in user_lesson; it goes with the last lesson",
}
"""Tables that grow with what people teach, and with nothing that a stranger sends."""


def test_every_table_has_a_bound() -> None:
    assert {*EXPIRES, *BOUNDED, *JOURNAL} == set(user_lesson.metadata.tables)


async def test_i4_of_every_table_that_expires_all_old_rows_go(
    database: Database, clock: FixedClock
) -> None:
    await fill(database, rows=60)
    async with database.writing() as connection:
        for name in EXPIRES:
            table = tables.metadata.tables[name]
            times = [
                column.name
                for column in table.columns
                if isinstance(column.type, BigInteger) and not (column.primary_key or column.unique)
            ]
            if times:
                await connection.execute(update(table).values(dict.fromkeys(times, 1_000)))
        await connection.execute(update(tables.parked).values(attempts=9))
        await connection.execute(update(tables.grams).values(revision=2**62))
    planned = await expire(database, clock, AGES, dry_run=True)

    done = await expire(database, clock, AGES, dry_run=False)

    assert planned == done
    async with database.reading() as connection:
        left = {
            name: (
                await connection.execute(
                    select(func.count()).select_from(tables.metadata.tables[name])
                )
            ).scalar_one()
            for name in EXPIRES
        }
    assert left == dict.fromkeys(EXPIRES, 0)


async def test_the_size_ahead_is_about_what_it_comes_to(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    scans = Scans(teaching.database, clock)

    readers = UserTrainer(
        unit_of_work=lambda: SqlUserUnitOfWork(teaching.database, teaching.cache, clock),
        clock=clock,
        options=TrainingOptions(pause_s=0),
    )

    async def month(start: int) -> None:
        """Teach, for the site and for two users, and scan; the gram table is written at once."""
        mails = [
            mail(str(n), " ".join(f"w{n * 40 + k * k % 60}" for k in range(120)))
            for n in range(start, start + 70)
        ]
        await teaching.train(SPAM, *mails[:40])
        for reader in ("anna", "bob"):
            await readers.train(f"{reader}@example.org", mails[40:], SPAM, source="imap")
        for number, each in enumerate(mails, start=start):
            scans.record(report(each, id=str(number)))
        await scans.flush()
        clock.advance(days=30)
        await expire(teaching.database, clock, AGES, dry_run=False)

    async def told() -> Size:
        if not teaching.database.is_sqlite:  # the tests' server does not clean up by itself
            async with teaching.database.bare() as connection:
                await connection.execute(text("VACUUM FULL"))
        return await size(teaching.database, clock.now(), AGES.scans_days)

    await month(0)
    before = await told()
    for start in (70, 140, 210):
        await month(start)
    after = await told()

    assert before.lessons_a_day == pytest.approx((40 + 30) / 30)  # what users agree on is learned
    assert before.user_lessons_a_day == pytest.approx(60 / 30)
    assert after.now - before.now == pytest.approx(before.ahead - before.now, rel=0.35)


async def test_an_empty_database_does_not_grow(database: Database, clock: FixedClock) -> None:
    told = await size(database, clock.now(), 14)
    assert told.now > 0
    assert replace(told, now=0, ahead=0) == replace(
        told, now=0, ahead=0, lessons_a_day=0.0, user_lessons_a_day=0.0, scans_a_day=0.0
    )
    assert told.ahead == told.now
