"""What people do with their mail on a real Dovecot, and what it teaches."""

import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from spamd.bayes.decision import Verdict
from spamd.errors import StorageUnavailable
from spamd.message.features import extract
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.fakes import FakeMailboxes
from tests.feedback.world import QUICK, mail, only, world_at

WAYS = ["move", "copy_and_remove", "upload_and_remove"]
NOT_SPAM = [Verdict.HAM, Verdict.UNSURE]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verdict", NOT_SPAM)
async def test_e4_a_mail_moved_to_junk_is_spam_whatever_the_client_sends(
    account: Account, way: str, verdict: Verdict
) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("offer", verdict)
        await world.poll()
        getattr(world.owner, way)("offer", "INBOX", "Junk")
        await world.poll()
        assert only(world.taught()) == ("offer", Label.SPAM)


@pytest.mark.parametrize("way", WAYS)
async def test_h2_a_move_quicker_than_the_watcher_proves_nothing(
    account: Account, way: str
) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("offer", Verdict.HAM)
        getattr(world.owner, way)("offer", "INBOX", "Junk")
        await world.poll()
        assert world.taught() == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", ["INBOX", "Archive/2026", "Family"])
async def test_e6_a_mail_rescued_from_junk_to_any_folder_is_ham_once(
    account: Account, way: str, target: str
) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("invoice", Verdict.SPAM, "Junk")
        await world.poll()
        if target != "INBOX":
            world.owner.create(target)
        getattr(world.owner, way)("invoice", "Junk", target)
        await world.poll()
        await world.poll()
        assert only(world.taught()) == ("invoice", Label.HAM)


@pytest.mark.parametrize("way", ["move", "copy_and_remove", "remove"])
async def test_e5_emptying_junk_teaches_nothing(account: Account, way: str) -> None:
    async with world_at(*account) as world:
        await world.poll()
        for number in range(5):
            world.arrives(f"spam {number}", Verdict.SPAM, "Junk")
        await world.poll()
        for number in range(5):
            if way == "remove":
                world.owner.remove(f"spam {number}", "Junk")
            else:
                getattr(world.owner, way)(f"spam {number}", "Junk", "Trash")
            await world.poll()
        assert world.taught() == []


async def test_e5_emptying_junk_while_tagged_spam_comes_to_the_inbox_teaches_nothing(
    account: Account,
) -> None:
    async with world_at(*account) as world:
        world.arrives("old spam", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.remove("old spam", "Junk")
        world.arrives("tagged spam", Verdict.SPAM, "INBOX")
        await world.poll()
        assert world.taught() == []


async def test_e8_what_our_verdict_filed_in_junk_is_no_lesson(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("pills", Verdict.SPAM, "Junk")
        await world.poll()
        assert world.taught() == []


async def test_e8_what_a_rule_filed_in_junk_is_no_lesson_until_a_person_moves_it(
    account: Account,
) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("newsletter", Verdict.UNSURE, "Junk")
        await world.poll()
        before = world.taught()
        world.owner.move("newsletter", "Junk", "INBOX")
        await world.poll()
        assert (before, only(world.taught())) == ([], ("newsletter", Label.HAM))


async def test_e9_spam_that_lies_in_the_inbox_is_never_learned_as_ham(
    account: Account,
) -> None:
    async with world_at(*account) as world:
        world.arrives("missed", Verdict.UNSURE)
        world.arrives("tagged", Verdict.SPAM)
        await world.poll()
        world.owner.flag("missed", "INBOX", "\\Seen")
        world.owner.flag("tagged", "INBOX", "\\Seen")
        await world.poll()
        assert world.taught() == []


async def test_e9_tagged_spam_that_was_read_while_nobody_watched_is_no_ham(
    account: Account,
) -> None:
    server, user = account
    async with world_at(server, user) as world:
        this_morning = datetime.now(UTC) - timedelta(hours=3)
        world.delivered(world.judged("tagged", Verdict.SPAM, scanned=this_morning))
        [file] = (server.maildir(user) / "new").iterdir()
        os.utime(file, (this_morning.timestamp(), this_morning.timestamp()))
        world.owner.flag("tagged", "INBOX", "\\Seen")
        await world.poll()
        assert world.taught() == []


async def test_mail_never_judged_is_a_baseline_at_the_first_poll(account: Account) -> None:
    async with world_at(*account) as world:
        for folder in ("INBOX", "Junk"):
            world.owner.append(folder, mail(f"old mail in {folder}"))
        summary = await world.poll()
        assert (summary.examined, world.taught()) == (2, [])


@pytest.mark.parametrize("way", WAYS)
async def test_mail_never_judged_is_spam_when_it_is_moved_later(account: Account, way: str) -> None:
    async with world_at(*account) as world:
        world.owner.append("INBOX", mail("old mail"))
        await world.poll()
        getattr(world.owner, way)("old mail", "INBOX", "Junk")
        await world.poll()
        assert only(world.taught())[1] is Label.SPAM


async def test_h8_mail_that_somebody_appends_to_junk_is_no_lesson(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.owner.append("Junk", b"From: a@b.test\r\nSubject: from a file\r\n\r\nBuy now\r\n")
        long_ago = datetime.now(UTC) - timedelta(days=2)
        world.arrives("old offer", Verdict.HAM, "Junk", scanned=long_ago)
        await world.poll()
        assert world.taught() == []


async def test_h1_a_mail_at_two_places_at_once_was_not_moved(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("invoice", Verdict.SPAM, "Junk")
        await world.poll()
        for folder in ("Archive", "Family"):
            world.owner.create(folder)
            world.owner.copy("invoice", "Junk", folder)
            await world.poll()
        assert world.taught() == []


async def test_d9_a_mail_moved_there_and_back_and_there_ends_as_the_last_move_says(
    account: Account,
) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("maybe", Verdict.UNSURE)
        await world.poll()
        for old, new in [("INBOX", "Junk"), ("Junk", "INBOX"), ("INBOX", "Junk")]:
            world.owner.move("maybe", old, new)
            await world.poll()
        assert world.taught() == [
            ("maybe", Label.SPAM),
            ("maybe", Label.HAM),
            ("maybe", Label.SPAM),
        ]


async def test_d11_two_mails_with_one_message_id_are_two_mails(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        for body in ("Cheap pills here.", "The minutes of our meeting."):
            world.owner.append("INBOX", mail("same", body=body))
        await world.poll()
        world.owner.move("same", "INBOX", "Junk")
        await world.poll()
        assert world.journal.taught(Label.SPAM) == 2


async def test_d14_a_moved_mail_is_learned_as_it_was_scanned(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        content = mail("offer", identity="id-offer")
        scanned = world.journal.scanned(content, "id-offer", Verdict.HAM)
        changed = (
            content.replace(b"Subject: offer", b"Subject: [LIST] offer") + b"-- \r\nfooter\r\n"
        )
        world.delivered(changed)
        await world.poll()
        world.owner.move("offer", "INBOX", "Junk")
        await world.poll()
        assert list(world.journal.lessons) == [scanned.digest]


async def test_d14_a_delivered_copy_has_the_tokens_of_the_scan(account: Account) -> None:
    async with world_at(*account) as world:
        came = mail("offer")
        world.delivered(b"X-Spam-Id: id-offer\r\n" + came)
        folder = next(f for f in await world.mailbox.folders() if f.name == "INBOX")
        stored = await world.mailbox.content(folder, "1")
        assert stored is not None
        assert stored.count(b"Received: ") == came.count(b"Received: ") + 1
        scanned = extract(came, arriving=True)
        assert extract(stored).digest == scanned.digest
        assert list(extract(stored).texts) == list(scanned.texts)


@pytest.mark.parametrize(
    ("keyword", "verdict", "label"),
    [("$Junk", Verdict.HAM, Label.SPAM), ("$NotJunk", Verdict.SPAM, Label.HAM)],
)
@pytest.mark.parametrize("folder", ["INBOX", "Archive"])
async def test_a_junk_keyword_counts_like_a_move(
    account: Account, keyword: str, verdict: Verdict, label: Label, folder: str
) -> None:
    async with world_at(*account) as world:
        world.owner.create("Archive")
        await world.poll()
        world.arrives("marked", verdict, folder)
        await world.poll()
        world.owner.flag("marked", folder, keyword)
        await world.poll()
        await world.poll()
        assert only(world.taught()) == ("marked", label)


async def test_a_keyword_that_came_along_with_a_move_stays_silent_when_the_database_goes_away(
    account: Account,
) -> None:
    mailboxes = FakeMailboxes()
    one_by_one = replace(QUICK, chunk=1)
    async with world_at(*account, mailboxes=mailboxes, options=one_by_one) as world:
        for subject in ("offer", "bargain"):
            world.arrives(subject, Verdict.SPAM, "Junk")
            world.owner.flag(subject, "Junk", "$Junk")
        await world.poll()
        for subject in ("offer", "bargain"):
            world.owner.move(subject, "Junk", "INBOX")
        for writes in range(5):
            mailboxes.down_after = mailboxes.saves + writes
            with suppress(StorageUnavailable):
                await world.poll()
        assert world.taught() == [("offer", Label.HAM), ("bargain", Label.HAM)]


async def test_a_copy_whose_original_is_marked_as_deleted_is_a_move(account: Account) -> None:
    async with world_at(*account) as world:
        await world.poll()
        world.arrives("invoice", Verdict.SPAM, "Junk")
        await world.poll()
        world.owner.copy("invoice", "Junk", "INBOX")
        world.owner.flag("invoice", "Junk", "\\Deleted")
        await world.poll()
        await world.poll()
        assert only(world.taught()) == ("invoice", Label.HAM)
