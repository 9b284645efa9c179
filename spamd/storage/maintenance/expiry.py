"""Lets go of what is too old: scans, changes, accounts nobody watches, mail given up, held lessons.

Everything goes in small batches, each a transaction of its own, so that other writers get their
turn. Of an account that nobody watches any more first the cursors go: when it comes back, the poll
at it is a first one, which teaches nothing, so no old mail is ever taken for new. What an account
that is watched holds stays, however old its mail is.
"""

from dataclasses import dataclass, fields
from datetime import timedelta

from sqlalchemy import ColumnElement, Delete, Table, delete, func, select, tuple_

from spamd.ports import Clock
from spamd.storage.corpus import corpus_tables
from spamd.storage.engine import Database, retried
from spamd.storage.options import Ages
from spamd.storage.people_tables import known_address, list_entry
from spamd.storage.tables import (
    account,
    change,
    cursor,
    held,
    kept,
    mail_hour,
    parked,
    scan,
    sighting,
    taken,
)
from spamd.storage.times import to_number

CHUNK = 500
"""Rows per transaction: some milliseconds."""

TAKEN_DAYS = 6
"""Mail servers try for four or five days (RFC 5321 §4.5.4.1)."""

HOURS_DAYS = 400
"""Days that mails are counted by the hour: a year and the month to compare it with, some 10 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """How many rows went, or would.

    scans      scans past their days
    changes    `change` rows that no running process needs any more
    accounts   accounts that nobody watches any more
    sightings  mails that were seen there
    kept       mails that people might keep, of which the scan is gone, and those of such accounts
    parked     mails that could not be learned and were given up, and those of such accounts
    held       lessons that nobody reviewed
    hours      counts of mails in an hour
    taken      what became of messages that nobody sends again any more
    entries    entries of lists that have expired
    addresses  known addresses to which nobody has written for long
    """

    scans: int
    changes: int
    accounts: int
    sightings: int
    kept: int
    parked: int
    held: int
    hours: int = 0
    taken: int = 0
    entries: int = 0
    addresses: int = 0

    @property
    def total(self) -> int:
        """Return how many rows that are."""
        return sum(getattr(self, each.name) for each in fields(self))


async def expire(database: Database, clock: Clock, ages: Ages, *, dry_run: bool) -> Expired:
    """Let go of what is older than `ages` say, or only count it."""
    old = _Old(database, clock, dry_run=dry_run)
    async with database.reading() as connection:
        version = await corpus_tables.version(connection, lock=False)
    left = account.c.watched < old.before(days=ages.seen_days)
    names = select(account.c.name).where(left)
    folded = change.c.revision <= version.grams_revision
    unused = change.c.time < old.before(hours=ages.changes_hours)
    given_up = parked.c.attempts >= ages.attempts
    await old.remove(cursor, cursor.c.account.in_(names))
    return Expired(
        scans=await old.remove(scan, scan.c.time < old.before(days=ages.scans_days)),
        changes=await old.remove(change, folded & unused),
        sightings=await old.remove(sighting, sighting.c.account.in_(names)),
        kept=await old.remove(
            kept,
            (kept.c.came < old.before(days=ages.scans_days)) | kept.c.account.in_(names),
        ),
        parked=await old.remove(
            parked,
            (given_up & (parked.c.time < old.before(days=ages.parked_days)))
            | parked.c.account.in_(names),
        ),
        held=await old.remove(held, held.c.time < old.before(days=ages.held_days)),
        taken=await old.remove(taken, taken.c.time < old.before(days=TAKEN_DAYS)),
        entries=await old.remove(list_entry, list_entry.c.expires <= old.before()),
        addresses=await old.remove(
            known_address, known_address.c.last < old.before(days=ages.known_days)
        ),
        hours=await old.remove(mail_hour, mail_hour.c.hour < old.before(days=HOURS_DAYS)),
        accounts=await old.remove(account, left),
    )


class _Old:
    def __init__(self, database: Database, clock: Clock, *, dry_run: bool) -> None:
        self._database = database
        self._now = clock.now()
        self._dry_run = dry_run

    def before(self, *, days: int = 0, hours: int = 0) -> int:
        """Return the time so long ago, as the tables have it."""
        return to_number(self._now - timedelta(days=days, hours=hours))

    async def remove(self, table: Table, these: ColumnElement[bool]) -> int:
        """Remove rows in batches, or only count them; return how many."""
        if self._dry_run:
            async with self._database.reading() as connection:
                wanted = select(func.count()).select_from(table).where(these)
                return (await connection.execute(wanted)).scalar_one()
        keys = list(table.primary_key.columns)
        key = keys[0] if len(keys) == 1 else tuple_(*keys)
        some = delete(table).where(key.in_(select(*keys).where(these).limit(CHUNK)))
        removed = 0
        while True:
            batch = await self._done(some)
            removed += batch
            if batch < CHUNK:
                return removed

    @retried
    async def _done(self, statement: Delete) -> int:
        async with self._database.writing() as connection:
            return (await connection.execute(statement)).rowcount
