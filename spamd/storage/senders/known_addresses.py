"""To whom people have written: keyed hashes in the database, for each user so many."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.lists.known import KnownOptions, address_hash
from spamd.storage.engine import Database, chunks, retried, upsert
from spamd.storage.senders.entries import count_removal
from spamd.storage.senders.rows import KNOWN
from spamd.storage.tables import known_address
from spamd.storage.times import to_number


class SqlKnownAddresses:
    """The addresses to which users have written, in the database.

    Args:
        database: where they are.
        options: how many are kept.
    """

    def __init__(self, database: Database, options: KnownOptions) -> None:
        self._database = database
        self._options = options

    @retried
    async def note(
        self, key: bytes, owner: str, addresses: Collection[str], time: datetime
    ) -> None:
        """Note that a user has written to these addresses; the oldest beyond the limit go."""
        rows = [
            {
                "owner": owner,
                "pair": address_hash(key, address, owner),
                "address": address_hash(key, address),
                "times": 1,
                "last": to_number(time),
            }
            for address in sorted(set(addresses))
        ]
        if not rows:
            return
        rows.sort(key=lambda row: str(row["pair"]))  # two writers lock them in one order
        async with self._database.writing() as connection:
            fresh = upsert(connection)(known_address)
            row, new = known_address.c, fresh.excluded
            await connection.execute(
                fresh.on_conflict_do_update(
                    index_elements=[row.pair],
                    set_={"times": row.times + 1, "last": new.last},
                    where=new.last > row.last,  # a mail that is seen again is not another one
                ),
                rows,
            )
            await _keep(connection, owner, self._options.most)

    async def count(self, owner: str | None = None) -> int:
        """Return how many addresses are known, of one user or of all."""
        wanted = select(func.count()).select_from(known_address)
        if owner is not None:
            wanted = wanted.where(known_address.c.owner == owner)
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one()


async def _keep(connection: AsyncConnection, owner: str, most: int) -> None:
    """Remove a user's oldest addresses beyond so many."""
    row = known_address.c
    oldest = (
        select(row.id)
        .where(row.owner == owner)
        .order_by(row.last.desc(), row.id.desc())
        .offset(most)
    )
    gone = [number for (number,) in await connection.execute(oldest)]
    for part in chunks(gone):
        await connection.execute(delete(known_address).where(row.id.in_(part)))
    if gone:
        await count_removal(connection, KNOWN)


async def forget_user(connection: AsyncConnection, user: str) -> int:
    """Remove to whom a user has written; return how many addresses that were."""
    gone = await connection.execute(delete(known_address).where(known_address.c.owner == user))
    if gone.rowcount:
        await count_removal(connection, KNOWN)
    return gone.rowcount
