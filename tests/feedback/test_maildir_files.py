"""A Maildir belongs to somebody who may have put anything there."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes import maildir_files
from spamd.feedback.mailboxes.blocking_threads import BlockingThreads, nothing
from spamd.feedback.mailboxes.maildir_files import LEVELS, Files
from spamd.feedback.options import AccountOptions
from spamd.sample import Label
from tests.feedback.test_maildir import QUICK, Box, maildir_mailbox
from tests.feedback.world import bench_at, mail, only, running
from tests.waiting import until

Trap = Callable[[Path], object]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


TRAPS: dict[str, Trap] = {
    "fifo": os.mkfifo,
    "socket": _socket,
    "link to a file": lambda path: path.symlink_to("/etc/passwd"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path: path.symlink_to("/etc"),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
}


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "Maildir")


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("where", ["cur/1.trap:2,S", "new/1.trap", ".Junk/cur/1.trap:2,S"])
async def test_k8_what_is_no_regular_file_is_no_mail(box: Box, trap: str, where: str) -> None:
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        await bench.poll()
        TRAPS[trap](box.root / where)
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        async with asyncio.timeout(10):
            await bench.poll()
            box.move(base, "Junk")
            summary = await bench.poll()
        assert only(bench.taught()) == ("offer", Label.SPAM)
        assert (summary.examined, summary.parked) == (1, 0)
        assert bench.observer.faults == []


@pytest.mark.parametrize("part", ["new", "cur"])
@pytest.mark.parametrize("folder", ["", "Junk"])
async def test_k8_a_folder_that_is_a_link_is_not_gone_into(
    box: Box, tmp_path: Path, folder: str, part: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1.secret:2,S").write_bytes(mail("secret"))
    (box.path(folder) / part).rmdir()
    (box.path(folder) / part).symlink_to(elsewhere)
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        summary = await bench.poll()
    assert summary.examined == 0
    assert len(summary.faults) == 1
    assert "can't be read" in summary.faults[0]


def test_k8_a_linked_sub_folder_is_no_folder(box: Box, tmp_path: Path) -> None:
    other = Box(tmp_path / "other")
    (box.root / ".Linked").symlink_to(other.root)
    names = {folder.name for folder in Files(box.root).folders()}
    assert names == {"INBOX", "Junk", "Trash", "Archive.2026"}


def test_k8_a_maildir_whose_own_path_is_a_link_is_read(box: Box, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(box.root)
    base = box.deliver(mail("offer"))
    files = Files(link)
    assert list(files.names(".")) == [f"new/{base}"]
    with files.open(".", f"new/{base}") as file:
        assert b"offer" in file.read()


@pytest.mark.parametrize("trap", TRAPS)
def test_k8_a_mail_that_becomes_something_else_before_it_is_opened_is_not_read(
    box: Box, trap: str
) -> None:
    files = Files(box.root)
    base = box.deliver(mail("offer"))
    (box.root / "new" / base).unlink()
    TRAPS[trap](box.root / "new" / base)
    with pytest.raises(OSError, match=base):
        files.open(".", f"new/{base}")


async def test_k8_a_hard_link_is_a_mail_as_any_other(box: Box) -> None:
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        (box.root / ".Archive.2026/cur/2.copy:2,S").hardlink_to(box.root / "new" / base)
        assert (await bench.poll()).examined == 2


async def test_k8_of_a_huge_file_only_the_start_is_read(box: Box) -> None:
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        huge = box.root / "cur/1.huge:2,S"
        huge.write_bytes(mail("huge"))
        os.truncate(huge, 1 << 40)  # a terabyte, with nothing in it
        folder = next(f for f in await bench.mailbox.folders() if f.name == "INBOX")
        changes = await bench.mailbox.changes(folder, None, baseline=True)
        assert changes is not None
        content = await bench.mailbox.content(folder, changes.keys[0])
    assert content is not None
    assert len(content) == QUICK.max_message_bytes


async def test_k8_a_folder_of_more_files_than_are_read_is_named(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maildir_files, "MOST_MAILS", 10)
    for number in range(11):
        box.deliver(mail(f"number {number}"), "Archive.2026")
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        summary = await bench.poll()
    assert len(summary.faults) == 1
    assert "it holds more than 10 files" in summary.faults[0]


def test_k6_nested_folders_are_found_as_deep_as_mail_servers_go(tmp_path: Path) -> None:
    path = tmp_path / "Maildir"
    (path / "cur").mkdir(parents=True)
    for depth in range(LEVELS + 20):
        path = path / f"x{depth}"
        (path / "cur").mkdir(parents=True)
    found = Files(tmp_path / "Maildir").folders()
    assert len(found) == LEVELS + 1


@pytest.mark.parametrize("dotted", [True, False])
def test_k6_finding_folders_takes_linear_time(tmp_path: Path, *, dotted: bool) -> None:
    def cpu_s(count: int) -> float:
        root = tmp_path / f"{count}"
        for number in range(count):
            name = f".a{number}" if dotted else f"a{number % 10}/b{number}"
            (root / name / "cur").mkdir(parents=True)
        taken = []
        for _ in range(3):
            started = time.process_time()
            assert len(Files(root).folders()) == count + 1
            taken.append(time.process_time() - started)
        return min(taken)

    assert cpu_s(2000) < 8 * cpu_s(500) + 0.05


async def test_k8_a_call_that_never_returns_holds_up_no_end() -> None:
    threads = BlockingThreads("test", 1)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang() -> None:
        loop.call_soon_threadsafe(started.set)
        time.sleep(600)

    task = asyncio.create_task(threads.call(nothing, hang))
    await started.wait()
    task.cancel()
    _, pending = await asyncio.wait([task], timeout=10)
    assert not pending


async def test_k8_a_watcher_ends_while_its_files_hang(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "names", lambda *_: time.sleep(600))
    monkeypatch.setattr("spamd.feedback.mailboxes.blocking_threads.LEAVE_S", 0.2)
    account = AccountOptions(maildir=box.root, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench, running(bench):
        await until(lambda: any(name == "account.opened" for name, _ in bench.observer.events))


HANGING = """
import asyncio, signal, time
from spamd.feedback.mailboxes.blocking_threads import BlockingThreads, nothing

async def main():
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    task = asyncio.create_task(BlockingThreads("hangs", 1).call(nothing, time.sleep, 600))
    await asyncio.sleep(0)
    print("ready", flush=True)
    await stopped.wait()
    task.cancel()
    await asyncio.wait([task])

asyncio.run(main())
"""


def test_k8_a_process_ends_at_sigterm_while_a_call_hangs() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
