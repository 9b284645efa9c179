"""What is told of senders, and who remembers it: the lists, and to whom people write.

`storage` implements it; feedback and the listeners tell.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from spamd.lists.entry import Effect, Entry
from spamd.message.authentication.sender import Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A mail that a user wrote: when, and to whom, each address in its one spelling."""

    time: datetime
    addresses: Sequence[str]


class Correspondents(Protocol):
    """To whom users have written: never the addresses, only their keyed hashes."""

    async def wrote(self, user: str, mails: Sequence[Written]) -> None:
        """Note to whom a user has written; the same mail once more changes nothing."""
        ...


UserOf = Callable[[str], Awaitable[str | None]]
"""Returns the user whom the name of an account or a login means; "" for nobody, None: who that is
can't be asked now."""


class SenderLists(Protocol):
    """The lists of whom people let in and keep out."""

    async def add_sender(
        self, effect: Effect, sender: Sender, *, owner: str, expires: datetime | None = None
    ) -> Entry | None:
        """Add the one sender of a mail that a person has put into a folder; None if it has none."""
        ...

    async def take_back(self, effect: Effect, sender: Sender, *, owner: str) -> bool:
        """Remove the entry that a folder has made; return whether there was one."""
        ...
