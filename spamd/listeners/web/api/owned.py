"""Lists of senders and wishes, by the API; for teachers."""

from typing import Annotated

from pydantic import Field

from spamd.admin.people.owned import EntriesNow, EntryRow, WishesNow
from spamd.admin.roles import Role
from spamd.bayes.wishes import Wishes
from spamd.listeners.web.api.for_whom import refusing
from spamd.listeners.web.api.operation import (
    Asked,
    Name,
    Operation,
    Operations,
    Text,
    Time,
    Visit,
)
from spamd.lists.entry import Effect
from spamd.users.wishes import NAMES, Wished

Share = Annotated[float, Field(gt=0, le=1)]


class Owner(Asked):
    """Whose; neither: the site's, or all."""

    user: Text = ""
    domain: Text = ""


class Listed(Owner):
    """Which entries are meant."""

    effect: Effect | None = None


class OneEntry(Owner):
    """An address, a domain, a network, list:LIST-ID or to:RECIPIENT that is let in or kept out."""

    effect: Effect
    name: Name


class NewEntry(OneEntry):
    """An entry that is added."""

    unproven: bool = False
    expires: Time | None = None


class Wish(Owner):
    """What is wished besides; what is left out stays as it was."""

    tag_from: Share | None = None
    reject_from: Share | None = None
    tag: bool | None = None
    reject: bool | None = None


async def entries(visit: Visit, asked: Listed) -> EntriesNow:
    """Return entries."""
    with refusing():
        return await visit.office.owned.entries(
            asked.effect, asked.user, asked.domain, people=visit.people
        )


async def add_entry(visit: Visit, asked: NewEntry) -> EntryRow:
    """Add an entry."""
    with refusing():
        return await visit.office.owned.add(
            asked.effect,
            asked.name,
            asked.user,
            asked.domain,
            unproven=asked.unproven,
            expires=asked.expires,
        )


async def remove_entry(visit: Visit, asked: OneEntry) -> EntriesNow | None:
    """Remove an entry; return what is left of the owner's."""
    owned = visit.office.owned
    with refusing():
        if not await owned.remove(asked.effect, asked.name, asked.user, asked.domain):
            return None
        return await owned.entries(asked.effect, asked.user, asked.domain, people=visit.people)


async def wishes(visit: Visit, asked: Owner) -> WishesNow:
    """Return wishes."""
    with refusing():
        return await visit.office.owned.wishes(asked.user, asked.domain, people=visit.people)


async def wish(visit: Visit, asked: Wish) -> Wished:
    """Wish more."""
    with refusing():
        changes = Wishes(
            tag_from=asked.tag_from,
            reject_from=asked.reject_from,
            tag=asked.tag,
            reject=asked.reject,
        )
        return await visit.office.owned.wish(asked.user, asked.domain, changes)


async def forget_wishes(visit: Visit, asked: Owner) -> Wished:
    """Take all wishes of an owner back."""
    with refusing():
        return await visit.office.owned.wish(asked.user, asked.domain, Wishes(), NAMES)


def operations() -> Operations:
    """Return what can be done with them."""
    teacher = Role.TEACHER
    return (
        Operation(
            method="GET", path="/api/lists", role=teacher, asks=Listed, gives=EntriesNow,
            do=entries, summary="Whose mail is let in or kept out",
        ),
        Operation(
            method="POST", path="/api/lists", role=teacher, asks=NewEntry, gives=EntryRow,
            do=add_entry, summary="Add an entry, in place of one for the same name",
        ),
        Operation(
            method="DELETE", path="/api/lists", role=teacher, asks=OneEntry, gives=EntriesNow,
            do=remove_entry, summary="Remove an entry: those that are left",
        ),
        Operation(
            method="GET", path="/api/wishes", role=teacher, asks=Owner, gives=WishesNow, do=wishes,
            summary="What users and domains wish to be done with spam",
        ),
        Operation(
            method="PUT", path="/api/wishes", role=teacher, asks=Wish, gives=Wished, do=wish,
            summary="Wish more for a user or a domain",
        ),
        Operation(
            method="DELETE", path="/api/wishes", role=teacher, asks=Owner, gives=Wished,
            do=forget_wishes, summary="Take back all wishes of a user or a domain",
        ),
    )  # fmt: skip
