"""Every storage test runs on SQLite and on PostgreSQL: take the fixture `database` or `store`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from spamd.storage.engine import Database
from spamd.storage.options import DatabaseOptions
from tests.storage.mails import FixedClock, TeachingProcess
from tests.storage.migrated import lay


@pytest.fixture(params=["sqlite", "postgresql"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseOptions:
    """Where an empty database lies, or one with tables for who takes `database` too."""
    with_tables = "database" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "spamd.db"
        if with_tables:
            lay(path)
        return DatabaseOptions(url=f"sqlite:///{path}")
    there = "migrated_postgresql_url" if with_tables else "postgresql_url"
    return DatabaseOptions(url=request.getfixturevalue(there))


@pytest.fixture
async def empty(options: DatabaseOptions) -> AsyncIterator[Database]:
    """An open database without tables."""
    database = await Database.open(options)
    yield database
    await database.close()


@pytest.fixture
async def database(options: DatabaseOptions) -> AsyncIterator[Database]:
    """An open database with this version's tables."""
    database = await Database.open(options)
    yield database
    await database.close()


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands still until it is told."""
    return FixedClock()


@pytest.fixture
def teaching(database: Database, clock: FixedClock) -> TeachingProcess:
    """A process at work on the database."""
    return TeachingProcess(database, clock)
