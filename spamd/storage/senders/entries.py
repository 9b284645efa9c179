"""The entries of lists in the database (`EntryStore`).

Numbers only grow, and each removal is counted: so processes that follow (`senders`) know what is
new. An entry that takes the place of another is a new one.
"""

from collections.abc import AsyncIterator, Sequence

from sqlalchemy import delete, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.lists.entry import Effect, Entry, Kind
from spamd.storage.engine import Database, retried, upsert
from spamd.storage.people_tables import list_entry, removals
from spamd.storage.senders.rows import ENTRIES, entry_of
from spamd.storage.times import to_number


class SqlEntries:
    """The entries in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @retried
    async def put(self, entry: Entry) -> Entry:
        """Keep an entry in place of one for the same name; return it with its number."""
        async with self._database.writing() as connection:
            return await put_entry(connection, entry)

    @retried
    async def remove(self, owner: str, kind: Kind, value: str, effect: Effect) -> bool:
        """Remove an entry; return whether there was one."""
        row = list_entry.c
        these = (row.owner == owner, row.kind == kind.value, row.value == value)
        async with self._database.writing() as connection:
            gone = await connection.execute(
                delete(list_entry).where(*these, row.effect == effect.value)
            )
            if gone.rowcount:
                await count_removal(connection, ENTRIES)
            return bool(gone.rowcount)

    @retried
    async def add_missing(self, entries: Sequence[Entry]) -> int:
        """Keep entries that an import brings; one that is there for the same name stays."""
        async with self._database.writing() as connection:
            there = {entry.key async for entry in walk(connection)}
            fresh = [entry for entry in entries if entry.key not in there]
            for entry in fresh:
                await put_entry(connection, entry)
        return len(fresh)

    async def all(self, owner: str | None = None) -> Sequence[Entry]:
        """Return the entries of an owner, or all, in the order of their numbers."""
        wanted = select(list_entry).order_by(list_entry.c.id)
        if owner is not None:
            wanted = wanted.where(list_entry.c.owner == owner)
        async with self._database.reading() as connection:
            return [entry_of(row) for row in (await connection.execute(wanted)).mappings()]


async def walk(connection: AsyncConnection) -> AsyncIterator[Entry]:
    """Yield all entries in the order of their numbers."""
    rows = await connection.stream(select(list_entry).order_by(list_entry.c.id))
    async for row in rows.mappings():
        yield entry_of(row)


async def put_entry(connection: AsyncConnection, entry: Entry) -> Entry:
    """Keep an entry in place of one for the same name, in a transaction of the caller's."""
    row = list_entry.c
    same = (row.owner == entry.owner, row.kind == entry.kind.value, row.value == entry.value)
    if (await connection.execute(delete(list_entry).where(*same))).rowcount:
        await count_removal(connection, ENTRIES)
    values = {
        "owner": entry.owner,
        "kind": entry.kind.value,
        "value": entry.value,
        "effect": entry.effect.value,
        "unproven": entry.unproven,
        "expires": None if entry.expires is None else to_number(entry.expires),
        "source": entry.source,
        "created": 0 if entry.created is None else to_number(entry.created),
    }
    added = await connection.execute(insert(list_entry).values(values).returning(list_entry))
    return entry_of(added.mappings().one())


async def forget_user(connection: AsyncConnection, user: str) -> int:
    """Remove a user's entries, and those of anybody that name them; return how many there were."""
    row = list_entry.c
    names = row.kind.in_((Kind.RECIPIENT.value, Kind.ADDRESS.value)) & (row.value == user)
    his = or_(row.owner == user, names)
    gone = (await connection.execute(delete(list_entry).where(his))).rowcount
    if gone:
        await count_removal(connection, ENTRIES)
    return gone


async def entries_of(connection: AsyncConnection, user: str) -> Sequence[Entry]:
    """Return a user's entries."""
    wanted = select(list_entry).where(list_entry.c.owner == user).order_by(list_entry.c.id)
    return [entry_of(row) for row in (await connection.execute(wanted)).mappings()]


async def count_removal(connection: AsyncConnection, name: str) -> None:
    """Note that rows of a table that is followed were removed."""
    fresh = upsert(connection)(removals).values(name=name, number=1)
    changed = fresh.on_conflict_do_update(
        index_elements=[removals.c.name], set_={"number": removals.c.number + 1}
    )
    await connection.execute(changed)
