"""What feedback remembers of folders and their mail (the port `Mailboxes`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.feedback.ports import Cursor, KeptState, Parked, Sighting
from spamd.sample import Label
from spamd.storage import tables
from spamd.storage.engine import Database, chunks, put, retried
from spamd.storage.times import from_number, to_number

CURSOR, SEEN, PARKED, KEPT = tables.cursor, tables.sighting, tables.parked, tables.kept

WAITING_STATES = (KeptState.UNREAD.value, KeptState.READ.value)
"""The states of mail that is not kept yet."""


class SqlMailboxes:
    """How far each folder was read, where mails were seen, and what could not be learned."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(CURSOR).where(CURSOR.c.account == account))
            return {row.folder: _cursor(row) for row in rows}

    async def lying(self, account: str, folder: str) -> Sequence[Sighting]:
        here = (SEEN.c.account == account, SEEN.c.folder == folder)
        async with self._database.reading() as connection:
            return [_sighting(row) for row in await connection.execute(select(SEEN).where(*here))]

    async def seen(
        self, account: str, mails: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Sighting]]:
        places: dict[bytes, list[Sighting]] = {}
        async with self._database.reading() as connection:
            for part in chunks(mails):
                wanted = select(SEEN).where(SEEN.c.account == account, SEEN.c.mail.in_(part))
                for row in await connection.execute(wanted):
                    places.setdefault(row.mail, []).append(_sighting(row))
        return places

    @retried
    async def save(
        self,
        account: str,
        cursors: Sequence[Cursor],
        came: Sequence[Sighting] = (),
        left: Sequence[tuple[str, str]] = (),
    ) -> None:
        if not cursors and not came and not left:
            return
        async with self._database.writing() as connection:
            await put(connection, CURSOR, [_cursor_row(cursor) for cursor in cursors])
            await remove(connection, SEEN, account, left)
            await remove(connection, KEPT, account, left, KEPT.c.state.in_(WAITING_STATES))
            await _add_sightings(connection, account, came)

    @retried
    async def rename(self, account: str, old: str, new: str) -> None:
        async with self._database.writing() as connection:
            for table in (CURSOR, SEEN, KEPT):
                mine = table.c.account == account
                await connection.execute(delete(table).where(mine, table.c.folder == new))
                change = update(table).where(mine, table.c.folder == old).values(folder=new)
                await connection.execute(change)

    @retried
    async def forget(self, account: str, folder: str) -> None:
        async with self._database.writing() as connection:
            for table in (CURSOR, SEEN, KEPT):
                here = (table.c.account == account, table.c.folder == folder)
                await connection.execute(delete(table).where(*here))

    @retried
    async def park(self, parked: Parked) -> None:
        row = {
            "account": parked.account,
            "folder": parked.folder,
            "uid": parked.uid,
            "validity": parked.validity,
            "attempts": parked.attempts,
            "reason": parked.reason,
            "time": to_number(parked.time),
            "label": parked.label or "",
        }
        async with self._database.writing() as connection:
            await put(connection, PARKED, [row])

    async def parked(self, account: str | None = None) -> Sequence[Parked]:
        wanted = select(PARKED).order_by(
            PARKED.c.time, PARKED.c.account, PARKED.c.folder, PARKED.c.uid
        )
        if account is not None:
            wanted = wanted.where(PARKED.c.account == account)
        async with self._database.reading() as connection:
            return [
                Parked(
                    account=row.account,
                    folder=row.folder,
                    validity=row.validity,
                    uid=row.uid,
                    attempts=row.attempts,
                    reason=row.reason,
                    time=from_number(row.time),
                    label=Label(row.label) if row.label else None,
                )
                for row in await connection.execute(wanted)
            ]

    @retried
    async def unpark(self, account: str, folder: str, uid: str) -> None:
        here = (PARKED.c.account == account, PARKED.c.folder == folder, PARKED.c.uid == uid)
        async with self._database.writing() as connection:
            await connection.execute(delete(PARKED).where(*here))


def _cursor_row(fresh: Cursor) -> dict[str, object]:
    return {
        "account": fresh.account,
        "folder": fresh.folder,
        "validity": fresh.validity,
        "next_uid": fresh.next_uid,
        "modseq": fresh.modseq,
        "messages": fresh.messages,
        "first_look": fresh.baseline,
        "marked": fresh.marked,
        "time": to_number(fresh.time),
    }


async def remove(
    connection: AsyncConnection,
    table: Table,
    account: str,
    left: Sequence[tuple[str, str]],
    *conditions: ColumnElement[bool],
) -> None:
    """Remove the rows of some mails (folder, key) that fit the conditions."""
    keys: dict[str, list[bytes]] = {}
    for folder, key in left:
        keys.setdefault(folder, []).append(stored(key))
    for folder, gone in sorted(keys.items()):
        here = (table.c.account == account, table.c.folder == folder, *conditions)
        for part in chunks(sorted(gone)):
            await connection.execute(delete(table).where(*here, table.c.mail_key.in_(part)))


async def _add_sightings(
    connection: AsyncConnection, account: str, came: Sequence[Sighting]
) -> None:
    rows = {
        (one.folder, one.key): {
            "account": account,
            "folder": one.folder,
            "mail_key": stored(one.key),
            "mail": one.mail,
            "delivered": one.delivered,
        }
        for one in came
    }
    await put(connection, SEEN, [row for _, row in sorted(rows.items())])


def stored(key: str) -> bytes:
    """Return a key as it is kept: names of files may hold any bytes."""
    return key.encode("utf-8", "surrogateescape")


def key_of(mail_key: bytes) -> str:
    """Return the key that `stored` made of it."""
    return mail_key.decode("utf-8", "surrogateescape")


def _sighting(row: Row[*tuple[Any, ...]]) -> Sighting:
    return Sighting(
        folder=row.folder,
        key=key_of(row.mail_key),
        mail=row.mail,
        delivered=row.delivered,
    )


def _cursor(row: Row[*tuple[Any, ...]]) -> Cursor:
    return Cursor(
        account=row.account,
        folder=row.folder,
        validity=row.validity,
        next_uid=row.next_uid,
        modseq=row.modseq,
        messages=row.messages,
        baseline=row.first_look,
        marked=row.marked,
        time=from_number(row.time),
    )
