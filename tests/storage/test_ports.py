"""The repositories fulfil the ports that feedback and the relay stand on."""

import asyncio
import sqlite3
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import DBAPIError

from spamd.bayes.decision import Action, Verdict
from spamd.errors import StorageUnavailable
from spamd.feedback.ports import (
    Cursor,
    Held,
    HeldLessons,
    History,
    Leases,
    Mailboxes,
    Parked,
    Sighting,
)
from spamd.message.features import Features
from spamd.report import ScanReport
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.engine import Database
from spamd.storage.mailboxes import SqlMailboxes
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from spamd.storage.scans import Scans
from spamd.storage.workers.leases import SqlLeases
from spamd.training import Result
from spamd.training.ports import Selection
from tests.storage.mails import (
    HAM,
    SPAM,
    FixedClock,
    TeachingProcess,
    counts,
    mail,
    same_sample,
    weight_sum,
)

if TYPE_CHECKING:
    from spamd.scanning import ScanLog

ACCOUNT = "anna@mail.example:993"


def report(features: Features, *, id: str = "0a-1b", probability: float = 0.25) -> ScanReport:  # noqa: A002
    return ScanReport(
        id=id,
        verdict=Verdict.UNSURE,
        action=Action.ACCEPT,
        reason="as told",
        probability=probability,
        required=0.9,
        scores={},
        size_bytes=features.size_bytes,
        tokens=1,
        known=0,
        duration_s=0.0,
        features=features,
    )


@pytest.fixture
def scans(database: Database, clock: FixedClock) -> Scans:
    return Scans(database, clock)


async def test_a_scan_is_found_by_id_and_by_digest_once_it_is_flushed(scans: Scans) -> None:
    log: ScanLog = scans
    history: History = scans
    seen = mail("Offer", "unsure words")
    log.record(report(seen))
    assert await history.by_id(["0a-1b"]) == {}
    assert await scans.flush() == 1
    known = (await history.by_id(["0a-1b", "forged"]))["0a-1b"]
    assert (known.digest, known.verdict, known.probability) == (seen.digest, Verdict.UNSURE, 0.25)
    assert (await history.by_digest([seen.digest, b"?" * 16])) == {seen.digest: known}


async def test_a_mail_known_by_its_lesson_only_is_found_by_its_digest(
    scans: Scans, teaching: TeachingProcess
) -> None:
    taught = mail("Lunch")
    await teaching.train(HAM, taught, source="imap")
    known = (await scans.by_digest([taught.digest]))[taught.digest]
    assert (known.label, known.source, known.scanned) == (HAM, "imap", None)
    assert known.before is not None
    assert known.after is not None
    assert known.after < known.before


async def test_d14_the_features_that_were_scanned_are_kept_exactly(scans: Scans) -> None:
    seen = mail("Größe", "Straße STRASSE \u4f60\u597d 1\u20ac", "x@sub.example.org")
    scans.record(report(seen))
    await scans.flush()
    kept = await scans.kept(seen.digest)
    assert kept is not None
    assert same_sample(kept, seen)
    assert (kept.digest, kept.id, kept.sender_domain) == (seen.digest, seen.id, seen.sender_domain)
    assert (kept.defects, kept.size_bytes) == (seen.defects, seen.size_bytes)
    assert await scans.kept(b"?" * 16) is None


async def test_scans_wait_while_they_cant_be_written(scans: Scans, database: Database) -> None:
    scans.record(report(mail("a"), id="a"))
    async with database.writing() as connection:
        await connection.exec_driver_sql("ALTER TABLE scan RENAME TO away")
    with pytest.raises(DBAPIError if database.path is None else StorageUnavailable):
        await scans.flush()
    async with database.writing() as connection:
        await connection.exec_driver_sql("ALTER TABLE away RENAME TO scan")
    scans.record(report(mail("b"), id="b"))
    assert await scans.flush() == 2
    assert set(await scans.by_id(["a", "b"])) == {"a", "b"}


async def test_a_cursor_and_what_its_folder_holds_are_saved_together(
    database: Database, clock: FixedClock
) -> None:
    mailboxes: Mailboxes = SqlMailboxes(database)
    cursor = Cursor(
        account=ACCOUNT,
        folder="Entwürfe/迷惑\0",
        validity=2**32 - 1,
        next_uid=2**32 - 1,
        modseq=2**63 - 1,
        messages=3,
        baseline=2,
        marked="3:7,12",
        time=clock.now(),
    )
    one = Sighting(folder=cursor.folder, key="1", mail=b"a" * 16, delivered=1_800_000_000)
    await mailboxes.save(ACCOUNT, [cursor], [one])
    (kept,) = (await mailboxes.cursors(ACCOUNT)).values()
    assert kept.modseq == 2**63 - 1
    seen = await mailboxes.seen(ACCOUNT, [b"a" * 16, b"c" * 16])
    assert list(seen) == [b"a" * 16]
    assert await mailboxes.seen("other", [b"a" * 16]) == {}
    await mailboxes.forget(ACCOUNT, cursor.folder)
    assert await mailboxes.cursors(ACCOUNT) == {}


async def test_a_parked_mail_is_listed_until_it_is_unparked(
    database: Database, clock: FixedClock
) -> None:
    mailboxes: Mailboxes = SqlMailboxes(database)
    first = Parked(
        account=ACCOUNT,
        folder="Junk",
        validity=1,
        uid="17",
        attempts=1,
        reason="no such charset",
        time=clock.now(),
    )
    clock.advance(hours=1)
    again = Parked(
        account=ACCOUNT,
        folder="Junk",
        validity=1,
        uid="17",
        attempts=2,
        reason="still not",
        time=clock.now(),
    )
    await mailboxes.park(first)
    await mailboxes.park(again)
    assert await mailboxes.parked() == [again]
    assert await mailboxes.parked("somebody else") == []
    await mailboxes.unpark(ACCOUNT, "Junk", "17")
    await mailboxes.unpark(ACCOUNT, "Junk", "17")
    assert await mailboxes.parked(ACCOUNT) == []


async def test_a_held_lesson_waits_and_a_second_one_of_the_same_mail_replaces_it(
    database: Database, clock: FixedClock
) -> None:
    lessons: HeldLessons = SqlHeldLessons(database)

    await lessons.hold([held(clock, "a", "first"), held(clock, "b", "first")])
    await lessons.hold([held(clock, "a", "second")])
    waiting = await lessons.held()
    assert [(each.reason, each.features.digest) for each in waiting] == [
        ("first", mail("b").digest),
        ("second", mail("a").digest),
    ]
    assert same_sample(waiting[1].features, mail("a"))
    assert await lessons.drop([waiting[0].number, 999]) == 1
    assert len(await lessons.held()) == 1


async def test_i3_the_number_of_a_dropped_lesson_never_names_another_one(
    database: Database, clock: FixedClock
) -> None:
    lessons: HeldLessons = SqlHeldLessons(database)
    await lessons.hold([held(clock, "a"), held(clock, "b")])
    shown = (await lessons.held())[-1].number
    await lessons.drop([shown])
    await lessons.hold([held(clock, "c")])
    assert await lessons.drop([shown]) == 0
    assert [each.features.digest for each in await lessons.held()] == [
        mail("a").digest,
        mail("c").digest,
    ]


@pytest.mark.parametrize("taught_before", [False, True])
async def test_a_held_lesson_is_void_once_its_mail_was_taught_otherwise(
    database: Database, clock: FixedClock, teaching: TeachingProcess, *, taught_before: bool
) -> None:
    lessons: HeldLessons = SqlHeldLessons(database)
    if taught_before:
        await teaching.train(HAM, mail("a"))
    await lessons.hold([held(clock, "a"), held(clock, "b")])
    await teaching.train(HAM, mail("a"))
    assert [each.features.digest for each in await lessons.held()] == [mail("b").digest]


async def test_a_rehearsal_is_nobodys_last_word(
    database: Database, clock: FixedClock, teaching: TeachingProcess
) -> None:
    lessons: HeldLessons = SqlHeldLessons(database)
    for label in (HAM, SPAM):
        await teaching.train(label, *(mail(f"{label.value} {number}") for number in range(8)))
    await lessons.hold([held(clock, "ham 0")])
    assert await teaching.trainer.rehearse() == 16
    assert len(await lessons.held()) == 1


async def test_old_lessons_are_learned_again_in_turn_and_no_count_moves(
    database: Database, teaching: TeachingProcess
) -> None:
    for number in range(8):
        await teaching.train(HAM, mail(f"ham {number}"))
        await teaching.train(SPAM, mail(f"spam {number}"))
    async with teaching.work() as work:
        before = [each.digest for each in await work.listed(Selection())]
    cells = await counts(database)
    assert await teaching.trainer.refresh(first_scores=True) == 10
    async with teaching.work() as work:
        after = [each.digest for each in await work.listed(Selection())]
        assert [each.digest for each in await work.listed(Selection(oldest=2))] == after[:2]
    assert after[:6] == before[10:]
    assert sorted(after[6:]) == sorted(before[:10])
    assert await counts(database) == cells
    stored = {row[0]: row[-1] for row in (await counts(database, weights=True))["token"]}
    assert stored == await weight_sum(database)


def held(clock: FixedClock, subject: str, reason: str = "a slip of the mouse") -> Held:
    return Held(
        number=0,
        features=mail(subject),
        label=SPAM,
        source="imap",
        actor="anna",
        probability=0.01,
        reason=reason,
        time=clock.now(),
    )


async def test_a_lease_belongs_to_one_until_it_runs_out(
    database: Database, clock: FixedClock
) -> None:
    leases: Leases = SqlLeases(database, clock)
    assert await leases.acquire("feedback", "worker 1", 10)
    assert not await leases.acquire("feedback", "worker 2", 10)
    clock.advance(seconds=8)
    assert await leases.acquire("feedback", "worker 1", 10)
    clock.advance(seconds=9)
    assert not await leases.acquire("feedback", "worker 2", 10)
    clock.advance(seconds=1)
    assert await leases.holder("feedback") is None
    assert await leases.acquire("feedback", "worker 2", 10)
    await leases.release(["feedback"], "worker 1")
    holder = await leases.holder("feedback")
    assert holder is not None
    assert holder.holder == "worker 2"
    await leases.release(["feedback"], "worker 2")
    assert await leases.holder("feedback") is None


async def test_h7_lessons_against_clear_verdicts_are_counted_for_each_person(
    database: Database, clock: FixedClock, teaching: TeachingProcess
) -> None:
    lessons: HeldLessons = SqlHeldLessons(database)
    scans = Scans(database, clock)
    verdicts = {"a": Verdict.HAM, "b": Verdict.HAM, "c": Verdict.UNSURE, "d": Verdict.SPAM}
    for subject, verdict in verdicts.items():
        for number in range(2):  # two recipients of the same mail
            seen = replace(report(mail(subject), id=f"{subject}{number}"), verdict=verdict)
            scans.record(seen)
    await scans.flush()
    await teaching.train(SPAM, mail("a"), actor="anna")
    clock.advance(minutes=30)
    since = clock.now()
    await teaching.train(SPAM, mail("b"), mail("c"), mail("d"), mail("unseen"), actor="anna")
    await teaching.train(HAM, mail("d"), actor="bert")
    await lessons.hold([held(clock, "held")])
    assert await lessons.contradictions("anna", since) == 2
    assert await lessons.contradictions("anna", since - timedelta(hours=1)) == 3
    assert await lessons.contradictions("bert", since) == 1
    assert await lessons.contradictions("nobody", since) == 0


async def test_k10_a_lesson_that_waits_for_a_locked_database_can_be_given_up(
    tmp_path: Path, clock: FixedClock
) -> None:
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db"))
    try:
        await upgrade(database)
        teaching = TeachingProcess(database, clock)
        with sqlite3.connect(tmp_path / "spamd.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await teaching.train(SPAM, mail("a"))
            assert time.monotonic() - started < 5  # not `busy_timeout_s` with its retries
            other.execute("ROLLBACK")
        other.close()
        assert await teaching.train(SPAM, mail("a")) == [Result.LEARNED]
    finally:
        await database.close()
