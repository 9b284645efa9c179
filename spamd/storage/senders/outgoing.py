"""Mail that our own users send through us: noted in memory, written down some seconds later.

So neither a slow nor an absent database delays a mail. What waits is bounded; beyond that it is
left out: whoever writes to somebody once more makes it known then.
"""

from collections.abc import Sequence

from spamd.lists.ports import Correspondents, UserOf, Written
from spamd.message.authentication.sender import address_name
from spamd.ports import Clock

MOST_RECIPIENTS = 100
"""Of one mail: whoever writes to more knows them by a list."""

MOST_WAITING = 10_000
"""Addresses that may wait: 5 MB at most."""


class OutgoingMail:
    """To whom clients that had logged in have written (`scanning.OutgoingMail`).

    Args:
        correspondents: remembers it.
        user_of: tells which user a login name means.
        clock: tells when it was.
    """

    def __init__(self, correspondents: Correspondents, user_of: UserOf, clock: Clock) -> None:
        self._correspondents = correspondents
        self._user_of = user_of
        self._clock = clock
        self._waiting: dict[str, list[Written]] = {}
        self._addresses = 0

    def sent(self, login: str, recipients: Sequence[bytes]) -> None:
        """Note the recipients of a mail from a client that has logged in; never fails."""
        names = (each.decode("utf-8", "replace") for each in recipients[:MOST_RECIPIENTS])
        addresses = tuple(filter(None, map(address_name, names)))
        if addresses and self._addresses + len(addresses) <= MOST_WAITING:
            mail = Written(time=self._clock.now(), addresses=addresses)
            self._waiting.setdefault(login, []).append(mail)
            self._addresses += len(addresses)

    async def flush(self) -> None:
        """Write down what waits; what a login sent of which nobody can tell whose it is waits on.

        Raises:
            StorageUnavailable: the rest goes on waiting.
        """
        for login in list(self._waiting):
            user = await self._user_of(login) if login else ""  # it was passed through, unread
            if user is None:
                continue
            mails = tuple(self._waiting[login])
            await self._correspondents.wrote(user, mails)
            self._forget(login, mails)

    def _forget(self, login: str, mails: Sequence[Written]) -> None:
        """Let go of what was written down; more may have come meanwhile."""
        waiting = self._waiting
        waiting[login] = waiting[login][len(mails) :]
        if not waiting[login]:
            del waiting[login]
        self._addresses -= sum(len(mail.addresses) for mail in mails)
