"""All that is stored of a user but their lessons: found, and removed in the caller's transaction.

Gone are their wishes, list entries (also those of others that name their address), the addresses
they have written to (and theirs among those of others), scans, what was noted of their mailboxes,
sessions, and lessons that wait for a review. Lessons that they gave for the site at a command line
stay the site's, without their name. What other people have taught stays theirs, whoever wrote it.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Table, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.storage.corpus.codec import decode_features
from spamd.storage.engine import CHUNK, chunks
from spamd.storage.people import wishes
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
from spamd.training.user_ports import Traces

NOBODY = "forgotten"
"""Stands as the actor of lessons for the site that somebody gave who is forgotten."""

BY_ACCOUNT: tuple[Table, ...] = (cursor, sighting, kept, parked)

ADDRESS_FIELDS = ("to", "cc", "from", "sender", "reply-to")
"""Fields of which the words of a mail hold whole addresses (`message.tokens.headers`)."""


async def accounts(connection: AsyncConnection) -> list[str]:
    """Return the names of all accounts whose mail was looked at."""
    names = set((await connection.execute(select(account.c.name))).scalars())
    for table in BY_ACCOUNT:
        names |= set((await connection.execute(select(table.c.account).distinct())).scalars())
    return sorted(names)


async def actors(connection: AsyncConnection) -> list[str]:
    """Return under which names lessons were given, and who is logged in."""
    names = set()
    for column in (lesson.c.actor, held.c.actor, session.c.name):
        names |= set((await connection.execute(select(column).distinct())).scalars())
    return sorted(names)


def login_of(name: str) -> str:
    """Return who logs in to an account (`AccountOptions.key`)."""
    if name.startswith("maildir:"):
        return name.rstrip("/").rpartition("/")[2]
    return name.rpartition("@")[0]


async def scans_naming(connection: AsyncConnection, address: str) -> list[str]:
    """Return the ids of scans of mail that bears an address: it reads all of them."""
    wanted = {f"{field}:{address}" for field in ADDRESS_FIELDS}
    found: list[str] = []
    last = ""
    while True:
        page = select(scan.c.id, scan.c.content).where(scan.c.id > last).order_by(scan.c.id)
        rows = (await connection.execute(page.limit(CHUNK))).all()
        if not rows:
            return found
        last = rows[-1].id
        found += [row.id for row in rows if not wanted.isdisjoint(_words(row.content))]


def _words(content: bytes) -> Sequence[str]:
    return decode_features(content).texts.words


async def forget_rest(connection: AsyncConnection, user: str, traces: Traces) -> Mapping[str, int]:
    """Remove what there is of a user but their lessons; return how much it was, by kind."""
    gone = {
        "wishes": await wishes.forget_user(connection, user),
        "list_entries": await entries.forget_user(connection, user),
        "known_addresses": await known_addresses.forget_user(connection, user),
        "scans": (await connection.execute(delete(scan).where(scan.c.user == user))).rowcount,
    }
    for part in chunks(sorted(traces.scans)):
        these = delete(scan).where(scan.c.id.in_(part))
        gone["scans"] += (await connection.execute(these)).rowcount
    for table in BY_ACCOUNT:
        await connection.execute(delete(table).where(table.c.account.in_(traces.accounts)))
    await connection.execute(delete(kept).where(kept.c.sender == user))
    await connection.execute(delete(account).where(account.c.name.in_(traces.accounts)))
    names = {user, *traces.actors}
    await connection.execute(delete(session).where(session.c.name.in_(names)))
    await connection.execute(delete(held).where(held.c.actor.in_(names)))
    await connection.execute(update(lesson).where(lesson.c.actor.in_(names)).values(actor=NOBODY))
    return gone
