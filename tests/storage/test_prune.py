"""Words go in small batches while others write, and what is killed half-way is whole."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from datetime import timedelta

import pytest
from sqlalchemy import event, update

from spamd import pruning
from spamd.bayes.model import BayesOptions
from spamd.errors import StorageUnavailable
from spamd.message.facts import SCHEMA
from spamd.pruning import prune_daily
from spamd.storage.corpus import corpus_tables, journal, token_bulk
from spamd.storage.engine import Database
from spamd.storage.maintenance import prune_tokens
from spamd.storage.maintenance.expiry import expire
from spamd.storage.maintenance.prune_tokens import Pruned, prune
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import DatabaseOptions, PruneOptions
from spamd.storage.store import Store
from spamd.storage.tables import corpus
from spamd.training.ports import Selection
from tests.servers.base import free_port
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail
from tests.storage.test_expiry import AGES

ALL_OLD = PruneOptions(unseen_days=180, seen_in=2, floor=0)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_tokens, "LESSONS", 3)


@pytest.fixture
async def old(teaching: TeachingProcess, clock: FixedClock) -> TeachingProcess:
    """A process that has taught twenty mails of rare words half a year ago, and one today."""
    for start in range(0, 20, 10):
        rare = [mail(f"m{n}", f"rare{n} also{n} pair{n // 2}") for n in range(start, start + 10)]
        await teaching.train(SPAM if start else HAM, *rare)
    clock.advance(days=200)
    await teaching.train(HAM, mail("today", "here"))
    return teaching


async def test_a_prune_leaves_what_one_transaction_would_leave(
    old: TeachingProcess, clock: FixedClock
) -> None:
    commits: list[object] = []
    event.listen(old.database.engine.sync_engine, "commit", commits.append)
    planned = await prune(old.database, clock, ALL_OLD, dry_run=True)
    before = len(commits)

    done = await prune(old.database, clock, ALL_OLD, dry_run=False)

    assert planned == done
    assert done.removed > 40
    assert len(commits) - before >= 7
    assert (await verify(old.database, SCHEMA)).faults == ()
    again = await prune(old.database, clock, ALL_OLD, dry_run=False)
    assert (again.removed, again.lessons) == (0, 0)


async def test_words_that_are_taught_during_a_prune_stay(
    old: TeachingProcess, clock: FixedClock
) -> None:
    other = TeachingProcess(old.database, clock)

    async def teaches() -> None:
        for number in range(15, 20):
            await other.train(HAM, mail(f"new {number}", f"rare{number} also{number}"))
            await other.forget(mail(f"m{number - 10}", f"rare{number - 10}"))

    async with asyncio.TaskGroup() as group:
        group.create_task(teaches())
        pruning = group.create_task(prune(old.database, clock, ALL_OLD, dry_run=False))

    assert pruning.result().removed > 10
    assert (await verify(old.database, SCHEMA)).faults == ()
    for process in (old, other):
        await process.cache.snapshot.refresh(old.database)
        stored = {row[0] for row in (await counts(old.database))["token"]}
        assert set(process.cache.snapshot.model.tokens.ids.tolist()) == stored


async def test_d23_a_prune_that_is_killed_half_way_is_whole_and_the_next_does_the_rest(
    old: TeachingProcess, clock: FixedClock
) -> None:
    planned = await prune(old.database, clock, ALL_OLD, dry_run=True)
    written: list[str] = []

    def dies(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("UPDATE sample"):
            written.append(statement)
            if len(written) == 8:
                raise KeyboardInterrupt

    engine = old.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", dies)
    with pytest.raises(KeyboardInterrupt):
        await prune(old.database, clock, ALL_OLD, dry_run=False)
    event.remove(engine, "before_cursor_execute", dies)
    assert (await verify(old.database, SCHEMA)).faults == ()

    rest = await prune(old.database, clock, ALL_OLD, dry_run=False)

    assert rest.examined - rest.removed == planned.examined - planned.removed
    assert 0 < rest.lessons < planned.lessons
    assert (await verify(old.database, SCHEMA)).faults == ()


async def test_after_a_reset_nothing_more_is_pruned(
    old: TeachingProcess, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = prune_tokens._Work.shrink_lessons

    async def reset_first(self: prune_tokens._Work) -> None:
        async with old.database.writing() as connection:
            await connection.execute(update(corpus).values(generation=7))
        await begun(self)

    monkeypatch.setattr(prune_tokens._Work, "shrink_lessons", reset_first)
    before = await counts(old.database)
    assert (await prune(old.database, clock, ALL_OLD, dry_run=False)).removed == 0
    assert await counts(old.database) == before


Look = Callable[[Database, FixedClock], Coroutine[None, None, object]]


async def _pruned(database: Database, clock: FixedClock) -> Pruned:
    return await prune(database, clock, ALL_OLD, dry_run=True)


async def _expired(database: Database, clock: FixedClock) -> object:
    return await expire(database, clock, AGES, dry_run=True)


async def _verified(database: Database, clock: FixedClock) -> object:
    return (await verify(database, SCHEMA)).faults


async def _rolled_back(database: Database, clock: FixedClock) -> object:
    async with database.reading() as connection:
        return await journal.listed(connection, Selection(since=clock.now() - timedelta(days=9)))


LOOKS: list[Look] = [_pruned, _expired, _verified, _rolled_back]


@pytest.mark.parametrize("look", LOOKS)
async def test_i5_who_only_looks_waits_for_no_writer(
    old: TeachingProcess, options: DatabaseOptions, clock: FixedClock, look: Look
) -> None:
    impatient = DatabaseOptions(url=options.url, busy_timeout_s=0.1)
    looking = await Database.open(impatient)
    async with old.database.writing() as connection:
        await corpus_tables.version(connection, lock=True)
        found = await look(looking, clock)
    assert found == await look(looking, clock)
    await looking.close()


class Told:
    """Notes what happened (the port `Observer`)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, str | float]]] = []

    def happened(self, event: str, **details: str | float) -> None:
        self.events.append((event, details))

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        raise AssertionError(event) from error


async def test_d22_the_daemon_prunes_once_a_day_in_a_whole_site_and_sooner_when_it_failed(
    old: TeachingProcess,
    options: DatabaseOptions,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "NICE", 0)  # beside other tests who gives way may wait for minutes
    options = replace(options, prune_floor=0, prune_seen_in=2)
    workers = [Store(old.database, SCHEMA, BayesOptions(), clock) for _ in range(2)]
    told = Told()
    planned = await prune(old.database, clock, ALL_OLD, dry_run=True)
    nowhere = replace(options, url=f"postgresql://127.0.0.1:{free_port()}/spamd")
    with pytest.raises(StorageUnavailable):
        await prune_daily(workers[0], nowhere, told)
    await prune_daily(workers[1], options, told)
    assert told.events == []
    clock.advance(hours=2.5)
    for worker in workers:
        await prune_daily(worker, options, told)
    assert told.events == [("tokens.pruned", asdict(planned))]
    assert (await verify(old.database, SCHEMA)).faults == ()
    clock.advance(hours=25)
    await prune_daily(workers[1], options, told)
    assert [details["removed"] for _, details in told.events] == [planned.removed, 0]
    await prune_daily(workers[0], replace(options, prune_days=0), told)
    assert len(told.events) == 2


async def test_no_look_of_a_prune_at_the_database_is_long(
    old: TeachingProcess, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune_tokens, "LOOK", 2)
    monkeypatch.setattr(token_bulk, "SLICE_ROWS", 10)
    looks = [0]
    engine = old.database.engine.sync_engine
    event.listen(engine, "rollback", lambda _: looks.append(0))

    def counted(_: object, __: object, statement: str, *___: object) -> None:
        looks[-1] += statement.startswith("SELECT")

    event.listen(engine, "before_cursor_execute", counted)
    assert (await prune(old.database, clock, ALL_OLD, dry_run=True)).removed > 40
    assert len(looks) > 25
    assert max(looks) == 1
