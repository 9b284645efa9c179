"""PostgreSQL as large sites have it: a standby that takes over, a pooler between."""

import asyncio
import socket
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from spamd.bayes.model import BayesOptions
from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.errors import ConfigError, StorageUnavailable
from spamd.lists.entry import Effect, Entry, Kind
from spamd.message.facts import SCHEMA
from spamd.storage.corpus.news import News
from spamd.storage.engine import Database
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions, server_urls
from spamd.storage.store import Store
from tests.docs.blocks import block
from tests.servers.base import require
from tests.servers.pgbouncer import Pgbouncer
from tests.servers.postgresql import Postgresql, Standby
from tests.storage.mails import SPAM, FixedClock, TeachingProcess, mail

SEVERAL = tomllib.loads(block("docs/scale.md", "database.url ="))["database"]["url"]
SYNCHRONOUS = block("docs/scale.md", "ALTER SYSTEM")

ALONE = ("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
PORT = "SELECT inet_server_port()"

AT_ONCE = 12
"""More than the connections of the pooler."""


@pytest.fixture(scope="module")
def pooler(postgresql: Postgresql) -> Iterator[Pgbouncer]:
    require("pgbouncer")
    with Pgbouncer(postgresql, pool=2) as running:
        yield running


@asynccontextmanager
async def opened(url: str, **options: float) -> AsyncIterator[Database]:
    given = {"connect_timeout_s": 60.0, **options}
    database = await Database.open(DatabaseOptions(url=url, **given))  # type: ignore[arg-type] # numbers
    yield database
    await database.close()


async def value(database: Database, query: str) -> object:
    async with database.reading() as connection:
        return (await connection.execute(text(query))).scalar()


async def add(database: Database, number: int) -> None:
    async with database.writing() as connection:
        await connection.execute(text("INSERT INTO seen VALUES (:n)"), {"n": number})


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("postgresql://a/n", ["postgresql://a/n"]),
        ("postgresql://me:p@a:1,b/n", ["postgresql://me:p@a:1/n", "postgresql://me:p@b/n"]),
        (
            "postgresql://a,b/n?sslmode=require&target_session_attrs=read-write",
            ["postgresql://a/n?sslmode=require", "postgresql://b/n?sslmode=require"],
        ),
        ("postgresql:///n?host=/run/postgresql", ["postgresql:///n?host=/run/postgresql"]),
    ],
)
def test_a_url_names_one_server_or_several(url: str, servers: list[str]) -> None:
    assert server_urls(url) == servers


@pytest.mark.parametrize("url", ["postgresql://a,/n", "postgresql://a:x,b/n"])
def test_a_url_that_names_no_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"host before and after|Port could not be cast"):
        DatabaseOptions(url=url)


async def test_a_standby_that_takes_over_is_found_and_what_it_lacks_is_not_known_any_longer() -> (
    None
):
    require("postgresql")
    clock = FixedClock()
    with Postgresql() as primary, Standby(primary) as standby:
        primary.do("ALTER DATABASE postgres SET synchronous_commit = on", *SYNCHRONOUS.splitlines())
        url = (
            SEVERAL.replace("spamd@", "postgres@")
            .replace("db1.example:5432", f"127.0.0.1:{standby.port}")
            .replace("db2.example:5432", f"127.0.0.1:{primary.port}")
            .replace("/spamd", "/postgres")
        )
        async with opened(url) as database:
            await upgrade(database)
            assert await value(database, PORT) == primary.port
            process = TeachingProcess(database, clock)
            store = Store(database, SCHEMA, BayesOptions(), clock)

            async def told(name: str) -> None:
                sender = f"{name}@x.example"
                await process.train(SPAM, mail("cheap offers", name, sender))
                await store.entries.put(Entry(effect=Effect.DENY, kind=Kind.ADDRESS, value=sender))
                await store.wishes.change(sender, Wishes(tag_from=0.5))
                clock.advance(seconds=1)

            await told("first")  # and the standby has it before we hear so
            primary.do(*ALONE)
            standby.stop()
            await told("lost")
            await store.refresh()
            assert store.snapshot.model.totals.spam == 2
            primary.kill()
            with pytest.raises(StorageUnavailable):
                await told("refused")
            standby.start()
            standby.do(*ALONE)
            standby.promote()
            await store.refresh()
            assert await value(database, PORT) == standby.port
            assert known(store) == (1, 1, [True, False, False])

            await told("next")
            await store.refresh()
            assert known(store) == (2, 2, [True, False, True])
            fresh = Store(database, SCHEMA, BayesOptions(), clock)
            await fresh.refresh()
            ours, theirs = store.snapshot.model.tokens, fresh.snapshot.model.tokens
            assert sorted(ours.ids.tolist()) == sorted(theirs.ids.tolist())


def known(store: Store) -> tuple[int, int, list[bool]]:
    """Return what a process knows: spam learned, entries of lists, and whose wishes."""
    wishes = store.wishes_in_memory
    wished = [wishes.of(f"{name}@x.example") != NO_WISHES for name in ("first", "lost", "next")]
    return int(store.snapshot.model.totals.spam), len(store.senders.lists), wished


async def test_a_server_that_says_nothing_does_not_keep_the_other_from_being_used(
    postgresql: Postgresql, postgresql_url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address, name = postgresql_url.removeprefix("postgresql://").split("/")
        login, there = address.split("@")
        url = f"postgresql://{login}@127.0.0.1:{silent.getsockname()[1]},{there}/{name}"
        async with opened(url, connect_timeout_s=8.0) as database:
            assert await value(database, PORT) == postgresql.port
            assert not database.pooled


async def test_the_fault_of_a_server_that_could_come_back_is_told_rather_than_a_wrong_name(
    postgresql: Postgresql,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    wrong = f"postgresql://postgres@127.0.0.1:{postgresql.port}"
    with pytest.raises(ConfigError, match="does not exist"):
        async with opened(f"{wrong}/nothing_of_this_name"):
            pass
    with pytest.raises(StorageUnavailable):
        async with opened(f"{wrong},127.0.0.1:{port}/nothing_of_this_name"):
            pass


@pytest.mark.parametrize("more", ["", "ignore_startup_parameters = lock_timeout, jit"])
async def test_a_pooler_is_noticed_however_it_is_set(postgresql: Postgresql, more: str) -> None:
    require("pgbouncer")
    with Pgbouncer(postgresql, more=more) as pooler:
        async with opened(pooler.url("postgres"), busy_timeout_s=7.0) as database:
            assert database.pooled
            assert await value(database, "SHOW lock_timeout") == "7s"
            assert await value(database, "SHOW jit") == "off"


async def test_behind_a_pooler_many_at_once_neither_mix_up_statements_nor_lose_one(
    pooler: Pgbouncer, postgresql_url: str
) -> None:
    url = pooler.url(postgresql_url.rpartition("/")[2])
    async with opened(url) as one, opened(url) as other:
        async with one.writing() as connection:
            await connection.execute(text("CREATE TABLE seen (n int)"))

        async def work(number: int) -> None:
            database = (one, other)[number % 2]
            for round_ in range(5):
                await add(database, number * 100 + round_)
                assert await value(database, f"SELECT {number}") == number
                async with database.bare() as connection:
                    assert (await connection.execute(text(f"SELECT {round_}"))).scalar() == round_

        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(work(number))
        assert await value(one, "SELECT count(DISTINCT n) FROM seen") == AT_ONCE * 5
        async with one.writing() as connection:
            await connection.execute(text("DROP TABLE seen"))


async def test_behind_a_pooler_nobody_listens_for_news_that_would_never_come(
    pooler: Pgbouncer,
) -> None:
    async with opened(pooler.url("postgres")) as database:
        news = News(database)
        assert not await news.wait(0.01)
        assert not news.listening
