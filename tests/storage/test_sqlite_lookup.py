"""Words looked up without SQLAlchemy: the same model, and only where it is plainly right."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import insert

from spamd.bayes.model import BayesOptions, Model
from spamd.clock import WallClock
from spamd.errors import StorageUnavailable
from spamd.message.facts import SCHEMA
from spamd.message.features import extract
from spamd.sample import Label
from spamd.storage import tables
from spamd.storage.corpus.sqlite_lookup import Lookup, Preload
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.trainer import Trainer
from tests.rights import closed, needs_root, nobody
from tests.storage.mails import EXTREMES


def mail(number: int) -> bytes:
    words = " ".join(f"word{number * k % 37}" for k in range(1, 30))
    return f"From: a{number}@example.org\nSubject: mail {number}\n\n{words}\n".encode()


@pytest.fixture
def options(tmp_path: Path) -> DatabaseOptions:
    return DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db")


async def opened(options: DatabaseOptions) -> Store:
    return await Store.open(options, schema=SCHEMA, bayes=BayesOptions(), clock=WallClock())


async def taught(options: DatabaseOptions, mails: int) -> Store:
    store = await opened(options)
    for number in range(mails):
        await train(store, number)
    return store


async def train(store: Store, number: int) -> None:
    trainer = Trainer(unit_of_work=store.unit_of_work, clock=WallClock(), options=TrainingOptions())
    label = Label.SPAM if number % 3 else Label.HAM
    await trainer.train([extract(mail(number))], label, source="cli", actor="me")


@needs_root
def test_f9_a_file_in_a_folder_closed_to_us_is_left_to_the_store(tmp_path: Path) -> None:
    options = DatabaseOptions(url=f"sqlite:///{closed(tmp_path)}/spamd.db")
    with nobody():
        assert Lookup.of(options, schema=SCHEMA, bayes=BayesOptions()) is None


@pytest.mark.parametrize("mails", [0, 5, 80])
async def test_the_model_is_the_one_that_the_store_loads(
    options: DatabaseOptions, mails: int
) -> None:
    store = await taught(options, mails)
    sample = extract(mail(7)).sample
    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())

    assert lookup is not None
    mine, theirs = lookup.load_model(sample.ids), await store.load_model(sample.ids)
    secret = await store.secret()
    await store.close()

    rows = np.arange(len(sample.ids))
    assert np.array_equal(mine.tokens.ids, theirs.tokens.ids)
    assert np.array_equal(mine.tokens.counts(rows).cells, theirs.tokens.counts(rows).cells)
    assert mine.totals == theirs.totals
    assert mine.facts == theirs.facts
    assert np.array_equal(mine.grams, theirs.grams)
    assert np.array_equal(mine.fusion.values, theirs.fusion.values)
    assert mine.weigh(sample).probability == theirs.weigh(sample).probability
    assert lookup.secret() == secret


def same(mine: Model, theirs: Model) -> bool:
    rows = np.arange(len(theirs.tokens))
    return (
        np.array_equal(mine.tokens.ids, theirs.tokens.ids)
        and np.array_equal(mine.tokens.counts(rows).cells, theirs.tokens.counts(rows).cells)
        and np.array_equal(mine.grams, theirs.grams)
        and np.array_equal(mine.fusion.values, theirs.fusion.values)
        and mine.totals == theirs.totals
        and mine.facts == theirs.facts
    )


@pytest.mark.parametrize("mails", [0, 80])
async def test_the_whole_model_is_the_one_that_the_store_reads(
    options: DatabaseOptions, mails: int
) -> None:
    store = await taught(options, mails)
    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    assert lookup is not None
    async with store.database.writing() as connection:
        await connection.execute(insert(tables.token), EXTREMES)
    await store.close()
    version, model = lookup.load_all()
    store = await opened(options)
    await store.refresh()

    assert same(model, store.snapshot.model)
    assert version == store.snapshot.version
    await store.close()


async def test_lessons_learned_since_it_was_read_ahead_are_brought_by_the_refresh(
    options: DatabaseOptions,
) -> None:
    teacher = await taught(options, 5)
    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    assert lookup is not None
    preload = lookup.preload()
    assert preload is not None
    preload.result()
    await train(teacher, 9)
    await teacher.refresh()
    store = await opened(options)

    await store.begin_with(preload)
    before = store.snapshot.model.totals.messages
    assert await store.refresh()

    assert before == 5
    assert same(store.snapshot.model, teacher.snapshot.model)
    await teacher.close()
    await store.close()


async def test_what_could_not_be_read_ahead_is_read_by_the_refresh(
    options: DatabaseOptions,
) -> None:
    store = await taught(options, 5)
    preload = Preload()
    preload.set_exception(StorageUnavailable("the database refused"))

    await store.begin_with(preload)
    await store.refresh()

    assert store.snapshot.model.totals.messages == 5
    await store.close()


async def test_it_works_beside_an_open_daemon_and_without_one(options: DatabaseOptions) -> None:
    store = await taught(options, 3)
    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    assert lookup is not None
    beside = (lookup.load_model(extract(mail(1)).sample.ids)).totals
    await store.close()

    assert (lookup.load_model(extract(mail(1)).sample.ids)).totals == beside


@pytest.mark.parametrize("content", [None, b"", b"this is no database" * 1000])
def test_what_is_no_database_of_ours_is_left_to_the_store(
    options: DatabaseOptions, content: bytes | None
) -> None:
    assert options.path is not None
    if content is not None:
        options.path.write_bytes(content)

    assert Lookup.of(options, schema=SCHEMA, bayes=BayesOptions()) is None


def test_another_server_is_left_to_the_store() -> None:
    options = DatabaseOptions(url="postgresql://127.0.0.1/spamd")

    assert Lookup.of(options, schema=SCHEMA, bayes=BayesOptions()) is None


async def test_another_schema_is_left_to_the_store(options: DatabaseOptions) -> None:
    await (await opened(options)).close()
    assert options.path is not None
    connection = sqlite3.connect(options.path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    connection.close()

    assert Lookup.of(options, schema=SCHEMA, bayes=BayesOptions()) is None


async def test_a_database_that_vanishes_is_unavailable(options: DatabaseOptions) -> None:
    await (await opened(options)).close()
    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    assert lookup is not None
    assert options.path is not None
    options.path.unlink()

    with pytest.raises(StorageUnavailable):
        lookup.secret()
