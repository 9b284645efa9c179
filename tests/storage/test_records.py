"""Lists of the page: parts that join without gap or double, filters, words, hours, sessions."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from spamd.admin.ports import Place, ScanFilter, ScanRow, StoredSession, Trial
from spamd.admin.roles import Role
from spamd.bayes.decision import Action, Verdict
from spamd.storage.engine import Database
from spamd.storage.records.records import SqlRecords
from spamd.storage.records.sessions import SqlSessions
from spamd.storage.scans import Scans
from spamd.training.ports import Selection
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, mail
from tests.storage.test_ports import report


@pytest.fixture
def records(database: Database) -> SqlRecords:
    return SqlRecords(database)


async def scanned(database: Database, clock: FixedClock, number: int) -> list[str]:
    """Write scans, three of each second; return their ids, newest first."""
    scans = Scans(database, clock)
    ids = []
    for n in range(number):
        one = replace(
            report(mail(f"m{n}"), id=f"id{n:03}"),
            verdict=Verdict.SPAM if n % 4 == 0 else Verdict.HAM,
            action=Action.TAG if n % 4 == 0 else Action.ACCEPT,
        )
        scans.record(one)
        scans.answered(one, "milter" if n % 2 else "smtp", f"Q{n}")
        ids.append(one.id)
        if n % 3 == 2:
            await scans.flush()
            clock.advance(seconds=1)
    await scans.flush()
    return ids[::-1]


async def walked(records: SqlRecords, chosen: ScanFilter, *, newer: bool) -> list[str]:
    """Return the ids of all parts of a list in the order in which they are walked through."""
    rows: list[ScanRow] = []
    at: Place | None = Place(time=0, key="", newer=True) if newer else None
    while part := await records.scans(chosen, at, 4):
        rows += reversed(part) if newer else part
        at = replace(rows[-1].place, newer=newer)
    return [row.id for row in rows]


async def test_parts_of_a_list_join_without_gap_or_double_in_both_directions(
    database: Database, records: SqlRecords, clock: FixedClock
) -> None:
    ids = await scanned(database, clock, 23)

    assert await walked(records, ScanFilter(), newer=False) == ids
    assert await walked(records, ScanFilter(), newer=True) == ids[::-1]


async def test_scans_are_chosen_by_each_condition_and_by_all_together(
    database: Database, records: SqlRecords, clock: FixedClock
) -> None:
    start = clock.now()
    await scanned(database, clock, 12)

    async def found(chosen: ScanFilter) -> list[str]:
        return [row.id for row in await records.scans(chosen, None, 50)]

    spam = ["id008", "id004", "id000"]
    assert await found(ScanFilter(verdict=Verdict.SPAM)) == spam
    assert await found(ScanFilter(action=Action.TAG)) == spam
    assert len(await found(ScanFilter(listener="milter"))) == 6
    assert await found(ScanFilter(queue_id="Q7")) == ["id007"]
    assert await found(ScanFilter(id="id00", verdict=Verdict.SPAM)) == spam
    assert await found(ScanFilter(id="id01")) == ["id011", "id010"]
    late = start + timedelta(seconds=3)
    assert await found(ScanFilter(since=late)) == ["id011", "id010", "id009"]
    assert await found(ScanFilter(until=late, verdict=Verdict.SPAM)) == spam
    assert await records.count_scans(ScanFilter(verdict=Verdict.HAM), 5) == 5
    assert await records.count_scans(ScanFilter(verdict=Verdict.SPAM), 5) == 3


async def test_a_list_of_scans_reads_its_index_and_no_row(
    database: Database, records: SqlRecords, clock: FixedClock
) -> None:
    if not database.is_sqlite:
        pytest.skip("SQLite says how it reads in words that stay the same")
    await scanned(database, clock, 3)
    seen: list[str] = []
    async with database.reading() as connection:
        columns = "time, id, verdict, action, listener, probability, queue_id, digest"
        for where in ("1", "verdict = 'spam' AND listener = 'smtp'", "action = 'tag'"):
            plan = await connection.execute(
                text(
                    f"EXPLAIN QUERY PLAN SELECT {columns} FROM scan WHERE {where}"
                    " AND time <= 9e18 ORDER BY time DESC, id DESC LIMIT 51"
                )
            )
            seen += [row.detail for row in plan]
    assert len(seen) == 3
    assert all("COVERING INDEX ix_scan_listed" in each for each in seen)


async def test_mails_are_counted_by_the_hour_and_an_answer_may_come_late(
    database: Database, records: SqlRecords, clock: FixedClock
) -> None:
    clock.advance(minutes=5)
    scans = Scans(database, clock)
    first, second = report(mail("a"), id="a"), report(mail("b"), id="b")
    unscanned = replace(first, id="c", verdict=Verdict.UNSCANNED, features=None, probability=None)
    scans.record(first)
    await scans.flush()
    scans.answered(first, "lmtp", "LATE")
    scans.answered(unscanned, "lmtp", "")
    await scans.flush()
    scans.record(second)
    scans.answered(second, "lmtp", "")
    await scans.flush()

    counts = {(row.listener, row.verdict): row.mails for row in await records.hours(clock.now())}
    assert counts == {}
    hours = await records.hours(clock.now() - timedelta(hours=1))
    assert {(row.listener, row.verdict): row.mails for row in hours} == {
        ("lmtp", Verdict.UNSURE): 2,
        ("lmtp", Verdict.UNSCANNED): 1,
    }
    found = await records.scan("a")
    assert found is not None
    assert (found[0].listener, found[0].queue_id) == ("lmtp", "LATE")


async def test_a_scan_is_found_by_its_id_or_as_the_last_of_its_message(
    database: Database, records: SqlRecords, clock: FixedClock, teaching: TeachingProcess
) -> None:
    scans, seen = Scans(database, clock), mail("seen")
    scans.record(report(seen, id="one"))
    await scans.flush()
    clock.advance(minutes=1)
    scans.record(report(seen, id="two"))
    await scans.flush()
    await teaching.train(HAM, seen)

    by_id = await records.scan("one")
    by_message = await records.scan(seen.digest.hex())
    assert by_id is not None
    assert by_message is not None
    assert (by_id[0].id, by_id[0].label) == ("one", HAM)
    assert by_message[0].id == "two"
    assert by_message[1].digest == seen.digest
    assert await records.scan("three") is None
    assert await records.scan("ab" * 16) is None


async def test_lessons_are_listed_in_parts_chosen_and_counted_in_groups(
    records: SqlRecords, teaching: TeachingProcess, clock: FixedClock
) -> None:
    for n in range(9):
        await teaching.train(
            SPAM if n % 3 else HAM, mail(f"l{n}"), source="imap", actor=f"p{n % 2}"
        )
        clock.advance(minutes=n % 2)

    rows = await records.lessons(Selection(), None, 4)
    more = await records.lessons(Selection(), rows[-1].place, 50)
    back = await records.lessons(Selection(), replace(more[0].place, newer=True), 4)
    assert len({row.id for row in [*rows, *more]}) == 9
    assert [*rows, *more] == sorted(
        [*rows, *more], key=lambda row: (row.time, int(row.place.key)), reverse=True
    )
    assert back == rows
    ham = await records.lessons(Selection(label=HAM, actor="p0"), None, 50)
    assert len(ham) == 2
    groups = await records.groups(Selection())
    named = {(one.label, one.actor): one.lessons for one in groups.found}
    assert named == {(SPAM, "p0"): 3, (SPAM, "p1"): 3, (HAM, "p0"): 2, (HAM, "p1"): 1}
    few = await records.groups(Selection(), 1)
    assert [one.lessons for one in few.found] == [3]
    assert (few.number, few.lessons) == (4, {SPAM: 6, HAM: 3})
    unnamed = await records.groups(Selection(label=SPAM), people=False)
    assert [(one.label, one.actor, one.lessons) for one in unnamed.found] == [(SPAM, "", 6)]


async def test_the_lessons_of_a_word_or_pair_are_found_newest_first(
    records: SqlRecords, teaching: TeachingProcess
) -> None:
    for n in range(3):
        await teaching.train(SPAM, mail(f"s{n}", "cheap pills today"))
    await teaching.train(HAM, mail("h", "cheap flights, no pills"))

    one = await records.word("cheap", None, 10.0)
    pair = await records.word("cheap pills", None, 10.0)
    none = await records.word("chea", None, 10.0)
    assert [each.lesson.label for each in one.found] == [HAM, SPAM, SPAM, SPAM]
    assert (one.looked, one.behind) == (4, None)
    assert [each.lesson.label for each in pair.found] == [SPAM, SPAM, SPAM]
    assert none.found == ()


async def test_looking_for_a_word_ends_in_time_and_goes_on_from_there(
    records: SqlRecords, teaching: TeachingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spamd.storage.records.word_lessons.PART", 2)
    monkeypatch.setattr("spamd.storage.records.word_lessons.MOST", 3)
    for n in range(5):
        await teaching.train(SPAM, mail(f"s{n}", "pills"))

    first = await records.word("pills", None, 10.0)
    hurried = await records.word("pills", None, 0.0)
    rest = await records.word("pills", first.behind, 10.0)
    assert (len(first.found), first.looked) == (3, 3)
    assert (len(hurried.found), hurried.looked) == (2, 2)
    assert (len(rest.found), rest.behind) == (2, None)
    assert len({each.lesson.id for each in (*first.found, *rest.found)}) == 5


async def test_samples_are_the_newest_of_each_label_in_the_order_of_learning(
    records: SqlRecords, teaching: TeachingProcess
) -> None:
    for n in range(4):
        await teaching.train(SPAM, mail(f"s{n}"))
        await teaching.train(HAM, mail(f"h{n}"))

    found = await records.samples(2)
    assert [label for _, label, _ in found] == [SPAM, HAM, SPAM, HAM]
    assert {sender for *_, sender in found} == {"example.org"}


async def test_a_session_is_found_until_it_is_closed_or_too_old(
    database: Database, clock: FixedClock
) -> None:
    sessions = SqlSessions(database)
    hour = timedelta(hours=1)

    def opened(name: str) -> StoredSession:
        return StoredSession(
            digest=name.encode(),
            role=Role.TEACHER,
            name=name,
            created=clock.now(),
            seen=clock.now(),
        )

    await sessions.open(opened("old"), ended=clock.now() - hour, idle=clock.now() - hour)
    clock.advance(hours=2)
    await sessions.open(opened("new"), ended=clock.now() - hour, idle=clock.now() - hour)
    assert await sessions.find(b"old") is None
    clock.advance(minutes=1)
    await sessions.seen(b"new", clock.now())
    assert await sessions.find(b"new") == replace(
        opened("new"), created=clock.now() - timedelta(minutes=1)
    )
    await sessions.close(b"new")
    assert await sessions.find(b"new") is None
    await sessions.open(opened("a"), ended=clock.now() - hour, idle=clock.now() - hour)
    await sessions.close(None)
    assert await sessions.find(b"a") is None


async def test_what_came_of_an_evaluation_is_kept_until_it_is_removed(
    records: SqlRecords, clock: FixedClock
) -> None:
    assert await records.trial("cross") is None
    await records.write_trial("cross", Trial(time=clock.now(), content="{}"))
    await records.write_trial("cross", Trial(time=clock.now(), content='{"a": 1}'))
    assert await records.trial("cross") == Trial(time=clock.now(), content='{"a": 1}')
    await records.write_trial("cross", None)
    assert await records.trial("cross") is None
