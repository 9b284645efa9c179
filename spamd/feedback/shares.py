"""Who of equal workers watches which accounts, and how many connections a worker keeps for that.

All accounts are cut into `SHARES` by a hash of their names, each held by one worker by a lease. Of
few accounts one worker takes all shares: who holds the first. Of many each takes his part, as many
as the others but for one; who is there is told by leases too. However workers differ in what they
know, of each other or of how many accounts there are, a share has one holder at a time.

When a worker dies or hangs its leases run out, and others take its shares. One that was stopped and
goes on finds by the clock that its leases have run out (`Shares.holds`), before it teaches or
writes anything. A share that is given back is free at the next renewal, when its watchers ended.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from hashlib import blake2b

from spamd.feedback.account_states import LEASE
from spamd.feedback.ports import LeaseHolder, Leases
from spamd.ports import Clock

SHARES = 64
"""A site of more workers has some that watch nothing."""

ALONE = 100
"""Up to so many accounts one worker watches: each that does loads what it takes, some 20 MiB."""

TURNS_PART = 10
"""Where accounts take turns, this part of the connections is for them."""

RENEWALS = 3
"""So often a lease is renewed in its length."""


class LeaseLost(Exception):
    """The account is another worker's by now, or may be."""


class Shares:
    """The shares of one worker.

    Args:
        leases: hold the shares, for all workers.
        holder: names this worker.
        lease_s: how long a lease lasts.
        clock: the time, the same for all workers to some seconds.
    """

    def __init__(self, leases: Leases, holder: str, lease_s: float, clock: Clock) -> None:
        self._leases = leases
        self._holder = holder
        self._lease = timedelta(seconds=lease_s)
        self._clock = clock
        self._presence = f"{LEASE}/{holder}"
        self._leaving: frozenset[int] = frozenset()
        self._until: datetime = clock.now()
        self.mine: frozenset[int] = frozenset()

    @property
    def last(self) -> bool:
        """Whether our leases last until the next renewal; that we hold any."""
        return bool(self.mine) and self._clock.now() + self._lease / RENEWALS < self._until

    def has(self, account: str) -> bool:
        """Return whether an account is in one of our shares."""
        return _share(account) in self.mine

    def holds(self, account: str) -> bool:
        """Return whether an account is ours at this moment: no lease has run out."""
        now = self._clock.now()
        return self._until - self._lease <= now < self._until and self.has(account)

    async def renew(self, accounts: int) -> None:
        """Renew our leases, take what is ours and leave what is too much.

        Raises:
            TemporaryError: the database is away; what is ours stays until it runs out.
        """
        began = self._clock.now()
        if self._leaving:
            await self._leases.release([_name(share) for share in self._leaving], self._holder)
            self._leaving = frozenset()
        held = await self._leases.held(LEASE)
        of = {share: held[_name(share)].holder for share in range(SHARES) if _name(share) in held}
        ours = {share for share, holder in of.items() if holder == self._holder}
        most = await self._most(accounts, of, held)
        free = [share for share in range(SHARES) if share not in of]
        # A worker that takes all begins with the first share, which tells the others.
        wanted = [*sorted(ours), *free][:most]
        got = await self._leases.acquire_all(
            [_name(share) for share in wanted], self._holder, self._lease.total_seconds()
        )
        mine = frozenset(share for share in wanted if _name(share) in got)
        self._leaving = frozenset((ours | self.mine) - mine)
        self.mine, self._until = mine, began + self._lease

    async def _most(self, accounts: int, of: dict[int, str], held: Collection[str]) -> int:
        """Return how many shares we may have."""
        if accounts <= ALONE:
            return SHARES if of.get(0, self._holder) == self._holder else 0
        seconds = self._lease.total_seconds()
        await self._leases.acquire_all([self._presence], self._holder, seconds)
        workers = sorted({name for name in held if name.startswith(f"{LEASE}/")} | {self._presence})
        part, rest = divmod(SHARES, len(workers))
        return part + (workers.index(self._presence) < rest)

    async def release(self) -> None:
        """Give back all."""
        shares, self.mine, self._leaving = self.mine | self._leaving, frozenset(), frozenset()
        names = [self._presence, *map(_name, shares)]
        await self._leases.release(names, self._holder)


def watched_by(held: Mapping[str, LeaseHolder], accounts: Iterable[str]) -> Counter[str]:
    """Return who holds shares by the leases that hold, and how many of some accounts are his."""
    of = {share: held[_name(share)].holder for share in range(SHARES) if _name(share) in held}
    found = Counter(dict.fromkeys(of.values(), 0))
    found.update(of[share] for share in map(_share, accounts) if share in of)
    return found


def _share(account: str) -> int:
    digest = blake2b(account.encode("utf-8", "surrogateescape"), digest_size=4).digest()
    return int.from_bytes(digest, "big") % SHARES


def _name(share: int) -> str:
    return f"{LEASE}:{share}" if share else LEASE


class Seat:
    """A connection that one account may have; `stays` tells whether it may keep it."""

    def __init__(self, seats: "Seats", *, kept: bool) -> None:
        self._seats = seats
        self._kept = kept

    @property
    def stays(self) -> bool:
        """Whether the account may keep its connection for now, and wait for news."""
        return self._kept and not self._seats.crowded


class Seats:
    """The connections of one worker.

    While there are enough each account keeps its own, and waits for news (IDLE). Else most are
    still kept by as many accounts as there are, and the rest is taken by the others in turn, in the
    order in which they came, for one poll each.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._turns = max(1, connections // TURNS_PART)
        self._in_turn = asyncio.Semaphore(self._turns)
        self._kept_most = connections
        self._kept = 0
        self._waiting: dict[object, float] = {}

    def share_out(self, accounts: int) -> None:
        """Say how many accounts there are."""
        crowd = accounts > self._connections
        self._kept_most = self._connections - self._turns if crowd else self._connections

    @property
    def crowded(self) -> bool:
        """Whether more connections are kept than may be."""
        return self._kept > self._kept_most

    @property
    def waited_s(self) -> float:
        """How long the account has waited whose turn is next."""
        now = time.monotonic()
        return now - next(iter(self._waiting.values()), now)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Seat]:
        """Wait for a seat, and have it while the context lasts."""
        if self._kept < self._kept_most:
            self._kept += 1
            try:
                yield Seat(self, kept=True)
            finally:
                self._kept -= 1
            return
        me = object()
        self._waiting[me] = time.monotonic()
        try:
            await self._in_turn.acquire()
        finally:
            del self._waiting[me]
        try:
            yield Seat(self, kept=False)
        finally:
            self._in_turn.release()
