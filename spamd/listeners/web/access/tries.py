"""Passwords that clients try: right or wrong, and how often wrong.

Wrong ones are counted by network: after `TRIES` a minute none of that network is looked at. One is
tried at a time, so that a crowd of clients finds out no more than one of them would, and takes no
more memory. Each worker counts by itself.
"""

import asyncio
import hashlib
import os
from collections import OrderedDict, deque
from collections.abc import Mapping

from spamd.admin.roles import Role
from spamd.listeners.web.access.passwords import PasswordHash
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.peer import Peer
from spamd.network.shared import Shared

TRIES = 10
"""Wrong passwords of one network within `WINDOW_S`: more than a person mistypes."""

WINDOW_S = 60.0

NETWORKS = 1000
"""Networks whose wrong passwords are remembered."""

WRONG = "the password is missing or wrong"
SLOWED = "too many wrong passwords, wait a minute"


class Tries:
    """Counts what was wrong, for passwords and tokens together."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, peer: Peer) -> None:
        """Return if this client may try.

        Raises:
            Refusal: too many of its network's were wrong.
        """
        if len(self._of(peer)) >= TRIES:
            raise Refusal(429, SLOWED, {"retry-after": f"{WINDOW_S:.0f}"})

    def count(self, peer: Peer) -> None:
        """Count one as wrong."""
        key, wrong = self._key(peer), self._of(peer)
        wrong.append(self._shared.clock.monotonic())
        self._wrong[key] = wrong
        self._wrong.move_to_end(key)
        if len(self._wrong) > NETWORKS:
            self._wrong.popitem(last=False)

    def forgive(self, peer: Peer) -> None:
        """Take back the last one that was counted."""
        if wrong := self._wrong.get(self._key(peer)):
            wrong.pop()

    def _key(self, peer: Peer) -> str:
        return self._shared.limiter.slot_of(peer.address) or peer.address

    def _of(self, peer: Peer) -> deque[float]:
        wrong = self._wrong.get(self._key(peer), deque())
        now = self._shared.clock.monotonic()
        while wrong and wrong[0] < now - WINDOW_S:
            wrong.popleft()
        return wrong


class PasswordTries:
    """Tells whose password somebody has typed.

    Args:
        tries: counts the wrong ones.
    """

    def __init__(self, tries: Tries) -> None:
        self._tries = tries
        self._key = os.urandom(32)
        self._kept: Mapping[Role, PasswordHash] = {}
        self._known: dict[bytes, Role] = {}
        self._turn = asyncio.Semaphore(1)  # a try takes 32 MiB

    def follow(self, kept: Mapping[Role, PasswordHash]) -> None:
        """Let these passwords in from now on, and no others."""
        self._kept = kept
        self._known = {}

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that have a password."""
        return frozenset(self._kept)

    def mark_of(self, role: Role) -> str:
        """Return what tells the password of a role from the one that it has after a change."""
        kept = self._kept.get(role)
        return "" if kept is None else hashlib.sha256(str(kept).encode()).hexdigest()[:16]

    async def role_of(self, password: bytes, peer: Peer) -> Role:
        """Return whose password it is.

        Raises:
            Refusal: nobody's, or too many were wrong.
        """
        self._tries.check(peer)
        quick = hashlib.blake2b(password, key=self._key).digest()
        if (known := self._known.get(quick)) is not None:
            return known
        self._tries.count(peer)  # until it is known to be right: tries at the same time count
        kept = self._kept
        async with self._turn:
            role = await asyncio.to_thread(_role_of, password, kept)
        if role is None:
            raise Refusal(401, WRONG)
        if kept is self._kept:
            self._known[quick] = role
        self._tries.forgive(peer)
        return role


def _role_of(password: bytes, kept: Mapping[Role, PasswordHash]) -> Role | None:
    """Return whose password it is; all are tried, so that the time tells nothing."""
    right = [role for role, one in kept.items() if one.matches(password)]
    return right[0] if right else None
