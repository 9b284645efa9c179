"""The store as `app` and the commands use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import insert

from spamd.bayes.model import BayesOptions
from spamd.errors import ConfigError
from spamd.message.facts import SCHEMA
from spamd.sample import Label
from spamd.storage import tables
from spamd.storage.corpus.journal import Summary
from spamd.storage.engine import Database
from spamd.storage.maintenance.reset import reset
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.ports import Selection
from spamd.training.trainer import Trainer
from tests.storage.mails import EXTREMES, HAM, SPAM, FixedClock, mail


async def opened(options: DatabaseOptions, clock: FixedClock) -> Store:
    return await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=clock)


@pytest.fixture
async def store(
    database: Database, options: DatabaseOptions, clock: FixedClock
) -> AsyncIterator[Store]:
    """An open store on a database with tables."""
    store = await opened(options, clock)
    yield store
    await store.close()


def trainer(store: Store, clock: FixedClock) -> Trainer:
    options = TrainingOptions(pause_s=0)
    return Trainer(unit_of_work=store.unit_of_work, clock=clock, options=options)


async def test_a_new_sqlite_file_is_set_up_at_the_start(tmp_path: Path, clock: FixedClock) -> None:
    store = await opened(DatabaseOptions(url=f"sqlite:///{tmp_path}/new.db"), clock)
    assert (await store.totals()).messages == 0
    await store.close()


async def test_an_empty_postgresql_database_is_refused_at_the_start(
    postgresql_url: str, clock: FixedClock
) -> None:
    with pytest.raises(ConfigError, match="run: spamd database upgrade"):
        await opened(DatabaseOptions(url=postgresql_url), clock)


async def test_whoever_asks_for_words_again_and_again_reads_them_all_in_the_end(
    store: Store, database: Database, options: DatabaseOptions, clock: FixedClock
) -> None:
    words = " ".join(f"word{number}" for number in range(400))
    await trainer(store, clock).train([mail("long", words)], HAM, source="cli", actor="me")
    other = await opened(options, clock)
    teacher, loaded = trainer(other, clock), []
    for number in range(40):
        await teacher.train([mail(f"short {number}", "few")], SPAM, source="cli", actor="me")
        loaded.append(other.snapshot.loaded)
    assert not loaded[0]
    assert loaded[-1]
    assert (await verify(other.database, SCHEMA)).faults == ()
    await other.close()


async def test_d27_the_url_is_shown_without_its_password() -> None:
    database = Database(DatabaseOptions(url="postgresql://spamd:geheim@db.example/spamd"))
    assert database.shown == "postgresql://spamd:********@db.example/spamd"
    assert Database(DatabaseOptions(url="sqlite:///a.db")).shown == "sqlite:///a.db"


async def test_a_scan_of_one_mail_looks_its_words_up_and_finds_what_the_snapshot_finds(
    store: Store, clock: FixedClock
) -> None:
    spam = mail("pills", "cheap pills for anna")
    await trainer(store, clock).train([spam], SPAM, source="cli", actor="root")
    await trainer(store, clock).train([mail("lunch")], HAM, source="cli", actor="root")
    await store.refresh()
    assert not await store.refresh()
    alone = await store.load_model(spam.sample.ids)
    assert alone.weigh(spam.sample).probability == (
        store.snapshot.model.weigh(spam.sample).probability
    )
    assert alone.totals == store.snapshot.model.totals == await store.totals()


async def test_counts_of_any_size_are_read(store: Store) -> None:
    async with store.database.writing() as connection:
        await connection.execute(insert(tables.token), EXTREMES)

    await store.refresh()

    table = store.snapshot.model.tokens
    read = zip(table.ids.tolist(), table.counts(np.arange(2)).cells.tolist(), strict=True)
    assert [(number, *cells) for number, cells in read] == [tuple(row.values()) for row in EXTREMES]


async def test_the_secret_stays_the_same_for_everybody(
    store: Store, options: DatabaseOptions, clock: FixedClock, tmp_path: Path
) -> None:
    other = await opened(options, clock)
    assert len(await store.secret()) == 32
    assert await store.secret() == await other.secret()
    await other.close()
    await reset(store.database, clock, tmp_path)
    assert len(await store.secret()) == 32


async def test_lessons_are_selected_by_every_condition(store: Store, clock: FixedClock) -> None:
    start = clock.now()
    for number, (label, source, actor, host) in enumerate(
        [
            (SPAM, "imap", "anna", "one.example"),
            (HAM, "imap", "bert", "two.example"),
            (SPAM, "cli", "root", "two.example"),
        ]
    ):
        clock.advance(hours=1)
        mails = [mail(f"m{number}", sender=f"x@{host}")]
        await trainer(store, clock).train(mails, label, source=source, actor=actor)

    async def subjects(selection: Selection) -> list[str]:
        digests = {mail(f"m{n}", sender=f"x@{h}.example").digest: f"m{n}"
                   for n, h in enumerate(("one", "two", "two"))}  # fmt: skip
        return [digests[summary.digest] for summary in await store.lessons(selection)]

    assert await subjects(Selection()) == ["m0", "m1", "m2"]
    assert await subjects(Selection(source="imap")) == ["m0", "m1"]
    assert await subjects(Selection(actor="root")) == ["m2"]
    assert await subjects(Selection(sender_domain="two.example")) == ["m1", "m2"]
    assert await subjects(Selection(label=Label.SPAM)) == ["m0", "m2"]
    assert await subjects(Selection(newest=2)) == ["m1", "m2"]
    second = start.replace(hour=start.hour + 2)
    assert await subjects(Selection(since=second)) == ["m1", "m2"]
    assert await subjects(Selection(until=second)) == ["m0"]


async def test_lessons_are_counted_by_source_and_by_what_they_corrected(
    store: Store, clock: FixedClock
) -> None:
    assert (await store.summary()) == Summary(sources={}, corrections=0)
    teacher = trainer(store, clock)
    await teacher.train([mail("a"), mail("b")], SPAM, source="cli", actor="root")
    await teacher.train([mail(f"m{n}") for n in range(3)], HAM, source="imap", actor="anna")
    summaries = await store.lessons(Selection())
    wrong = sum((summary.before > 0.5) != (summary.label is Label.SPAM) for summary in summaries)
    assert 0 < wrong < 5
    found = await store.summary()
    assert list(found.sources.items()) == [("imap", 3), ("cli", 2)]
    assert (found.total, found.corrections) == (5, wrong)
