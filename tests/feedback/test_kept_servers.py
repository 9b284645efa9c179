"""What was read and kept, on a real Dovecot and in a Maildir."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.options import AccountOptions
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.test_maildir import QUICK as QUICK_MAILDIR
from tests.feedback.test_maildir import Box, maildir_mailbox
from tests.feedback.world import QUICK, Bench, ServerClock, bench_at, world_at

HOUR = timedelta(hours=1)
KEPT = timedelta(days=QUICK.kept_days)


async def later(bench: Bench, clock: ServerClock, span: timedelta = KEPT) -> None:
    clock.ahead += span
    await bench.poll()


async def test_what_is_read_and_left_on_a_dovecot_is_ham(account: Account) -> None:
    clock = ServerClock()
    async with world_at(*account, clock=clock) as world:
        await world.poll()
        for subject in ("letter", "offer", "bill"):
            world.arrives(subject, Verdict.UNSURE)
        await world.poll()
        await later(world, clock, HOUR)
        for subject in ("letter", "offer"):
            world.owner.flag(subject, "INBOX", "\\Seen")
        await world.poll()
        world.owner.move("offer", "INBOX", "Junk")
        await world.poll()
        await later(world, clock)
        assert world.taught() == [("offer", Label.SPAM), ("letter", Label.HAM)]
        assert world.journal.sources == ["imap", "kept"]


@pytest.mark.parametrize("number", [2, 30])
async def test_a_dovecot_tells_what_one_command_has_marked(account: Account, number: int) -> None:
    clock = ServerClock()
    async with world_at(*account, clock=clock) as world:
        await world.poll()
        for one in range(number):
            world.arrives(f"mail {one}", Verdict.UNSURE)
        await world.poll()
        await later(world, clock, HOUR)
        world.owner.session.select("INBOX")
        world.owner.session.store("1:*", "+FLAGS", "(\\Seen)")
        await world.poll()
        await later(world, clock)
        assert world.taught() == []


async def test_new_mail_that_is_marked_with_old_mail_on_a_dovecot_is_not_read(
    account: Account,
) -> None:
    clock = ServerClock()
    async with world_at(*account, clock=clock) as world:
        world.arrives("old", Verdict.UNSURE)
        await world.poll()
        world.arrives("new", Verdict.UNSURE)
        await world.poll()
        await later(world, clock, HOUR)
        world.owner.session.select("INBOX")
        world.owner.session.store("1:*", "+FLAGS", "(\\Seen)")
        await world.poll()
        await later(world, clock)
        assert world.taught() == []


async def test_what_was_answered_or_filed_on_a_dovecot_is_kept_sooner(account: Account) -> None:
    clock = ServerClock()
    async with world_at(*account, clock=clock) as world:
        world.owner.create("Family")
        await world.poll()
        for subject in ("letter", "photo", "bill"):
            world.arrives(subject, Verdict.UNSURE)
        await world.poll()
        await later(world, clock, HOUR)
        for subject in ("letter", "photo"):
            world.owner.flag(subject, "INBOX", "\\Seen")
            await world.poll()
        world.owner.flag("letter", "INBOX", "\\Answered")
        world.owner.move("photo", "INBOX", "Family")
        await world.poll()
        assert sorted(world.taught()) == [("letter", Label.HAM), ("photo", Label.HAM)]
        assert world.journal.sources == ["kept", "kept"]


async def test_a_quiet_inbox_costs_no_question_about_flags(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("letter", Verdict.UNSURE)
        await world.poll()
        await world.poll()
        asked: list[tuple[object, ...]] = []
        session = world.mailbox._session  # type: ignore[attr-defined] # an ImapMailbox
        marked = session.marked

        def noted(*args: object) -> object:
            asked.append(args)
            return marked(*args)

        session.marked = noted
        for _ in range(3):
            await world.poll()
        assert asked == []
        world.owner.flag("letter", "INBOX", "\\Seen")
        await world.poll()
        assert len(asked) == 2


async def test_what_is_read_and_left_in_a_maildir_is_ham(tmp_path: Path) -> None:
    clock = ServerClock()
    box = Box(tmp_path / "Maildir")
    account = AccountOptions(maildir=box.root, user="alice")
    options = replace(QUICK_MAILDIR, kept_days=QUICK.kept_days)
    async with bench_at(account, options=options, clock=clock, make=maildir_mailbox) as bench:
        await bench.poll()
        bases = [box.deliver(bench.judged(f"mail {one}", Verdict.UNSURE)) for one in range(3)]
        await bench.poll()
        await later(bench, clock, HOUR)
        box.move(bases[0], "")
        await bench.poll()
        await later(bench, clock, HOUR)
        for base in bases[1:]:
            box.move(base, "")  # within a second: a program
        await bench.poll()
        await later(bench, clock)
        assert bench.taught() == [("mail 0", Label.HAM)]
        assert bench.journal.sources == ["kept"]
