"""Every storage test runs on SQLite and on PostgreSQL: take the fixture `database` or `store`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from spamd.storage.engine import Database
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from tests.storage.mails import FixedClock, TeachingProcess


@pytest.fixture(params=["sqlite", "postgresql"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseOptions:
    """Where an empty database lies."""
    if request.param == "sqlite":
        return DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db")
    return DatabaseOptions(url=request.getfixturevalue("postgresql_url"))


@pytest.fixture
async def empty(options: DatabaseOptions) -> AsyncIterator[Database]:
    """An open database without tables."""
    database = await Database.open(options)
    yield database
    await database.close()


@pytest.fixture
async def database(empty: Database) -> Database:
    """An open database with this version's tables."""
    await upgrade(empty)
    return empty


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands still until it is told."""
    return FixedClock()


@pytest.fixture
def teaching(database: Database, clock: FixedClock) -> TeachingProcess:
    """A process at work on the database."""
    return TeachingProcess(database, clock)
