"""What a person has read and kept is ham; what a program has marked is nothing."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.ports import KeptState
from spamd.sample import Label
from tests.feedback.histories import Plan, Step
from tests.feedback.model import Copy
from tests.feedback.people import OPTIONS
from tests.feedback.player import Player
from tests.feedback.readers import KEPT_S
from tests.feedback.test_move_verifier import PLAIN, Scene

HAM, UNSURE, SPAM = Verdict.HAM, Verdict.UNSURE, Verdict.SPAM


@dataclass
class Room(Scene):
    """An account of the model, whose owner reads."""

    def do(self, act: str, number: int = 0, a: str = "INBOX", b: str = "INBOX", n: int = 0) -> None:
        self.player._happen(Step(act, number, a=a, b=b, n=n))

    def copy(self, number: int) -> Copy:
        found = self.player._find(number)
        assert found is not None
        return found[2]

    async def read(self, *numbers: int) -> None:
        """Read mails one by one, a poll after each."""
        for number in numbers:
            self.do("read", number)
            await self.poll()

    async def later(self, seconds: float = KEPT_S) -> None:
        self.player.clock.seconds += seconds
        await self.poll()

    def kept(self) -> list[int]:
        """Return the mails that were taught as kept, whoever taught them otherwise since."""
        journal = self.player.journal
        pairs = zip(journal.history, journal.sources, strict=True)
        return [self.player.numbers[digest] for (digest, _), by in pairs if by == "kept"]

    def states(self) -> list[KeptState]:
        return [row.state for row in self.player.mailboxes.kept.values()]


@asynccontextmanager
async def room(plan: Plan = PLAIN, *, old: int = 0) -> AsyncIterator[Room]:
    """Open an account that was polled once, with `old` unread mails in it."""
    one = Room(Player(plan))
    one.come(*range(900, 900 + old), verdict=HAM)
    await one.player.mailbox.open()
    await one.poll()
    yield one


@asynccontextmanager
async def with_mail(
    *numbers: int, verdict: Verdict | None = UNSURE, plan: Plan = PLAIN, old: int = 0
) -> AsyncIterator[Room]:
    """Open an account to which mail came since, and lay unread through some polls."""
    async with room(plan, old=old) as here:
        here.come(*numbers, verdict=verdict)
        await here.poll()
        await here.later(1000)
        yield here


# ── what is kept ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("modseq", [True, False])
@pytest.mark.parametrize("verdict", [HAM, UNSURE])
async def test_what_its_owner_read_and_left_in_the_inbox_is_ham(
    verdict: Verdict, *, modseq: bool
) -> None:
    async with with_mail(1, 2, verdict=verdict, plan=replace(PLAIN, modseq=modseq)) as here:
        await here.read(1)
        await here.later(KEPT_S - 200)
        assert here.taught() == []
        await here.later(300)
        assert here.taught() == [(1, Label.HAM)]
        assert here.kept() == [1]
        await here.later()
        assert here.kept() == [1]


@pytest.mark.parametrize("view", ["Toate", "All Mail", "Unread"])
async def test_a_view_that_shows_a_mail_as_well_changes_nothing(view: str) -> None:
    async with with_mail(1, 2, plan=replace(PLAIN, views=(view,))) as here:
        await here.read(1)
        await here.later()
        assert here.kept() == [1]


async def test_mails_read_one_after_the_other_between_two_polls_count_on_a_server_with_condstore(
) -> None:  # fmt: skip
    async with with_mail(1, 2, 3, 4) as here:
        for number in (1, 2, 3):
            here.do("read", number)
        await here.poll()
        await here.later()
        assert here.kept() == [1, 2, 3]


async def test_a_restart_forgets_nothing() -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        here.player.begin()
        await here.player.mailbox.open()
        await here.read(2)
        await here.later()
        assert sorted(here.kept()) == [1, 2]


@pytest.mark.parametrize("act", ["answer", "flag"])
async def test_what_was_answered_or_flagged_is_kept_sooner(act: str) -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        here.do(act, 1)
        await here.poll()
        assert here.kept() == [1]


async def test_what_was_read_and_then_filed_is_kept_sooner() -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        here.do("move", 1, b="Work")
        await here.poll()
        assert here.kept() == [1]


async def test_a_later_move_replaces_the_lesson() -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        await here.later()
        here.do("move", 1, b="Junk")
        await here.poll()
        assert here.taught() == [(1, Label.HAM), (1, Label.SPAM)]
        ((label, source, _),) = here.player.journal.lessons.values()
        assert (label, source) == (Label.SPAM, "imap")


# ── what is not ─────────────────────────────────────────────────────────────────────────────────


async def nothing_is_taught(here: Room) -> None:
    await here.poll()
    await here.later()
    await here.later()
    assert here.taught() == []


async def test_unread_mail_teaches_nothing() -> None:
    async with with_mail(1, 2) as here:
        await nothing_is_taught(here)
        assert here.states() == [KeptState.UNREAD] * 2


@pytest.mark.parametrize("modseq", [True, False])
@pytest.mark.parametrize("number", [2, 3, 50])
async def test_a_folder_that_is_marked_as_read_at_once_teaches_nothing(
    number: int, *, modseq: bool
) -> None:
    async with with_mail(*range(number), plan=replace(PLAIN, modseq=modseq)) as here:
        here.do("readall")
        await nothing_is_taught(here)


@pytest.mark.parametrize("modseq", [True, False])
async def test_one_new_mail_that_is_marked_together_with_old_mail_teaches_nothing(
    *, modseq: bool
) -> None:
    async with with_mail(1, plan=replace(PLAIN, modseq=modseq), old=1) as here:
        here.do("readall")
        await nothing_is_taught(here)


async def test_a_program_that_marks_one_mail_after_the_other_teaches_nothing() -> None:
    async with with_mail(*range(9)) as here:
        here.do("readrun")
        await nothing_is_taught(here)


async def test_a_program_that_is_at_it_when_we_poll_teaches_nothing() -> None:
    async with with_mail(*range(20)) as here:
        for number in range(19):
            here.do("read", number)
            if number in {2, 16}:
                await here.poll()
        await nothing_is_taught(here)


@pytest.mark.parametrize("modseq", [True, False])
async def test_without_condstore_two_mails_read_between_two_polls_teach_nothing(
    *, modseq: bool
) -> None:
    async with with_mail(1, 2, plan=replace(PLAIN, modseq=modseq)) as here:
        here.do("read", 1)
        here.do("read", 2)
        await here.poll()
        await here.later()
        assert here.kept() == ([1, 2] if modseq else [])


async def test_without_condstore_what_was_read_while_we_were_away_teaches_nothing() -> None:
    async with with_mail(1, 2, plan=replace(PLAIN, modseq=False)) as here:
        here.do("read", 1)
        here.player.begin()
        await here.player.mailbox.open()
        await nothing_is_taught(here)


async def test_what_a_rule_marks_at_delivery_or_right_after_teaches_nothing() -> None:
    async with room() as here:
        here.come(1, 2, verdict=UNSURE)
        here.do("programread", 1)
        here.player.clock.seconds += 1
        await here.player.watcher.poll()
        here.do("programread", 2)
        assert "\\Seen" in here.copy(2).flags
        await nothing_is_taught(here)


async def test_an_account_that_a_program_reads_within_minutes_teaches_nothing() -> None:
    async with room() as here:
        for number in range(12):
            here.come(number, verdict=UNSURE)
            await here.poll()
            await here.read(number)
            await here.poll()
        await nothing_is_taught(here)
        here.come(20, verdict=UNSURE)
        await here.poll()
        await here.later(1000)
        await here.read(20)
        await here.later()
        assert 20 in here.kept()  # some mail lies unread after all: a person


async def test_what_lay_there_before_we_looked_teaches_nothing() -> None:
    async with room(old=3) as here:
        await here.later(1000)
        await here.read(900, 901)
        await nothing_is_taught(here)


@pytest.mark.parametrize("verdict", [SPAM, None])
async def test_what_we_called_spam_or_never_judged_teaches_nothing(verdict: Verdict | None) -> None:
    async with with_mail(1, 2, verdict=verdict) as here:
        await here.read(1)
        here.do("answer", 2)
        await nothing_is_taught(here)


async def test_what_a_rule_filed_teaches_nothing_though_it_is_read() -> None:
    async with room() as here:
        here.come(1, 2, folder="Work", verdict=UNSURE)
        here.come(3, folder="Junk", verdict=UNSURE)
        await here.poll()
        await here.later(1000)
        await here.read(1)
        here.do("read", 3)
        here.do("move", 2, b="Privat")
        await nothing_is_taught(here)


@pytest.mark.parametrize("folder", ["Work", "Afval"])
async def test_what_is_filed_or_thrown_away_unread_teaches_nothing(folder: str) -> None:
    async with with_mail(1, 2) as here:
        here.do("move", 1, b=folder)
        await nothing_is_taught(here)


async def test_many_mails_that_are_filed_at_once_teach_nothing() -> None:
    async with with_mail(*range(8)) as here:
        await here.read(*range(8))
        for number in range(8):
            here.do("move", number, b="Work")
        await nothing_is_taught(here)


Act = Callable[[Room], None]


@pytest.mark.parametrize(
    "act",
    [
        lambda here: here.do("remove", 1),
        lambda here: here.do("trash", 1),
        lambda here: here.copy(1).flags.add("\\Deleted"),
        lambda here: here.do("flag", 1, n=1),
        lambda here: here.do("resync"),
        lambda here: here.do("rename", a="INBOX"),
        lambda here: here.do("copy", 1, b="Junk"),
        lambda here: here.do("copy", 1, b="Afval"),
    ],
    ids=["removed", "thrown", "deleted", "unread", "renumbered", "renamed", "junk", "trash"],
)
@pytest.mark.parametrize("polled", [True, False])
async def test_what_did_not_stay_as_it_was_teaches_nothing(act: Act, *, polled: bool) -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        act(here)
        here.player.server.changes += 1
        if polled:
            await here.poll()
        await nothing_is_taught(here)


async def test_what_was_moved_to_junk_in_time_is_spam_and_nothing_else() -> None:
    async with with_mail(1, 2) as here:
        await here.read(1)
        here.do("move", 1, b="Junk")
        await here.poll()
        await here.later()
        assert here.taught() == [(1, Label.SPAM)]


async def test_nothing_is_kept_when_that_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    off = replace(OPTIONS, kept_days=0)
    monkeypatch.setattr("tests.feedback.player.OPTIONS", off)
    async with with_mail(1, 2) as here:
        await here.read(1)
        await nothing_is_taught(here)
        assert here.states() == []
