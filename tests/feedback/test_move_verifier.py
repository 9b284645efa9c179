"""Only people teach: what servers, rules, views and strangers do to mail is no lesson."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.service import Feedback
from spamd.feedback.teacher import Teacher
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.lesson_rule import Why
from spamd.message.features import extract
from spamd.sample import Label
from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import (
    EveryKept,
    FakeAccounts,
    FakeHeld,
    FakeJournal,
    FakeLeases,
    FakeMailboxes,
)
from tests.feedback.histories import Plan
from tests.feedback.model import Box, Copy, Habits, Mail
from tests.feedback.people import OPTIONS
from tests.feedback.player import Player
from tests.feedback.wire import Spoil, fetched, honest, spoken
from tests.feedback.world import bench_at

PLAIN = Plan(
    seed=0,
    views=(),
    keyless=frozenset(),
    restless=frozenset(),
    next_uid=True,
    modseq=True,
    forgets=0,
    step=1,
    steps=(),
)


@dataclass
class Scene:
    """An account of the model whose watcher talks to it in process."""

    player: Player

    async def poll(self) -> None:
        self.player.clock.seconds += 60
        await self.player.watcher.poll()

    def come(self, *subjects: int, folder: str = "INBOX", verdict: Verdict | None = None) -> None:
        for subject in subjects:
            mail = self.player.new(subject, verdict, self.player.server.now())
            self.box(folder).add(Copy(mail, self.player.server.now()))
        self.player.server.changes += 1

    def box(self, name: str) -> Box:
        return self.player.server.boxes[name]

    def move(self, subject: int, old: str, new: str) -> None:
        box = self.box(old)
        uid = next(uid for uid, copy in box.copies.items() if copy.mail.number == subject)
        self.box(new).add(box.copies.pop(uid))
        self.player.server.changes += 1

    def taught(self) -> list[tuple[int, Label]]:
        numbers = self.player.numbers
        return [(numbers[digest], label) for digest, label in self.player.journal.history]


@asynccontextmanager
async def scene(plan: Plan = PLAIN, *, steps: int = 1) -> AsyncIterator[Scene]:
    one = Scene(Player(replace(plan, step=steps)))
    await one.player.mailbox.open()
    yield one


VIEWS = ["Toate", "All Mail", "Unread", "Starred", "Recent spam"]


@pytest.mark.parametrize("view", VIEWS)
async def test_h1_what_a_view_shows_of_mail_that_a_rule_filed_teaches_nothing(view: str) -> None:
    async with scene(replace(PLAIN, views=(view,))) as here:
        here.come(1, 2, 3, verdict=Verdict.HAM)
        await here.poll()
        here.come(4, 5, folder="Junk", verdict=Verdict.UNSURE)
        for copy in here.box("Junk").copies.values():
            copy.flags.add("\\Flagged")
        await here.poll()
        for box in (here.box("Junk"), here.box("INBOX")):
            for copy in box.copies.values():
                copy.flags ^= {"\\Seen", "\\Flagged"}
        here.player.server.changes += 1
        await here.poll()
        here.move(4, "Junk", "Afval")
        await here.poll()
        assert here.taught() == []


@pytest.mark.parametrize("view", VIEWS)
async def test_h1_moves_are_lessons_beside_a_view_once_it_has_shown_what_it_is(view: str) -> None:
    async with scene(replace(PLAIN, views=(view,))) as here:
        here.come(1, 2, 3, 4, 5, 6, verdict=Verdict.HAM)
        here.come(7, 8, folder="Junk", verdict=Verdict.SPAM)
        await here.poll()
        here.move(1, "INBOX", "Junk")
        here.move(7, "Junk", "INBOX")
        await here.poll()
        assert sorted(here.taught()) == [(1, Label.SPAM), (7, Label.HAM)]


@pytest.mark.parametrize("steps", [1, 10, 100])
@pytest.mark.parametrize("next_uid", [True, False])
async def test_h2_k4_a_gap_in_the_uids_proves_nothing(steps: int, *, next_uid: bool) -> None:
    async with scene(replace(PLAIN, next_uid=next_uid), steps=steps) as here:
        here.come(1, verdict=Verdict.HAM)
        await here.poll()
        for number in range(10, 30):
            here.come(number, verdict=Verdict.HAM)
            here.move(number, "INBOX", "Afval")
            here.come(100 + number, folder="Junk", verdict=Verdict.HAM)
            await here.poll()
        assert here.taught() == []
        assert here.player.watcher.reader.whole


@pytest.mark.parametrize("told", [False, True])
async def test_h1_spam_thrown_into_a_trash_of_an_unknown_name_is_no_ham(*, told: bool) -> None:
    async with scene(replace(PLAIN, told=told)) as here:
        here.come(1, 2, folder="Junk", verdict=Verdict.SPAM)
        here.come(3, 4, verdict=Verdict.SPAM)
        await here.poll()
        for number, folder in ((1, "Junk"), (3, "INBOX")):
            here.move(number, folder, "Afval")
        await here.poll()
        assert here.taught() == []
        for number, folder in ((2, "Junk"), (4, "INBOX")):
            here.move(number, folder, "Work")
        await here.poll()
        assert sorted(here.taught()) == ([(2, Label.HAM), (4, Label.HAM)] if told else [])


async def test_k4_a_mark_that_nobody_looked_for_when_it_was_set_is_no_lesson() -> None:
    async with scene(replace(PLAIN, modseq=False)) as here:
        await here.poll()
        here.come(1, 2, folder="Work")
        here.player.clock.seconds -= 60
        await here.poll()
        copies = here.box("Work").copies
        next(iter(copies.values())).flags.add("$Junk")  # a rule of a mail program
        await here.poll()
        await here.poll()
        here.move(2, "Work", "Afval")
        await here.poll()
        assert here.taught() == []


async def test_mail_that_lay_long_before_a_restart_was_not_moved_in_haste() -> None:
    async with scene() as here:
        here.come(1, folder="Work")
        here.player.clock.seconds -= 59
        await here.poll()
        here.player.begin()
        await here.player.mailbox.open()
        await here.poll()
        here.move(1, "Work", "Junk")
        await here.poll()
        assert here.taught() == [(1, Label.SPAM)]


async def test_h8_a_wave_from_outside_teaches_nothing_and_is_told() -> None:
    async with scene() as here:
        await here.poll()
        for number in range(40):
            mail = here.player.new(number, None, here.player.server.now() - 10**6)
            here.box("Junk").add(Copy(mail, here.player.server.now() - 10**6))
        here.player.clock.seconds += 60
        summary = await here.player.watcher.poll()
        events = [event for event in here.player.observer.events if event[0] == "import.noticed"]
        assert here.taught() == []
        assert summary.skipped[Why.OUTSIDE] == 40
        assert [details["mails"] for _, details in events] == [40]


async def test_a_rule_of_a_mail_program_that_files_at_once_is_no_person() -> None:
    async with scene() as here:
        await here.poll()
        here.come(1, 2, verdict=Verdict.HAM)
        await here.player.watcher.poll()
        here.move(1, "INBOX", "Junk")
        await here.poll()
        assert here.taught() == []
        here.move(2, "INBOX", "Junk")
        await here.poll()
        assert here.taught() == [(2, Label.SPAM)]


# ── answers of servers ──────────────────────────────────────────────────────────────────────────


async def moved_over_the_wire(spoil: Spoil, habits: Habits | None = None) -> Scene:
    """Move mail 1 of five to Junk on a server whose answers are spoiled; return what came of it."""
    plan = PLAIN if habits is None else replace(PLAIN, keyless=habits.keyless)
    here = Scene(Player(plan))
    player = here.player
    with spoken(player.server, spoil) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="a", password="x"
        )
        async with bench_at(
            account, options=replace(OPTIONS, timeout_s=5), journal=player.journal,
            mailboxes=player.mailboxes, clock=player.clock,
        ) as bench:  # fmt: skip
            player.observer = bench.observer
            here.come(1, 2, 3, 4, 5, verdict=Verdict.HAM)
            for change in (None, 1):
                player.clock.seconds += 60
                if change:
                    here.move(change, "INBOX", "Junk")
                for _ in range(5):
                    await bench.watcher.poll()
            await asyncio.sleep(0)
    return here


def without_every_second(command: str, lines: list[str]) -> list[str]:
    odd = [line for place, line in enumerate(lines) if place % 2 == 0 or len(lines) == 1]
    return odd if command.startswith("UID FETCH") else lines


def twice(command: str, lines: list[str]) -> list[str]:
    return lines * 2 if command.startswith("UID FETCH") else lines


def with_rows_of_nobody(command: str, lines: list[str]) -> list[str]:
    nobody = [f"* {number} FETCH (FLAGS ($Junk))" for number in (1, 2, 3, 4, 5, 6)]
    return [*nobody, *lines, *nobody] if command.startswith(("UID", "EXAMINE")) else lines


def with_another_number(command: str, lines: list[str]) -> list[str]:
    """Number the rows as they were before an EXPUNGE."""
    if not command.startswith("UID FETCH"):
        return lines
    return [line.replace(f"* {n}", f"* {n + 1}", 1) for n, line in enumerate(lines, start=1)]


@pytest.mark.parametrize(
    "spoil",
    [honest, without_every_second, twice, with_rows_of_nobody, with_another_number],
)
async def test_h3_rows_left_out_doubled_or_of_nobody_change_no_lesson(spoil: Spoil) -> None:
    here = await moved_over_the_wire(spoil)
    assert here.taught() == [(1, Label.SPAM)]


async def test_h3_rows_of_one_mail_that_differ_are_believed_neither() -> None:
    other = Copy(Mail(number=9, content=b"Subject: other\r\n\r\nother\r\n"), date=1_800_000_000)

    def torn(command: str, lines: list[str]) -> list[str]:
        return [fetched(1, 1, other), *lines] if command.startswith("UID FETCH") else lines

    here = await moved_over_the_wire(torn)
    assert here.taught() == []
    assert {row.uid for row in here.player.mailboxes.parked_rows.values()} == {"1"}


@pytest.mark.parametrize("value", ["0", "18446744073709551617", "-3", "NaN", "abc", "99999999999"])
@pytest.mark.parametrize("folder", ["INBOX", "Junk"])
async def test_h4_an_odd_uidvalidity_is_warned_of_once_and_moves_teach(
    value: str, folder: str
) -> None:
    def odd(command: str, lines: list[str]) -> list[str]:
        if folder not in command or not command.startswith(("STATUS", "EXAMINE")):
            return lines
        return [
            line.replace("UIDVALIDITY 100", f"UIDVALIDITY {value}").replace(
                "UIDVALIDITY 400", f"UIDVALIDITY {value}"
            )
            for line in lines
        ]

    here = await moved_over_the_wire(odd)
    assert here.taught() == [(1, Label.SPAM)]
    faults = [str(error) for _, error in here.player.observer.faults]
    assert len(faults) == 1
    assert folder in faults[0]


async def test_h4_an_account_with_odd_answers_does_not_stop_the_others() -> None:
    clock = FakeClock()
    context = _context(clock)

    def unreadable(command: str, lines: list[str]) -> list[str]:
        return ["* STATUS ((((", *lines] if command.startswith("STATUS") else lines

    odd, fine = Player(PLAIN), Player(PLAIN)
    with spoken(odd.server, unreadable) as first, spoken(fine.server) as second:
        accounts = tuple(
            AccountOptions(host="127.0.0.1", port=port, tls=Tls.NONE, user="a", password="x")
            for port in (first.port, second.port)
        )
        options = FeedbackOptions(accounts=accounts, timeout_s=5)
        await Feedback(options, context, FakeLeases(clock), "one", FakeAccounts()).once()
        assert any("EXAMINE" in line for line in second.lines)


def _context(clock: FakeClock) -> WatcherContext:
    journal, mailboxes = FakeJournal(clock), FakeMailboxes()
    teacher = Teacher(journal, FakeHeld(), clock, FeedbackOptions(), FakeObserver())
    return WatcherContext(
        mailboxes=mailboxes,
        kept=mailboxes,
        choice=EveryKept(mailboxes),
        history=journal,
        teacher=teacher,
        extract=extract,
        clock=clock,
        observer=FakeObserver(),
    )


@pytest.mark.parametrize(
    "line",
    [
        '* LIST () "/" "Entw\xc3\xbcrfe neu"',
        '* LIST () "/" {13}\r\nEntw\xc3\xbcrfe neu',
        '* LIST () "/" "&broken"',
        '* LIST () "/" "&//////-"',
        '* LIST () "/" Entw&APw-rfe',
        '* LIST () NIL ""',
        "* LIST nonsense",
    ],
)
async def test_h5_odd_folder_names_are_read_or_left_alone_with_one_warning(line: str) -> None:
    def odd(command: str, lines: list[str]) -> list[str]:
        return [line, *lines] if command.startswith("LIST") else lines

    here = await moved_over_the_wire(odd)
    assert here.taught() == [(1, Label.SPAM)]
    assert len(here.player.observer.faults) <= 1
