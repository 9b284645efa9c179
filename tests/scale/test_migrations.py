"""An upgrade that is killed or begun by several at once leaves one whole database, and its copy."""

import asyncio

import pytest

from spamd.storage.options import DatabaseOptions
from tests.scale import migrations


def test_f7_i2_upgrades_that_are_killed_and_four_at_once_lose_nothing(
    options: DatabaseOptions,
) -> None:
    oldest = migrations.revisions()[0]
    wanted = asyncio.run(migrations.filled(options.url, 2_000))
    migrations.play(options.url, wanted, oldest, tokens=2_000, kills=1)


def test_every_revision_is_tried_at_full_size() -> None:
    assert migrations.revisions()[0] == "0001"
    assert len(migrations.revisions()) >= 6


@pytest.fixture(params=["sqlite", "postgresql"])
def options(request: pytest.FixtureRequest, tmp_path: object) -> DatabaseOptions:
    """Where an empty database lies."""
    if request.param == "sqlite":
        return DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db")
    return DatabaseOptions(url=request.getfixturevalue("postgresql_url"))
