"""Mail that our own users send through us: noted in memory, written down some seconds later.

So neither a slow nor an absent database delays a mail. What waits is bounded; beyond that it is
left out: whoever writes to somebody once more makes it known then.
"""

from collections.abc import Callable, Sequence

from spamd.feedback.ports import Correspondents, Written
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
        user_of: returns the user that a login name means.
        clock: tells when it was.
    """

    def __init__(
        self, correspondents: Correspondents, user_of: Callable[[str], str], clock: Clock
    ) -> None:
        self._correspondents = correspondents
        self._user_of = user_of
        self._clock = clock
        self._waiting: dict[str, list[Written]] = {}
        self._addresses = 0

    def sent(self, login: str, recipients: Sequence[bytes]) -> None:
        """Note the recipients of a mail from a client that has logged in; never fails."""
        names = (each.decode("utf-8", "replace") for each in recipients[:MOST_RECIPIENTS])
        addresses = tuple(filter(None, map(address_name, names)))
        user = self._user_of(login)
        if user and addresses and self._addresses + len(addresses) <= MOST_WAITING:
            mail = Written(time=self._clock.now(), addresses=addresses)
            self._waiting.setdefault(user, []).append(mail)
            self._addresses += len(addresses)

    async def flush(self) -> None:
        """Write down what waits.

        Raises:
            StorageUnavailable: the rest goes on waiting.
        """
        while self._waiting:
            user = next(iter(self._waiting))
            mails = tuple(self._waiting[user])
            await self._correspondents.wrote(user, mails)
            self._forget(user, mails)

    def _forget(self, user: str, mails: Sequence[Written]) -> None:
        """Let go of what was written down; more may have come meanwhile."""
        waiting = self._waiting
        waiting[user] = waiting[user][len(mails) :]
        if not waiting[user]:
            del waiting[user]
        self._addresses -= sum(len(mail.addresses) for mail in mails)
