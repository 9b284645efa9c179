"""Several writers, strange words, and processes that die: nothing is lost, nothing is half."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager

import numpy as np
import pytest
from sqlalchemy import text

from spamd.bayes.counts import TAUGHT_TOKENS
from spamd.errors import StorageUnavailable
from spamd.feedback.ports import Held
from spamd.message.facts import SCHEMA
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.engine import Database
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import DatabaseOptions
from spamd.training import Result
from spamd.training.ports import Selection
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail, wide

WORDS = [f"word{number}" for number in range(200)]


@pytest.fixture
async def processes(
    database: Database, options: DatabaseOptions, clock: FixedClock
) -> AsyncIterator[list[TeachingProcess]]:
    """Eight processes at work: each has its own connections and its own memory."""
    async with AsyncExitStack() as stack:
        databases = [await Database.open(options) for _ in range(8)]
        for each in databases:
            stack.push_async_callback(each.close)
        yield [TeachingProcess(each, clock) for each in databases]


def story(number: int, size: int = 30) -> str:
    chosen = random.Random(number)
    return " ".join(chosen.choice(WORDS) for _ in range(size))


async def test_d15_eight_writers_at_once_lose_nothing(
    processes: list[TeachingProcess], database: Database
) -> None:
    mails = [mail(f"mail {number}", story(number)) for number in range(32)]

    async def write(teaching: TeachingProcess, number: int) -> None:
        for each in mails[number::8]:
            assert await teaching.train(SPAM if number % 2 else HAM, each) == [Result.LEARNED]
            await teaching.probability(each)

    async with asyncio.TaskGroup() as group:
        for number, teaching in enumerate(processes):
            group.create_task(write(teaching, number))
    findings = await verify(database, SCHEMA)
    assert (findings.lessons, findings.faults) == (32, ())
    assert (await counts(database))["corpus"][0][1:3] == (16, 16)


async def test_d17_writers_who_share_words_in_opposite_order_all_succeed(
    processes: list[TeachingProcess], database: Database
) -> None:
    forward, backward = " ".join(WORDS), " ".join(reversed(WORDS))

    async def write(teaching: TeachingProcess, number: int) -> None:
        body = backward if number % 2 else forward
        await teaching.train(SPAM, *(mail(f"{number}-{turn}", body) for turn in range(2)))

    async with asyncio.TaskGroup() as group:
        for number, teaching in enumerate(processes):
            group.create_task(write(teaching, number))
    assert (await counts(database))["corpus"][0][1] == 16
    assert (await verify(database, SCHEMA)).faults == ()


async def test_i3_lessons_held_by_several_at_once_get_numbers_of_their_own(
    processes: list[TeachingProcess], database: Database, clock: FixedClock
) -> None:
    def held(subject: str) -> Held:
        features = mail(subject)
        return Held(
            number=0,
            features=features,
            label=SPAM,
            source="imap",
            actor="anna",
            probability=0.5,
            reason="a wave",
            time=clock.now(),
        )

    async with asyncio.TaskGroup() as group:
        for number, teaching in enumerate(processes):
            batch = [held("the same"), *(held(f"{number} {turn}") for turn in range(5))]
            group.create_task(SqlHeldLessons(teaching.database).hold(batch))
    waiting = await SqlHeldLessons(database).held()
    assert len(waiting) == len({each.number for each in waiting}) == 8 * 5 + 1


async def test_two_who_correct_the_same_mail_at_once_count_it_once(
    processes: list[TeachingProcess], database: Database
) -> None:
    await processes[0].train(SPAM, mail("disputed"))
    async with asyncio.TaskGroup() as group:
        for teaching in processes[:4]:
            group.create_task(teaching.train(HAM, mail("disputed")))
    assert (await counts(database))["corpus"][0][1:3] == (0, 1)


async def test_d18_a_mail_of_40000_distinct_words_is_learned_up_to_the_cap_and_taken_back(
    teaching: TeachingProcess,
) -> None:
    long = wide("long", 40_000)
    await teaching.train(SPAM, long)
    assert len((await counts(teaching.database))["token"]) == TAUGHT_TOKENS
    assert (await verify(teaching.database, SCHEMA)).faults == ()
    assert (await teaching.train(HAM, long)) == [Result.RELABELLED]
    await teaching.forget(long)
    empty = await counts(teaching.database)
    assert (empty["token"], empty["fact"]) == ([], [])


async def test_d18_a_batch_of_40000_distinct_words_is_written_in_chunks(
    teaching: TeachingProcess,
) -> None:
    batch = [mail(f"m{n}", " ".join(f"w{n}x{number}" for number in range(600))) for n in range(40)]
    await teaching.train(SPAM, *batch)
    assert len((await counts(teaching.database))["token"]) > 40_000
    assert (await verify(teaching.database, SCHEMA)).faults == ()
    await teaching.forget(*batch)
    assert (await counts(teaching.database))["token"] == []


async def test_d20_words_that_a_collation_takes_for_one_are_kept_apart(
    teaching: TeachingProcess,
) -> None:
    pairs = ["Straße", "STRASSE", "é", "e", "e\u0301", "ß", "ss", "I", "ı", "☺", "☺\ufe0f"]
    for number, word in enumerate(pairs):
        await teaching.train(SPAM, mail(f"{number}", f"{word} {word}"))
    assert (await verify(teaching.database, SCHEMA)).faults == ()


async def test_b3_nul_and_odd_bytes_in_words_and_names_are_stored(
    teaching: TeachingProcess,
) -> None:
    odd = mail("nul\0subject", "a\0b \x01\x7f \ufffe", sender="x@do\0main.example")
    await teaching.train(SPAM, odd, source="imap", actor="an\0na \ud800")
    async with teaching.work() as work:
        (summary,) = await work.listed(Selection(actor="an\0na \ud800"))
    assert summary.actor == "an\ufffdna \ufffd"
    assert (await verify(teaching.database, SCHEMA)).faults == ()
    await teaching.forget(odd)
    assert (await counts(teaching.database))["token"] == []


async def test_d29_another_process_sees_a_lesson_at_its_next_refresh(
    processes: list[TeachingProcess],
) -> None:
    teacher, scanner = processes[:2]
    spam, ham = mail("pills", "cheap pills"), mail("lunch", "lunch at noon")
    before = await scanner.probability(spam)
    await teacher.train(SPAM, spam)
    await teacher.train(HAM, ham)
    assert await scanner.probability(spam) != before
    assert await scanner.probability(spam) == await teacher.probability(spam)
    await teacher.train(HAM, spam)
    await teacher.forget(ham)
    assert await scanner.probability(spam) == await teacher.probability(spam)
    for name in ("ids", "_cells"):
        mine = getattr(scanner.cache.snapshot.model.tokens, name)
        assert np.array_equal(mine, getattr(teacher.cache.snapshot.model.tokens, name))
    assert np.array_equal(scanner.cache.snapshot.model.grams, teacher.cache.snapshot.model.grams)


async def test_a_snapshot_that_missed_changes_reads_everything_again(
    processes: list[TeachingProcess],
) -> None:
    teacher, scanner = processes[:2]
    spam = mail("pills", "cheap pills")
    await scanner.probability(spam)
    await teacher.train(SPAM, spam)
    async with teacher.database.writing() as connection:
        await connection.execute(text("DELETE FROM change"))
        await connection.execute(text("DELETE FROM grams"))
    await scanner.probability(spam)
    assert len(scanner.cache.snapshot.model.tokens) == len(spam.sample.ids)


async def test_a_large_batch_writes_the_gram_table_and_the_snapshot_follows(
    processes: list[TeachingProcess],
) -> None:
    teacher, scanner = processes[:2]
    await scanner.probability(mail("x"))
    await teacher.train(SPAM, *(mail(f"m{n}", story(n)) for n in range(70)))
    await teacher.train(HAM, mail("one more", story(99)))
    assert await scanner.probability(mail("x")) == await teacher.probability(mail("x"))
    assert np.array_equal(scanner.cache.snapshot.model.grams, teacher.cache.snapshot.model.grams)
    assert (await verify(teacher.database, SCHEMA)).faults == ()


async def test_scoring_goes_on_while_the_database_is_away(teaching: TeachingProcess) -> None:
    spam = mail("pills", "cheap pills")
    await teaching.train(SPAM, spam)
    before = await teaching.probability(spam)
    async with teaching.database.writing() as connection:
        await connection.execute(text("ALTER TABLE corpus RENAME TO away"))
    with pytest.raises(Exception, match="corpus"):
        await teaching.cache.snapshot.refresh(teaching.database)
    assert teaching.cache.snapshot.model.weigh(spam.sample).probability == before


async def test_a_transaction_that_finds_the_database_locked_is_tried_again(
    teaching: TeachingProcess, options: DatabaseOptions, clock: FixedClock
) -> None:
    if not teaching.database.is_sqlite:
        pytest.skip("PostgreSQL's writers queue at the corpus row instead")
    hasty = await Database.open(DatabaseOptions(url=options.url, busy_timeout_s=0.01))
    other = TeachingProcess(hasty, clock)
    async with teaching.database.writing():
        with pytest.raises(StorageUnavailable, match="locked"):
            await other.train(SPAM, mail("a"))
    assert await other.train(SPAM, mail("a")) == [Result.LEARNED]
    await hasty.close()


CHILD = """
import asyncio, sys
from spamd.storage.engine import Database
from spamd.storage.corpus.held_lessons import SqlHeldLessons
from spamd.storage.options import DatabaseOptions
from tests.storage.mails import SPAM, HAM, TeachingProcess, FixedClock, mail
from tests.storage.test_concurrency import story

async def main():
    teaching = TeachingProcess(await Database.open(DatabaseOptions(url=sys.argv[1])), FixedClock())
    start = int(sys.argv[2])
    print("begins", flush=True)
    for number in range(start, start + 10_000):
        batch = [mail(f"mail {number}-{part}", story(number * 5 + part)) for part in range(5)]
        await teaching.train(SPAM if number % 2 else HAM, *batch)
        print(number, flush=True)

asyncio.run(main())
"""


@contextmanager
def child(url: str, start: int) -> Iterator[subprocess.Popen[str]]:
    """A process that teaches until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(start)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


async def test_lessons_survive_sigkill_at_any_moment_whole_or_not_at_all(
    database: Database, options: DatabaseOptions
) -> None:
    moments = random.Random(7)
    told = 0
    for turn in range(4):
        with child(options.url, turn * 10_000) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begins\n"
            for _ in range(moments.randrange(1, 5)):
                assert process.stdout.readline()
                told += 5
            # Somewhere in the middle of the next batch; the exact place is the machine's choice.
            await asyncio.sleep(moments.uniform(0, 0.03))
            os.kill(process.pid, signal.SIGKILL)
        findings = await verify(database, SCHEMA)
        assert findings.faults == ()
        assert findings.lessons % 5 == 0
        assert findings.lessons >= told
