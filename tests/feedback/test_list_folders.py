"""Folders that are lists: what is moved there lets its sender in or keeps it out, for that user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Place
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.watching import list_folders
from spamd.feedback.watching.lesson_rule import MoveFacts, Why, is_moved, lesson
from spamd.lists.book import ListBook
from spamd.lists.entry import Effect, Entry, Kind
from spamd.message.authentication.proof import NOTHING_TRUSTED
from spamd.sample import Label
from tests.feedback.conftest import Account
from tests.feedback.test_maildir import QUICK as QUICK_MAILDIR
from tests.feedback.test_maildir import Box, maildir_mailbox
from tests.feedback.world import QUICK, Bench, ServerClock, World, bench_at, world_at


@dataclass
class FakeEntries:
    """The entries of lists (`EntryStore`)."""

    rows: list[Entry] = field(default_factory=list)

    async def put(self, entry: Entry) -> Entry:
        self.rows = [row for row in self.rows if row.key != entry.key]
        self.rows.append(replace(entry, number=len(self.rows) + 1))
        return self.rows[-1]

    async def remove(self, owner: str, kind: Kind, value: str, effect: Effect) -> bool:
        gone = [
            row for row in self.rows if row.key == (owner, kind, value) and row.effect is effect
        ]
        self.rows = [row for row in self.rows if row not in gone]
        return bool(gone)

    async def all(self, owner: str | None = None) -> list[Entry]:
        return [row for row in self.rows if owner in {None, row.owner}]

    def said(self) -> list[tuple[str, str, str]]:
        return [(row.owner, str(row.effect), row.value) for row in self.rows]


@dataclass
class Listed:
    """A world, and the lists that its folders change."""

    world: World
    entries: FakeEntries

    async def moved(self, subject: str, old: str, new: str) -> list[tuple[str, str, str]]:
        """Move a mail, look, and return the entries there are then."""
        self.world.owner.move(subject, old, new)
        await self.world.poll()
        return self.entries.said()


@asynccontextmanager
async def listed_at(
    account: Account, *folders: str, options: FeedbackOptions = QUICK
) -> AsyncIterator[Listed]:
    entries, clock = FakeEntries(), ServerClock()
    book = ListBook(entries, NOTHING_TRUSTED, clock.now)
    async with world_at(*account, lists=book, options=options, clock=clock) as world:
        for folder in folders:
            world.owner.create(folder)
        await world.poll()
        yield Listed(world, entries)


def told(bench: Bench, event: str) -> bool:
    observer = bench.observer
    return event in [name for name, _ in (*observer.events, *observer.faults)]


async def test_a_mail_moved_to_allow_on_a_dovecot_lets_its_sender_in_for_that_user_only(
    account: Account,
) -> None:
    async with listed_at(account, "Allow", "Projects") as listed:
        world, user = listed.world, account[1]
        world.arrives("offer", Verdict.UNSURE)
        await world.poll()
        assert await listed.moved("offer", "INBOX", "Allow") == [(user, "allow", "ann@sender.test")]
        assert listed.entries.rows[0].source == "folder"
        assert listed.entries.rows[0].expires is None
        assert told(world, "entry.added")
        assert await listed.moved("offer", "Allow", "Projects") == []
        assert told(world, "entry.removed")


async def test_what_is_moved_from_junk_to_allow_is_ham_too(account: Account) -> None:
    async with listed_at(account, "Junk", "Allow") as listed:
        listed.world.arrives("offer", Verdict.SPAM, "Junk")
        await listed.world.poll()
        await listed.moved("offer", "Junk", "Allow")
        assert listed.world.taught() == [("offer", Label.HAM)]
        assert [each[1] for each in listed.entries.said()] == ["allow"]


async def test_what_is_moved_to_deny_keeps_its_sender_out_and_teaches_nothing(
    account: Account,
) -> None:
    async with listed_at(account, "Junk", "Deny") as listed:
        world, user = listed.world, account[1]
        for subject, verdict in (("ham", Verdict.HAM), ("spam", Verdict.SPAM)):
            world.arrives(subject, verdict)
        world.arrives("junk", Verdict.SPAM, "Junk")
        await world.poll()
        for subject, folder in (("ham", "INBOX"), ("spam", "INBOX"), ("junk", "Junk")):
            await listed.moved(subject, folder, "Deny")
        assert listed.entries.said() == [(user, "deny", "ann@sender.test")]
        assert world.taught() == []


async def test_from_one_list_to_the_other_the_later_word_counts(account: Account) -> None:
    async with listed_at(account, "Allow", "Deny") as listed:
        listed.world.arrives("offer", Verdict.UNSURE)
        await listed.world.poll()
        for folder, before in (("Allow", "INBOX"), ("Deny", "Allow"), ("Allow", "Deny")):
            found = await listed.moved("offer", before, folder)
            assert [effect for _, effect, _ in found] == [folder.lower()]


async def test_what_nobody_moved_changes_no_list(account: Account) -> None:
    async with listed_at(account, "Allow", "Projects") as listed:
        world = listed.world
        world.arrives("filed by a rule", Verdict.UNSURE, "Allow")
        world.arrives("copied", Verdict.UNSURE)
        world.arrives("tidied", Verdict.UNSURE)
        await world.poll()
        world.owner.copy("copied", "INBOX", "Allow")
        world.owner.move("tidied", "INBOX", "Projects")
        await world.poll()
        world.owner.rename("Projects", "Allowed")
        await world.poll()
        assert listed.entries.rows == []


async def test_what_a_rule_of_a_mail_program_moves_at_once_changes_no_list(
    account: Account,
) -> None:
    async with listed_at(account, "Deny", options=replace(QUICK, rule_window_s=60)) as listed:
        listed.world.arrives("offer", Verdict.UNSURE)
        await listed.world.poll()
        assert await listed.moved("offer", "INBOX", "Deny") == []


async def test_a_list_folder_can_be_cleaned_up(account: Account) -> None:
    async with listed_at(account, "Allow", "Trash") as listed:
        world = listed.world
        for subject in ("offer", "letter"):
            world.arrives(subject, Verdict.UNSURE)
            await world.poll()
            await listed.moved(subject, "INBOX", "Allow")
        world.owner.remove("offer", "Allow")
        await world.poll()
        assert await listed.moved("letter", "Allow", "Trash") == listed.entries.said()
        assert len(listed.entries.rows) == 1


async def test_a_mail_without_one_sender_names_nobody_and_that_is_told(account: Account) -> None:
    async with listed_at(account, "Allow") as listed:
        world = listed.world
        two = world.judged("two", Verdict.UNSURE)
        world.owner.append("INBOX", two.replace(b"To:", b"From: eve@else.test\r\nTo:"))
        await world.poll()
        assert await listed.moved("two", "INBOX", "Allow") == []
        assert told(world, "entry.failed")


async def test_an_entry_that_a_command_made_is_not_taken_back_by_a_move(account: Account) -> None:
    async with listed_at(account, "Allow", "Projects") as listed:
        mine = Entry(
            effect=Effect.ALLOW, kind=Kind.ADDRESS, value="ann@sender.test", owner=account[1]
        )
        await listed.entries.put(mine)
        listed.world.arrives("offer", Verdict.UNSURE)
        await listed.world.poll()
        await listed.moved("offer", "INBOX", "Allow")
        assert await listed.moved("offer", "Allow", "Projects") == listed.entries.said()
        assert [entry.source for entry in listed.entries.rows] == ["command"]


async def test_names_and_the_end_of_entries_are_settings(account: Account) -> None:
    options = replace(QUICK, allow_folders=("Freunde",), deny_folders=(), list_days=30)
    async with listed_at(account, "Lists/Freunde", "Deny", options=options) as listed:
        world = listed.world
        for subject in ("offer", "letter"):
            world.arrives(subject, Verdict.UNSURE)
        await world.poll()
        assert await listed.moved("letter", "INBOX", "Deny") == []
        await listed.moved("offer", "INBOX", "Lists/Freunde")
        (entry,) = listed.entries.rows
        assert entry.expires is not None
        assert entry.created is not None
        assert abs(entry.expires - entry.created - timedelta(days=30)) < timedelta(seconds=1)


async def test_who_moves_very_many_at_once_means_no_senders(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_folders, "MOST", 1)
    async with listed_at(account, "Deny") as listed:
        world = listed.world
        for subject in ("offer", "letter"):
            world.arrives(subject, Verdict.UNSURE)
        await world.poll()
        for subject in ("offer", "letter"):
            world.owner.move(subject, "INBOX", "Deny")
        await world.poll()
        assert listed.entries.rows == []
        assert told(world, "entries.left")


async def test_a_maildir_has_list_folders_too(tmp_path: Path) -> None:
    entries, box = FakeEntries(), Box(tmp_path / "alice")
    for folder in ("Allow", "Deny", "Projects"):
        box.create(folder)
    book = ListBook(entries, NOTHING_TRUSTED, ServerClock().now)
    async with bench_at(
        AccountOptions(maildir=box.root), options=QUICK_MAILDIR, make=maildir_mailbox, lists=book
    ) as bench:
        await bench.poll()
        base = box.deliver(bench.judged("offer", Verdict.UNSURE))
        await bench.poll()
        said = []
        for folder in ("Allow", "Deny", "Projects"):
            box.move(base, folder)
            await bench.poll()
            said.append([effect for _, effect, _ in entries.said()])
        assert said == [["allow"], ["deny"], []]
        assert bench.taught() == []


@pytest.mark.parametrize("was", list(Place))
@pytest.mark.parametrize("verdict", [None, Verdict.HAM, Verdict.UNSURE, Verdict.SPAM])
def test_whatever_is_moved_to_a_folder_that_keeps_out_is_no_lesson(
    was: Place, verdict: Verdict | None
) -> None:
    facts = MoveFacts(place=Place.OTHER, was=was, came=Place.OTHER, verdict=verdict, denies=True)
    assert is_moved(facts)
    assert lesson(facts) is Why.NOTHING


@pytest.mark.parametrize(
    "doubt",
    [
        {"was": Place.INBOX | Place.OTHER},
        {"stays": Place.INBOX},
        {"came": Place.OTHER | Place.JUNK},
        {"same": False},
        {"kept": False},
        {"hasty": True},
    ],
)
def test_in_doubt_nobody_has_moved_it(doubt: dict[str, Place | bool]) -> None:
    facts = MoveFacts(place=Place.OTHER, was=Place.INBOX, came=Place.OTHER)
    assert is_moved(facts)
    assert not is_moved(replace(facts, **doubt))  # type: ignore[arg-type] # fields of their types
