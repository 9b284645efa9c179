"""The first lessons, from mail that people have sorted already."""

from pathlib import Path

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.bootstrap import Bootstrap, BootstrapOptions
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Mailbox
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.message.features import extract
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.fakes import FakeJournal, FakeMailboxes
from tests.feedback.test_maildir import Box
from tests.feedback.world import Owner, ServerClock, account_of, mail

OPTIONS = FeedbackOptions()


def nothing(_: int) -> None:
    """Show no progress."""


def from_(sender: str, subject: str) -> bytes:
    return mail(subject).replace(b"From: Ann <ann@sender.test>", f"From: {sender}".encode())


def to(recipient: str) -> bytes:
    return mail(f"to {recipient}").replace(b"To: alice@our.test", f"To: {recipient}".encode())


def with_fields(subject: str, fields: str) -> bytes:
    return fields.encode() + b"\r\n" + mail(subject)


def pupil(
    mailbox: Mailbox, journal: FakeJournal, *, limit: int = 2000, ratio: float = 1.0
) -> Bootstrap:
    options = BootstrapOptions(limit=limit, ratio=ratio)
    return Bootstrap([mailbox], journal, journal, extract, options)


def maildir(box: Box) -> MaildirMailbox:
    account = AccountOptions(maildir=box.root, user="alice")
    return MaildirMailbox(account, OPTIONS, ServerClock(), FakeMailboxes())


@pytest.fixture
def box(tmp_path: Path) -> Box:
    made = Box(tmp_path / "Maildir")
    made.create("Sent")
    return made


@pytest.fixture
def journal() -> FakeJournal:
    return FakeJournal(ServerClock())


async def test_spam_comes_from_junk_and_ham_from_what_people_kept(account: Account) -> None:
    server, user = account
    journal = FakeJournal(ServerClock())
    with server.login(user) as session:
        owner = Owner(session)
        for folder in ("Sent", "Archive", "Family"):
            owner.create(folder)
        for number in range(4):
            owner.append("Junk", mail(f"spam {number}"))
        owner.append("Sent", with_fields("my letter", "In-Reply-To: <replied@sender.test>"))
        owner.append("Archive", mail("archived"))
        owner.append("INBOX", mail("answered"), "(\\Answered \\Seen)")
        owner.append("INBOX", mail("replied"))
        owner.append("Family", with_fields("reply", "References: <x@y> <my.letter@sender.test>"))
        owner.append("INBOX", mail("a stranger"), "(\\Seen)")
    mailbox = ImapMailbox(account_of(server, user), OPTIONS, ServerClock(), login=user, actor=user)
    plan = await pupil(mailbox, journal).plan(nothing)
    assert {(s.folder.name, s.label, s.found) for s in plan.sources} == {
        ("Junk", Label.SPAM, 4),
        ("Archive", Label.HAM, 1),
        ("INBOX", Label.HAM, 2),
        ("Family", Label.HAM, 1),
    }
    assert plan.sent == 1
    summary = await pupil(mailbox, journal).learn(plan, nothing)
    assert (summary.learned[Label.SPAM], summary.learned[Label.HAM]) == (4, 4)
    assert {lesson[1:] for lesson in journal.lessons.values()} == {("bootstrap", user)}


@pytest.mark.parametrize(
    "sender",
    ["me@our.test", "bert@friends.test", "Bert <BERT@friends.test>", "<bert@friends.test>"],
)
async def test_k5_mail_in_the_name_of_a_correspondent_proves_nothing(
    box: Box, journal: FakeJournal, sender: str
) -> None:
    box.deliver(mail("spam"), "Junk")
    box.deliver(to("me@our.test, bert@friends.test"), "Sent")
    box.deliver(from_(sender, "pills"))
    plan = await pupil(maildir(box), journal, ratio=float("inf")).plan(nothing)
    assert plan.chosen(Label.HAM) == 0


@pytest.mark.parametrize(
    "fields",
    [
        "In-Reply-To: <guessed@our.test>",
        "References: <spam@sender.test>",  # to a mail in Junk
        "References: my.letter@sender.test",
        "In-Reply-To: <my.letter@sender.test",
        "X-Spam-Flag: NO",
        "X-Spam-Status: No, score=-99",
        "X-Spam-Id: 0123456789abcdef0123-0123456789abcdef",
    ],
)
async def test_k5_what_a_stranger_writes_proves_no_ham(
    box: Box, journal: FakeJournal, fields: str
) -> None:
    box.deliver(mail("spam"), "Junk")
    box.deliver(mail("my letter"), "Sent")
    box.deliver(with_fields("pills", fields))
    plan = await pupil(maildir(box), journal, ratio=float("inf")).plan(nothing)
    assert (plan.sent, plan.chosen(Label.HAM)) == (1, 0)


@pytest.mark.parametrize("value", ["YES", "Yes", "yes", " YES"])
async def test_k5_a_flag_that_made_a_rule_file_mail_in_junk_proves_no_spam(
    box: Box, journal: FakeJournal, value: str
) -> None:
    box.deliver(with_fields("invoice", f"X-Spam-Flag:{value}"), "Junk")
    box.deliver(mail("moved by hand"), "Junk")
    plan = await pupil(maildir(box), journal, ratio=float("inf")).plan(nothing)
    assert (plan.chosen(Label.SPAM), plan.filtered) == (1, 1)


async def test_k5_the_marks_of_another_filter_count_when_the_admin_says_so(
    box: Box, journal: FakeJournal
) -> None:
    box.deliver(with_fields("marked", "X-Spam-Flag: YES"), "Junk")
    options = BootstrapOptions(ratio=float("inf"), filtered=True)
    plan = await Bootstrap([maildir(box)], journal, journal, extract, options).plan(nothing)
    assert (plan.chosen(Label.SPAM), plan.filtered) == (1, 0)


@pytest.mark.parametrize("filtered", [True, False])
async def test_k5_in_junk_our_own_verdict_teaches_nothing_and_a_person_against_it_does(
    box: Box, journal: FakeJournal, *, filtered: bool
) -> None:
    for verdict in (Verdict.SPAM, Verdict.HAM, Verdict.UNSURE):
        content = mail(str(verdict), identity=f"id-{verdict}")
        journal.scanned(content, f"id-{verdict}", verdict)
        box.deliver(content, "Junk")
    options = BootstrapOptions(ratio=float("inf"), filtered=filtered)
    plan = await Bootstrap([maildir(box)], journal, journal, extract, options).plan(nothing)
    assert (plan.chosen(Label.SPAM), plan.filtered) == (2, 1)


@pytest.mark.parametrize(
    "value", ["(" * 5000, "<" * 5000, "<a@b>" * 5000, "\\(" * 5000, '"' * 5000]
)
async def test_k5_hostile_fields_cost_nothing_and_are_no_error(
    box: Box, journal: FakeJournal, value: str
) -> None:
    for field in ("References", "In-Reply-To", "From", "To"):
        box.deliver(with_fields(f"odd {field}", f"{field}: {value}"), "Sent")
        box.deliver(with_fields(f"odd {field}", f"{field}: {value}"), "Junk")
    plan = await pupil(maildir(box), journal, ratio=float("inf")).plan(nothing)
    assert (plan.sent, plan.chosen(Label.SPAM), plan.faults) == (4, 4, [])


async def test_both_labels_are_learned_in_like_numbers_the_newest_first(
    box: Box, journal: FakeJournal
) -> None:
    for number in range(9):
        box.deliver(mail(f"spam {number}"), "Junk")
    for number in range(3):
        box.deliver(mail(f"ham {number}"), "Archive.2026")
    mailbox = maildir(box)
    plan = await pupil(mailbox, journal).plan(nothing)
    assert (plan.chosen(Label.SPAM), plan.chosen(Label.HAM)) == (3, 3)
    newest = [source.keys for source in plan.sources if source.label is Label.SPAM]
    assert newest == [[f"1800000000.M{number}P1.host" for number in (9, 8, 7)]]


async def test_unbalanced_takes_all_up_to_the_limit(box: Box, journal: FakeJournal) -> None:
    for number in range(10):
        box.deliver(mail(f"spam {number}"), "Junk")
    plan = await pupil(maildir(box), journal, limit=7, ratio=float("inf")).plan(nothing)
    assert (plan.chosen(Label.SPAM), plan.chosen(Label.HAM)) == (7, 0)


async def test_what_a_person_taught_before_keeps_its_lesson(box: Box, journal: FakeJournal) -> None:
    box.deliver(mail("disputed"), "Junk")
    box.deliver(mail("kept"), "Archive.2026")
    content = box.find("1800000000.M1P1.host").read_bytes()
    await journal.train([extract(content)], Label.HAM, source="imap", actor="alice")
    mailbox = maildir(box)
    plan = await pupil(mailbox, journal).plan(nothing)
    summary = await pupil(mailbox, journal).learn(plan, nothing)
    assert journal.lessons[extract(content).digest] == (Label.HAM, "imap", "alice")
    assert (summary.already, summary.learned.total()) == (1, 1)


async def test_lessons_are_mixed_at_the_end_as_folders_come_one_after_the_other(
    box: Box, journal: FakeJournal
) -> None:
    box.deliver(mail("spam"), "Junk")
    box.deliver(mail("ham"), "Archive.2026")
    mailbox = maildir(box)
    plan = await pupil(mailbox, journal).plan(nothing)
    assert journal.rehearsals == 0
    await pupil(mailbox, journal).learn(plan, nothing)
    assert journal.rehearsals == 1


async def test_a_second_run_learns_nothing_new(box: Box, journal: FakeJournal) -> None:
    box.deliver(mail("spam"), "Junk")
    box.deliver(mail("ham"), "Archive.2026")
    mailbox = maildir(box)
    for learned in (2, 0):
        plan = await pupil(mailbox, journal).plan(nothing)
        summary = await pupil(mailbox, journal).learn(plan, nothing)
        assert summary.learned.total() == learned


async def test_mail_whose_keyword_disagrees_with_its_folder_is_left_out(
    box: Box, journal: FakeJournal
) -> None:
    for folder in ("Junk", "Archive.2026"):
        (box.path(folder) / "dovecot-keywords").write_text("0 $Junk\n1 $NotJunk\n")
    box.move(box.deliver(mail("not spam"), "Junk"), "Junk", flags="Sb")
    box.move(box.deliver(mail("spam"), "Archive.2026"), "Archive.2026", flags="Sa")
    box.move(box.deliver(mail("deleted"), "Archive.2026"), "Archive.2026", flags="T")
    plan = await pupil(maildir(box), journal).plan(nothing)
    assert plan.sources == []


async def test_d25_a_mail_that_can_not_be_used_is_skipped_and_counted(
    box: Box, journal: FakeJournal
) -> None:
    box.deliver(b"", "Junk")
    box.deliver(b"\xff\xfe\x00\x01 no mail at all", "Junk")
    box.deliver(mail("spam"), "Junk")
    for number in range(3):
        box.deliver(mail(f"ham {number}"), "Archive.2026")
    mailbox = maildir(box)
    plan = await pupil(mailbox, journal).plan(nothing)
    gone = box.find(plan.sources[0].keys[0])
    gone.unlink()
    summary = await pupil(mailbox, journal).learn(plan, nothing)
    assert summary.skipped == {"empty": 1, "vanished": 1}
    assert summary.learned.total() == summary.examined - 2


async def test_f5_no_mail_and_no_account_are_no_fault(box: Box, journal: FakeJournal) -> None:
    plan = await pupil(maildir(box), journal).plan(nothing)
    assert (plan.sources, plan.faults) == ([], [])
    assert (
        await Bootstrap([], journal, journal, extract, BootstrapOptions()).plan(nothing)
    ).faults == []


async def test_an_account_out_of_reach_is_named_and_the_others_are_read(
    box: Box, journal: FakeJournal, tmp_path: Path
) -> None:
    box.deliver(mail("spam"), "Junk")
    nowhere = AccountOptions(maildir=tmp_path / "nowhere", user="bob")
    lost = MaildirMailbox(nowhere, OPTIONS, ServerClock(), FakeMailboxes())
    both = Bootstrap([lost, maildir(box)], journal, journal, extract, BootstrapOptions())
    plan = await both.plan(nothing)
    assert len(plan.faults) == 1
    assert [source.label for source in plan.sources] == [Label.SPAM]
