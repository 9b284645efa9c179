"""The watchers of one of the equal workers: of all accounts, or of its shares of many (`shares`).

Leases are renewed three times in their length, and files of users that changed are read again as
often. A worker that can't renew them stops its watchers before they run out for the others.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from spamd.errors import Overloaded, TemporaryError
from spamd.feedback.account_list import AccountList, Login, logins_of, users_of
from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Mailbox
from spamd.feedback.mailboxes.maildir import MaildirMailbox
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import Accounts, Leases
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.shares import RENEWALS, Seats, Shares
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


LATE_S = 300.0
"""An account that waits longer for its turn is worth a line in the log."""


class Feedback:
    """The feedback service.

    Args:
        holder: names this worker in the leases, "host:pid:…".
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
        self._seats = Seats(options.connections)
        self._shares = Shares(leases, holder, options.lease_s, context.clock)
        self._pause_s = options.lease_s / RENEWALS
        self._late = False
        self._changed = True

    async def run(self) -> None:
        """Watch the accounts that are ours by a lease; wait while all are other workers'."""
        if not self._options.accounts:
            return
        try:
            while True:
                if await self._acquire():
                    await self._while_leased()
                await asyncio.sleep(self._pause_s)
        finally:
            with contextlib.suppress(TemporaryError):
                await self._shares.release()

    async def once(self) -> RunSummary:
        """Look at all accounts once, one after the other."""
        summary = RunSummary()
        await asyncio.to_thread(self._list.read)
        watchers = self._listed(self._list.logins(), lambda _: True)
        summary.faults += [str(fault) for fault in self._list.faults.values()]
        for watcher in watchers.values():
            summary.add(await watcher.once())
        await self._states.write()
        return summary

    def _listed(self, logins: Sequence[Login], holds: Callable[[str], bool]) -> dict[str, Watcher]:
        """Return a watcher for each of these mailboxes; tell of those that can't be watched."""
        boxes = [_mailbox(each, self._options, self.context) for each in logins]
        watchers = {box.key: self._watcher(box, holds) for box in boxes}
        self._seats.share_out(sum(isinstance(box, ImapMailbox) for box in boxes))
        faults = self._list.faults
        everybody = {each.key for each in self._list.logins()}
        self._states.watch({*watchers, *faults}, everybody={*everybody, *faults})
        for name, fault in faults.items():
            self._states.lost(name, str(fault))
            self.context.observer.failed("account.lost", fault, account=name)
        return watchers

    def _watcher(self, mailbox: Mailbox, holds: Callable[[str], bool]) -> Watcher:
        local = isinstance(mailbox, MaildirMailbox)
        return Watcher(
            mailbox,
            self.context,
            self._options_for(mailbox),
            source="maildir" if local else "imap",
            states=self._states,
            turn=self._turn if local else None,
            seats=None if local else self._seats,
            holds=holds,
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
        """Renew what is ours; return whether anything is."""
        self._changed |= await asyncio.to_thread(self._list.read)
        try:
            await self._shares.renew(len(self._list.logins()))
        except TemporaryError as error:
            self.context.observer.failed("lease.failed", error)
        return self._shares.last

    async def _while_leased(self) -> None:
        """Run the watchers until no share is ours."""
        self.context.observer.happened("feedback.started", accounts=len(self._options.accounts))
        self._changed = True
        async with asyncio.TaskGroup() as tasks:
            watching: dict[str, asyncio.Task[None]] = {}
            held, shares = True, self._shares.mine
            while held:
                if self._changed or self._shares.mine != shares:
                    shares, self._changed = self._shares.mine, False
                    self._follow(tasks, watching)
                await self._states.write()
                self._tell_of_waits()
                await asyncio.sleep(self._pause_s)
                held = await self._acquire()
            for task in watching.values():
                task.cancel()
        self._states.watch(())
        self.context.observer.happened("feedback.stopped")

    def _tell_of_waits(self) -> None:
        """Tell once when accounts wait long for a connection."""
        waited_s = self._seats.waited_s
        if waited_s > LATE_S and not self._late:
            error = Overloaded(
                f"an account has waited {waited_s:.0f} s for one of the {self._options.connections}"
                " connections of this worker (feedback.connections)"
            )
            self.context.observer.failed("accounts.late", error)
        self._late = waited_s > LATE_S

    def _follow(self, tasks: asyncio.TaskGroup, watching: dict[str, asyncio.Task[None]]) -> None:
        """Watch those in our shares whom the files of users name now, and nobody else."""
        first = not watching
        logins = [each for each in self._list.logins() if self._shares.has(each.key)]
        watchers = self._listed(logins, self._shares.holds)
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
