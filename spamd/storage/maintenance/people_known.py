"""All that is known of a user: counted, copied to another name, forgotten.

What the site has learned by a user's word goes with that word, by `UserTrainer.forget_all`; here
goes the rest, in one transaction.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Table, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.storage.layers.tables import user_lesson
from spamd.storage.people import wishes
from spamd.storage.people_tables import known_address, list_entry, wish
from spamd.storage.senders import entries, known_addresses
from spamd.storage.tables import (
    account,
    cursor,
    held,
    kept,
    lesson,
    parked,
    scan,
    session,
    sighting,
)

NOBODY = "forgotten"
"""Stands as the actor of lessons for the site that somebody gave who is forgotten."""

BY_ACCOUNT: tuple[Table, ...] = (cursor, sighting, kept, parked)

COUNTED = {
    "lessons": user_lesson.c.user,
    "list_entries": list_entry.c.owner,
    "wishes": wish.c.owner,
    "known_addresses": known_address.c.owner,
    "scans": scan.c.user,
}
"""What is told of a user, and where it lies."""


async def counted(
    connection: AsyncConnection, user: str | None = None
) -> dict[str, dict[str, int]]:
    """Return by user how many rows of each kind there are, of one user or of all."""
    found: dict[str, dict[str, int]] = {}
    for name, owner in COUNTED.items():
        wanted = select(owner, func.count()).group_by(owner)
        wanted = (
            wanted.where(owner.not_like("@%"), owner != "")
            if user is None
            else wanted.where(owner == user)
        )
        for who, number in await connection.execute(wanted):
            found.setdefault(who, dict.fromkeys(COUNTED, 0))[name] = number
    return dict(sorted(found.items()))


async def accounts(connection: AsyncConnection) -> list[str]:
    """Return the names of all accounts whose mail was looked at."""
    names = set((await connection.execute(select(account.c.name))).scalars())
    for table in BY_ACCOUNT:
        names |= set((await connection.execute(select(table.c.account).distinct())).scalars())
    return sorted(names)


def login_of(name: str) -> str:
    """Return who logs in to an account (`AccountOptions.key`)."""
    if name.startswith("maildir:"):
        return name.rstrip("/").rpartition("/")[2]
    return name.rpartition("@")[0]


async def forget_rows(
    connection: AsyncConnection, user: str, names: Collection[str]
) -> Mapping[str, int]:
    """Remove what there is of a user but their lessons; `names` are those of their accounts."""
    gone = {
        "wishes": await wishes.forget_user(connection, user),
        "list_entries": await entries.forget_user(connection, user),
        "known_addresses": await known_addresses.forget_user(connection, user),
        "scans": (await connection.execute(delete(scan).where(scan.c.user == user))).rowcount,
    }
    logins = {user, *map(login_of, names)}
    for table in BY_ACCOUNT:
        await connection.execute(delete(table).where(table.c.account.in_(names)))
    await connection.execute(delete(account).where(account.c.name.in_(names)))
    await connection.execute(delete(session).where(session.c.name.in_(logins)))
    await connection.execute(delete(held).where(held.c.actor.in_(logins)))
    await connection.execute(update(lesson).where(lesson.c.actor.in_(logins)).values(actor=NOBODY))
    return gone
