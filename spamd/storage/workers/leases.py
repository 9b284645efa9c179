"""Named leases (the port `Leases`): of several equal workers one does the work.

The holder renews its lease well before it runs out; when it dies, another takes over then. Clocks
of machines that share a database must agree better than a lease is long; one that was renewed
further ahead than that is from before the clock was set back, and nobody's.
"""

from datetime import timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.feedback.ports import LeaseHolder
from spamd.ports import Clock
from spamd.storage.engine import Database, retried, upsert
from spamd.storage.tables import lease
from spamd.storage.times import from_number, to_number


class SqlLeases:
    """Leases in the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @retried
    async def acquire(self, name: str, holder: str, seconds: float) -> bool:
        now = self._clock.now()
        ahead = to_number(now + timedelta(seconds=seconds))
        async with self._database.writing() as connection:
            insert = upsert(connection)(lease).values(
                name=name, holder=holder, renewed=to_number(now), expires=ahead
            )
            # One statement, so that two who come at once can't both find it free.
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
            found = await _holder(connection, name)
        return found is not None and found.holder == holder

    @retried
    async def release(self, name: str, holder: str) -> None:
        ours = (lease.c.name == name, lease.c.holder == holder)
        async with self._database.writing() as connection:
            await connection.execute(delete(lease).where(*ours))

    async def holder(self, name: str) -> LeaseHolder | None:
        async with self._database.reading() as connection:
            found = await _holder(connection, name)
        return found if found and found.expires > self._clock.now() else None


async def _holder(connection: AsyncConnection, name: str) -> LeaseHolder | None:
    row = (await connection.execute(select(lease).where(lease.c.name == name))).first()
    if row is None:
        return None
    return LeaseHolder(
        holder=row.holder, renewed=from_number(row.renewed), expires=from_number(row.expires)
    )
