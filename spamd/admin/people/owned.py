"""The lists of senders and the wishes, by owner: the site, a domain, a user.

Where the log may name no people, lists leave out what belongs to users and say how much that is;
what belongs to a user is shown to who names that user.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.errors import TemporaryError
from spamd.lists.book import ListBook, owner_of
from spamd.lists.entry import Effect, Entry, Kind
from spamd.lists.ports import UserOf
from spamd.message.authentication.sender import domain_name
from spamd.users.wishes import Wished

API = "api"
"""The source of entries that the API has made."""


class NoOwner(ValueError):
    """A name is nobody's; the text says so."""


class WishBook(Protocol):
    """Where wishes are kept."""

    async def change(
        self, owner: str, changes: Wishes = NO_WISHES, *, without: Collection[str] = ()
    ) -> Wishes:
        """Wish more, after taking back what is named; return what is wished then."""
        ...

    async def all(self) -> Sequence[Wished]:
        """Return all wishes, by owner."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """An entry; `owner` is "" for the site, "@example.org" for a domain."""

    number: int
    effect: Effect
    kind: Kind
    name: str
    owner: str
    unproven: bool
    expires: datetime | None
    source: str
    created: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesNow:
    """Entries in force; `left_out` belong to users and are not shown."""

    entries: tuple[EntryRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WishesNow:
    """Wishes by owner; `left_out` belong to users and are not shown."""

    wishes: tuple[Wished, ...]
    left_out: int


class Owned:
    """Shows and changes them.

    Args:
        book: the lists.
        wishes: the wishes.
        user_of: who is behind a name.
    """

    def __init__(self, book: ListBook, wishes: WishBook, user_of: UserOf) -> None:
        self._book = book
        self._wishes = wishes
        self._user_of = user_of

    async def owner(self, user: str, domain: str) -> str:
        """Return the owner that names mean, "" for the site.

        Raises:
            NoOwner: they mean nobody.
            TemporaryError: that can't be asked now.
        """
        if user and domain:
            raise NoOwner("give user or domain, not both")
        if domain:
            known = domain_name(domain.lstrip("@"))
            if not known:
                raise NoOwner("domain is none")
            return owner_of(domain=known)
        if not user:
            return ""
        found = await self._user_of(user)
        if found is None:
            raise TemporaryError("who the user is can't be asked now")
        if not found:
            raise NoOwner("user is none")
        return found

    async def entries(
        self, effect: Effect | None, user: str, domain: str, *, people: bool
    ) -> EntriesNow:
        """Return the entries of an owner, or all.

        Raises:
            NoOwner, TemporaryError: as `owner`.
        """
        owner = await self.owner(user, domain)
        found = await self._book.entries(effect, owner or None)
        shown = [each for each in found if people or owner or _is_nobodys(each.owner)]
        return EntriesNow(entries=tuple(map(_row, shown)), left_out=len(found) - len(shown))

    async def add(
        self,
        effect: Effect,
        name: str,
        user: str,
        domain: str,
        *,
        unproven: bool,
        expires: datetime | None,
    ) -> EntryRow:
        """Add an entry, in place of one for the same name.

        Raises:
            ValueError: it can't be.
            TemporaryError: it is not kept.
        """
        owner = await self.owner(user, domain)
        added = await self._book.add(
            effect, name, owner=owner, unproven=unproven, expires=expires, source=API
        )
        return _row(added)

    async def remove(self, effect: Effect, name: str, user: str, domain: str) -> bool:
        """Remove an entry; return whether there was one.

        Raises:
            ValueError: there can't be such an entry.
            TemporaryError: nothing has changed.
        """
        owner = await self.owner(user, domain)
        return await self._book.remove(effect, name, owner=owner)

    async def wishes(self, user: str, domain: str, *, people: bool) -> WishesNow:
        """Return the wishes of an owner, or all.

        Raises:
            NoOwner, TemporaryError: as `owner`.
        """
        owner = await self.owner(user, domain)
        found = [each for each in await self._wishes.all() if each.owner == owner or not owner]
        shown = [each for each in found if people or owner or _is_nobodys(each.owner)]
        return WishesNow(wishes=tuple(shown), left_out=len(found) - len(shown))

    async def wish(
        self, user: str, domain: str, changes: Wishes, without: Collection[str] = ()
    ) -> Wished:
        """Wish more, after taking back what is named; return what is wished then.

        Raises:
            ValueError: nobody can wish that.
            TemporaryError: nothing has changed.
        """
        owner = await self.owner(user, domain)
        if not owner:
            raise NoOwner("say whose wish it is: user or domain")
        now = await self._wishes.change(owner, changes, without=without)
        return Wished(owner=owner, wishes=now)


def _is_nobodys(owner: str) -> bool:
    return not owner or owner.startswith("@")


def _row(entry: Entry) -> EntryRow:
    return EntryRow(
        number=entry.number,
        effect=entry.effect,
        kind=entry.kind,
        name=entry.text,
        owner=entry.owner,
        unproven=entry.unproven,
        expires=entry.expires,
        source=entry.source,
        created=entry.created,
    )
