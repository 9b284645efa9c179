"""What a process keeps between its lessons is what it would read, whatever others did meanwhile."""

import random
from collections.abc import AsyncIterator

import numpy as np
import pytest

from spamd.message.facts import SCHEMA
from spamd.storage.corpus import corpus_tables, journal, kept_parts
from spamd.storage.corpus.kept_parts import Kept
from spamd.storage.engine import Database
from spamd.storage.options import DatabaseOptions
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, mail, wide

WINDOW = 3000


@pytest.fixture
async def two(
    teaching: TeachingProcess, options: DatabaseOptions, clock: FixedClock
) -> AsyncIterator[list[TeachingProcess]]:
    """Two processes at work on one database."""
    other = await Database.open(options)
    yield [teaching, TeachingProcess(other, clock)]
    await other.close()


async def kept_now(process: TeachingProcess) -> Kept:
    """Return what a process goes on with when it has its turn."""
    async with process.work() as work:
        await work.model(mail("x").sample.ids)
    kept = Kept(
        at=work._version.at,
        facts=work._model.facts,
        grams=work._model.grams,
        history=work._model.history,
        fusion=work._model.fusion,
        lessons=work._lessons,
        newest=work._newest,
    )
    process.cache.kept = kept
    return kept


async def check(process: TeachingProcess) -> None:
    kept = await kept_now(process)
    async with process.database.reading() as connection:
        history, newest = await journal.history(connection, WINDOW)
        grams = await corpus_tables.grams(connection)
        facts = await corpus_tables.facts(connection, SCHEMA)
    assert kept.history.keys == history.keys
    assert np.array_equal(kept.history.scores, history.scores)
    assert np.array_equal(kept.history.spam, history.spam)
    assert np.array_equal(kept.grams, grams)
    assert kept.facts == facts
    assert kept.newest in (newest, None)
    assert kept.lessons == len(history)


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_kept_is_what_would_be_read(two: list[TeachingProcess], seed: int) -> None:
    chance = random.Random(seed)
    mails = [mail(f"m{number}", f"word{number % 7} other{number % 3}") for number in range(12)]
    for _ in range(30):
        process = chance.choice(two)
        some = chance.sample(mails, chance.randrange(1, 4))
        match chance.randrange(4):
            case 0:
                await process.forget(*some)
            case 1:
                await process.trainer.rehearse()
            case _:
                await process.train(chance.choice((SPAM, HAM)), *some)
        if chance.random() < 0.5:
            await check(chance.choice(two))
    for process in two:
        await check(process)


async def test_the_last_lesson_taken_back_and_its_number_used_again_is_noticed(
    two: list[TeachingProcess],
) -> None:
    mine, other = two
    await mine.train(SPAM, mail("a"), mail("b"))
    await check(mine)
    await other.forget(mail("b"))
    await other.train(HAM, mail("c"))
    await check(mine)


async def test_of_others_lessons_only_the_news_are_read(
    two: list[TeachingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = two
    await mine.train(SPAM, mail("a"), mail("b"))
    await other.train(HAM, mail("c"))

    async def all_of_it(*_: object) -> object:
        raise AssertionError("everything was read again")

    monkeypatch.setattr(journal, "history", all_of_it)
    monkeypatch.setattr(corpus_tables, "grams", all_of_it)
    for number in range(5):
        await two[number % 2].train(SPAM, mail(f"m{number}"))


async def test_a_process_that_is_far_behind_reads_everything(
    two: list[TeachingProcess],
) -> None:
    mine, other = two
    await mine.train(SPAM, mail("a"))
    for number in range(kept_parts.MOST + 2):
        await other.train(HAM, wide(f"m{number}", 2))
    await check(mine)
