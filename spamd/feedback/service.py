"""All watchers together: one of the equal workers holds the lease and runs them.

The lease is renewed three times in its length. A worker that can't renew it stops its watchers
before the lease runs out for the others: two watchers at once would do no harm to the counts (every
mail counts once), only waste work. As often, files of users that changed are read again.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spamd.errors import TemporaryError
from spamd.feedback.account_state import LEASE, Ledger
from spamd.feedback.accounts import Login, Roster, logins_of, users_of
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.imap_login import Contexts
from spamd.feedback.mailboxes.mailbox import Mailbox
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.mailboxes.threads import Hands
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Accounts, FeedbackObserver, Leases
from spamd.feedback.teacher import Tally
from spamd.feedback.watching.watcher import Memory, Watcher
from spamd.ports import Clock

LOCAL_RETRY_S = 2.0
"""Longest pause before a Maildir that is not there is looked for again."""

LOCAL_POLLS = 10
"""A Maildir is looked at whole this many times more seldom than an account: the times of its
folders, asked for every `maildir_poll_s`, tell of all that happens. A look costs 20 ms of CPU; for
1,000 Maildirs the looks took two thirds of a core."""

LOCAL_LOOKS = 4
"""Maildirs looked at at a time: hundreds at once, as at the start, only wait for the database, some
until it seems away. Who watches by IMAP waits for its server most of the time."""

LOCAL_HANDS = 8
"""Threads that read Maildirs: twice `LOCAL_LOOKS`, as some may lie on a disk that is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all watchers share: memory, time, what TLS needs, and threads that read Maildirs."""

    memory: Memory
    clock: Clock
    observer: FeedbackObserver
    contexts: Contexts = field(default_factory=Contexts)
    hands: Hands = field(default_factory=lambda: Hands("maildir", LOCAL_HANDS))


class Feedback:
    """The feedback service.

    Args:
        holder: names this worker in the lease, "host:pid".
        accounts: where other processes see how the accounts fare.
    """

    def __init__(
        self,
        options: FeedbackOptions,
        surroundings: Surroundings,
        leases: Leases,
        holder: str,
        accounts: Accounts,
    ) -> None:
        self._options = options
        self._roster = Roster(options.accounts)
        self._ledger = Ledger(accounts, surroundings.clock, surroundings.observer)
        self._turn = asyncio.Semaphore(LOCAL_LOOKS)
        self.surroundings = surroundings
        self._leases = leases
        self._holder = holder

    async def run(self) -> None:
        """Watch all accounts while the lease is ours; wait for it while it is another worker's."""
        if not self._options.accounts:
            return
        try:
            while True:
                if await self._acquire():
                    await self._while_leased()
                await asyncio.sleep(self._options.lease_s / 3)
        finally:
            with contextlib.suppress(TemporaryError):
                await self._leases.release(LEASE, self._holder)

    async def once(self) -> Tally:
        """Look at all accounts once, one after the other."""
        tally = Tally()
        await asyncio.to_thread(self._roster.read)
        watchers = self._listed()
        tally.faults += [str(fault) for fault in self._roster.faults.values()]
        for watcher in watchers.values():
            tally.add(await watcher.once())
        await self._ledger.write()
        return tally

    def _listed(self) -> dict[str, Watcher]:
        """Return a watcher for each mailbox that is to be watched; tell of those that can't be."""
        watchers = {
            mailbox.key: self._watcher(mailbox)
            for mailbox in (
                _mailbox(each, self._options, self.surroundings) for each in self._roster.logins()
            )
        }
        faults = self._roster.faults
        self._ledger.watch({*watchers, *faults})
        for name, fault in faults.items():
            self._ledger.lost(name, str(fault))
            self.surroundings.observer.failed("account.lost", fault, account=name)
        return watchers

    def _watcher(self, mailbox: Mailbox) -> Watcher:
        around, local = self.surroundings, isinstance(mailbox, MaildirMailbox)
        return Watcher(
            mailbox,
            around.memory,
            self._patience(mailbox),
            around.clock,
            around.observer,
            source="maildir" if local else "imap",
            ledger=self._ledger,
            turn=self._turn if local else None,
        )

    def _patience(self, mailbox: Mailbox) -> FeedbackOptions:
        """Return the options for a mailbox: asking for a folder on this machine costs nothing.

        A Maildir may come into being with its first mail, and people expect it to be watched then.
        """
        if isinstance(mailbox, MaildirMailbox):
            soon = min(LOCAL_RETRY_S, self._options.retry_most_s)
            first = min(self._options.retry_first_s, soon)
            rest = self._options.poll_s * LOCAL_POLLS
            return replace(self._options, retry_first_s=first, retry_most_s=soon, poll_s=rest)
        return self._options

    async def _acquire(self) -> bool:
        try:
            return await self._leases.acquire(LEASE, self._holder, self._options.lease_s)
        except TemporaryError as error:
            self.surroundings.observer.failed("lease.failed", error)
            return False

    async def _while_leased(self) -> None:
        """Run the watchers until the lease is lost."""
        self.surroundings.observer.happened(
            "feedback.started", accounts=len(self._options.accounts)
        )
        self._roster = Roster(self._options.accounts)
        async with asyncio.TaskGroup() as tasks:
            watching: dict[str, asyncio.Task[None]] = {}
            held = True
            while held:
                await self._follow(tasks, watching)
                await self._ledger.write()
                await asyncio.sleep(self._options.lease_s / 3)
                held = await self._acquire()
            for task in watching.values():
                task.cancel()
        self._ledger.watch(())
        self.surroundings.observer.happened("feedback.stopped")

    async def _follow(
        self, tasks: asyncio.TaskGroup, watching: dict[str, asyncio.Task[None]]
    ) -> None:
        """Watch whom the files of users name now, and nobody else."""
        first = not watching
        if not await asyncio.to_thread(self._roster.read):
            return
        watchers = self._listed()
        gone, come = watching.keys() - watchers.keys(), watchers.keys() - watching.keys()
        for name in gone:
            watching.pop(name).cancel()
        for name in come:
            watching[name] = tasks.create_task(watchers[name].run())
        if not first and (come or gone):
            self.surroundings.observer.happened(
                "accounts.changed", come=len(come), gone=len(gone), watched=len(watching)
            )


def mailboxes(options: FeedbackOptions, around: Surroundings) -> Sequence[Mailbox]:
    """Return a mailbox for each account and user.

    Raises:
        ConfigError: a file with user names can't be read.
    """
    logins = [
        each for account in options.accounts for each in logins_of(account, users_of(account))
    ]
    return [_mailbox(each, options, around) for each in logins]


def _mailbox(one: Login, options: FeedbackOptions, around: Surroundings) -> Mailbox:
    if one.account.maildir:
        return MaildirMailbox(
            one.account, options, around.clock, around.memory.mailboxes, around.hands
        )
    return ImapMailbox(
        one.account,
        options,
        around.clock,
        login=one.login,
        actor=one.actor,
        contexts=around.contexts,
    )
