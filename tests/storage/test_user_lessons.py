"""Lessons of users: what counts for them, what moves the site, and that nothing is left of them."""

import pytest
from sqlalchemy import func, select

from spamd.errors import StorageUnavailable
from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.person import trait
from spamd.storage.engine import Database
from spamd.storage.layers import reading, user_lessons
from spamd.storage.layers.memory import PAUSE_S, LayersInMemory
from spamd.storage.layers.tables import origin_users, user_layer, user_lesson, user_sample
from spamd.storage.layers.unit_of_work import SqlUserUnitOfWork
from spamd.storage.maintenance import people_rows
from spamd.storage.maintenance.verify import verify
from spamd.training import Result, TrainingOptions
from spamd.training.ports import KEPT
from spamd.training.user_ports import Traces
from spamd.training.user_trainer import UserTrainer
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail

ANNA, BOB, CARL, DORA = (f"{name}@example.org" for name in ("anna", "bob", "carl", "dora"))
TEXT = " ".join(f"word{number}" for number in range(60))


def news(number: int) -> Features:
    return mail(f"news {number}", TEXT, "news@shop.example")


@pytest.fixture
def users(teaching: TeachingProcess) -> UserTrainer:
    return UserTrainer(
        unit_of_work=lambda: SqlUserUnitOfWork(teaching.database, teaching.cache, teaching.clock),
        clock=teaching.clock,
        options=TrainingOptions(pause_s=0),
    )


async def labels(database: Database) -> list[str]:
    """What the site has learned, in the order of the digests."""
    return [str(label) for _, label in (await counts(database))["lesson"]]


async def test_a_lesson_counts_for_its_user_at_once_and_only_once(
    users: UserTrainer, database: Database
) -> None:
    (first,) = await users.train(ANNA, [news(1)], SPAM, source="cli")
    (again,) = await users.train(ANNA, [news(1)], SPAM, source="cli")
    (other,) = await users.train(ANNA, [news(1)], HAM, source="cli")
    assert (first.result, again.result, other.result) == (
        Result.LEARNED,
        Result.KNOWN,
        Result.RELABELLED,
    )
    assert first.after is not None
    assert first.after > 0.99
    async with database.reading() as connection:
        layer = (await reading.revised_layer(connection, ANNA))[1]
    assert layer is not None
    found = layer.word_on(trait(news(2)))
    assert found is not None
    assert found.log_odds < -7
    assert (await verify(database, SCHEMA)).faults == ()


async def test_one_word_against_those_who_keep_it_moves_the_site_nothing(
    users: UserTrainer, database: Database
) -> None:
    for reader in (ANNA, BOB, CARL):
        await users.train(reader, [news(1), news(2)], HAM, source=KEPT)
    before = await counts(database, weights=True)
    await users.train(ANNA, [news(1)], SPAM, source="imap")
    await users.train(ANNA, [news(2)], SPAM, source="imap")
    assert await counts(database, weights=True) == before


async def test_three_alike_move_it_and_it_comes_back_when_they_take_it_back(
    users: UserTrainer, database: Database
) -> None:
    readers = (ANNA, BOB, CARL, DORA)
    for reader in readers:
        await users.train(reader, [news(1)], HAM, source=KEPT)
    for reader in readers[:3]:
        await users.train(reader, [news(1)], SPAM, source="imap")
    assert await labels(database) == ["spam"]
    for reader in readers[:3]:
        outcomes = await users.forget(reader, [news(1).digest])
        assert [each.result for each in outcomes] == [Result.FORGOTTEN]
    assert await labels(database) == ["ham"]
    assert (await verify(database, SCHEMA)).faults == ()


async def test_a_lesson_for_the_site_stands_whatever_users_say(
    users: UserTrainer, teaching: TeachingProcess
) -> None:
    await teaching.train(HAM, news(1))
    for reader in (ANNA, BOB, CARL):
        await users.train(reader, [news(1)], SPAM, source="imap")
    assert await labels(teaching.database) == ["ham"]


async def test_a_kept_lesson_replaces_none(users: UserTrainer) -> None:
    await users.train(ANNA, [news(1)], SPAM, source="imap")
    (outcome,) = await users.train(ANNA, [news(1)], HAM, source=KEPT)
    assert (outcome.result, outcome.label) == (Result.KNOWN, SPAM)


async def test_whoever_is_forgotten_leaves_no_row_and_the_site_as_without_them(
    users: UserTrainer, teaching: TeachingProcess
) -> None:
    await users.train(BOB, [news(1)], HAM, source="imap")
    before = await counts(teaching.database, weights=True)
    await users.train(ANNA, [news(2), news(3)], SPAM, source="imap")
    assert (await users.forget_user(ANNA, Traces()))["lessons"] == 2
    assert await counts(teaching.database, weights=True) == before
    async with teaching.database.reading() as connection:
        for table in (user_lesson, user_sample, user_layer, origin_users):
            rows = await connection.execute(select(func.count()).select_from(table))
            assert rows.scalar_one() == 1, table.name
        assert await user_lessons.faults(connection) == []


async def test_only_so_many_lessons_of_a_user_are_kept(
    users: UserTrainer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_lessons, "MOST_KEPT", 3)
    await users.train(ANNA, [news(1), news(2)], SPAM, source="imap")
    await users.train(ANNA, [news(3), news(4)], SPAM, source="imap")
    assert len(await labels(database)) == 3
    assert (await verify(database, SCHEMA)).faults == ()


async def test_verify_finds_what_does_not_follow_from_the_lessons(
    users: UserTrainer, database: Database
) -> None:
    await users.train(ANNA, [news(1)], SPAM, source="imap")
    async with database.writing() as connection:
        await connection.execute(origin_users.update().values(ham=1))
        await connection.execute(user_layer.update().values(user="eve"))
        await connection.execute(user_sample.update().values(digest=b"x" * 16))
    assert len((await verify(database, SCHEMA)).faults) == 3


async def test_layers_are_read_on_demand_and_follow_lessons_and_their_end(
    users: UserTrainer, database: Database, clock: FixedClock
) -> None:
    here = LayersInMemory(database, clock)
    await here.refresh(database)
    assert here.unread([ANNA, BOB]) == []
    await users.train(ANNA, [news(1)], SPAM, source="cli")
    await here.refresh(database)
    assert here.unread([ANNA, BOB]) == [ANNA]
    assert len((await here.read([ANNA]))[ANNA]) == 1
    assert here.unread([ANNA]) == []
    await users.train(ANNA, [news(2)], SPAM, source="cli")
    await users.train(BOB, [news(2)], SPAM, source="cli")
    await here.refresh(database)
    assert here.unread([ANNA, BOB]) == [ANNA, BOB]
    assert len((await here.read([ANNA, BOB]))[ANNA]) == 2
    await users.forget_user(BOB, Traces())
    await here.refresh(database)
    assert here.unread([ANNA, BOB]) == [ANNA]
    assert here.of(BOB) is None
    assert here.size_bytes == 0


async def test_a_layer_follows_what_the_site_learns_of_its_mails(
    teaching: TeachingProcess, users: UserTrainer
) -> None:
    alike = [mail(f"alike {number}", TEXT) for number in range(8)]
    pills = [
        mail(f"pills {number}", "cheap pills for you", "x@pills.example") for number in range(5)
    ]
    await users.train("dan", pills, SPAM, source="imap")
    await users.train("anna", alike[:5], HAM, source="imap")
    layers = LayersInMemory(teaching.database, teaching.clock)

    async def speaks(user: str) -> bool:
        await layers.refresh(teaching.database)
        layer = layers.of(user) or (await layers.read([user]))[user]
        async with teaching.database.reading() as connection:
            stored = (await reading.revised_layer(connection, user))[1]
        assert stored is not None
        word = layer.word_on(trait(alike[7]))
        assert (word is None) is (stored.word_on(trait(alike[7])) is None)
        return word is not None

    assert await speaks("anna")  # the site had said nothing of the first of them
    await users.train("bob", alike[5:7], HAM, source="imap")
    assert not await speaks("bob")  # it had, of these
    for user in ("carl", "dora"):
        await users.train(user, alike[5:7], SPAM, source="imap")
    assert await speaks("bob")  # and does not any more
    for user in ("carl", "dora"):
        await users.forget(user, [each.digest for each in alike])
    assert not await speaks("bob")
    assert (await verify(teaching.database, SCHEMA)).faults == ()


async def test_layers_keep_to_their_bound(
    users: UserTrainer, database: Database, clock: FixedClock
) -> None:
    for reader in (ANNA, BOB, CARL):
        await users.train(reader, [news(1)], SPAM, source="cli")
    here = LayersInMemory(database, clock, size_bytes=3_500)
    await here.refresh(database)
    assert len(await here.read([ANNA, BOB, CARL])) == 3
    assert here.unread([ANNA, BOB, CARL]) == [ANNA]
    assert here.size_bytes <= 3_500


async def test_after_a_failed_read_nobody_asks_for_some_seconds(
    users: UserTrainer, database: Database, clock: FixedClock
) -> None:
    await users.train(ANNA, [news(1)], SPAM, source="cli")
    here = LayersInMemory(database, clock)
    await here.refresh(database)
    async with database.writing() as connection:
        await connection.execute(user_lesson.update().values(sketch=b"odd"))
    with pytest.raises(StorageUnavailable, match="can't be read"):
        await here.read([ANNA])
    with pytest.raises(StorageUnavailable, match="some seconds ago"):
        await here.read([ANNA])
    clock.advance(seconds=PAUSE_S)
    async with database.writing() as connection:
        await connection.execute(user_lesson.update().values(sketch=b""))
    assert len(await here.read([ANNA])) == 1


async def test_an_export_brings_users_lessons_back_as_they_were(
    users: UserTrainer, database: Database, clock: FixedClock
) -> None:
    await users.train(ANNA, [news(1), news(2)], SPAM, source="imap")
    await users.train(BOB, [news(1)], HAM, source=KEPT)
    async with database.reading() as connection:
        lines = [row async for row in people_rows.walk(connection)]
    rows = [row for line in lines if (row := people_rows.row_of(line)) is not None]
    assert len(rows) == 5
    for reader in (ANNA, BOB):
        await users.forget_user(reader, Traces())
    await people_rows.add_missing(database, clock, rows)
    await people_rows.add_missing(database, clock, rows)
    async with database.reading() as connection:
        assert [row async for row in people_rows.walk(connection)] == lines
        assert await user_lessons.faults(connection) == []


def test_a_line_that_holds_no_lesson_is_refused() -> None:
    for line in (
        {"user_lesson": {"user": "", "digest": "00", "label": "spam"}},
        {"user_lesson": {"user": ANNA, "digest": "00", "label": "blue"}},
        {"user_sample": {"digest": "00", "sender_domain": "", "content": "AAAA"}},
    ):
        with pytest.raises((ValueError, KeyError)):
            people_rows.row_of(line)
