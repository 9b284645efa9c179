"""The token table as one file that the processes of a machine share: right, whole, and private."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spamd.bayes.counts import TokenCounts, TokenTable
from spamd.bayes.layered import LayeredTable
from spamd.bayes.model import BayesOptions
from spamd.message.facts import SCHEMA
from spamd.storage.corpus import token_table
from spamd.storage.corpus.snapshot import Snapshot
from spamd.storage.engine import Database
from spamd.storage.maintenance.reset import reset
from spamd.storage.mapped.shared_tables import SharedTables
from spamd.storage.mapped.table_file import (
    CHECKSUM,
    HEADER,
    HEADER_BYTES,
    MappedTable,
    NoTable,
    TableFile,
    TableKey,
)
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, mail
from tests.waiting import wait_until

KEY = TableKey(database=b"d" * 16, generation=7, revision=9, mark=b"m" * 16)


def table_of(tokens: int) -> LayeredTable:
    random = np.random.default_rng(tokens)
    ids = np.unique(random.integers(-(2**63), 2**63 - 1, tokens, dtype=np.int64))
    cells = random.integers(1, 9, (len(ids), 5), dtype=np.int32)
    return LayeredTable(TokenTable(ids, TokenCounts.of_cells(cells)))


def written(path: Path, table: LayeredTable) -> MappedTable:
    with TableFile.writing(path, KEY, len(table)) as file:
        for ids, cells in table.pieces():
            file.add(ids, cells)
    return TableFile.opened(path)


@pytest.mark.parametrize("tokens", [0, 1, 2, 1000, 250_000])
def test_a_file_holds_the_table_it_was_written_from(tmp_path: Path, tokens: int) -> None:
    table = table_of(tokens)
    mapped = written(tmp_path / "a.table", table)
    asked = np.concatenate([table.ids, np.arange(50)])

    assert mapped.key == KEY
    assert np.array_equal(mapped.table.ids, table.ids)
    assert np.array_equal(
        mapped.table.cells(mapped.table.find(asked)), table.cells(table.find(asked))
    )
    assert (tmp_path / "a.table").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.table"]


def test_a_file_with_any_byte_changed_or_cut_off_anywhere_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.table"
    written(path, table_of(300))
    whole = path.read_bytes()
    used = [*range(HEADER.size + CHECKSUM.size), *range(HEADER_BYTES, len(whole), 97)]
    for place in used:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(NoTable):
            TableFile.opened(path)
    for length in (0, 1, 115, 4096, 4097, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(NoTable):
            TableFile.opened(path)
    path.write_bytes(whole)
    assert len(TableFile.opened(path).table) == 300


def test_a_link_a_pipe_and_a_file_that_others_may_write_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.table"
    written(path, table_of(3))
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for other in ("link", "pipe", "missing"):
        with pytest.raises(NoTable):
            TableFile.opened(tmp_path / other)
    path.chmod(0o622)
    with pytest.raises(NoTable, match="others"):
        TableFile.opened(path)


def test_a_full_disk_leaves_the_old_file_and_nothing_besides(tmp_path: Path) -> None:
    old = written(tmp_path / "a.table", table_of(5))
    with pytest.raises(OSError, match="space"), TableFile.writing(tmp_path / "a.table", KEY, 10):
        raise OSError(28, "No space left on device")
    assert TableFile.opened(tmp_path / "a.table").stamp == old.stamp
    assert [each.name for each in tmp_path.iterdir()] == ["a.table"]


class Machine:
    """The processes of one machine: snapshots that share a folder."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder

    def process(self) -> Snapshot:
        shared = SharedTables(self.folder, least=20, changed=150, pause_s=0)
        return Snapshot(SCHEMA, BayesOptions(), shared)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.table"))

    async def right(self, snapshot: Snapshot) -> bool:
        """Whether a process holds what the database holds."""
        async with self.database.reading() as connection:
            table = await token_table.load(connection)
        mine = snapshot.model.tokens
        rows = mine.find(table.ids)
        return (
            len(mine) == len(table)
            and np.array_equal(mine.ids, table.ids)
            and np.array_equal(mine.cells(rows), table.cells(np.arange(len(table))))
        )


@pytest.fixture
async def machine(database: Database, tmp_path: Path) -> Machine:
    return Machine(database, tmp_path / "local")


def some(number: int) -> str:
    return " ".join(f"word{number * k % 97}" for k in range(1, 30))


async def test_processes_share_one_file_and_follow_lessons_and_what_is_taken_back(
    machine: Machine, teaching: TeachingProcess
) -> None:
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    one, two = machine.process(), machine.process()
    await asyncio.gather(one.refresh(machine.database), two.refresh(machine.database))

    assert len(machine.files) == 1
    stamps = set()
    for number in range(9):
        await teaching.train(HAM, mail(f"ham {number}", some(number + 50)))
        if number % 3 == 2:
            await teaching.forget(mail(f"ham {number - 1}", some(number + 49)))
        for process in (one, two):
            await process.refresh(machine.database)
            assert await machine.right(process)
        stamps.add(machine.files[0].stat().st_ino)
    assert len(stamps) > 1  # it was written anew, and taken
    assert isinstance(one.model.tokens, LayeredTable)
    assert one.model.tokens.changed < 400


async def test_a_process_that_comes_later_takes_the_file_with_what_has_changed_since(
    machine: Machine, teaching: TeachingProcess
) -> None:
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    await machine.process().refresh(machine.database)
    inode = machine.files[0].stat().st_ino
    await teaching.train(HAM, mail("lunch", "at noon"))

    late = machine.process()
    await late.refresh(machine.database)

    assert await machine.right(late)
    assert isinstance(late.model.tokens, LayeredTable)
    assert machine.files[0].stat().st_ino == inode


def spoilt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("harm", [spoilt, cut, Path.unlink])
async def test_a_file_that_is_harmed_is_written_anew(
    machine: Machine, teaching: TeachingProcess, harm: Callable[[Path], None]
) -> None:
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    await machine.process().refresh(machine.database)
    harm(machine.files[0])

    late = machine.process()
    await late.refresh(machine.database)

    assert await machine.right(late)
    assert len(TableFile.opened(machine.files[0]).table) == len(late.model.tokens)


async def test_the_file_of_a_corpus_that_was_reset_is_of_no_use(
    machine: Machine, teaching: TeachingProcess, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    one = machine.process()
    await one.refresh(machine.database)
    await reset(machine.database, teaching.clock, tmp_path)
    again = TeachingProcess(machine.database, teaching.clock)
    await again.train(HAM, *(mail(f"other {n}", f"thing{n} " + some(n)) for n in range(9)))
    for process in (one, machine.process()):
        await process.refresh(machine.database)
        assert await machine.right(process)


async def test_a_database_put_back_and_taught_otherwise_is_not_taken_for_the_one_of_the_file(
    machine: Machine, teaching: TeachingProcess
) -> None:
    """The revisions have the same numbers then."""
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    first = mail("first", "one way to go on")
    await teaching.train(HAM, first)
    one = machine.process()
    await one.refresh(machine.database)
    await _put_back(machine.database)
    teaching.clock.advance(seconds=5)
    other = TeachingProcess(machine.database, teaching.clock)
    await other.train(HAM, mail("second", "quite another way"))

    for process in (one, machine.process()):
        await process.refresh(machine.database)
        assert await machine.right(process)


async def _put_back(database: Database) -> None:
    """Make the last lesson not have been, as a backup from before does."""
    process = TeachingProcess(database, FixedClock())
    await process.forget(mail("first", "one way to go on"))
    async with database.writing() as connection:
        await connection.exec_driver_sql("UPDATE corpus SET revision = revision - 2")
        last = "(SELECT revision FROM corpus)"
        await connection.exec_driver_sql(f"DELETE FROM change WHERE revision > {last}")


async def test_where_no_file_can_be_written_each_process_keeps_the_table(
    machine: Machine, teaching: TeachingProcess
) -> None:
    await teaching.train(SPAM, *(mail(f"spam {n}", some(n)) for n in range(5)))
    machine.folder.write_text("no folder")
    one = machine.process()
    await one.refresh(machine.database)
    await teaching.train(HAM, mail("lunch", "at noon"))
    await one.refresh(machine.database)

    assert await machine.right(one)
    assert one.shared is not None
    assert "tokens-" in one.shared.fault


WRITER = """
import sys, numpy as np
from pathlib import Path
from tests.storage.test_shared_tables import KEY, table_of
from spamd.storage.mapped.shared_tables import SharedTables
shared = SharedTables(Path(sys.argv[1]), least=1)
shared.name(KEY.database)
table = table_of(200_000)
print("ready", flush=True)
while True:
    assert shared.write(KEY, table)
"""


def test_who_is_killed_while_he_writes_leaves_a_whole_file_or_none(tmp_path: Path) -> None:
    shared = SharedTables(tmp_path, least=1)
    shared.name(KEY.database)
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_until(lambda: list(tmp_path.glob("*.new")), what="a file", pause_s=0.001)
        process.kill()

    if shared.path.exists():
        assert len(TableFile.opened(shared.path).table) == len(table_of(200_000))
    small = table_of(10)
    assert shared.write(KEY, small)  # its lock is gone
    assert len(TableFile.opened(shared.path).table) == len(small)
    assert not list(tmp_path.glob("*.new"))
