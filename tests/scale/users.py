"""Many users with own lessons on one PostgreSQL: what their layers cost a scan, and their loss.

Each user has 80 lessons, whose sketches hold 5,120 tokens. One process judges one mail after
the other for one user or the other, as the listeners do (`ScanningInspector`), and is measured:

    cpu     processor time of a scan with layers, against one without (users known at once; users
            drawn from all, of whom the cache holds some)
    cold    how much longer the first mail of a user takes whose layer is not in memory
    cache   bytes of all layers in memory, against what they may take
    away    mail while the database is gone, and while it hangs
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import mean

from spamd import resources
from spamd.bayes.own import SKETCH_TOKENS, sketch
from spamd.clock import WallClock
from spamd.extraction.extractor import Extractor
from spamd.message.envelope import Client, Envelope
from spamd.message.features import extract
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.scanning import ScanningInspector
from spamd.settings import Settings
from spamd.storage.engine import Database
from spamd.storage.layers.memory import BYTES
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.users.options import UsersOptions
from spamd.users.people import NO_LAYER
from tests.fakes import FakeObserver
from tests.scale.site import lesson
from tests.servers.postgresql import Postgresql

LESSONS = 80
"""Of each user: 5,120 tokens."""

CLIENT = Client(
    address="192.0.2.1", port=25, helo="mx", name="", tls=False, login=None, protocol="ESMTP"
)


class NoLog:
    """Keeps no scan: that it is written is not measured."""

    def record(self, report: ScanReport) -> None:
        """Take no note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was seen; times in milliseconds.

    known, drawn   processor time of a scan, of users whose layers are there, and of all
    plain          without layers
    cold, warm     time of the first mail of a user, and of the second
    """

    plain: float
    known: float
    drawn: float
    cold: float
    warm: float
    cache_bytes: int
    cache_most: int

    def __str__(self) -> str:
        """Return it in words."""
        return (
            f"CPU of a scan: {self.plain:.2f} ms without layers, {self.known:.2f} with (ratio"
            f" {self.known / self.plain:.2f}), {self.drawn:.2f} drawn from all users"
            f" ({self.drawn / self.plain:.2f})\n"
            f"first mail of a cold user: {self.cold:.1f} ms, second {self.warm:.1f} ms\n"
            f"cache: {self.cache_bytes:,} bytes of {self.cache_most:,}"
        )


class Crowd:
    """A site with many users, and what judges their mail."""

    def __init__(self, store: Store, settings: Settings, users: int, extractor: Extractor) -> None:
        self.store = store
        self.users = users
        scanner = resources.scanner(settings, lambda: store.snapshot.model, b"key" * 8)
        observer = FakeObserver()
        people = resources.people(
            settings, store, observer, resources.directory(settings, observer)
        )
        clock = WallClock()
        self._own = ScanningInspector(scanner, extractor, clock, NoLog(), observer, people=people)
        self._plain = ScanningInspector(scanner, extractor, clock, NoLog(), observer)

    async def judged(self, number: int, *, plain: bool = False) -> ScanReport:
        """Judge a mail for a user."""
        content = mail(number)
        recipient = f"user{number % self.users}@example.org".encode()
        envelope = Envelope(sender=b"", recipients=(recipient,), client=CLIENT)
        judge = self._plain if plain else self._own
        verdicts = await judge.inspect(lambda: content, len(content), envelope, bytes)
        return verdicts.of(recipient)

    def not_in_memory(self) -> list[int]:
        """Return the users whose layer is not there."""
        names = {f"user{number}@example.org": number for number in range(self.users)}
        return [names[user] for user in self.store.layers.unread(list(names))]

    async def cpu(self, numbers: Sequence[int], *, plain: bool = False) -> float:
        """Return the processor time of a scan in milliseconds."""
        for number in numbers[:20]:
            await self.judged(number, plain=plain)
        began = time.process_time()
        for number in numbers:
            await self.judged(number, plain=plain)
        return 1000 * (time.process_time() - began) / len(numbers)

    async def timed(self, number: int) -> float:
        """Return how long a scan takes in milliseconds."""
        began = time.perf_counter()
        await self.judged(number)
        return 1000 * (time.perf_counter() - began)

    async def measured(self, scans: int) -> Measured:
        """Measure what layers cost."""
        few, chance = list(range(20)) * (scans // 20), random.Random(1)
        plain = min([await self.cpu(few, plain=True) for _ in range(3)])
        known = min([await self.cpu(few) for _ in range(3)])
        cold = self.not_in_memory()[-20:]
        first = [await self.timed(number) for number in cold]
        again = [await self.timed(number) for number in cold]
        drawn = await self.cpu([chance.randrange(self.users) for _ in range(scans)])
        layers = self.store.layers
        return Measured(
            plain=plain, known=known, drawn=drawn, cold=mean(first), warm=mean(again),
            cache_bytes=layers.size_bytes, cache_most=layers.most_bytes,
        )  # fmt: skip


def mail(number: int) -> bytes:
    """Return a mail of about 4 KB, as most mail."""
    _, content = lesson(number % 200)
    chosen = random.Random(number)
    words = [f"{chosen.choice('aeiou')}{chosen.randrange(2_000)}" for _ in range(500)]
    return content + " ".join(words).encode() + b"\r\n"


@asynccontextmanager
async def crowd(
    server: Postgresql, name: str, users: int, cache_bytes: int = BYTES
) -> AsyncIterator[Crowd]:
    """Give a site of so many users with lessons, more than the cache holds."""
    server.do(f"CREATE DATABASE {name} TEMPLATE template0")
    options = DatabaseOptions(url=server.url(name))
    settings = Settings(database=options, users=UsersOptions(enabled=True))
    await upgrade(Database(options))
    async with resources.open_store(settings) as store:
        trainer = resources.trainer(store, settings)
        for label in Label:
            mails = [extract(lesson(n)[1]) for n in range(60) if lesson(n)[0] == label]
            await trainer.train(mails, label, source="cli", actor="root")
        await fill(store, users)
        store.layers.most_bytes = cache_bytes
        await store.refresh()
        extractor = Extractor(settings.reading, wait_s=60, work_s=60)
        try:
            yield Crowd(store, settings, users, extractor)
        finally:
            await extractor.close()


async def fill(store: Store, users: int) -> None:
    """Give all users lessons: the same mails, with labels of their own."""
    sketches = [sketch(extract(mail(1_000 + number)).sample) for number in range(LESSONS)]
    assert all(len(each) == SKETCH_TOKENS for each in sketches)
    async with store.database.writing() as connection:
        await connection.exec_driver_sql(
            "CREATE TEMPORARY TABLE given (n integer, sketch bytea, origin bigint)"
        )
        for number, each in enumerate(sketches):
            content = each.astype("<i8").tobytes().hex()
            await connection.exec_driver_sql(
                f"INSERT INTO given VALUES ({number}, decode('{content}', 'hex'), {number + 1})"
            )
        await connection.exec_driver_sql(
            'INSERT INTO user_lesson ("user", digest, label, source, origin, time, sketch) SELECT'
            " 'user' || u || '@example.org', decode(md5(u || ' ' || n), 'hex'), CASE WHEN"
            " (u + n) % 2 = 0 THEN 'ham' ELSE 'spam' END, 'imap', origin, 1700000000000000 + n,"
            f" sketch FROM given, generate_series(0, {users - 1}) u ORDER BY n"
        )
        await connection.exec_driver_sql(
            'INSERT INTO user_layer ("user", revision) SELECT'
            f" 'user' || u || '@example.org', u + 1 FROM generate_series(0, {users - 1}) u"
        )
    async with store.database.writing() as connection:
        await connection.exec_driver_sql("ANALYZE user_lesson")


async def while_away(there: Crowd, server: Postgresql, seconds: float) -> tuple[int, float]:
    """Judge mail while the database is gone; return how many mails, and the longest wait in ms.

    Each has the site's verdict, and its reason says so.
    """
    strangers = there.not_in_memory()
    server.stop()
    try:
        until = time.monotonic() + seconds
        longest, mails = 0.0, 0
        while mails < 20 or time.monotonic() < until:
            began = time.perf_counter()
            report = await there.judged(strangers[mails % len(strangers)])
            longest = max(longest, 1000 * (time.perf_counter() - began))
            site = await there.judged(strangers[mails % len(strangers)], plain=True)
            assert NO_LAYER in report.reason, report.reason
            assert report.probability == site.probability
            mails += 1
            await asyncio.sleep(0)
    finally:
        server.start()
    return mails, longest


async def _all(users: int, scans: int, away_s: float) -> None:
    with Postgresql() as server:
        began = time.monotonic()
        async with crowd(server, "crowd", users) as there:
            print(f"{users:,} users with {LESSONS} lessons: {time.monotonic() - began:.0f} s")
            found = await there.measured(scans)
            print(found, flush=True)
            mails, longest = await while_away(there, server, away_s)
            print(
                f"database away {away_s:.0f} s: {mails:,} mails, the longest took {longest:.0f} ms"
            )
            assert found.known <= 1.3 * found.plain
            assert found.cold <= found.warm + 20
            assert found.cache_bytes <= found.cache_most


def users(number: int = 10_000, scans: int = 2_000, away_s: int = 60) -> None:
    """Measure at full size."""
    asyncio.run(_all(number, scans, away_s))
