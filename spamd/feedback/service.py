"""All watchers together: one of the equal workers holds the lease and runs them.

The lease is renewed three times in its length. A worker that can't renew it stops its watchers
before the lease runs out for the others: two watchers at once would do no harm to the counts (every
mail counts once), only waste work. As often, files of users that changed are read again.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace

from spamd.errors import TemporaryError
from spamd.feedback.account_list import AccountList, Login, logins_of, users_of
from spamd.feedback.account_states import LEASE, AccountStates
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Mailbox
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Accounts, Leases
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.watcher import Watcher

LOCAL_RETRY_S = 2.0
"""Longest pause before a Maildir that is not there is looked for again."""

LOCAL_POLL_FACTOR = 10
"""A Maildir is polled whole this many times more seldom than an account: the times of its
folders, asked for every `maildir_poll_s`, tell of all that happens. A poll costs 20 ms of CPU; for
1,000 Maildirs the polls took two thirds of a core."""

LOCAL_POLLS_AT_ONCE = 4
"""Maildirs polled at a time: hundreds at once, as at the start, only wait for the database, some
until it seems away. Who watches by IMAP waits for its server most of the time."""


class Feedback:
    """The feedback service.

    Args:
        holder: names this worker in the lease, "host:pid".
        accounts: where other processes see how the accounts fare.
    """

    def __init__(
        self,
        options: FeedbackOptions,
        context: WatcherContext,
        leases: Leases,
        holder: str,
        accounts: Accounts,
    ) -> None:
        self._options = options
        self._list = AccountList(options.accounts)
        self._states = AccountStates(accounts, context.clock, context.observer)
        self._turn = asyncio.Semaphore(LOCAL_POLLS_AT_ONCE)
        self.context = context
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

    async def once(self) -> RunSummary:
        """Look at all accounts once, one after the other."""
        summary = RunSummary()
        await asyncio.to_thread(self._list.read)
        watchers = self._listed()
        summary.faults += [str(fault) for fault in self._list.faults.values()]
        for watcher in watchers.values():
            summary.add(await watcher.once())
        await self._states.write()
        return summary

    def _listed(self) -> dict[str, Watcher]:
        """Return a watcher for each mailbox that is to be watched; tell of those that can't be."""
        watchers = {
            mailbox.key: self._watcher(mailbox)
            for mailbox in (
                _mailbox(each, self._options, self.context) for each in self._list.logins()
            )
        }
        faults = self._list.faults
        self._states.watch({*watchers, *faults})
        for name, fault in faults.items():
            self._states.lost(name, str(fault))
            self.context.observer.failed("account.lost", fault, account=name)
        return watchers

    def _watcher(self, mailbox: Mailbox) -> Watcher:
        local = isinstance(mailbox, MaildirMailbox)
        return Watcher(
            mailbox,
            self.context,
            self._options_for(mailbox),
            source="maildir" if local else "imap",
            states=self._states,
            turn=self._turn if local else None,
        )

    def _options_for(self, mailbox: Mailbox) -> FeedbackOptions:
        """Return the options for a mailbox: asking for a folder on this machine costs nothing.

        A Maildir may come into being with its first mail, and people expect it to be watched then.
        """
        if isinstance(mailbox, MaildirMailbox):
            soon = min(LOCAL_RETRY_S, self._options.retry_most_s)
            first = min(self._options.retry_first_s, soon)
            rest = self._options.poll_s * LOCAL_POLL_FACTOR
            return replace(self._options, retry_first_s=first, retry_most_s=soon, poll_s=rest)
        return self._options

    async def _acquire(self) -> bool:
        try:
            return await self._leases.acquire(LEASE, self._holder, self._options.lease_s)
        except TemporaryError as error:
            self.context.observer.failed("lease.failed", error)
            return False

    async def _while_leased(self) -> None:
        """Run the watchers until the lease is lost."""
        self.context.observer.happened("feedback.started", accounts=len(self._options.accounts))
        self._list = AccountList(self._options.accounts)
        async with asyncio.TaskGroup() as tasks:
            watching: dict[str, asyncio.Task[None]] = {}
            held = True
            while held:
                await self._follow(tasks, watching)
                await self._states.write()
                await asyncio.sleep(self._options.lease_s / 3)
                held = await self._acquire()
            for task in watching.values():
                task.cancel()
        self._states.watch(())
        self.context.observer.happened("feedback.stopped")

    async def _follow(
        self, tasks: asyncio.TaskGroup, watching: dict[str, asyncio.Task[None]]
    ) -> None:
        """Watch whom the files of users name now, and nobody else."""
        first = not watching
        if not await asyncio.to_thread(self._list.read):
            return
        watchers = self._listed()
        gone, come = watching.keys() - watchers.keys(), watchers.keys() - watching.keys()
        for name in gone:
            watching.pop(name).cancel()
        for name in come:
            watching[name] = tasks.create_task(watchers[name].run())
        if not first and (come or gone):
            self.context.observer.happened(
                "accounts.changed", come=len(come), gone=len(gone), watched=len(watching)
            )


def mailboxes(options: FeedbackOptions, context: WatcherContext) -> Sequence[Mailbox]:
    """Return a mailbox for each account and user.

    Raises:
        ConfigError: a file with user names can't be read.
    """
    logins = [
        each for account in options.accounts for each in logins_of(account, users_of(account))
    ]
    return [_mailbox(each, options, context) for each in logins]


def _mailbox(one: Login, options: FeedbackOptions, context: WatcherContext) -> Mailbox:
    if one.account.maildir:
        return MaildirMailbox(
            one.account, options, context.clock, context.mailboxes, context.maildir_threads
        )
    return ImapMailbox(
        one.account, options, context.clock, login=one.login, actor=one.actor, tls=context.tls
    )
