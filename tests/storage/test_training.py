"""Lessons in a real database: each mail counts once, corrections are exact."""

from collections.abc import Mapping

from spamd.storage.corpus import journal
from spamd.storage.engine import Database
from spamd.training import Result
from spamd.training.ports import Selection
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail

PILLS = mail("Cheap pills", "buy cheap pills now, cheap cheap")
LUNCH = mail("Lunch", "shall we have lunch on monday, anna")


async def test_d8_the_same_mail_taught_twice_counts_once(teaching: TeachingProcess) -> None:
    assert await teaching.train(SPAM, PILLS) == [Result.LEARNED]
    once = await counts(teaching.database, weights=True)
    assert await teaching.train(SPAM, PILLS) == [Result.KNOWN]
    assert await counts(teaching.database, weights=True) == once


async def test_d8_a_mail_that_stands_twice_in_a_batch_counts_once(
    teaching: TeachingProcess,
) -> None:
    assert await teaching.train(SPAM, PILLS, LUNCH, PILLS) == [
        Result.LEARNED,
        Result.LEARNED,
        Result.KNOWN,
    ]
    assert (await counts(teaching.database))["corpus"][0][1] == 2


async def test_d9_a_flipped_lesson_leaves_what_learning_it_right_at_once_leaves(
    teaching: TeachingProcess, database: Database, clock: FixedClock
) -> None:
    await teaching.train(HAM, PILLS)
    right = await counts(database, weights=True)
    assert await teaching.train(SPAM, PILLS) == [Result.RELABELLED]
    assert await teaching.train(HAM, PILLS) == [Result.RELABELLED]
    assert await counts(database, weights=True) == right


async def test_forgetting_restores_the_database_row_for_row(teaching: TeachingProcess) -> None:
    await teaching.train(HAM, LUNCH)
    before = await counts(teaching.database, weights=True)
    await teaching.train(SPAM, PILLS, mail("Cheap lunch", "lunch pills for anna"))
    await teaching.forget(PILLS, mail("Cheap lunch", "lunch pills for anna"))
    assert await counts(teaching.database, weights=True) == before


async def test_d7_forgetting_what_was_never_learned_changes_nothing(
    teaching: TeachingProcess,
) -> None:
    await teaching.train(SPAM, PILLS)
    before = await counts(teaching.database, weights=True)
    for _ in range(2):
        assert [outcome.result for outcome in await teaching.forget(LUNCH)] == [Result.UNKNOWN]
    assert await counts(teaching.database, weights=True) == before


async def test_a_lesson_of_kept_mail_replaces_none_and_any_other_replaces_it(
    teaching: TeachingProcess,
) -> None:
    spam, ham, kept = mail("offer"), mail("letter"), mail("note")
    await teaching.train(SPAM, spam, source="imap", actor="ann")
    await teaching.train(HAM, ham, source="cli")
    before = await counts(teaching.database)
    known = [Result.KNOWN, Result.KNOWN]
    assert await teaching.train(HAM, spam, ham, source="kept", actor="ann") == known
    assert await counts(teaching.database) == before
    await teaching.train(HAM, kept, source="kept", actor="ann")
    assert await teaching.train(SPAM, kept, source="imap", actor="ann") == [Result.RELABELLED]
    assert await sources(teaching) == {"imap": 2, "cli": 1}


async def test_who_teaches_a_kept_mail_by_hand_owns_the_lesson(teaching: TeachingProcess) -> None:
    kept = mail("note")
    await teaching.train(HAM, kept, source="kept", actor="ann")
    before = await counts(teaching.database)
    assert await teaching.train(HAM, kept, source="cli") == [Result.KNOWN]
    assert await sources(teaching) == {"cli": 1}
    assert await counts(teaching.database) == before
    assert await teaching.train(HAM, kept, source="kept", actor="ann") == [Result.KNOWN]
    assert await sources(teaching) == {"cli": 1}


async def test_lessons_of_kept_mail_are_taken_back_by_their_source(
    teaching: TeachingProcess,
) -> None:
    await teaching.train(HAM, mail("letter"), source="imap")
    before = await counts(teaching.database)
    await teaching.train(HAM, mail("a"), mail("b"), source="kept", actor="ann")
    gone = await teaching.trainer.rollback(Selection(source="kept"))
    assert [each.source for each in gone] == ["kept", "kept"]
    assert await counts(teaching.database) == before


async def sources(teaching: TeachingProcess) -> Mapping[str, int]:
    async with teaching.database.reading() as connection:
        return (await journal.summary(connection)).sources


async def test_a_kept_mail_gains_its_sender_no_more_than_one_honest_move(
    teaching: TeachingProcess,
) -> None:
    for number in range(12):
        await teaching.train(SPAM, mail(f"offer {number}", "cheap pills casino"))
        await teaching.train(HAM, mail(f"letter {number}", "meeting on monday"))
    attack = mail("offer", "cheap pills for the meeting", "x@attack.example")
    before = await counts(teaching.database, weights=True)
    await teaching.train(HAM, attack, source="imap", actor="ann")
    moved = await counts(teaching.database, weights=True), await teaching.probability(attack)
    await teaching.forget(attack)
    assert await counts(teaching.database, weights=True) == before
    for account in ("ann", "bob", "eve"):  # it lies in three inboxes
        await teaching.train(HAM, attack, source="kept", actor=account)
    kept = await counts(teaching.database, weights=True), await teaching.probability(attack)
    assert kept == moved
