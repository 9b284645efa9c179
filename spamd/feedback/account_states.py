"""How each watched account fares: watching, lost since when and why, or not yet looked at.

The watchers tell it at once; it is counted for the metrics and written to the database, where
`spamd status` reads it, together and by the service: 400 accounts that come or go at a time are one
transaction. While the database is away it goes on waiting.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from spamd.errors import TemporaryError
from spamd.feedback.ports import Accounts, AccountState, FeedbackObserver, WatchedAccount
from spamd.ports import Clock

LEASE = "feedback"
"""The name of the lease of who watches."""

AGAIN = timedelta(hours=1)
"""All accounts are written so often even if nothing changed: what is remembered of an account that
nobody watches any more is let go of some day (`feedback.seen_days`)."""


class AccountStates:
    """The accounts of one feedback service."""

    def __init__(self, accounts: Accounts, clock: Clock, observer: FeedbackObserver) -> None:
        self._accounts = accounts
        self._clock = clock
        self._observer = observer
        self._now: dict[str, WatchedAccount] = {}
        self._everybody: set[str] = set()
        self._unwritten: set[str] = set()
        self._anew = True
        self._written = clock.now() - AGAIN

    def watch(self, names: Collection[str], *, everybody: Collection[str] | None = None) -> None:
        """Have these accounts on our list, and no others.

        `everybody`: those that other workers watch besides; without it, nobody else watches any.
        """
        self._everybody = set(names if everybody is None else everybody)
        for name in names - self._now.keys():
            self._set(
                WatchedAccount(
                    name=name,
                    state=AccountState.NOT_YET,
                    since=self._clock.now(),
                    reason="",
                    silent=False,
                )
            )
        for name in self._now.keys() - set(names):
            del self._now[name]
        self._anew = True
        self._count()

    def opened(self, name: str) -> None:
        """Say that an account is watched."""
        self._become(name, AccountState.WATCHING, "")

    def lost(self, name: str, reason: str) -> None:
        """Say that an account can't be watched now, and why, in words."""
        self._become(name, AccountState.LOST, reason)

    def heard(self, name: str, *, silent: bool) -> None:
        """Say whether an account's server keeps silent in IDLE about what happens."""
        if name in self._now and self._now[name].silent is not silent:
            self._set(replace(self._now[name], silent=silent))

    async def write(self) -> None:
        """Write what changed since; what can't be written now waits."""
        now = self._clock.now()
        if abs(now - self._written) >= AGAIN:
            self._unwritten |= self._now.keys()
        names = sorted(self._unwritten & self._now.keys())
        try:
            if self._anew:
                self._anew = False
                await self._accounts.leave(self._everybody)
            self._unwritten.clear()  # what changes while we write is written next time
            if names:
                await self._accounts.write([self._now[name] for name in names], now)
                self._written = now if len(names) == len(self._now) else self._written
        except TemporaryError:
            self._anew = True
            self._unwritten.update(names)

    def _become(self, name: str, state: AccountState, reason: str) -> None:
        before = self._now.get(name)
        if before is None or (before.state, before.reason) == (state, reason):
            return
        since = before.since if before.state is state else self._clock.now()
        self._set(replace(before, state=state, since=since, reason=reason))
        self._count()

    def _set(self, account: WatchedAccount) -> None:
        self._now[account.name] = account
        self._unwritten.add(account.name)

    def _count(self) -> None:
        self._observer.watched(Counter(one.state for one in self._now.values()))
