"""Whatever is done in whatever order, the database is what the lessons in force make of it."""

import random
from datetime import datetime
from pathlib import Path

import pytest

from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.sample import Label
from spamd.storage.corpus import journal
from spamd.storage.engine import Database
from spamd.storage.maintenance.export import export_file, import_file
from spamd.storage.maintenance.reset import reset
from spamd.storage.maintenance.verify import verify
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from spamd.training.ports import Selection
from tests.sizes import sized
from tests.storage.mails import (
    HAM,
    SPAM,
    FixedClock,
    TeachingProcess,
    counts,
    mail,
    weight_sum,
    weights,
)

WORDS = [f"word{number}" for number in range(150)]
SOURCES = ("cli", "imap", "maildir")
ACTORS = ("anna", "bert")


class Story:
    """Random operations on a database, and what should be in force after them."""

    def __init__(
        self, teaching: TeachingProcess, clock: FixedClock, folder: Path, seed: int
    ) -> None:
        self.teaching = teaching
        self.clock = clock
        self.folder = folder
        self.random = random.Random(seed)
        self.mails = [self._mail(number) for number in range(60)]
        self.expected: dict[bytes, tuple[Label, str, str, datetime]] = {}
        self.steps = 0

    def _mail(self, number: int) -> Features:
        body = " ".join(self.random.choice(WORDS) for _ in range(25))
        return mail(f"mail {number}", body, f"someone@host{number % 5}.example")

    async def step(self) -> None:
        """Do one operation."""
        self.steps += 1
        self.clock.advance(minutes=1)
        kinds = (self.train, self.forget, self.rollback, self.restart, self.move)
        (kind,) = self.random.choices(kinds, weights=(60, 25, 4, 8, 2))
        await kind()

    async def train(self) -> None:
        label = self.random.choice((HAM, SPAM))
        source, actor = self.random.choice(SOURCES), self.random.choice(ACTORS)
        batch = self.random.choices(self.mails, k=self.random.randrange(1, 6))
        await self.teaching.train(label, *batch, source=source, actor=actor)
        for each in batch:
            known = self.expected.get(each.digest)
            if known is None or known[0] is not label:
                self.expected[each.digest] = (label, source, actor, self.clock.now())

    async def forget(self) -> None:
        batch = self.random.choices(self.mails, k=self.random.randrange(1, 5))
        await self.teaching.forget(*batch)
        for each in batch:
            self.expected.pop(each.digest, None)

    async def rollback(self) -> None:
        source, actor = self.random.choice(SOURCES), self.random.choice(ACTORS)
        selection = Selection(source=source, actor=actor)
        async with self.teaching.database.reading() as connection:
            planned = await journal.listed(connection, selection)
        assert await self.teaching.trainer.rollback(selection) == planned
        for digest, (_, said, who, _) in list(self.expected.items()):
            if (said, who) == (source, actor):
                del self.expected[digest]

    async def restart(self) -> None:
        """Another process takes over: nothing is in its memory."""
        self.teaching = TeachingProcess(self.teaching.database, self.clock)

    async def move(self) -> None:
        path = self.folder / f"{self.steps}.jsonl"
        await export_file(self.teaching.database, path)
        await reset(self.teaching.database, self.clock, self.folder)
        await import_file(self.teaching.work, path, self.teaching.clock)


@pytest.mark.parametrize("seed", range(sized(2, 4)))
async def test_random_operations_leave_what_a_fresh_database_taught_the_final_state_has(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path, seed: int
) -> None:
    story = Story(teaching, clock, tmp_path, seed)
    for _ in range(125):
        await story.step()
    findings = await verify(teaching.database, SCHEMA)
    assert findings.faults == ()
    fresh = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/fresh.db"))
    await upgrade(fresh)
    teacher = TeachingProcess(fresh, clock)
    for label in Label:
        final = [each for each in story.mails if story.expected.get(each.digest, " ")[0] is label]
        await teacher.train(label, *final)
    assert await counts(teaching.database) == await counts(fresh)
    await fresh.close()
    stored = {row[0]: row[-1] for row in (await counts(teaching.database, weights=True))["token"]}
    assert stored == await weight_sum(teaching.database)
    fusion, told = await weights(teaching.database)
    assert fusion == pytest.approx(told)
    async with teaching.work() as work:
        summaries = await work.listed(Selection())
    assert {
        summary.digest: (summary.label, summary.source, summary.actor, summary.time)
        for summary in summaries
    } == story.expected
    # And with everything taken back nothing is left: no row, no weight.
    await teaching.trainer.rollback(Selection())
    empty = await counts(teaching.database, weights=True)
    assert (empty["token"], empty["fact"], empty["lesson"]) == ([], [], [])
    assert empty["corpus"][0][1:] == (0, 0, 0, 0, 0)
