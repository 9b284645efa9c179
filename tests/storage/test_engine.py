"""Opening a database: what can't be right is said in one sentence, what is away is temporary."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from spamd.errors import ConfigError, StorageUnavailable
from spamd.storage.engine import Database, check_file, volume_warning
from spamd.storage.options import DatabaseOptions
from tests.rights import closed, needs_root, nobody
from tests.servers.base import free_port
from tests.servers.postgresql import Postgresql


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///var/spamd.db", Path("var/spamd.db")),
        ("sqlite:////var/lib/spamd.db", Path("/var/lib/spamd.db")),
        ("sqlite://./var/spamd.db", Path("var/spamd.db")),
        ("postgresql://host/spamd", None),
    ],
)
def test_a_url_names_a_file_or_a_server(url: str, path: Path | None) -> None:
    assert DatabaseOptions(url=url).path == path


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"url": "mysql://host/spamd"}, "database.url must begin with"),
        ({"url": "sqlite://"}, "database.url must name a file"),
        ({"url": "postgresql://host"}, "database.url must end in the name"),
        ({"pool": 0}, "database.pool must be at least 1"),
        ({"busy_timeout_s": 0.0}, "database.busy_timeout_s must lie between"),
        ({"refresh_s": 3.0}, "database.refresh_s must be above 0 and at most 2"),
        ({"synchronous": "off"}, "database.synchronous must be"),
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        DatabaseOptions(**wrong)  # type: ignore[arg-type]  # the wrong types are the test


async def opening_fails(path: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        await Database.open(DatabaseOptions(url=f"sqlite:///{path}"))
    sentence = str(refused.value)
    assert "database.url" in sentence
    assert "\n" not in sentence
    return sentence


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "spamd.db"
    assert f"there is no folder {tmp_path}/missing" in await opening_fails(path)


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert "is not a file" in await opening_fails(tmp_path)


async def test_another_file_is_no_database_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "spamd.db"
    path.write_text("Dear diary, " * 500)
    assert "is no intact SQLite database" in await opening_fails(path)
    assert path.read_text() == "Dear diary, " * 500


async def test_f8_a_truncated_database_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "spamd.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 500)
    connection.close()
    path.write_bytes(path.read_bytes()[:5000])
    assert "is no intact SQLite database" in await opening_fails(path)


@needs_root
def test_f9_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    folder = closed(tmp_path)
    folder.parent.chmod(0o755)
    path = folder / "spamd.db"
    path.touch(mode=0o644)
    with nobody(), pytest.raises(ConfigError, match=f"may not read and write {path}"):
        check_file(path)


@needs_root
def test_f9_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path) -> None:
    folder = closed(tmp_path)
    with nobody(), pytest.raises(ConfigError, match=f"may not enter the folder {folder}"):
        check_file(folder / "spamd.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_f9_a_file_made_by_root_belongs_to_the_owner_of_its_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    check_file(tmp_path / "spamd.db")
    made = (tmp_path / "spamd.db").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (65534, 65534, 0o640)


async def test_sqlite_writes_ahead_and_checks_foreign_keys(tmp_path: Path) -> None:
    options = DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db", synchronous="full")
    database = await Database.open(options)
    found = {}
    async with database.reading() as connection:
        for pragma in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys"):
            row = await connection.exec_driver_sql(f"PRAGMA {pragma}")
            found[pragma] = row.scalar()
    await database.close()
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "busy_timeout": 500,
        "foreign_keys": 1,
    }


async def test_what_fails_is_rolled_back(database: Database) -> None:
    async def fail() -> None:
        async with database.writing() as connection:
            await connection.execute(text("UPDATE corpus SET ham = 7"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT ham FROM corpus"))).scalar() == 0


async def test_readers_see_one_moment(database: Database) -> None:
    async with database.reading() as reader:
        before = (await reader.execute(text("SELECT ham FROM corpus"))).scalar()
        async with database.writing() as writer:
            await writer.execute(text("UPDATE corpus SET ham = 7"))
        assert (await reader.execute(text("SELECT ham FROM corpus"))).scalar() == before


async def test_d16_a_lock_is_temporary_and_touches_no_file(tmp_path: Path) -> None:
    path = tmp_path / "spamd.db"
    options = DatabaseOptions(url=f"sqlite:///{path}", busy_timeout_s=0.05)
    database = await Database.open(options)
    before = path.stat().st_ino

    async def write() -> None:
        async with database.writing():
            pass

    async with database.writing():
        with pytest.raises(StorageUnavailable, match="locked"):
            await write()
    await write()
    await database.close()
    assert path.stat().st_ino == before


async def test_k9_who_waits_for_a_lock_can_be_cancelled_and_others_get_it_in_time(
    tmp_path: Path,
) -> None:
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db"))
    loop = asyncio.get_running_loop()

    async def write() -> float:
        async with database.writing():
            return loop.time()

    async with database.writing():
        waiting, patient = asyncio.create_task(write()), asyncio.create_task(write())
        await asyncio.sleep(0.1)
        asked = loop.time()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert loop.time() - asked < 3  # `busy_timeout_s` is 15
    assert await patient > asked
    await database.close()


async def test_a_server_that_is_not_there_is_temporary() -> None:
    url = f"postgresql://spamd:secret@127.0.0.1:{free_port()}/spamd"
    with pytest.raises(StorageUnavailable, match="does not answer"):
        await Database.open(DatabaseOptions(url=url))


async def test_a_database_that_the_server_does_not_have_is_a_mistake(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url("nobody_made_me").replace("postgres@", "postgres:geheim@")
    with pytest.raises(ConfigError, match=r"database.url .*nobody_made_me") as refused:
        await Database.open(DatabaseOptions(url=url))
    assert "geheim" not in str(refused.value)


async def test_a_connection_that_breaks_is_temporary(postgresql_url: str) -> None:
    database = await Database.open(DatabaseOptions(url=postgresql_url))
    kill = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid")

    async def broken() -> None:
        async with database.reading() as connection:
            pid = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar()
            async with database.bare() as other:
                await other.execute(kill, {"pid": pid})
            await connection.execute(text("SELECT 1"))

    with pytest.raises(StorageUnavailable):
        await broken()
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar() == 1
    await database.close()


def test_f11_a_database_inside_a_container_is_warned_of(tmp_path: Path) -> None:
    mark = tmp_path / "dockerenv"
    path = Path("/spamd.db")
    assert volume_warning(path, marks=(mark,)) is None
    mark.touch()
    assert "mount a volume" in (volume_warning(path, marks=(mark,)) or "")
    assert volume_warning(Path("/proc/spamd.db"), marks=(mark,)) is None
