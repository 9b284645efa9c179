"""All watchers together: one of the equal workers holds the lease and runs them.

The lease is renewed three times in its length. A worker that can't renew it stops its watchers
before the lease runs out for the others: two watchers at once would do no harm to the counts (every
mail counts once), only waste work.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spamd.errors import ConfigError, TemporaryError
from spamd.feedback.hand import Hands
from spamd.feedback.imap import ImapMailbox
from spamd.feedback.imap_login import Contexts
from spamd.feedback.learn import Tally
from spamd.feedback.mailbox import Mailbox
from spamd.feedback.maildir import MaildirMailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.watch import Memory, Watcher
from spamd.files import open_regular
from spamd.ports import Clock, Leases, Observer
from spamd.wording import reason

LOCAL_RETRY_S = 2.0
"""Longest pause before a Maildir that is not there is looked for again."""

LOCAL_POLLS = 10
"""A Maildir is looked at whole this many times more seldom than an account: the times of its
folders, asked for every `maildir_poll_s`, tell of all that happens. A look costs 20 ms of CPU; for
1,000 Maildirs the looks took two thirds of a core."""

LOCAL_LOOKS = 4
"""Maildirs looked at at a time: hundreds at once, as at the start, only wait for the database, some
until it seems away. Who watches by IMAP waits for its server most of the time."""

USERS_BYTES = 16 * 1024 * 1024
"""Read of a file of users: a million names."""

LOCAL_HANDS = 8
"""Threads that read Maildirs: twice `LOCAL_LOOKS`, as some may lie on a disk that is away."""

LEASE = "feedback"
"""The name of the lease in the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all watchers share: memory, time, what TLS needs, and threads that read Maildirs."""

    memory: Memory
    clock: Clock
    observer: Observer
    contexts: Contexts = field(default_factory=Contexts)
    hands: Hands = field(default_factory=lambda: Hands("maildir", LOCAL_HANDS))


class Feedback:
    """The feedback service.

    Args:
        holder: names this worker in the lease, "host:pid".
    """

    def __init__(
        self,
        options: FeedbackOptions,
        surroundings: Surroundings,
        leases: Leases,
        holder: str,
    ) -> None:
        self._options = options
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
        for watcher in self.watchers():
            tally.add(await watcher.once())
        return tally

    def watchers(self) -> list[Watcher]:
        """Return a watcher for each account, for each user of an account with a master user."""
        local = asyncio.Semaphore(LOCAL_LOOKS)
        return [
            Watcher(
                mailbox,
                self.surroundings.memory,
                self._patience(mailbox),
                self.surroundings.clock,
                self.surroundings.observer,
                source="maildir" if isinstance(mailbox, MaildirMailbox) else "imap",
                turn=local if isinstance(mailbox, MaildirMailbox) else None,
            )
            for mailbox in mailboxes(self._options, self.surroundings)
        ]

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
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(watcher.run()) for watcher in self.watchers()]
            held = True
            while held:
                await asyncio.sleep(self._options.lease_s / 3)
                held = await self._acquire()
            for task in watching:
                task.cancel()
        self.surroundings.observer.happened("feedback.stopped")


def mailboxes(options: FeedbackOptions, around: Surroundings) -> Sequence[Mailbox]:
    """Return a mailbox for each account and user.

    Raises:
        ConfigError: a file with user names can't be read.
    """
    found: list[Mailbox] = []
    for account in options.accounts:
        if account.maildir:
            found.append(
                MaildirMailbox(
                    account, options, around.clock, around.memory.mailboxes, around.hands
                )
            )
            continue
        users = users_of(account)
        logins = [(f"{user}{account.master_separator}{account.user}", user) for user in users]
        found += [
            ImapMailbox(
                account, options, around.clock, login=login, actor=actor, contexts=around.contexts
            )
            for login, actor in logins or [(account.user, account.user)]
        ]
    return found


def users_of(account: AccountOptions) -> list[str]:
    """Return for whom a master user logs in.

    Raises:
        ConfigError: the file with their names can't be read.
    """
    users = list(account.users)
    if account.users_file:
        try:
            with open_regular(account.users_file) as file:
                lines = file.read(USERS_BYTES).decode().splitlines()
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                f"feedback.accounts: {account.users_file}, the users_file of {account.user} at"
                f" {account.host}, can't be read: {reason(error)}"
            ) from error
        users += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return list(dict.fromkeys(users))
