"""Lessons that wait on the disk: durable, private, bounded, in order, each once."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spamd.errors import StorageUnavailable
from spamd.storage.local.waiting_lessons import MAGIC, JournalOnDisk
from spamd.training.ports import WaitingLesson
from tests.storage.mails import HAM, SPAM, mail, same_sample
from tests.waiting import wait_until

GIVEN = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def lesson(number: int) -> WaitingLesson:
    return WaitingLesson(
        features=mail(f"m{number}", f"word{number} Größe"),
        label=(SPAM, HAM, None)[number % 3],
        source="http",
        actor="anna\x00 \U0001f600",
        given=GIVEN,
    )


@pytest.fixture
def journal(tmp_path: Path) -> JournalOnDisk:
    return JournalOnDisk(tmp_path / "local", 1024 * 1024)


async def taken(journal: JournalOnDisk) -> tuple[list[str], tuple[int, int]]:
    """Have all learned; return the ids of the mails in their order, and what was told."""
    learned: list[str] = []

    async def learn(one: WaitingLesson) -> None:
        learned.append(one.features.digest.hex())

    return learned, await journal.take(learn)


def ids(*numbers: int) -> list[str]:
    return [lesson(number).features.digest.hex() for number in numbers]


async def test_what_is_kept_comes_back_as_it_was_and_once(journal: JournalOnDisk) -> None:
    assert not journal.any
    await journal.keep([lesson(0), lesson(1)])
    await journal.keep([lesson(2)])
    assert (journal.any, journal.count()) == (True, 3)
    found: list[WaitingLesson] = []

    async def learn(one: WaitingLesson) -> None:
        found.append(one)

    assert await journal.take(learn) == (3, 0)
    for number, one in enumerate(found):
        wanted = lesson(number)
        assert same_sample(one.features, wanted.features)
        assert replace(one, features=wanted.features) == wanted
    assert (journal.any, journal.count()) == (False, 0)
    assert await taken(journal) == ([], (0, 0))


async def test_nobody_else_may_read_it(journal: JournalOnDisk, tmp_path: Path) -> None:
    await journal.keep([lesson(0)])
    assert (tmp_path / "local").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "local/lessons.waiting").stat().st_mode & 0o777 == 0o600


async def test_a_link_in_its_place_is_not_followed(journal: JournalOnDisk, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "local/lessons.waiting").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailable, match=r"lessons\.waiting"):
        await journal.keep([lesson(0)])
    assert not (tmp_path / "elsewhere").exists()


async def test_it_is_bounded_and_who_comes_later_is_told(tmp_path: Path) -> None:
    journal = JournalOnDisk(tmp_path, 5_000)
    kept = 0
    while not kept or (tmp_path / "lessons.waiting").stat().st_size < 4_000:
        await journal.keep([lesson(kept)])
        kept += 1
    with pytest.raises(StorageUnavailable, match=r"full of lessons.*database\.waiting_mb"):
        await journal.keep([lesson(number) for number in range(10)])
    assert journal.count() == kept
    assert (tmp_path / "lessons.waiting").stat().st_size <= 5_000
    learned, told = await taken(journal)
    assert (learned, told) == (ids(*range(kept)), (kept, 0))


@pytest.mark.parametrize("cut", [1, 10, len(MAGIC) + 3, 200])
async def test_a_record_that_a_crash_cut_off_costs_itself_only(
    journal: JournalOnDisk, tmp_path: Path, cut: int
) -> None:
    await journal.keep([lesson(0), lesson(1)])
    file = tmp_path / "local/lessons.waiting"
    file.write_bytes(file.read_bytes()[:-cut])
    await journal.keep([lesson(2)])
    learned, (done, lost) = await taken(journal)
    assert (learned, done, lost) == (ids(0, 2), 2, 1)
    assert not journal.any


async def test_a_record_that_the_disk_spoilt_costs_itself_only(
    journal: JournalOnDisk, tmp_path: Path
) -> None:
    for number in range(3):
        await journal.keep([lesson(number)])
    file = tmp_path / "local/lessons.waiting"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    learned, (done, lost) = await taken(journal)
    assert (learned, done, lost) == (ids(0, 2), 2, 1)


async def test_lessons_of_who_is_forgotten_leave_the_disk_and_the_others_are_learned(
    journal: JournalOnDisk, tmp_path: Path
) -> None:
    assert (journal.names(), await journal.drop({"zelda"})) == (set(), 0)
    hers = [replace(lesson(1), actor="zelda"), replace(lesson(3), user="zelda")]
    await journal.keep([lesson(0), hers[0], lesson(2), hers[1]])
    assert journal.names() == {"zelda", lesson(0).actor}
    assert await journal.drop({"zelda", "nobody"}) == 2
    await journal.keep([lesson(4)])
    content = (tmp_path / "local/lessons.waiting").read_bytes()
    assert b"zelda" not in content
    assert not [word for word in (b"word1", b"word3") if word in content]
    assert (journal.names(), journal.count()) == ({lesson(0).actor}, 3)
    assert await taken(journal) == (ids(0, 2, 4), (3, 0))
    assert not journal.any


async def test_lessons_are_dropped_once_nobody_is_learning_them(journal: JournalOnDisk) -> None:
    await journal.keep([lesson(0), replace(lesson(1), actor="zelda")])
    learning, go_on = asyncio.Event(), asyncio.Event()

    async def learn(_: WaitingLesson) -> None:
        learning.set()
        await go_on.wait()
        raise StorageUnavailable("away again")

    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(_refused(journal, learn))
        await learning.wait()
        dropping = tasks.create_task(journal.drop({"zelda"}))
        await asyncio.sleep(0)
        assert not dropping.done()
        go_on.set()
    assert (taking.result(), dropping.result(), journal.count()) == (True, 1, 1)


async def _refused(
    journal: JournalOnDisk, learn: Callable[[WaitingLesson], Awaitable[None]]
) -> bool:
    with pytest.raises(StorageUnavailable):
        await journal.take(learn)
    return True


async def test_what_can_not_be_learned_yet_goes_on_waiting(journal: JournalOnDisk) -> None:
    await journal.keep([lesson(0), lesson(1)])

    async def away(_: WaitingLesson) -> None:
        raise StorageUnavailable("away")

    with pytest.raises(StorageUnavailable):
        await journal.take(away)
    assert await taken(journal) == (ids(0, 1), (2, 0))


async def test_what_is_written_meanwhile_is_learned_too_and_one_process_is_at_it(
    journal: JournalOnDisk,
) -> None:
    await journal.keep([lesson(0)])
    learned: list[str] = []

    async def learn(one: WaitingLesson) -> None:
        if not learned:
            assert await taken(journal) == ([], (0, 0))
            await journal.keep([lesson(1)])
        learned.append(one.features.digest.hex())

    assert await journal.take(learn) == (2, 0)
    assert learned == ids(0, 1)
    assert not journal.any


CHILD = """
import asyncio, sys
from pathlib import Path
from spamd.storage.local.waiting_lessons import JournalOnDisk
from tests.storage.test_waiting_lessons import lesson

async def main():
    journal = JournalOnDisk(Path(sys.argv[1]), 64 * 1024 * 1024)
    for number in range(int(sys.argv[2]), 1_000_000):
        await journal.keep([lesson(number)])
        print(number, flush=True)

asyncio.run(main())
"""


def killed_after_a_while(folder: Path, start: int) -> list[int]:
    """Let a process keep lessons, and kill it; return those that it told to be kept."""
    said = folder / f"said{start}"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), str(start)], stdout=out
        )
    wait_until(lambda: said.read_bytes().count(b"\n") > 10, what="it writes")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return [int(line) for line in said.read_text().split()]


async def test_what_was_told_as_kept_is_there_after_kill_9_of_several_writers(
    tmp_path: Path,
) -> None:
    told = await asyncio.gather(
        *(asyncio.to_thread(killed_after_a_while, tmp_path, start) for start in (0, 1_000))
    )
    learned, _ = await taken(JournalOnDisk(tmp_path, 64 * 1024 * 1024))
    for numbers in told:
        places = [learned.index(one) for one in ids(*numbers)]
        assert places == sorted(places)
    assert len(set(learned)) == len(learned)
