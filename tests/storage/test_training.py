"""Lessons in a real database: each mail counts once, corrections are exact."""

from spamd.storage.engine import Database
from spamd.training import Result
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
