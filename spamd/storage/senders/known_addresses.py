"""To whom people have written: keyed hashes in the database, for each user so many."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from sqlalchemy import case, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.lists.known import KnownOptions, address_hash
from spamd.lists.ports import Written
from spamd.storage.engine import Database, chunks, retried, upsert
from spamd.storage.people_tables import known_address
from spamd.storage.senders.entries import count_removal
from spamd.storage.senders.rows import KNOWN
from spamd.storage.tables import corpus
from spamd.storage.times import to_number


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRow:
    """One address of one user, as an export has it; `key` tells whose secret the hashes need."""

    key: str
    owner: str
    pair: int
    address: int
    times: int
    last: int


class SqlKnownAddresses:
    """The addresses to which users have written, in the database (`Correspondents`).

    Args:
        database: where they are.
        options: how many are kept.
    """

    def __init__(self, database: Database, options: KnownOptions) -> None:
        self._database = database
        self._options = options

    @retried
    async def wrote(self, user: str, mails: Sequence[Written]) -> None:
        """Note to whom a user has written; the addresses beyond the limit go."""
        seen: dict[str, list[int]] = {}
        for mail in mails:
            for address in set(mail.addresses):
                seen.setdefault(address, []).append(to_number(mail.time))
        if not seen:
            return
        async with self._database.writing() as connection:
            key = await _secret(connection)
            rows = [
                {
                    "owner": user,
                    "pair": address_hash(key, address, user),
                    "address": address_hash(key, address),
                    "times": len(times),
                    "last": max(times),
                }
                for address, times in seen.items()
            ]
            rows.sort(key=lambda row: str(row["pair"]))  # two writers lock them in one order
            await _put(connection, rows)
            await _keep(connection, user, self._options.most)

    async def add_missing(self, rows: Sequence[KnownRow]) -> int:
        """Keep rows that an import brings, those made with our key; return how many are new."""
        async with self._database.writing() as connection:
            ours = key_check(await _secret(connection))
            there = set((await connection.execute(select(known_address.c.pair))).scalars())
            fresh = [row for row in rows if row.key == ours and row.pair not in there]
            for part in chunks(sorted(fresh, key=lambda row: str(row.pair))):
                await _put(connection, [_columns(row) for row in part])
            return len(fresh)

    async def count(self, owner: str | None = None) -> int:
        """Return how many addresses are known, of one user or of all."""
        wanted = select(func.count()).select_from(known_address)
        if owner is not None:
            wanted = wanted.where(known_address.c.owner == owner)
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one()


async def _put(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    fresh = upsert(connection)(known_address)
    row, new = known_address.c, fresh.excluded
    await connection.execute(
        fresh.on_conflict_do_update(
            index_elements=[row.pair],
            set_={"times": row.times + new.times, "last": new.last},
            where=new.last > row.last,  # a mail that is seen again is not another one
        ),
        rows,
    )


async def _keep(connection: AsyncConnection, owner: str, most: int) -> None:
    """Remove a user's addresses beyond so many: those written to once, then the oldest.

    So what a stolen login writes to thousands does not push out whom its owner knows.
    """
    row = known_address.c
    here = select(func.count()).select_from(known_address).where(row.owner == owner)
    if (await connection.execute(here)).scalar_one() <= most:
        return
    several = case((row.times > 1, 1), else_=0)
    oldest = (
        select(row.id)
        .where(row.owner == owner)
        .order_by(several.desc(), row.last.desc(), row.id.desc())
        .offset(most)
    )
    gone = [number for (number,) in await connection.execute(oldest)]
    for part in chunks(gone):
        await connection.execute(delete(known_address).where(row.id.in_(part)))
    if gone:
        await count_removal(connection, KNOWN)


async def forget_user(connection: AsyncConnection, user: str) -> int:
    """Remove to whom a user has written, and who has written to them; return how many rows."""
    row, key = known_address.c, await _secret(connection)
    his = or_(row.owner == user, row.address == address_hash(key, user))
    gone = await connection.execute(delete(known_address).where(his))
    if gone.rowcount:
        await count_removal(connection, KNOWN)
    return gone.rowcount


async def walk(connection: AsyncConnection) -> AsyncIterator[KnownRow]:
    """Yield all rows in the order in which they came."""
    row, key = known_address.c, key_check(await _secret(connection))
    wanted = select(row.owner, row.pair, row.address, row.times, row.last).order_by(row.id)
    async for owner, pair, address, times, last in await connection.stream(wanted):
        yield KnownRow(key=key, owner=owner, pair=pair, address=address, times=times, last=last)


def row_of(line: Mapping[str, Any]) -> KnownRow:
    """Return the row that a line of an export holds.

    Raises:
        KeyError, TypeError, ValueError: it holds none.
    """
    return KnownRow(
        key=str(line["key"]),
        owner=str(line["owner"]),
        **{name: int(np.int64(line[name])) for name in ("pair", "address", "times", "last")},
    )


def key_check(key: bytes) -> str:
    """Return what tells whether hashes were made with a key, and not the key."""
    return blake2b(digest_size=8, key=key[:64], person=b"spamd known key").hexdigest()


def _columns(row: KnownRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("owner", "pair", "address", "times", "last")}


async def _secret(connection: AsyncConnection) -> bytes:
    found: bytes = (await connection.execute(select(corpus.c.secret))).scalar_one()
    return found
