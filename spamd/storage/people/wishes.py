"""What people wish, in the database (`SqlWishes`) and in memory for the mail (`WishesInMemory`).

Processes follow it as they follow the lists: numbers of rows only grow, a changed wish is a new
row, and each row that went is counted (`removals`).
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.ports import Clock
from spamd.storage.engine import Database, retried
from spamd.storage.people_tables import wish
from spamd.storage.senders.entries import count_removal
from spamd.storage.senders.memory import State, state
from spamd.storage.times import to_number
from spamd.users import wishes as users_wishes
from spamd.users.wishes import NAMES, Wished

WISHES = "wish"
"""Its name in `removals`."""


class SqlWishes:
    """What people wish, in the database.

    Args:
        database: where it is.
        clock: tells when it was wished.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @retried
    async def change(
        self, owner: str, changes: Wishes = NO_WISHES, *, without: Collection[str] = ()
    ) -> Wishes:
        """Wish more, after taking back what is named in `without`; return what is wished then.

        Raises:
            ValueError: the wishes contradict each other.
            StorageUnavailable: nothing has changed.
        """
        async with self._database.writing() as connection:
            there = await wishes_of(connection, owner)
            kept = replace(there, **dict.fromkeys(without))
            wanted = replace(kept, **_given(changes))
            if wanted != there:
                await self._put(connection, owner, wanted)
        return wanted

    @retried
    async def add_missing(self, rows: Sequence[Wished]) -> int:
        """Keep what an import brings for those who wish nothing yet; return for how many."""
        added = 0
        async with self._database.writing() as connection:
            for row in rows:
                if row.wishes != NO_WISHES and await wishes_of(connection, row.owner) == NO_WISHES:
                    await self._put(connection, row.owner, row.wishes)
                    added += 1
        return added

    async def of(self, owner: str) -> Wishes:
        """Return what an owner wishes, without what holds for them besides."""
        async with self._database.reading() as connection:
            return await wishes_of(connection, owner)

    async def all(self) -> Sequence[Wished]:
        """Return all wishes, by owner."""
        async with self._database.reading() as connection:
            return [each async for each in walk(connection)]

    async def _put(self, connection: AsyncConnection, owner: str, wishes: Wishes) -> None:
        await forget_user(connection, owner)
        if wishes != NO_WISHES:
            values = {name: getattr(wishes, name) for name in NAMES}
            changed = to_number(self._clock.now())
            await connection.execute(insert(wish).values(owner=owner, changed=changed, **values))


async def walk(connection: AsyncConnection) -> AsyncIterator[Wished]:
    """Yield all wishes, by owner."""
    rows = await connection.stream(select(wish).order_by(wish.c.owner))
    async for row in rows.mappings():
        yield wished_of(row)


async def wishes_of(connection: AsyncConnection, owner: str) -> Wishes:
    """Return what an owner wishes."""
    row = (await connection.execute(select(wish).where(wish.c.owner == owner))).mappings().first()
    return NO_WISHES if row is None else wished_of(row).wishes


async def forget_user(connection: AsyncConnection, user: str) -> int:
    """Remove what a user wishes; return how many rows that were."""
    gone = (await connection.execute(delete(wish).where(wish.c.owner == user))).rowcount
    if gone:
        await count_removal(connection, WISHES)
    return gone


def wished_of(row: Mapping[Any, Any]) -> Wished:
    """Return what a row holds, of the table or of an export.

    Raises:
        KeyError, TypeError, ValueError: it holds none.
    """
    owner = row["owner"]
    if not isinstance(owner, str) or not owner:
        raise ValueError("a wish is a user's or a domain's")
    numbers = {name: row[name] for name in ("tag_from", "reject_from")}
    choices = {name: row[name] for name in ("tag", "reject")}
    if not all(each is None or isinstance(each, bool) for each in choices.values()):
        raise ValueError("a wish is true, false or null")
    return Wished(owner=owner, wishes=Wishes(**numbers, **choices))


def to_json(wished: Wished) -> dict[str, object]:
    """Return what is wished as an export has it."""
    return {"owner": wished.owner, **users_wishes.to_json(wished.wishes)}


def _given(wishes: Wishes) -> dict[str, Any]:
    """Return those of the wishes that there are."""
    values = {each.name: getattr(wishes, each.name) for each in fields(wishes)}
    return {name: value for name, value in values.items() if value is not None}


class WishesInMemory:
    """What people wish now (`users.ports.WishesSource`)."""

    def __init__(self) -> None:
        self._at: State | None = None
        self._wished: dict[str, Wishes] = {}

    def of(self, user: str) -> Wishes:
        """Return what holds for a user: their wishes, and those of their domain."""
        if not self._wished:
            return NO_WISHES
        return users_wishes.for_user(user, self._wished)

    async def refresh(self, database: Database) -> None:
        """Bring it to what the database holds.

        Raises:
            StorageUnavailable: it stays as it was.
        """
        async with database.reading() as connection:
            there = await state(connection, WISHES, select(func.max(wish.c.id)))
            if there == self._at:
                return
            grown = self._at is not None and there[0] == self._at[0]
            wanted = select(wish).where(wish.c.id > (self._at[1] if grown and self._at else 0))
            rows = (await connection.execute(wanted)).mappings()
            found = {each.owner: each.wishes for each in map(wished_of, rows)}
        self._wished = self._wished | found if grown else found
        self._at = there
