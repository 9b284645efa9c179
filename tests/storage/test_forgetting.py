"""A user forgotten: nothing of them is left, and all is as in a history without them.

Others may have been contradicted by who is forgotten; where they have corrected what the site had
learned meanwhile, only counts are as without them (`training.agreement`).
"""

import json
import random
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import Any

import pytest
from sqlalchemy import insert, select

from spamd.bayes.wishes import Wishes
from spamd.lists.entry import Effect, Entry, Kind
from spamd.lists.known import KnownOptions, address_hash
from spamd.lists.ports import Written
from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.message.tokens.hashing import token_id
from spamd.observe.log import LogObserver
from spamd.observe.metrics import Metrics
from spamd.observe.options import LogOptions
from spamd.person import trait
from spamd.storage import tables
from spamd.storage.corpus import corpus_tables, journal
from spamd.storage.engine import Database
from spamd.storage.layers import reading
from spamd.storage.layers.forgetting import accounts, actors, scans_naming
from spamd.storage.layers.unit_of_work import SqlUserUnitOfWork
from spamd.storage.maintenance import people_rows
from spamd.storage.maintenance.verify import verify
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from spamd.storage.people.wishes import SqlWishes
from spamd.storage.scans import Scans
from spamd.storage.senders.entries import SqlEntries
from spamd.storage.senders.known_addresses import SqlKnownAddresses
from spamd.training import Result, TrainingOptions
from spamd.training.personal import PersonalTrainer
from spamd.training.ports import KEPT
from spamd.training.user_ports import Traces
from spamd.training.user_trainer import UserTrainer
from tests.fakes import fake_report
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail
from tests.storage.rows import made

ZELDA, BOB, CARL = "zelda@example.org", "bob@example.org", "carl@example.org"
ALL = "all@example.org"
NAME, ACCOUNT = "zelda", "zelda@imap.example.org:993"


def news(number: int, to: str = ALL) -> Features:
    shoes = f"shoes offer price week new colours {number}"
    return mail(f"news {number}\r\nTo: {to}", shoes, f"n{number % 3}@shop.example")


class Site:
    """A site at which three people teach, one of whom may be left out."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.database, self.clock = database, clock
        self.process = TeachingProcess(database, clock)
        options = TrainingOptions(pause_s=0)
        self.users = UserTrainer(unit_of_work=self.work, clock=clock, options=options)
        self.site = PersonalTrainer(
            unit_of_work=self.work, clock=clock, options=options, observer=None
        )

    def work(self) -> SqlUserUnitOfWork:
        return SqlUserUnitOfWork(self.database, self.process.cache, self.clock)

    async def live(self, *, without: str = "") -> None:
        """Teach, wish, list and write for some days."""
        for number in range(24):
            user = (BOB, ZELDA, CARL, ZELDA)[number % 4]
            kept = number % 5 == 3
            for letter in (200 + 3 * number, number // 3):
                self.clock.advance(seconds=1)
                spam = letter % 3 == (user == ZELDA)
                if user != without:
                    source = KEPT if kept and (letter >= 200 or user == ZELDA) else "imap"
                    letters = [news(letter, user if letter >= 200 else ALL)]
                    await self.users.train(user, letters, SPAM if spam else HAM, source=source)
            self.clock.advance(seconds=1)
            actor = "root" if number % 4 else user.partition("@")[0]
            actor = NAME if number % 8 == 1 else actor
            if actor != without.partition("@")[0]:
                label = SPAM if number % 2 else HAM
                await self.site.train([news(100 + number)], label, source="imap", actor=actor)
        for user in {BOB, CARL, ZELDA} - {without}:
            await self._wish(user)
        await self._write(without)
        await self._scan(without)

    async def _wish(self, user: str) -> None:
        await SqlWishes(self.database, self.clock).change(user, Wishes(tag_from=0.8))
        for owner, value in ((user, "shop.example"), (BOB, user)):
            kind = Kind.ADDRESS if "@" in value else Kind.DOMAIN
            entry = Entry(effect=Effect.DENY, kind=kind, value=value, owner=owner)
            await SqlEntries(self.database).put(entry)

    async def _write(self, without: str) -> None:
        known = SqlKnownAddresses(self.database, KnownOptions())
        for user in sorted({BOB, CARL, ZELDA} - {without}):
            others = sorted({BOB, CARL, ZELDA, "x@else.example"} - {without, user})
            await known.wrote(user, [Written(time=self.clock.now(), addresses=others)])

    async def _scan(self, without: str) -> None:
        scans = Scans(self.database, self.clock)
        for place, (user, to) in enumerate(((BOB, BOB), (ZELDA, ZELDA), ("", ZELDA))):
            if to != without:
                report = fake_report()
                features = news(500 + place, to)
                scans.record(replace(report, id=f"0{place}-1b", user=user, features=features))
        await scans.flush()

    async def watch(self) -> None:
        """Give every table of feedback rows of the account of who is to be forgotten."""
        chance = random.Random(1)
        given = {"account": ACCOUNT, "name": ACCOUNT, "actor": NAME, "sender": ZELDA}
        async with self.database.writing() as connection:
            for table in (
                tables.account, tables.cursor, tables.sighting, tables.kept, tables.parked,
                tables.held, tables.session,
            ):  # fmt: skip
                row = {each.name: made(each, 7, chance) for each in table.columns}
                row |= {name: value for name, value in given.items() if name in row}
                if table is tables.session:
                    row["name"] = NAME
                await connection.execute(insert(table).values(row))

    async def forget(self) -> None:
        async with self.database.reading() as connection:
            assert await accounts(connection) == [ACCOUNT]
            assert {NAME, "root"} < set(await actors(connection))
            scans = await scans_naming(connection, ZELDA)
        assert scans == ["01-1b", "02-1b"]
        traces = Traces(actors=[NAME], accounts=[ACCOUNT], scans=scans)
        gone = await self.users.forget_user(ZELDA, traces)
        assert min(gone.values()) > 0

    async def known(self) -> dict[str, Any]:
        """Return all that a verdict follows from, to the bit."""
        found: dict[str, Any] = await counts(self.database, weights=True)
        async with self.database.reading() as connection:
            found["fusion"] = (await corpus_tables.fusion(connection)).values.tolist()
            found["grams"] = (await corpus_tables.grams(connection)).tolist()
            history, _ = await journal.history(connection, 3000)
            found["history"] = (history.keys, history.scores.tolist(), history.spam.tolist())
            for user in (BOB, CARL):
                layer = (await reading.revised_layer(connection, user))[1]
                words = [layer and layer.word_on(trait(news(n))) for n in range(60)]
                found[user] = [word and word.log_odds for word in words]
        model = self.process.cache.snapshot
        await model.refresh(self.database)
        found["verdicts"] = [model.model.weigh(news(n).sample).log_odds for n in range(60)]
        return found


@pytest.fixture
async def site(database: Database, clock: FixedClock) -> Site:
    return Site(database, clock)


async def test_must_show_7_who_is_forgotten_leaves_no_trace_and_all_as_without_them(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await site.live()
    await site.watch()
    assert [found async for found in traces_of(site.database)]
    await site.forget()
    assert [found async for found in traces_of(site.database)] == []
    assert (await verify(site.database, SCHEMA)).faults == ()
    url = f"sqlite:///{tmp_path_factory.mktemp('other')}/spamd.db"
    other = await Database.open(DatabaseOptions(url=url))
    await upgrade(other)
    without = Site(other, FixedClock())
    await without.live(without=ZELDA)
    assert await site.known() == await without.known()
    await other.close()


async def traces_of(database: Database) -> AsyncIterator[tuple[str, object]]:
    """Yield each place at which a name, an address or a hash of it stands, export included."""
    async with database.reading() as connection:
        secret = (await connection.execute(select(tables.corpus.c.secret))).scalar_one()
        hashes = {address_hash(secret, ZELDA)}
        hashes |= {address_hash(secret, ZELDA, each) for each in (BOB, CARL)}
        hashes |= {address_hash(secret, each, ZELDA) for each in (BOB, CARL, "x@else.example")}
        hashes |= {token_id(f"{field}:{ZELDA}") for field in ("to", "from")}
        for table in tables.metadata.sorted_tables:
            if table is tables.change:
                continue  # numbers of words; they go after `database.changes_hours`
            for row in (await connection.execute(select(table))).mappings():
                for name, value in row.items():
                    if told(value, hashes):
                        yield table.name, name
        async for line in people_rows.walk(connection):
            if NAME in json.dumps(line):
                yield "export", line


def told(value: object, hashes: set[int]) -> bool:
    if isinstance(value, int):
        return value in hashes
    if isinstance(value, str):
        return NAME in value
    if isinstance(value, bytes):
        marks = [NAME.encode(), *(each.to_bytes(8, "little", signed=True) for each in hashes)]
        return any(mark in text for text in unpacked(value) for mark in marks)
    return False


def unpacked(value: bytes) -> Iterator[bytes]:
    yield value
    start = -1
    while (start := value.find(b"x\x01", start + 1)) >= 0:
        try:
            yield zlib.decompressobj().decompress(value[start:])
        except zlib.error:
            continue


async def test_a_mail_forgotten_for_all_is_as_never_taught_by_anybody(site: Site) -> None:
    await site.site.train([news(3)], HAM, source="cli", actor="root")
    await site.users.train(CARL, [news(6)], HAM, source="imap")
    before = await site.known()
    await site.site.train([news(1)], HAM, source="cli", actor="root")
    for user in (BOB, CARL):
        await site.users.train(user, [news(1), news(2)], SPAM, source="imap")
    outcomes = await site.site.forget([each.digest for each in (news(1), news(2), news(9))])
    assert [(each.result, each.label) for each in outcomes] == [
        (Result.FORGOTTEN, HAM), (Result.FORGOTTEN, SPAM), (Result.UNKNOWN, None),
    ]  # fmt: skip
    assert await site.known() == before
    assert (await verify(site.database, SCHEMA)).faults == ()


async def test_what_was_taught_since_a_mail_was_to_be_forgotten_stands(site: Site) -> None:
    await site.users.train(BOB, [news(1)], SPAM, source="imap")
    site.clock.advance(seconds=1)
    asked = site.clock.now()
    site.clock.advance(seconds=1)
    await site.users.train(CARL, [news(1)], SPAM, source="imap")
    (outcome,) = await site.site.forget([news(1).digest], given_before=asked)
    assert outcome.result is Result.FORGOTTEN
    assert (await counts(site.database))["lesson"] == [(news(1).digest, "spam")]
    assert (await verify(site.database, SCHEMA)).faults == ()


def test_no_line_of_the_log_names_a_user() -> None:
    lines = StringIO()
    log = LogObserver(LogOptions(), Metrics(), FixedClock(), lines)
    report = replace(fake_report(), user=ZELDA, features=news(1, ZELDA))
    log.scanned(report, listener="smtp", reply=b"250 2.0.0 Ok", recipients=1)
    for write in (log.happened, partial(log.failed, error=OSError(ZELDA))):
        write("layers.lost", user=ZELDA, recipient=ZELDA, actor=NAME)
    assert lines.getvalue().count("\n") == 3
    assert NAME not in lines.getvalue()
