"""What people wish, in the database and in the memory of a process that follows it."""

import pytest
from sqlalchemy import select

from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.storage.engine import Database
from spamd.storage.people import wishes as wish_rows
from spamd.storage.people.wishes import SqlWishes, WishesInMemory
from spamd.storage.people_tables import wish
from spamd.users.wishes import Wished
from tests.storage.mails import FixedClock

ANNA, BOB, ORG = "anna@example.org", "bob@example.org", "@example.org"
NEVER = Wishes(tag=False)


@pytest.fixture
def kept(database: Database, clock: FixedClock) -> SqlWishes:
    return SqlWishes(database, clock)


async def test_wishes_are_kept_and_taken_back_one_by_one(kept: SqlWishes) -> None:
    await kept.change(ANNA, Wishes(tag_from=0.8, reject=False))
    assert await kept.change(ANNA, Wishes(reject_from=0.99)) == Wishes(
        tag_from=0.8, reject_from=0.99, reject=False
    )
    assert await kept.change(ANNA, without=("reject_from", "reject")) == Wishes(tag_from=0.8)
    assert await kept.all() == [Wished(owner=ANNA, wishes=Wishes(tag_from=0.8))]
    assert await kept.change(ANNA, without=("tag_from",)) == NO_WISHES
    assert await kept.all() == []


async def test_wishes_that_contradict_those_there_change_nothing(kept: SqlWishes) -> None:
    await kept.change(ANNA, Wishes(tag_from=0.8))
    with pytest.raises(ValueError, match="reject_from must not be below tag_from"):
        await kept.change(ANNA, Wishes(reject_from=0.5))
    assert await kept.of(ANNA) == Wishes(tag_from=0.8)


async def test_processes_follow_what_is_wished(kept: SqlWishes, database: Database) -> None:
    here = WishesInMemory()
    await here.refresh(database)
    assert here.of(ANNA) == NO_WISHES
    await kept.change(ANNA, Wishes(tag_from=0.8))
    await here.refresh(database)
    await kept.change(ORG, Wishes(tag_from=0.7, reject=False))
    await here.refresh(database)
    assert here.of(ANNA) == Wishes(tag_from=0.8, reject=False)  # wish by wish
    assert here.of(BOB) == here.of(ORG) == Wishes(tag_from=0.7, reject=False)
    assert here.of("carl@elsewhere.example") == here.of("") == NO_WISHES
    await kept.change(ANNA, NEVER, without=("tag_from",))
    await here.refresh(database)
    assert here.of(ANNA) == Wishes(tag_from=0.7, tag=False, reject=False)
    await kept.change(ORG, without=("tag_from", "reject"))
    await here.refresh(database)
    assert (here.of(ANNA), here.of(BOB)) == (NEVER, NO_WISHES)


async def test_a_user_is_forgotten_and_the_others_keep_theirs(
    kept: SqlWishes, database: Database
) -> None:
    here = WishesInMemory()
    await kept.change(ANNA, NEVER)
    await kept.change(BOB, NEVER)
    await here.refresh(database)
    async with database.writing() as connection:
        assert await wish_rows.wishes_of(connection, ANNA) == NEVER
        assert await wish_rows.forget_user(connection, ANNA) == 1
        assert await wish_rows.forget_user(connection, ANNA) == 0
    await here.refresh(database)
    assert (here.of(ANNA), here.of(BOB)) == (NO_WISHES, NEVER)
    async with database.reading() as connection:
        assert ANNA not in str((await connection.execute(select(wish))).all())


async def test_an_import_changes_no_wish_that_is_there(kept: SqlWishes) -> None:
    await kept.change(ANNA, NEVER)
    rows = [
        Wished(owner=ANNA, wishes=Wishes(tag_from=0.9)),
        Wished(owner=ORG, wishes=Wishes(tag_from=0.7)),
        Wished(owner=BOB, wishes=NO_WISHES),
    ]
    assert await kept.add_missing(rows) == 1
    assert {each.owner: each.wishes for each in await kept.all()} == {
        ANNA: NEVER, ORG: Wishes(tag_from=0.7),
    }  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        {"owner": "", "tag_from": None, "reject_from": None, "tag": None, "reject": None},
        {"owner": ANNA, "tag_from": 2, "reject_from": None, "tag": None, "reject": None},
        {"owner": ANNA, "tag_from": "0.5", "reject_from": None, "tag": None, "reject": None},
        {"owner": ANNA, "tag_from": None, "reject_from": None, "tag": "no", "reject": None},
        {"owner": ANNA},
        [],
    ],
)
def test_a_row_of_an_export_that_holds_no_wish_is_refused(row: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        wish_rows.wished_of(row)
