"""What feedback expects of its ports, of the twins in memory and of the tables in SQLite alike."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spamd.feedback.ports import Cursor, Held, HeldLessons, Leases, Mailboxes, Parked, Sighting
from spamd.message.features import extract
from spamd.sample import Label
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.engine import Database
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.options import DatabaseOptions
from spamd.storage.workers.leases import SqlLeases
from tests.fakes import FakeClock
from tests.feedback.fakes import FakeHeld, FakeLeases, FakeMailboxes
from tests.storage.migrated import lay

TIME = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
CURSOR = Cursor(
    account="alice@host:143",
    folder="Archiv/Entwürfe 🙂",
    validity=4_294_967_295,
    next_uid=7,
    modseq=2**62,
    messages=3,
    baseline=1_800_000_000_000_000,
    marked="1:3/7",
    time=TIME,
)
PARKED = Parked(
    account="alice@host:143",
    folder="Junk",
    validity=1,
    uid="7",
    attempts=1,
    reason="too much",
    time=TIME,
)
HELD = Held(
    number=0,
    features=extract(b"Subject: held\r\n\r\nwords of a mail\r\n"),
    label=Label.SPAM,
    source="imap",
    actor="alice",
    probability=0.02,
    reason="a burst",
    time=TIME,
)


@dataclass(frozen=True)
class Ports:
    mailboxes: Mailboxes
    held: HeldLessons
    leases: Leases
    clock: FakeClock


@pytest.fixture(params=["memory", "sqlite"])
async def ports(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ports]:
    clock = FakeClock()
    if request.param == "memory":
        yield Ports(FakeMailboxes(), FakeHeld(), FakeLeases(clock), clock)
        return
    lay(tmp_path / "spamd.db")
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db"))
    try:
        yield Ports(
            SqlMailboxes(database), SqlHeldLessons(database), SqlLeases(database, clock), clock
        )
    finally:
        await database.close()


async def test_a_cursor_is_read_as_it_was_written(ports: Ports) -> None:
    await ports.mailboxes.save(CURSOR.account, [CURSOR])
    moved = replace(CURSOR, next_uid=8)
    await ports.mailboxes.save(CURSOR.account, [moved])
    assert await ports.mailboxes.cursors(CURSOR.account) == {CURSOR.folder: moved}
    assert await ports.mailboxes.cursors("bob@host:143") == {}


def sighting(number: int, folder: str = "INBOX", key: str = "") -> Sighting:
    return Sighting(
        folder=folder,
        key=key or str(number),
        mail=number.to_bytes(16, "big"),
        delivered=1_800_000_000 + number,
    )


async def test_a_forgotten_folder_is_gone_with_its_sightings(ports: Ports) -> None:
    seen = [sighting(1, CURSOR.folder), sighting(1, "Junk")]
    await ports.mailboxes.save(CURSOR.account, [CURSOR], seen)
    await ports.mailboxes.forget(CURSOR.account, CURSOR.folder)
    await ports.mailboxes.forget(CURSOR.account, "never there")
    assert await ports.mailboxes.cursors(CURSOR.account) == {}
    found = await ports.mailboxes.seen(CURSOR.account, [seen[0].mail])
    assert found == {seen[0].mail: [seen[1]]}


async def test_what_left_is_forgotten_and_what_came_is_remembered_for_each_account(
    ports: Ports,
) -> None:
    odd = sighting(3, key="1800.\udcff\udcfe.host")
    await ports.mailboxes.save("a", [], [sighting(1), sighting(2), odd])
    await ports.mailboxes.save("b", [], [sighting(1)])
    again = replace(sighting(2), mail=b"m" * 16)
    await ports.mailboxes.save("a", [], [again], [("INBOX", "1"), ("INBOX", "2"), ("x", "3")])
    assert sorted(await ports.mailboxes.lying("a", "INBOX"), key=str) == sorted(
        [again, odd], key=str
    )
    assert await ports.mailboxes.lying("b", "INBOX") == [sighting(1)]


async def test_a_renamed_folder_keeps_what_it_held_in_place_of_what_the_name_had(
    ports: Ports,
) -> None:
    await ports.mailboxes.save("a", [replace(CURSOR, account="a", folder="Old")])
    await ports.mailboxes.save("a", [], [sighting(1, "Old"), sighting(2, "New")])
    await ports.mailboxes.rename("a", "Old", "New")
    assert list(await ports.mailboxes.cursors("a")) == ["New"]
    assert await ports.mailboxes.lying("a", "New") == [sighting(1, "New")]
    assert await ports.mailboxes.lying("a", "Old") == []


async def test_many_sightings_are_one_question(ports: Ports) -> None:
    seen = [sighting(number) for number in range(2_500)]
    await ports.mailboxes.save("a", [], seen)
    found = await ports.mailboxes.seen("a", [one.mail for one in seen])
    assert found == {one.mail: [one] for one in seen}
    assert await ports.mailboxes.seen("a", []) == {}


async def test_parked_mail_is_listed_replaced_and_removed(ports: Ports) -> None:
    later = replace(
        PARKED, account="bob@host:143", time=TIME + timedelta(seconds=1), label=Label.HAM
    )
    for row in (later, PARKED, replace(PARKED, attempts=2)):
        await ports.mailboxes.park(row)
    assert list(await ports.mailboxes.parked()) == [replace(PARKED, attempts=2), later]
    assert list(await ports.mailboxes.parked("bob@host:143")) == [later]
    await ports.mailboxes.unpark(PARKED.account, PARKED.folder, PARKED.uid)
    await ports.mailboxes.unpark(PARKED.account, PARKED.folder, PARKED.uid)
    assert list(await ports.mailboxes.parked()) == [later]


async def test_held_lessons_wait_once_each_and_can_be_dropped(ports: Ports) -> None:
    other = replace(HELD, features=extract(b"Subject: other\r\n\r\nother words\r\n"))
    await ports.held.hold([HELD, other])
    await ports.held.hold([replace(HELD, label=Label.HAM)])
    found = {one.features.digest: one for one in await ports.held.held()}
    assert found[HELD.features.digest].label is Label.HAM
    assert list(found[HELD.features.digest].features.texts) == list(HELD.features.texts)
    assert len({one.number for one in found.values()}) == len(found) == 2
    assert await ports.held.drop([one.number for one in found.values()]) == 2
    assert await ports.held.drop([99]) == 0
    assert list(await ports.held.held()) == []


async def test_a_lease_belongs_to_one_until_it_runs_out(ports: Ports) -> None:
    assert await ports.leases.acquire("feedback", "one", 10)
    assert not await ports.leases.acquire("feedback", "two", 10)
    ports.clock.seconds += 9
    assert await ports.leases.acquire("feedback", "one", 10)
    ports.clock.seconds += 9
    assert not await ports.leases.acquire("feedback", "two", 10)
    ports.clock.seconds += 2
    assert await ports.leases.holder("feedback") is None
    assert await ports.leases.acquire("feedback", "two", 10)


async def test_a_lease_taken_before_the_clock_was_set_back_holds_nobody_up(ports: Ports) -> None:
    ports.clock.seconds += 7200
    assert await ports.leases.acquire("feedback", "one", 10)
    ports.clock.seconds -= 7200
    assert await ports.leases.acquire("feedback", "two", 10)
    assert not await ports.leases.acquire("feedback", "one", 10)


async def test_a_lease_given_back_is_free_and_only_its_holder_gives_it(ports: Ports) -> None:
    assert await ports.leases.acquire("feedback", "one", 10)
    await ports.leases.release(["feedback"], "two")
    found = await ports.leases.holder("feedback")
    assert found is not None
    assert found.holder == "one"
    await ports.leases.release(["feedback"], "one")
    assert await ports.leases.acquire("feedback", "two", 10)


async def test_of_several_leases_those_are_taken_that_are_free(ports: Ports) -> None:
    assert await ports.leases.acquire("feedback:1", "one", 10)
    names = ["feedback:2", "feedback:1", "feedback"]
    assert await ports.leases.acquire_all(names, "two", 10) == {"feedback", "feedback:2"}
    held = await ports.leases.held("feedback")
    assert {name: each.holder for name, each in held.items()} == {
        "feedback": "two", "feedback:1": "one", "feedback:2": "two"
    }  # fmt: skip
    await ports.leases.release(names, "two")
    ports.clock.seconds += 11
    assert await ports.leases.acquire_all([], "two", 10) == set()
    assert not await ports.leases.held("feedback")


async def test_a_lease_of_a_process_that_never_comes_again_is_forgotten(ports: Ports) -> None:
    assert await ports.leases.acquire("feedback/gone", "one", 10)
    ports.clock.seconds += 90_000
    assert await ports.leases.acquire("feedback", "two", 10)
    ports.clock.seconds -= 90_000
    assert await ports.leases.holder("feedback/gone") is None
