"""The schema: made by steps, equal to the tables, up and down with data, never half."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, inspect, text

from spamd.errors import ConfigError
from spamd.storage import migrate, tables
from spamd.storage.engine import Database
from spamd.storage.migrate import check_schema, copy_file, downgrade, newest, upgrade
from spamd.storage.options import SCHEMA, DatabaseOptions
from tests.storage.mails import SPAM, FixedClock, TeachingProcess, counts, mail


async def test_the_steps_make_the_tables_of_the_code(database: Database) -> None:
    def differences(connection: Connection) -> object:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, tables.metadata)

    def checks(connection: Connection) -> dict[str, set[str | None]]:
        look = inspect(connection)
        return {
            table: {check["name"] for check in look.get_check_constraints(table)}
            for table in tables.metadata.tables
        }

    wanted = {
        name: {str(each.name) for each in table.constraints if isinstance(each, CheckConstraint)}
        for name, table in tables.metadata.tables.items()
    }
    async with database.reading() as connection:
        assert await connection.run_sync(differences) == []
        assert await connection.run_sync(checks) == wanted


def test_the_code_knows_the_newest_revision_without_the_migrations() -> None:
    assert newest() == SCHEMA


async def test_every_step_goes_down_and_up_again_with_data(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    await teaching.train(SPAM, mail("a"), mail("b"))
    full = await counts(teaching.database)
    await downgrade(teaching.database, "base")
    async with teaching.database.reading() as connection:
        left = await connection.run_sync(lambda plain: set(inspect(plain).get_table_names()))
    assert left <= {"alembic_version"}
    assert (await upgrade(teaching.database)).after == newest()
    again = TeachingProcess(teaching.database, clock)
    await again.train(SPAM, mail("a"), mail("b"))
    assert await counts(teaching.database) == full


async def test_an_upgrade_that_is_done_does_nothing_more(database: Database) -> None:
    async with database.reading() as connection:
        secret = (await connection.execute(text("SELECT secret FROM corpus"))).scalar()
    done = await upgrade(database)
    assert (done.before, done.after, done.backup) == (newest(), newest(), None)
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT secret FROM corpus"))).scalar() == secret


async def test_a_database_without_tables_is_refused_where_nobody_upgrades_it(
    empty: Database,
) -> None:
    with pytest.raises(ConfigError, match="run: spamd database upgrade"):
        await check_schema(empty)
    await upgrade(empty)
    await check_schema(empty)


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for refuse in (upgrade, check_schema):
        with pytest.raises(ConfigError, match=r"written by a newer version of spamd.*9999"):
            await refuse(database)


async def test_f7_an_upgrade_that_dies_has_not_happened_and_can_be_run_again(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_first_rows", dies)
        with pytest.raises(KeyboardInterrupt):
            await upgrade(empty)
    async with empty.reading() as connection:
        assert await connection.run_sync(lambda plain: inspect(plain).get_table_names()) == []
    assert (await upgrade(empty)).before is None


async def test_f7_a_sqlite_file_with_data_is_copied_before_it_changes(
    tmp_path: Path, clock: FixedClock
) -> None:
    path = tmp_path / "spamd.db"
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{path}"))
    await upgrade(database)
    await TeachingProcess(database, clock).train(SPAM, mail("a"))
    await downgrade(database, "0001")
    path.chmod(0o600)
    done = await upgrade(database)
    await database.close()
    assert done.backup == tmp_path / "spamd.db.0001.bak"
    assert done.backup.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(done.backup) as copy:
        assert copy.execute("SELECT spam FROM corpus").fetchone() == (1,)
    copy.close()


@pytest.fixture
async def starters(
    options: DatabaseOptions, empty: Database, clock: FixedClock
) -> AsyncIterator[list[Database]]:
    """Four processes that find a database of the first revision, with data, at the same time."""
    await upgrade(empty)
    await TeachingProcess(empty, clock).train(SPAM, mail("a"))
    await downgrade(empty, "0001")
    async with AsyncExitStack() as stack:
        databases = [await Database.open(options) for _ in range(4)]
        for each in databases:
            stack.push_async_callback(each.close)
        yield databases


async def test_i2_of_four_that_start_at_once_one_upgrades_and_one_copy_is_made(
    starters: list[Database],
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(upgrade(each)) for each in starters]
    done = [task.result() for task in tasks]
    assert sorted(str(each.before) for each in done) == ["0001", *[newest()] * 3]
    path = starters[0].path
    if path is None:
        return
    copies = list(path.parent.glob("*.bak"))
    assert copies == [each.backup for each in done if each.backup]
    with sqlite3.connect(copies[0]) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
        assert copy.execute("SELECT spam FROM corpus").fetchone() == (1,)
    copy.close()


async def test_i2_four_that_start_at_once_on_nothing_make_one_database(
    options: DatabaseOptions, empty: Database
) -> None:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for _ in range(4):
            database = await Database.open(options)
            stack.push_async_callback(database.close)
            group.create_task(upgrade(database))
    async with empty.reading() as connection:
        assert len((await connection.execute(text("SELECT secret FROM corpus"))).all()) == 1
    if options.path:
        assert not list(options.path.parent.glob("*.bak"))


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


async def test_i2_a_copy_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "spamd.db"
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{path}"))
    await upgrade(database)
    (tmp_path / "spamd.db.mark.bak").write_bytes(b"the good copy")
    (tmp_path / "spamd.db.mark.2.bak").symlink_to(tmp_path / "elsewhere")
    copy = await copy_file(database, path, "mark")
    await database.close()
    assert copy == tmp_path / "spamd.db.mark.3.bak"
    assert copy.read_bytes().startswith(b"SQLite format 3")
    assert (tmp_path / "spamd.db.mark.bak").read_bytes() == b"the good copy"
    assert names(tmp_path) == {"spamd.db", *(f"spamd.db.mark{n}.bak" for n in ("", ".2", ".3"))}
