"""The lists as people keep them: entries are added, removed and shown.

Commands, the API and the folders of mailboxes all come here, so that an entry is the same however
it was made. What is added for a name that has an entry takes its place.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from spamd.lists.entry import Effect, Entry, EntryError, Kind, checked, named
from spamd.message.authentication.proof import AuthOptions
from spamd.message.authentication.sender import Sender

FOLDER = "folder"
"""The source of entries that were made by moving a mail."""


class EntryStore(Protocol):
    """Where entries are kept."""

    async def put(self, entry: Entry) -> Entry:
        """Keep an entry in place of one for the same name; return it with its number."""
        ...

    async def remove(self, owner: str, kind: Kind, value: str, effect: Effect) -> bool:
        """Remove an entry; return whether there was one."""
        ...

    async def all(self, owner: str | None = None) -> Sequence[Entry]:
        """Return the entries of an owner, or all, in the order of their numbers."""
        ...


class ListBook:
    """Keeps the lists.

    Args:
        store: where the entries are.
        options: which domains are our own.
        now: the time of day in UTC.
    """

    def __init__(
        self, store: EntryStore, options: AuthOptions, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._options = options
        self._now = now

    async def add(
        self,
        effect: Effect,
        text: str,
        *,
        owner: str = "",
        unproven: bool = False,
        expires: datetime | None = None,
        source: str = "command",
    ) -> Entry:
        """Add an entry for what a text names; return it as it is kept.

        Raises:
            EntryError: it names nothing, or would let in what it must not.
            StorageUnavailable: it is not kept.
        """
        kind, value = named(text)
        now = self._now()
        if expires is not None and expires <= now:
            raise EntryError("the entry would have expired already")
        entry = Entry(
            effect=effect,
            kind=kind,
            value=value,
            owner=owner,
            unproven=unproven,
            expires=expires,
            source=source,
            created=now,
        )
        return await self._store.put(checked(entry, self._options))

    async def add_sender(
        self, effect: Effect, sender: Sender, *, owner: str, expires: datetime | None = None
    ) -> Entry | None:
        """Add the one sender of a mail that a person has put into a folder; None if it has none.

        Only ever an address, and never without proof. An entry that is there already stays.

        Raises:
            StorageUnavailable: it is not kept.
        """
        if not sender.address:
            return None
        there = await self._of(sender, owner)
        if there is not None and there.effect is effect and there.source != FOLDER:
            return there
        return await self.add(effect, sender.address, owner=owner, expires=expires, source=FOLDER)

    async def take_back(self, effect: Effect, sender: Sender, *, owner: str) -> bool:
        """Remove the entry that a folder has made for a sender; return whether there was one.

        Raises:
            StorageUnavailable: nothing has changed.
        """
        there = await self._of(sender, owner) if sender.address else None
        if there is None or there.effect is not effect or there.source != FOLDER:
            return False
        return await self._store.remove(owner, there.kind, there.value, effect)

    async def _of(self, sender: Sender, owner: str) -> Entry | None:
        key = (owner, Kind.ADDRESS, sender.address)
        found = await self._store.all(owner)
        return next((entry for entry in found if entry.key == key), None)

    async def remove(self, effect: Effect, text: str, *, owner: str = "") -> bool:
        """Remove the entry for what a text names; return whether there was one.

        Raises:
            EntryError: it names nothing.
            StorageUnavailable: nothing has changed.
        """
        kind, value = named(text)
        return await self._store.remove(owner, kind, value, effect)

    async def entries(
        self, effect: Effect | None = None, owner: str | None = None
    ) -> Sequence[Entry]:
        """Return the entries in force, of one owner or of all.

        Raises:
            StorageUnavailable: they can't be read.
        """
        now = self._now()
        return [
            entry
            for entry in await self._store.all(owner)
            if (effect is None or entry.effect is effect)
            and (entry.expires is None or entry.expires > now)
        ]


def owner_of(user: str = "", domain: str = "") -> str:
    """Return the owner that a user's or a domain's name means; of both the user counts."""
    return user or (f"@{domain.lstrip('@')}" if domain else "")
