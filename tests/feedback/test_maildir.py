"""A Maildir watched: what people's programs do to files, and what that teaches."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Mailbox, MailboxError
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.ports import Clock
from spamd.sample import Label
from tests.feedback.fakes import FakeMailboxes
from tests.feedback.world import Bench, bench_at, mail, only, running
from tests.waiting import until, within_s

QUICK = FeedbackOptions(
    poll_s=5, maildir_poll_s=0.05, retry_first_s=0.05, retry_most_s=0.2, rule_window_s=0,
    kept_days=0,
)  # fmt: skip


def maildir_mailbox(
    account: AccountOptions, options: FeedbackOptions, clock: Clock, mailboxes: FakeMailboxes
) -> Mailbox:
    return MaildirMailbox(account, options, clock, mailboxes)


class Box:
    """A Maildir and what programs do with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._number = 0
        for folder in ("", "Junk", "Trash", "Archive.2026"):
            self.create(folder)

    def create(self, folder: str) -> Path:
        path = self.path(folder)
        for part in ("cur", "new", "tmp"):
            (path / part).mkdir(parents=True, exist_ok=True)
        return path

    def path(self, folder: str) -> Path:
        return self.root / f".{folder}" if folder else self.root

    def deliver(self, content: bytes, folder: str = "") -> str:
        """Put a mail into `new` and return its base name."""
        self._number += 1
        base = f"1800000000.M{self._number}P1.host"
        partial = self.path(folder) / "tmp" / base
        partial.write_bytes(content.replace(b"\r\n", b"\n"))
        partial.rename(self.path(folder) / "new" / base)
        return base

    def find(self, base: str) -> Path:
        return next(
            path
            for pattern in ("new", "cur", ".*/new", ".*/cur")
            for path in self.root.glob(f"{pattern}/{base}*")
        )

    def move(self, base: str, folder: str, flags: str = "S") -> None:
        """Move a mail as a mail program does, into `cur` with flags."""
        self.find(base).rename(self.path(folder) / "cur" / f"{base}:2,{flags}")


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "Maildir")


@pytest.fixture
def watched(box: Box) -> Callable[..., AbstractAsyncContextManager[Bench]]:
    """Open the box's watcher: `watched()`, with what an earlier one remembered if wanted."""

    def at(
        bench: Bench | None = None, **kwargs: type[Exception]
    ) -> AbstractAsyncContextManager[Bench]:
        return bench_at(
            AccountOptions(maildir=box.root, user="alice"),
            options=QUICK,
            mailboxes=bench.mailboxes if bench else None,
            journal=bench.journal if bench else None,
            make=maildir_mailbox,
        )

    return at


Watched = Callable[..., AbstractAsyncContextManager[Bench]]


async def test_a_mail_moved_to_junk_is_spam(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        await bench.poll()
        box.move(base, "Junk")
        await bench.poll()
        await bench.poll()
        assert only(bench.taught()) == ("offer", Label.SPAM)


async def test_a_move_quicker_than_the_watcher_proves_nothing(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        box.move(base, "Junk")
        await bench.poll()
        assert bench.taught() == []


@pytest.mark.parametrize("target", ["", "Archive.2026"])
async def test_e6_a_mail_rescued_from_junk_is_ham(box: Box, watched: Watched, target: str) -> None:
    async with watched() as bench:
        await bench.poll()
        base = box.deliver(bench.judged("invoice", Verdict.SPAM), "Junk")
        await bench.poll()
        box.move(base, target)
        await bench.poll()
        assert only(bench.taught()) == ("invoice", Label.HAM)


async def test_d9_a_mail_moved_there_and_back_and_there_ends_as_the_last_move_says(
    box: Box, watched: Watched
) -> None:
    async with watched() as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        await bench.poll()
        for folder in ("Junk", "", "Junk"):
            box.move(base, folder)
            await bench.poll()
        labels = [label for _, label in bench.taught()]
        assert labels == [Label.SPAM, Label.HAM, Label.SPAM]


async def test_e5_emptying_junk_teaches_nothing(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        moved = box.deliver(bench.judged("pills", Verdict.SPAM), "Junk")
        removed = box.deliver(bench.judged("watches", Verdict.SPAM), "Junk")
        await bench.poll()
        box.move(moved, "Trash")
        box.find(removed).unlink()
        await bench.poll()
        assert bench.taught() == []


async def test_e8_what_we_filed_in_junk_is_no_lesson(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        box.deliver(bench.judged("pills", Verdict.SPAM), "Junk")
        box.deliver(bench.judged("newsletter", Verdict.UNSURE), "Junk")
        await bench.poll()
        assert bench.taught() == []


async def test_old_mail_is_a_baseline(box: Box, watched: Watched) -> None:
    for folder in ("", "Junk", "Archive.2026"):
        box.deliver(mail(f"old mail in {folder}"), folder)
    async with watched() as bench:
        summary = await bench.poll()
        assert (summary.examined, bench.taught()) == (3, [])


async def test_old_mail_that_is_read_during_the_first_poll_stays_a_baseline(
    box: Box, watched: Watched
) -> None:
    base = box.deliver(mail("old"), "Junk")
    async with watched() as bench:
        junk = (await bench.mailbox.folders())[0]
        changes = await bench.mailbox.changes(junk, None, baseline=True)
        assert changes is not None
        while box.find(base).stat().st_ctime_ns // 1000 < changes.start.baseline:
            box.move(base, "Junk", "S")
        [message] = await bench.mailbox.summaries(junk, changes.keys, changes.start)
        assert message.baseline


async def test_a_clock_that_was_set_back_makes_no_mail_late(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        for key, row in bench.mailboxes.rows.items():
            bench.mailboxes.rows[key] = replace(row, time=row.time + timedelta(hours=2))
        box.deliver(bench.judged("tagged", Verdict.SPAM))
        box.deliver(bench.judged("newsletter", Verdict.UNSURE), "Junk")
        await bench.poll()
        assert bench.taught() == []


async def test_a_restart_reads_no_file_twice_and_catches_up(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        await bench.poll()
    box.move(base, "Junk")
    async with watched(bench) as again:
        summary = await again.poll()
    assert (summary.examined, only(bench.taught())) == (1, ("offer", Label.SPAM))


@pytest.mark.parametrize("keyword", ["$Junk", "$junk"])
async def test_a_junk_keyword_counts(box: Box, watched: Watched, keyword: str) -> None:
    (box.root / "dovecot-keywords").write_text(f"0 {keyword}\n1 $NotJunk\n")
    async with watched() as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.UNSURE))
        await bench.poll()
        box.move(base, "", flags="Sa")
        await bench.poll()
        assert only(bench.taught()) == ("offer", Label.SPAM)


async def test_e2_a_renamed_folder_teaches_nothing(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        box.deliver(bench.judged("pills", Verdict.SPAM), "Junk")
        box.deliver(mail("unjudged"), "Junk")
        await bench.poll()
        box.path("Junk").rename(box.path("Old mail"))
        box.create("Junk")
        await bench.poll()
        await bench.poll()
        assert bench.taught() == []


async def test_e13_folder_names_are_shown_as_people_see_them(box: Box, watched: Watched) -> None:
    box.create("Entw&APw-rfe").rename(box.path("Pl&AOQ-ne"))
    async with watched() as bench:
        names = [folder.name for folder in await bench.mailbox.folders()]
    assert "Pläne" in names


async def test_e20_a_file_renamed_while_we_look_is_read(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        await bench.poll()
        box.deliver(bench.judged("offer", Verdict.HAM))
        await bench.poll()
        base = box.deliver(bench.judged("second", Verdict.HAM))
        folder = next(f for f in await bench.mailbox.folders() if f.name == "INBOX")
        cursor = bench.mailboxes.rows[bench.mailbox.key, "INBOX"]
        changes = await bench.mailbox.changes(folder, cursor, baseline=False)
        assert changes is not None
        box.move(base, "", flags="RS")
        messages = await bench.mailbox.summaries(folder, changes.keys, cursor)
        assert [message.key for message in messages] == [base]
        assert await bench.mailbox.content(folder, base) is not None


async def test_e20_nothing_is_changed_by_reading(box: Box, watched: Watched) -> None:
    base = box.deliver(mail("old"), "Junk")
    os.utime(box.find(base), (1_600_000_000, 1_600_000_000))
    before = {path: path.lstat() for path in sorted(box.root.rglob("*"))}
    async with watched() as bench:
        await bench.poll()
        await bench.poll()
    after = {path: path.lstat() for path in sorted(box.root.rglob("*"))}
    assert [(path, s.st_mtime_ns, s.st_mode) for path, s in before.items()] == [
        (path, s.st_mtime_ns, s.st_mode) for path, s in after.items()
    ]


async def test_e20_files_in_tmp_are_not_mail(box: Box, watched: Watched) -> None:
    (box.path("Junk") / "tmp" / "half").write_bytes(mail("half"))
    (box.path("Junk") / "cur" / ".nfs0001").write_bytes(mail("gone"))
    async with watched() as bench:
        assert (await bench.poll()).examined == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_e20_what_can_not_be_read_is_said_and_counted() -> None:
    program = (
        "import asyncio, os, sys\n"
        "from tests.feedback.test_maildir import looked_at\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(asyncio.run(looked_at(sys.argv[1])))\n"
    )
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        box = Box(Path(folder) / "Maildir")
        box.create("Closed").chmod(0)
        box.find(box.deliver(mail("unreadable"), "Archive.2026")).chmod(0)
        box.deliver(mail("fine"), "Archive.2026")
        done = subprocess.run(
            [sys.executable, "-c", program, str(box.root)],
            cwd=Path(__file__).resolve().parents[2],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert "2 examined" in done.stdout, done.stderr
    assert "1 parked" in done.stdout
    assert "Closed" in done.stdout
    assert "Permission denied" in done.stdout


async def looked_at(root: str) -> str:
    """Return what a look at a Maildir says, for a process of another user."""
    account = AccountOptions(maildir=Path(root), user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        summary = await bench.poll()
        return f"{summary}; {summary.faults}"


async def test_a_folder_that_is_no_maildir_is_said(tmp_path: Path) -> None:
    account = AccountOptions(maildir=tmp_path / "nowhere", user="alice")
    with pytest.raises(MailboxError, match="is no Maildir"):
        async with bench_at(account, options=QUICK, make=maildir_mailbox):
            pass


async def test_a_nested_layout_is_read_too(tmp_path: Path) -> None:
    for folder in (".", "Junk", "Work/2026"):
        for part in ("cur", "new", "tmp"):
            (tmp_path / folder / part).mkdir(parents=True)
    account = AccountOptions(maildir=tmp_path, user="alice")
    async with bench_at(account, options=QUICK, make=maildir_mailbox) as bench:
        assert {folder.name for folder in await bench.mailbox.folders()} == {
            "INBOX",
            "Junk",
            "Work/2026",
        }


async def test_a_move_is_a_lesson_within_a_second(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        base = box.deliver(bench.judged("offer", Verdict.HAM))
        async with running(bench):
            await until(
                lambda: any(name == "account.examined" for name, _ in bench.observer.events)
            )
            started = time.monotonic()
            box.move(base, "Junk")
            await until(bench.taught)
            assert time.monotonic() - started < min(within_s(1), QUICK.poll_s)
        assert only(bench.taught()) == ("offer", Label.SPAM)


async def test_e21_bytes_that_are_no_text_pass(box: Box, watched: Watched) -> None:
    async with watched() as bench:
        base = box.deliver(b"From: \xe2\xff\nSubject: raw\n\nbody \x00 \xe2\x28\xa1\n")
        (box.root / "cur" / os.fsdecode(b"1800000000.\xff\xfe.host:2,S")).write_bytes(mail("x"))
        await bench.poll()
        box.move(base, "Junk")
        await bench.poll()
        assert only(bench.taught())[1] is Label.SPAM


@pytest.mark.parametrize("seed", range(8))
async def test_k4_of_random_histories_of_a_maildir_only_what_people_did_is_learned(
    box: Box, watched: Watched, seed: int
) -> None:
    dice = random.Random(seed)
    meant: set[tuple[str, Label]] = set()
    async with watched() as bench:
        await bench.poll()
        for number in range(25):
            verdict = dice.choice([Verdict.HAM, Verdict.UNSURE])
            where = dice.choice(["", "", "Junk", "Archive.2026"])
            base = box.deliver(bench.judged(f"mail {number}", verdict), where)
            act = dice.choice(["move", "move", "quick", "copy", "remove", "trash", "flag"])
            if act != "quick":
                await bench.poll()
            source, target = box.find(base), "" if where == "Junk" else "Junk"
            if act in {"move", "quick"}:
                box.move(base, target)
            elif act == "copy":
                (box.path(target) / "cur" / f"{base}:2,S").hardlink_to(source)
            elif act == "remove":
                source.unlink()
            elif act == "trash":
                box.move(base, "Trash")
            else:
                box.move(base, where, flags="FS")
            if act == "move":
                meant.add((f"mail {number}", Label.HAM if where == "Junk" else Label.SPAM))
            await bench.poll()
            if act == "copy" and dice.random() < 0.5:
                source.unlink()
                await bench.poll()
    assert set(bench.taught()) == meant
