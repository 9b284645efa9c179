"""The users of a mail server's own database, by `users.query`."""

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from spamd.errors import StorageUnavailable
from spamd.storage.options import DatabaseOptions
from spamd.storage.people.directory import SqlLookup

QUERY = """
SELECT destination FROM virtual_aliases WHERE source = :address
UNION SELECT email FROM virtual_users WHERE email = :address
"""

ROWS = (
    "CREATE TABLE virtual_users (email TEXT)",
    "CREATE TABLE virtual_aliases (source TEXT, destination TEXT)",
    "INSERT INTO virtual_users VALUES ('anna@example.org'), ('o''hara@example.org')",
    "INSERT INTO virtual_aliases VALUES ('info@example.org', 'anna@example.org')",
    "INSERT INTO virtual_aliases VALUES ('all@example.org', 'anna@example.org')",
    "INSERT INTO virtual_aliases VALUES ('all@example.org', 'bob@example.org')",
)


@pytest.fixture
async def url(options: DatabaseOptions) -> str:
    driver = options.url.replace("sqlite:", "sqlite+aiosqlite:").replace(
        "postgresql:", "postgresql+asyncpg:"
    )
    engine = create_async_engine(driver)
    async with engine.begin() as connection:
        for row in ROWS:
            await connection.execute(text(row))
    await engine.dispose()
    return options.url


async def test_a_query_says_whose_mail_it_is(url: str) -> None:
    lookup = SqlLookup(QUERY, url, 5.0)
    try:
        assert await lookup.users("info@example.org") == ["anna@example.org"]
        assert await lookup.users("anna@example.org") == ["anna@example.org"]
        assert sorted(await lookup.users("all@example.org")) == [
            "anna@example.org", "bob@example.org",
        ]  # fmt: skip
        assert await lookup.users("none@example.org") == []
    finally:
        await lookup.close()


async def test_a_name_is_bound_and_never_written_into_the_statement(url: str) -> None:
    lookup = SqlLookup(QUERY, url, 5.0)
    try:
        assert await lookup.users("o'hara@example.org") == ["o'hara@example.org"]
        assert await lookup.users("x' OR '1'='1") == []
        assert await lookup.users("'; DROP TABLE virtual_users; --") == []
        assert await lookup.users("anna@example.org") == ["anna@example.org"]
    finally:
        await lookup.close()


async def test_local_part_and_domain_can_be_asked_for(url: str) -> None:
    query = "SELECT :local || '@' || :domain FROM virtual_users WHERE email LIKE :local || '@%'"
    if url.startswith("postgresql"):
        query = query.replace(":local |", "CAST(:local AS text) |").replace(
            ":domain", "CAST(:domain AS text)"
        )
    lookup = SqlLookup(query, url, 5.0)
    try:
        assert await lookup.users("anna@b.test") == ["anna@b.test"]
        assert await lookup.users("none@b.test") == []
    finally:
        await lookup.close()


async def test_the_database_of_others_is_never_written(url: str) -> None:
    lookup = SqlLookup("DELETE FROM virtual_users WHERE email = :address RETURNING email", url, 5.0)
    try:
        with pytest.raises(StorageUnavailable, match=r"users\.query: .*(readonly|read-only)"):
            await lookup.users("anna@example.org")
    finally:
        await lookup.close()


async def test_a_query_that_can_not_be_right_is_told_in_the_servers_words(url: str) -> None:
    lookup = SqlLookup("SELECT user FROM mailboxes WHERE email = :address", url, 5.0)
    try:
        with pytest.raises(StorageUnavailable, match=r"users\.query: .*mailboxes"):
            await lookup.users("anna@example.org")
    finally:
        await lookup.close()


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/mail.db", "postgresql://a:secret@127.0.0.1:1/mail"]
)
async def test_a_database_that_is_not_there_is_told_without_its_password(url: str) -> None:
    lookup = SqlLookup(QUERY, url, 5.0)
    with pytest.raises(StorageUnavailable) as told:
        await lookup.users("anna@example.org")
    assert "secret" not in str(told.value)
    await lookup.close()
