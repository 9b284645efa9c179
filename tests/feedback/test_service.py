"""All watchers together, and the lease that lets one worker run them."""

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spamd.bayes.decision import Verdict
from spamd.errors import ConfigError
from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.imap_login import TlsContexts
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.ports import Cursor
from spamd.feedback.service import LOCAL_POLLS_AT_ONCE, Feedback, mailboxes
from spamd.feedback.shares import LeaseLost
from spamd.feedback.watching.watcher import Watcher
from spamd.files import first_line
from spamd.message.features import Features, extract
from spamd.sample import Label
from tests.fakes import FakeObserver
from tests.feedback.fakes import FakeAccounts, FakeLeases, FakeMailboxes
from tests.feedback.scripted import ScriptedImap, plain
from tests.feedback.test_maildir import Box
from tests.feedback.world import ServerClock, journal_of, mail, watcher_context
from tests.waiting import until


@asynccontextmanager
async def at_work(feedback: Feedback) -> AsyncIterator[None]:
    task = asyncio.create_task(feedback.run())
    try:
        yield
    finally:
        task.cancel()
        _, pending = await asyncio.wait([task], timeout=5)
        assert not pending, "the service does not stop"


def options_for(*boxes: Box) -> FeedbackOptions:
    accounts = tuple(
        AccountOptions(maildir=box.root, user=f"user{number}") for number, box in enumerate(boxes)
    )
    return FeedbackOptions(
        accounts=accounts, lease_s=0.3, maildir_poll_s=0.05, poll_s=5, rule_window_s=0
    )


async def test_all_accounts_are_watched(tmp_path: Path) -> None:
    boxes = [Box(tmp_path / name) for name in ("a", "b")]
    context = watcher_context()
    journal = journal_of(context)
    leases = FakeLeases(ServerClock())
    async with at_work(Feedback(options_for(*boxes), context, leases, "one", FakeAccounts())):
        content = mail("offer", identity="id-offer")
        journal.scanned(content, "id-offer", Verdict.HAM)
        base = boxes[1].deliver(content)
        await until(lambda: context.mailboxes.sightings)  # type: ignore[attr-defined] # the fake
        boxes[1].move(base, "Junk")
        await until(lambda: journal.history)
    assert list(journal.lessons.values()) == [(Label.SPAM, "maildir", "user1")]
    assert await leases.holder("feedback") is None


class BusyMailboxes(FakeMailboxes):
    """Counts how many ask at a time."""

    asking = 0
    most = 0

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        self.asking += 1
        self.most = max(self.most, self.asking)
        await asyncio.sleep(0.01)
        self.asking -= 1
        return await super().cursors(account)


async def test_of_many_maildirs_only_a_few_are_looked_at_at_a_time(tmp_path: Path) -> None:
    boxes = [Box(tmp_path / f"box{number}") for number in range(20)]
    context, busy = watcher_context(), BusyMailboxes()
    context = replace(context, mailboxes=busy)
    async with at_work(
        Feedback(options_for(*boxes), context, FakeLeases(ServerClock()), "one", FakeAccounts())
    ):
        await until(lambda: len({account for account, _ in busy.rows}) == 20)
    assert busy.most == LOCAL_POLLS_AT_ONCE


async def test_of_two_workers_one_watches_and_the_other_takes_over(tmp_path: Path) -> None:
    box = Box(tmp_path / "a")
    leases = FakeLeases(ServerClock())
    first, second = watcher_context(), watcher_context()

    def watching(observer: object) -> bool:
        assert isinstance(observer, FakeObserver)
        return any(name == "feedback.started" for name, _ in observer.events)

    async with at_work(Feedback(options_for(box), second, leases, "two", FakeAccounts())):
        async with at_work(Feedback(options_for(box), first, leases, "one", FakeAccounts())):
            await until(lambda: watching(first.observer) or watching(second.observer))
            await asyncio.sleep(0.5)
            assert [watching(first.observer), watching(second.observer)].count(True) == 1
            assert await leases.holder("feedback") is not None
        await until(lambda: watching(second.observer))


async def test_d26_a_poll_longer_than_the_lease_does_not_lose_it(tmp_path: Path) -> None:
    box = Box(tmp_path / "a")
    context = watcher_context()
    context = replace(context, extract=slowly)
    journal = journal_of(context)
    leases = FakeLeases(ServerClock())
    base = box.deliver(mail("slow"))
    options = replace(options_for(box), lease_s=0.3)
    async with at_work(Feedback(options, context, leases, "one", FakeAccounts())):
        await until(lambda: context.mailboxes.sightings)  # type: ignore[attr-defined] # the fake
        box.move(base, "Junk")
        while not journal.history:
            assert not await leases.acquire("feedback", "two", 0.3)
            await asyncio.sleep(0.02)


def slowly(content: bytes) -> Features:
    """Take a mail apart in more time than a lease lasts."""
    time.sleep(1)
    return extract(content)


class LostLeases(FakeLeases):
    """The database goes away after the lease was taken."""

    async def acquire_all(self, names: Sequence[str], holder: str, seconds: float) -> Set[str]:
        found = await super().acquire_all(names, holder, seconds)
        self.away = True
        return found


async def test_a_worker_that_can_not_renew_its_lease_stops_watching(tmp_path: Path) -> None:
    context = watcher_context()
    observer = context.observer
    assert isinstance(observer, FakeObserver)
    leases = LostLeases(ServerClock())
    async with at_work(
        Feedback(options_for(Box(tmp_path / "a")), context, leases, "one", FakeAccounts())
    ):
        await until(lambda: any(name == "feedback.stopped" for name, _ in observer.events))


async def test_f5_without_accounts_there_is_nothing_to_do() -> None:
    feedback = Feedback(
        FeedbackOptions(), watcher_context(), FakeLeases(ServerClock()), "one", FakeAccounts()
    )
    await asyncio.wait_for(feedback.run(), 1)
    summary = await feedback.once()
    assert (summary.examined, summary.faults) == (0, [])


async def test_e15_one_account_out_of_reach_does_not_stop_the_others(tmp_path: Path) -> None:
    box = Box(tmp_path / "a")
    box.deliver(mail("old"))
    options = options_for(box)
    lost = AccountOptions(maildir=tmp_path / "nowhere", user="bob")
    options = replace(options, accounts=(lost, *options.accounts))
    summary = await Feedback(
        options, watcher_context(), FakeLeases(ServerClock()), "one", FakeAccounts()
    ).once()
    assert summary.examined == 1
    assert len(summary.faults) == 1
    assert "nowhere is no Maildir" in summary.faults[0]


async def test_a_maildir_that_comes_into_being_later_is_watched(tmp_path: Path) -> None:
    context = watcher_context()
    journal = journal_of(context)
    account = AccountOptions(maildir=tmp_path / "later", user="alice")
    options = replace(options_for(), accounts=(account,), retry_first_s=0.05)
    content = mail("offer", identity="id-offer")
    journal.scanned(content, "id-offer", Verdict.HAM)
    async with at_work(
        Feedback(options, context, FakeLeases(ServerClock()), "one", FakeAccounts())
    ):
        await until(lambda: context.observer.faults)  # type: ignore[attr-defined] # the fake
        box = Box(tmp_path / "later")
        base = box.deliver(content)
        await until(lambda: context.mailboxes.sightings)  # type: ignore[attr-defined] # the fake
        box.move(base, "Junk")
        await until(lambda: journal.history)


def test_a_missing_file_of_users_stops_the_start(tmp_path: Path) -> None:
    account = AccountOptions(
        host="127.0.0.1",
        tls=Tls.NONE,
        user="master",
        password="x",
        users_file=tmp_path / "nowhere",
    )
    with pytest.raises(ConfigError, match=r"nowhere, the users_file of master at .*: No such file"):
        mailboxes(FeedbackOptions(accounts=(account,)), watcher_context())


def test_j2_what_tls_needs_is_made_once_for_400_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = ssl.create_default_context

    def counted(*args: object, **kwargs: object) -> ssl.SSLContext:
        made.append(kwargs)
        return make(*args, **kwargs)  # type: ignore[arg-type] # passed on as they come

    monkeypatch.setattr(ssl, "create_default_context", counted)
    contexts = TlsContexts()
    first = contexts.trusting(None)
    assert all(contexts.trusting(None) is first for _ in range(400))
    assert len(made) == 1


def test_j2_all_accounts_share_what_tls_needs() -> None:
    users = tuple(f"user{number}" for number in range(400))
    account = AccountOptions(
        host="127.0.0.1", tls=Tls.NONE, user="master", password="x", users=users
    )
    boxes = mailboxes(FeedbackOptions(accounts=(account,)), watcher_context())
    shared = {id(box.tls) for box in boxes if isinstance(box, ImapMailbox)}
    assert (len(boxes), len(shared)) == (400, 1)


async def test_j2_an_account_without_tls_makes_no_context(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: object) -> ssl.SSLContext:
        raise AssertionError("made for nothing")

    monkeypatch.setattr(ssl, "create_default_context", never)
    with ScriptedImap(plain) as server:
        account = AccountOptions(
            host="127.0.0.1", port=server.port, tls=Tls.NONE, user="alice", password="x"
        )
        box = ImapMailbox(account, FeedbackOptions(), ServerClock(), login="a", actor="alice")
        await box.open()
        await box.close()


@pytest.mark.parametrize("setting", ["password_file", "users_file"])
def test_k8_a_fifo_among_the_files_of_an_account_is_named(tmp_path: Path, setting: str) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    account = AccountOptions(host="localhost", user="m", password="x", users_file=fifo)
    if setting == "password_file":
        with pytest.raises(OSError, match="not a regular file"):
            first_line(fifo)
    else:
        with pytest.raises(ConfigError, match="not a regular file"):
            mailboxes(FeedbackOptions(accounts=(account,)), watcher_context())


async def test_one_that_was_stopped_in_the_middle_of_a_poll_does_nothing_more(
    tmp_path: Path,
) -> None:
    box, ours = Box(tmp_path / "a"), True
    context = watcher_context()
    journal = journal_of(context)

    def stopped(content: bytes) -> Features:
        nonlocal ours
        ours = False  # the lease runs out while the process stands still
        return extract(content)

    context = replace(context, extract=stopped)
    options = options_for(box)
    mailbox = mailboxes(options, context)[0]
    states = AccountStates(FakeAccounts(), context.clock, FakeObserver())
    watcher = Watcher(
        mailbox, context, options, source="maildir", states=states, holds=lambda _: ours
    )
    base = box.deliver(mail("offer"))
    await watcher.once()
    box.move(base, "Junk")
    await mailbox.open()
    with pytest.raises(LeaseLost):
        await watcher.poll()
    assert journal.history == []

    ours, context = True, replace(context, extract=extract)  # nothing was written down either
    watcher = Watcher(mailbox, context, options, source="maildir", states=states)
    await watcher.once()
    assert len(journal.history) == 1


async def test_accounts_that_wait_long_for_a_connection_are_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spamd.feedback.service.LATE_S", -1.0)
    context, leases = watcher_context(), FakeLeases(ServerClock())
    observer = context.observer
    assert isinstance(observer, FakeObserver)
    options = replace(options_for(Box(tmp_path / "a")), lease_s=0.03)
    async with at_work(Feedback(options, context, leases, "one", FakeAccounts())):
        await until(lambda: observer.faults)
        await asyncio.sleep(0.1)
    assert [event for event, _ in observer.faults] == ["accounts.late"]
