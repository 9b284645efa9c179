"""What is known of senders, in memory for the mail: the lists, and to whom people have written.

It follows the database as the corpus does (`Store.refresh`): a mail never waits for it, and while
the database is away, what was known before stays in force. Numbers of rows only grow, so what was
added is what has a higher number; each removal is counted (`removals`), and after one all is read
again. So it is when another server of PostgreSQL answers, or the same one started anew: one that
took over may lack the last rows, and give their numbers to others.
"""

from datetime import datetime

from sqlalchemy import Select, func, null, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.lists.known import KnownAddresses, KnownOptions
from spamd.lists.matching import Lists
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import AuthOptions
from spamd.ports import Clock
from spamd.storage.engine import Database
from spamd.storage.people_tables import known_address, list_entry, removals
from spamd.storage.senders.rows import ENTRIES, KNOWN, entry_of
from spamd.storage.tables import corpus
from spamd.storage.times import to_number

ROWS = 2_000
"""Rows read before mail that waits gets a turn."""

State = tuple[tuple[int, datetime | None], int]
"""How often rows of a table were removed, since when its server runs, and its highest number."""


class SendersInMemory:
    """What is known of senders now.

    Args:
        auth: which domains are our own.
        known: what it means that somebody has written to a sender.
        clock: tells which entries have expired.
    """

    def __init__(self, auth: AuthOptions, known: KnownOptions, clock: Clock) -> None:
        self._auth = auth
        self._options = known
        self._clock = clock
        self._lists_at: State | None = None
        self._known_at: State | None = None
        self._expires: datetime | None = None
        self.senders = Senders(lists=Lists(auth), known=KnownAddresses(b"", known))

    async def refresh(self, database: Database) -> None:
        """Bring it to what the database holds.

        Raises:
            StorageUnavailable: it stays as it was.
        """
        async with database.reading() as connection:
            await self._refresh_lists(connection)
            if self._options.enabled:
                await self._refresh_known(connection)

    async def _refresh_lists(self, connection: AsyncConnection) -> None:
        now, row = self._clock.now(), list_entry.c
        there = await state(connection, ENTRIES, select(func.max(row.id)))
        expired = self._expires is not None and self._expires <= now
        if there == self._lists_at and not expired:
            return
        grown = self._lists_at is not None and there[0] == self._lists_at[0] and not expired
        found = self.senders.lists if grown else Lists(self._auth)
        soonest = self._expires if grown else None
        since = self._lists_at[1] if grown and self._lists_at else 0
        in_force = or_(row.expires.is_(None), row.expires > to_number(now))
        wanted = select(list_entry).where(row.id > since, in_force).order_by(row.id)
        async for part in (await connection.stream(wanted)).mappings().partitions(ROWS):
            for entry in map(entry_of, part):
                found.add(entry)
                if entry.expires is not None:
                    soonest = min(soonest or entry.expires, entry.expires)
        self.senders = Senders(lists=found, known=self.senders.known)
        self._lists_at, self._expires = there, soonest

    async def _refresh_known(self, connection: AsyncConnection) -> None:
        row = known_address.c
        there = await state(connection, KNOWN, select(func.max(row.id)))
        if there == self._known_at:
            return
        grown = self._known_at is not None and there[0] == self._known_at[0]
        found = self.senders.known
        if not grown:
            secret = (await connection.execute(select(corpus.c.secret))).scalar() or b""
            found = KnownAddresses(secret, self._options)
        since = self._known_at[1] if grown and self._known_at else 0
        wanted = select(row.pair, row.address).where(row.id > since).order_by(row.id)
        async for part in (await connection.stream(wanted)).partitions(ROWS):
            found.add(number for each in part for number in each)
        self.senders = Senders(lists=self.senders.lists, known=found)
        self._known_at = there


async def state(connection: AsyncConnection, name: str, highest: Select[tuple[int]]) -> State:
    """Return the state of a table that is followed by the numbers of its rows."""
    gone = select(removals.c.number).where(removals.c.name == name).scalar_subquery()
    of_server = connection.dialect.name == "postgresql"
    started = func.pg_postmaster_start_time() if of_server else null()
    wanted = select(gone, highest.scalar_subquery(), started)
    row = (await connection.execute(wanted)).one()
    return (row[0] or 0, row[2]), row[1] or 0
