"""Lessons given while the database is away: kept, then learned once, and never over newer ones."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from spamd.errors import StorageUnavailable
from spamd.feedback.durable_teacher import DurableTeacher, Knowledge
from spamd.feedback.message_teacher import MessageTeacher
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Known
from spamd.feedback.report_address import ReportAddress
from spamd.feedback.teacher import Teacher
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.ports import Taught
from spamd.sample import Label
from spamd.storage.engine import Database
from spamd.storage.layers.tables import user_lesson
from spamd.storage.layers.unit_of_work import SqlUserUnitOfWork
from spamd.storage.local.waiting_lessons import JournalOnDisk
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import DatabaseOptions
from spamd.storage.scans import Scans
from spamd.training import TrainingOptions
from spamd.training.personal import PersonalTrainer
from spamd.training.ports import LessonSummary, Selection
from spamd.training.user_trainer import UserTrainer
from tests.cli.conftest import made_up
from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import FakeHeld, FakeJournal
from tests.storage.mails import FixedClock, TeachingProcess
from tests.storage.migrated import lay

OPTIONS = FeedbackOptions(spam_addresses=("spam@our.test",))


class Away(Scans):
    """What is known of mails, unless the database is away."""

    down = False

    async def by_digest(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        if self.down:
            raise StorageUnavailable("the database is away")
        return await super().by_digest(digests)


class Bench:
    """A database, what teaches, and the journal on the disk."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.clock = FixedClock()
        self.process = TeachingProcess(database, self.clock)
        self.scans = Away(database, self.clock)
        self.observer = FakeObserver()
        held = FakeHeld(FakeJournal(FakeClock()))
        self.file = folder / "local/lessons.waiting"
        self.waiting = JournalOnDisk(folder / "local", 1024 * 1024)
        teacher = Teacher(self.process.trainer, held, self.clock, OPTIONS, self.observer)
        options = TrainingOptions(pause_s=0)
        users = UserTrainer(unit_of_work=self.work, clock=self.clock, options=options)
        personal = PersonalTrainer(
            unit_of_work=self.work, clock=self.clock, options=options, observer=None, user_of=itself
        )
        knowledge = Knowledge(
            history=self.scans,
            teacher=teacher,
            trainer=self.process.trainer,
            own=Teacher(personal, held, self.clock, OPTIONS, self.observer),
            users=users,
        )
        self.names: dict[str, str | None] = {}
        self.durable = DurableTeacher(knowledge, self.waiting, self.clock, self.user_of)
        self.teacher = MessageTeacher(self.durable, extract)

    def work(self) -> SqlUserUnitOfWork:
        return SqlUserUnitOfWork(self.process.database, self.process.cache, self.clock)

    async def user_of(self, name: str) -> str | None:
        return self.names.get(name, "")

    async def learn(self, number: int, label: Label, user: str = "") -> Taught:
        self.clock.advance(seconds=1)
        mail = made_up("x", number)
        return await self.teacher.learn(mail, label, source="http", actor="a", user=user)

    async def forget(self, number: int, user: str = "") -> Taught:
        self.clock.advance(seconds=1)
        return await self.teacher.forget(made_up("x", number), user=user)

    async def of_users(self) -> dict[str, set[tuple[int, str]]]:
        numbers = {extract(made_up("x", number)).digest: number for number in range(20)}
        async with self.process.database.reading() as connection:
            rows = await connection.execute(select(user_lesson))
            found: dict[str, set[tuple[int, str]]] = {}
            for row in rows:
                found.setdefault(row.user, set()).add((numbers[row.digest], row.label))
        return found

    async def catch_up(self) -> None:
        await self.durable.learn_waiting(self.observer)

    async def lessons(self) -> dict[bytes, LessonSummary]:
        async with self.process.work() as work:
            return {each.digest: each for each in await work.listed(Selection())}

    async def labels(self) -> dict[int, Label]:
        numbers = {extract(made_up("x", number)).digest: number for number in range(20)}
        return {numbers[digest]: one.label for digest, one in (await self.lessons()).items()}


@pytest.fixture(params=["sqlite", "postgresql"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    url = f"sqlite:///{tmp_path}/spamd.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("migrated_postgresql_url")
    else:
        lay(tmp_path / "spamd.db")
    database = await Database.open(DatabaseOptions(url=url))
    yield Bench(database, tmp_path)
    await database.close()


async def test_lessons_wait_and_are_learned_in_order_when_the_database_is_back(
    bench: Bench,
) -> None:
    assert await bench.learn(0, Label.SPAM) is Taught.LEARNED
    bench.scans.down = True
    assert await bench.learn(1, Label.SPAM) is Taught.WAITING
    assert await bench.learn(1, Label.HAM) is Taught.WAITING
    assert await bench.learn(2, Label.HAM) is Taught.WAITING
    assert await bench.forget(0) is Taught.WAITING
    with pytest.raises(StorageUnavailable):
        await bench.catch_up()
    assert await bench.labels() == {0: Label.SPAM}
    bench.scans.down = False
    given = bench.clock.now()
    await bench.catch_up()
    assert await bench.labels() == {1: Label.HAM, 2: Label.HAM}
    assert all(one.time < given for one in (await bench.lessons()).values())
    assert ("lessons.caught_up", {"lessons": 4, "unreadable": 0}) in bench.observer.events
    assert (await verify(bench.process.database, SCHEMA)).faults == ()
    assert await bench.learn(3, Label.SPAM) is Taught.LEARNED


async def itself(user: str) -> str:
    return user


async def test_a_lesson_for_a_user_waits_under_their_name_and_becomes_theirs(bench: Bench) -> None:
    bench.names = {"Anna": "anna@x.test", "bob": "bob@x.test"}
    assert await bench.learn(1, Label.SPAM, "Anna") is Taught.LEARNED
    assert await bench.learn(2, Label.SPAM, "nobody") is Taught.LEARNED
    assert await bench.teacher.knows("Anna")
    assert not await bench.teacher.knows("nobody")
    bench.names["Anna"] = None  # who she is can't be asked
    assert await bench.learn(3, Label.SPAM, "Anna") is Taught.WAITING
    assert await bench.learn(3, Label.HAM, "bob") is Taught.WAITING
    assert await bench.forget(1, "Anna") is Taught.WAITING
    assert await bench.forget(2, "bob") is Taught.WAITING
    with pytest.raises(StorageUnavailable):
        await bench.teacher.knows("Anna")
    with pytest.raises(StorageUnavailable):
        await bench.catch_up()
    assert await bench.of_users() == {"anna@x.test": {(1, "spam")}}
    bench.names["Anna"] = "anna@x.test"
    await bench.catch_up()
    assert await bench.of_users() == {"anna@x.test": {(3, "spam")}, "bob@x.test": {(3, "ham")}}
    assert 2 in await bench.labels()  # it is the site's, bob had never taught it
    assert await bench.forget(3, "bob") is Taught.FORGOTTEN
    assert await bench.forget(3, "bob") is Taught.UNKNOWN
    assert (await verify(bench.process.database, SCHEMA)).faults == ()


async def test_all_that_waits_learned_twice_is_the_same_as_once(bench: Bench) -> None:
    bench.scans.down = True
    await bench.learn(1, Label.SPAM)
    await bench.learn(1, Label.HAM)
    await bench.learn(2, Label.SPAM)
    await bench.forget(2)
    await bench.learn(3, Label.SPAM)
    bench.scans.down = False
    content = bench.file.read_bytes()
    await bench.catch_up()
    once = await bench.labels()
    bench.file.write_bytes(content)  # as a kill before it was emptied leaves it
    await bench.catch_up()
    assert await bench.labels() == once == {1: Label.HAM, 3: Label.SPAM}
    assert (await verify(bench.process.database, SCHEMA)).faults == ()


async def test_what_was_taught_elsewhere_since_stays(bench: Bench) -> None:
    bench.scans.down = True
    await bench.learn(1, Label.SPAM)
    await bench.forget(2)
    bench.clock.advance(hours=1)
    for number in (1, 2):
        await bench.process.train(Label.HAM, extract(made_up("x", number)))
    bench.scans.down = False
    await bench.catch_up()
    assert await bench.labels() == {1: Label.HAM, 2: Label.HAM}


async def test_a_lesson_queues_behind_those_that_wait(bench: Bench) -> None:
    bench.scans.down = True
    await bench.learn(1, Label.SPAM)
    bench.scans.down = False
    assert await bench.learn(1, Label.HAM) is Taught.WAITING
    await bench.catch_up()
    assert await bench.labels() == {1: Label.HAM}


async def test_a_report_says_that_it_waits(bench: Bench) -> None:
    handler = ReportAddress(OPTIONS, bench.durable, extract)
    head = b"From: a@our.test\r\nMIME-Version: 1.0\r\nContent-Type: message/rfc822\r\n\r\n"
    bench.scans.down = True
    receipt = await handler.take(head + made_up("x", 1), Label.SPAM, "a")
    assert receipt == "1 reported as spam, 1 kept, to be learned once the database answers"
    bench.scans.down = False
    await bench.catch_up()
    assert await bench.labels() == {1: Label.SPAM}


async def test_nobody_is_told_learned_when_the_disk_can_not_keep_it(bench: Bench) -> None:
    bench.waiting._most_bytes = 10
    bench.scans.down = True
    with pytest.raises(StorageUnavailable, match=r"database\.waiting_mb"):
        await bench.learn(1, Label.SPAM)
    assert not bench.waiting.any
