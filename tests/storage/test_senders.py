"""Lists and known addresses in the database, and in the memory of a process that follows it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from spamd.errors import StorageUnavailable
from spamd.feedback.watching.context import as_it_stands
from spamd.lists.book import ListBook
from spamd.lists.entry import Effect, Entry, Kind
from spamd.lists.known import KnownOptions, address_hash
from spamd.lists.ports import Written
from spamd.message.authentication.proof import AuthOptions, Proof
from spamd.message.authentication.sender import Sender
from spamd.storage.engine import Database
from spamd.storage.maintenance import people_rows
from spamd.storage.maintenance.expiry import expire
from spamd.storage.options import Ages
from spamd.storage.people_tables import known_address, list_entry
from spamd.storage.senders import entries as entry_rows
from spamd.storage.senders import known_addresses as known_rows
from spamd.storage.senders.entries import SqlEntries
from spamd.storage.senders.known_addresses import SqlKnownAddresses
from spamd.storage.senders.memory import SendersInMemory
from spamd.storage.senders.outgoing import MOST_RECIPIENTS, MOST_WAITING, OutgoingMail
from spamd.storage.tables import corpus
from spamd.users.names import canonical
from tests.storage.mails import FixedClock

AUTH = AuthOptions(trusted=("mx.example.org",))
NEWS = Proof(
    sender=Sender(address="news@shop.example", addresses=("news@shop.example",)), by="dkim"
)
ANNA = "anna@example.org"
AGES = Ages(
    scans_days=14, changes_hours=24, seen_days=90, parked_days=30, held_days=90, attempts=3,
    known_days=30,
)  # fmt: skip


def memory(clock: FixedClock, known: KnownOptions | None = None) -> SendersInMemory:
    return SendersInMemory(AUTH, known or KnownOptions(), clock)


def book(database: Database, clock: FixedClock) -> ListBook:
    return ListBook(SqlEntries(database), AUTH, clock.now)


def letter(clock: FixedClock, *addresses: str) -> Written:
    return Written(time=clock.now(), addresses=addresses)


async def user_of(name: str) -> str | None:
    return None if name == "who" else canonical(name)


class Away:
    """A store that does not answer at first."""

    def __init__(self) -> None:
        self.away = True
        self.seen: Counter[str] = Counter()

    async def wrote(self, user: str, mails: Sequence[Written]) -> None:
        if self.away:
            raise StorageUnavailable("away")
        self.seen[user] += sum(len(mail.addresses) for mail in mails)


async def secret(database: Database) -> bytes:
    async with database.reading() as connection:
        found: bytes = (await connection.execute(select(corpus.c.secret))).scalar_one()
        return found


async def test_what_is_added_and_removed_is_followed(database: Database, clock: FixedClock) -> None:
    kept, here = book(database, clock), memory(clock)
    await here.refresh(database)
    assert here.senders.lists.of(NEWS).effect == ""
    await kept.add(Effect.ALLOW, "shop.example")
    await here.refresh(database)
    assert here.senders.lists.of(NEWS).effect == "allow"
    first = here.senders.lists
    await kept.add(Effect.DENY, "else.example")
    await here.refresh(database)
    assert here.senders.lists is first  # only the new one was read
    assert await kept.remove(Effect.ALLOW, "shop.example")
    assert not await kept.remove(Effect.ALLOW, "shop.example")
    await here.refresh(database)
    assert here.senders.lists.of(NEWS).effect == ""
    assert len(here.senders.lists) == 1


async def test_a_later_word_takes_the_place_of_an_earlier_one(
    database: Database, clock: FixedClock
) -> None:
    kept, here = book(database, clock), memory(clock)
    first = await kept.add(Effect.ALLOW, "shop.example")
    await here.refresh(database)
    second = await kept.add(Effect.DENY, "SHOP.example")
    await here.refresh(database)
    assert second.number > first.number
    assert [entry.effect for entry in await kept.entries()] == [Effect.DENY]
    assert here.senders.lists.of(NEWS).effect == "deny"


async def test_an_entry_ends_when_it_expires_and_is_removed_later(
    database: Database, clock: FixedClock
) -> None:
    kept, here = book(database, clock), memory(clock)
    await kept.add(Effect.DENY, "shop.example", expires=clock.now() + timedelta(hours=1))
    await here.refresh(database)
    assert here.senders.lists.of(NEWS).effect == "deny"
    clock.advance(hours=2)
    await here.refresh(database)
    assert here.senders.lists.of(NEWS).effect == ""
    assert await kept.entries() == []
    gone = await expire(database, clock, AGES, dry_run=False)
    assert gone.entries == 1


async def test_a_user_is_forgotten_and_the_others_keep_theirs(
    database: Database, clock: FixedClock
) -> None:
    kept, here = book(database, clock), memory(clock)
    known = SqlKnownAddresses(database, KnownOptions())
    await kept.add(Effect.ALLOW, "shop.example", owner=ANNA)
    await kept.add(Effect.ALLOW, f"to:{ANNA}", unproven=True)
    await kept.add(Effect.ALLOW, "shop.example", owner="bob@example.org")
    for user in (ANNA, "bob@example.org"):
        await known.wrote(user, [letter(clock, "news@shop.example")])
    await here.refresh(database)
    async with database.writing() as connection:
        assert len(await entry_rows.entries_of(connection, ANNA)) == 1
        assert await entry_rows.forget_user(connection, ANNA) == 2
        assert await known_rows.forget_user(connection, ANNA) == 1
    await here.refresh(database)
    async with database.reading() as connection:
        rows = [
            *(await connection.execute(select(list_entry))),
            *(await connection.execute(select(known_address))),
        ]
    assert len(rows) == 2
    assert not any(ANNA in str(row) for row in rows)
    assert here.senders.of(NEWS, user=ANNA).known.term == -KnownOptions().others
    assert here.senders.of(NEWS, user="bob@example.org").known.term == -KnownOptions().own


async def test_no_address_stands_in_the_database_only_keyed_hashes(
    database: Database, clock: FixedClock
) -> None:
    known = SqlKnownAddresses(database, KnownOptions())
    key = await secret(database)
    await known.wrote(ANNA, [letter(clock, "friend@else.example", "friend@else.example")])
    async with database.reading() as connection:
        (row,) = (await connection.execute(select(known_address))).all()
    assert row.times == 1
    assert row.address == address_hash(key, "friend@else.example")
    assert row.pair == address_hash(key, "friend@else.example", ANNA)
    assert address_hash(b"other", "friend@else.example") != row.address


async def test_a_mail_seen_again_counts_once_and_a_later_one_again(
    database: Database, clock: FixedClock
) -> None:
    known = SqlKnownAddresses(database, KnownOptions())
    for _ in range(2):
        await known.wrote(ANNA, [letter(clock, "friend@else.example")])
    clock.advance(seconds=5)
    two = [letter(clock, "friend@else.example"), letter(clock, "friend@else.example")]
    await known.wrote(ANNA, two)
    async with database.reading() as connection:
        assert (await connection.execute(select(known_address.c.times))).scalars().all() == [3]


async def test_of_too_many_addresses_the_oldest_go_and_old_ones_age_out(
    database: Database, clock: FixedClock
) -> None:
    known, here = SqlKnownAddresses(database, KnownOptions(most=2)), memory(clock)
    for name in ("old", "news", "new"):
        await known.wrote(ANNA, [letter(clock, f"{name}@shop.example")])
        clock.advance(days=1)
    assert await known.count(ANNA) == 2
    await here.refresh(database)
    assert here.senders.of(NEWS, user=ANNA).known.term < 0
    clock.advance(days=40)
    assert (await expire(database, clock, AGES, dry_run=False)).addresses == 2


async def test_what_a_stolen_login_writes_to_many_pushes_no_friend_out(
    database: Database, clock: FixedClock
) -> None:
    known, here = SqlKnownAddresses(database, KnownOptions(most=10)), memory(clock)
    for _ in range(2):
        await known.wrote(ANNA, [letter(clock, "news@shop.example")])
        clock.advance(days=1)
    await known.wrote(ANNA, [letter(clock, *(f"{n}@victims.example" for n in range(100)))])
    assert await known.count(ANNA) == 10
    await here.refresh(database)
    assert here.senders.of(NEWS, user=ANNA).known.who == "own"


async def test_mail_of_clients_that_logged_in_is_noted_once_it_is_written_down(
    database: Database, clock: FixedClock
) -> None:
    known, here = SqlKnownAddresses(database, KnownOptions()), memory(clock)
    mail = OutgoingMail(known, user_of, clock)
    mail.sent("Anna@example.org", [b"News@shop.example", b"postmaster", b"@x.example"])
    mail.sent("Anna@example.org", [b"b@shop.example"] * (MOST_RECIPIENTS + 1))
    mail.sent("", [b"c@shop.example"])
    mail.sent("who", [b"d@shop.example"])
    await mail.flush()
    await mail.flush()
    await here.refresh(database)
    assert here.senders.of(NEWS, user=ANNA).known.who == "own"
    assert here.senders.of(NEWS, user="bob@example.org").known.who == "others"
    assert (await known.count(ANNA), await known.count("")) == (2, 1)  # "": nobody knows who


async def test_what_waits_to_be_written_down_is_bounded_and_outlives_a_database_that_is_away(
    clock: FixedClock,
) -> None:
    known = Away()
    mail = OutgoingMail(known, as_it_stands, clock)
    for number in range(MOST_WAITING + 5):
        mail.sent(f"user{number % 7}", [b"%d@shop.example" % number])
    with pytest.raises(StorageUnavailable):
        await mail.flush()
    known.away = False
    await mail.flush()
    assert sum(known.seen.values()) == MOST_WAITING
    mail.sent("anna", [b"a@shop.example"])
    await mail.flush()
    assert known.seen["anna"] == 1


async def test_entries_are_kept_as_they_were_given(database: Database, clock: FixedClock) -> None:
    store = SqlEntries(database)
    entry = Entry(
        effect=Effect.DENY, kind=Kind.NETWORK, value="203.0.113.0/24", owner="@example.org",
        expires=clock.now(), source="api", created=clock.now(),
    )  # fmt: skip
    stored = await store.put(entry)
    assert stored.number > 0
    assert list(await store.all("@example.org")) == [stored]
    assert await store.add_missing([entry]) == 0


async def test_known_addresses_go_with_an_export_into_the_installation_they_come_from_only(
    database: Database, clock: FixedClock
) -> None:
    known = SqlKnownAddresses(database, KnownOptions())
    for _ in range(2):
        await known.wrote(ANNA, [letter(clock, "news@shop.example", "b@shop.example")])
        clock.advance(days=1)
    async with database.writing() as connection:
        lines = [json.loads(json.dumps(row)) async for row in people_rows.walk(connection)]
        assert await known_rows.forget_user(connection, ANNA) == 2
    rows = [row for line in lines if (row := people_rows.row_of(line)) is not None]
    assert len(rows) == 2
    assert not any("shop.example" in json.dumps(line) for line in lines)
    stranger = [replace(row, key="00") for row in rows if isinstance(row, known_rows.KnownRow)]
    await people_rows.add_missing(database, clock, stranger)
    assert await known.count() == 0
    for _ in range(2):
        await people_rows.add_missing(database, clock, rows)
    async with database.reading() as connection:
        again = [row async for row in people_rows.walk(connection)]
    assert sorted(map(str, again)) == sorted(map(str, lines))
    here = memory(clock)
    await here.refresh(database)
    assert here.senders.of(NEWS, user=ANNA).known.who == "own"


@pytest.mark.parametrize("line", [{"key": "0"}, {"key": "0", "owner": "", "pair": "x"}])
def test_a_line_that_holds_no_known_address_is_refused(line: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        people_rows.row_of({"known": line})
