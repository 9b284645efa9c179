"""Sessions: begun by a login, known by a secret that only the browser holds, ended by time.

The database keeps the SHA-256 of the secret, so whoever reads it can't take a session over. A
session ends by logging out, when it was not used for a while, and some days after its login
whatever happens; every worker knows it.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from spamd.admin.ports import Sessions, StoredSession
from spamd.admin.roles import Role
from spamd.ports import Clock

SECRET_BYTES = 32
SECRET_CHARACTERS = 43
"""Of the secret in base64, without padding."""

NOTED_EVERY = timedelta(minutes=1)
"""That a session is used is written down no more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAges:
    """How long a session lasts: unused, and at most."""

    idle: timedelta
    most: timedelta


class Logins:
    """Opens, finds and ends sessions.

    Args:
        sessions: returns where they are kept; it may raise `StorageUnavailable`.
        clock: the time.
        random: returns so many octets that nobody can guess.
        ages: how long they last.
    """

    def __init__(
        self,
        sessions: Callable[[], Sessions],
        clock: Clock,
        random: Callable[[int], bytes],
        ages: SessionAges,
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._random = random
        self._ages = ages

    async def open(self, role: Role, name: str) -> str:
        """Begin a session; return its secret.

        Raises:
            StorageUnavailable: it can't be kept.
        """
        secret = urlsafe_b64encode(self._random(SECRET_BYTES)).decode("ascii").rstrip("=")
        now = self._clock.now()
        row = StoredSession(digest=digest_of(secret), role=role, name=name, created=now, seen=now)
        ages = self._ages
        await self._sessions().open(row, ended=now - ages.most, idle=now - ages.idle)
        return secret

    async def find(self, secret: str) -> StoredSession | None:
        """Return the session that has this secret, None when there is none or it has ended.

        Raises:
            StorageUnavailable: nobody knows.
        """
        if len(secret) != SECRET_CHARACTERS or not secret.isascii():
            return None
        sessions = self._sessions()
        found = await sessions.find(digest_of(secret))
        if found is None:
            return None
        now = self._clock.now()
        if now - found.created >= self._ages.most or now - found.seen >= self._ages.idle:
            await sessions.close(found.digest)
            return None
        if now - found.seen >= NOTED_EVERY:
            await sessions.seen(found.digest, now)
        return found

    async def close(self, secret: str) -> None:
        """End a session.

        Raises:
            StorageUnavailable: it has not ended.
        """
        await self._sessions().close(digest_of(secret))


def digest_of(secret: str) -> bytes:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("ascii", "replace")).digest()
