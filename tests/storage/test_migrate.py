"""The schema: made by steps, equal to the tables, up and down with data, never half."""

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, inspect, text

from spamd.errors import ConfigError
from spamd.storage import migrate, tables
from spamd.storage.engine import Database
from spamd.storage.migrate import check_schema, downgrade, newest, upgrade
from spamd.storage.options import SCHEMA, DatabaseOptions
from tests.storage.mails import SPAM, Desk, FixedClock, counts, mail


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


async def test_every_step_goes_down_and_up_again_with_data(desk: Desk, clock: FixedClock) -> None:
    await desk.train(SPAM, mail("a"), mail("b"))
    full = await counts(desk.database)
    await downgrade(desk.database, "base")
    async with desk.database.reading() as connection:
        left = await connection.run_sync(lambda plain: set(inspect(plain).get_table_names()))
    assert left <= {"alembic_version"}
    assert (await upgrade(desk.database)).after == newest()
    again = Desk(desk.database, clock)
    await again.train(SPAM, mail("a"), mail("b"))
    assert await counts(desk.database) == full


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FixedClock
) -> None:
    path = tmp_path / "spamd.db"
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{path}"))
    await upgrade(database)
    await Desk(database, clock).train(SPAM, mail("a"))
    path.chmod(0o600)
    before = newest()
    monkeypatch.setattr(migrate, "newest", lambda: "9999")
    monkeypatch.setattr(migrate, "_run", lambda *_, **__: None)
    done = await upgrade(database)
    await database.close()
    assert done.backup == tmp_path / f"spamd.db.{before}.bak"
    assert done.backup.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(done.backup) as copy:
        assert copy.execute("SELECT spam FROM corpus").fetchone() == (1,)
    copy.close()
