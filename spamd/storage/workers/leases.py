"""Named leases (the port `Leases`): of several equal workers one does the work.

The holder renews its lease well before it runs out; when it dies, another takes over then. Clocks
of machines that share a database must agree better than a lease is long; one that was renewed
further ahead than that is from before the clock was set back, and nobody's.
"""

from collections.abc import Mapping, Sequence, Set
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, delete, or_, select

from spamd.feedback.ports import LeaseHolder
from spamd.ports import Clock
from spamd.storage.engine import Database, retried, upsert
from spamd.storage.tables import lease
from spamd.storage.times import from_number, to_number

FORGOTTEN = timedelta(days=1)
"""After it ran out a lease is forgotten: some bear the names of processes that never come again."""


class SqlLeases:
    """Leases in the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def acquire(self, name: str, holder: str, seconds: float) -> bool:
        return name in await self.acquire_all([name], holder, seconds)

    @retried
    async def acquire_all(self, names: Sequence[str], holder: str, seconds: float) -> Set[str]:
        if not names:
            return set()
        now = self._clock.now()
        ahead = to_number(now + timedelta(seconds=seconds))
        rows = [
            {"name": name, "holder": holder, "renewed": to_number(now), "expires": ahead}
            for name in sorted(names)  # all lock in one order
        ]
        async with self._database.writing() as connection:
            insert = upsert(connection)(lease).values(rows)
            old = to_number(now - FORGOTTEN)
            await connection.execute(delete(lease).where(lease.c.expires < old))
            # One statement, so that two who come at once can't both find one free.
            await connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[lease.c.name],
                    set_={
                        "holder": insert.excluded.holder,
                        "renewed": insert.excluded.renewed,
                        "expires": insert.excluded.expires,
                    },
                    where=or_(
                        lease.c.holder == holder,
                        lease.c.expires <= to_number(now),
                        lease.c.renewed > ahead,
                    ),
                )
            )
            ours = select(lease.c.name).where(lease.c.name.in_(names), lease.c.holder == holder)
            return set((await connection.execute(ours)).scalars())

    @retried
    async def held(self, start: str) -> Mapping[str, LeaseHolder]:
        wanted = select(lease).where(lease.c.name.startswith(start, autoescape=True))
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        found = {row.name: _of(row) for row in rows}
        now = self._clock.now()
        return {name: each for name, each in found.items() if each.holds(now)}

    @retried
    async def release(self, names: Sequence[str], holder: str) -> None:
        ours = (lease.c.name.in_(names), lease.c.holder == holder)
        async with self._database.writing() as connection:
            await connection.execute(delete(lease).where(*ours))

    async def holder(self, name: str) -> LeaseHolder | None:
        return (await self.held(name)).get(name)


def _of(row: Row[Any]) -> LeaseHolder:
    return LeaseHolder(
        holder=row.holder, renewed=from_number(row.renewed), expires=from_number(row.expires)
    )
