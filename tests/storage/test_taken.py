from spamd.ports import Outcome
from spamd.storage.engine import Database
from spamd.storage.maintenance.expiry import expire
from spamd.storage.workers.taken import SqlTaken
from tests.storage.mails import FixedClock, TeachingProcess
from tests.storage.test_expiry import AGES

TAKEN, REFUSED = Outcome.TAKEN, Outcome.REFUSED


async def test_what_one_worker_adds_the_others_read(database: Database, clock: FixedClock) -> None:
    one, other = SqlTaken(database, clock), SqlTaken(database, clock)
    await one.add(b"m", {b"a": TAKEN, b"b": REFUSED})
    assert await other.of(b"m") == {b"a": TAKEN, b"b": REFUSED}
    assert await other.of(b"n") == {}
    rows, now = await other.since(0)
    assert rows == {b"m": {b"a": TAKEN, b"b": REFUSED}}
    clock.advance(hours=1)
    assert (await other.since(now))[0] == {b"m": {b"a": TAKEN, b"b": REFUSED}}
    assert (await other.since((await other.since(0))[1]))[0] == {}


async def test_what_was_taken_stays_taken(database: Database, clock: FixedClock) -> None:
    store = SqlTaken(database, clock)
    await store.add(b"m", {b"a": TAKEN, b"b": REFUSED})
    await store.add(b"m", {b"a": REFUSED, b"b": TAKEN})
    assert await store.of(b"m") == {b"a": TAKEN, b"b": TAKEN}


async def test_it_is_forgotten_when_nobody_tries_any_more(
    teaching: TeachingProcess, database: Database, clock: FixedClock
) -> None:
    store = SqlTaken(database, clock)
    await store.add(b"m", {b"a": TAKEN})
    clock.advance(hours=24 * 7)
    await store.add(b"n", {b"a": TAKEN})
    assert (await expire(database, clock, AGES, dry_run=False)).taken == 1
    assert await store.of(b"n") == {b"a": TAKEN}
