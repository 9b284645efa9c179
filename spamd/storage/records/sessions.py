"""Who has logged in at the page (the port `Sessions`)."""

from datetime import datetime

from sqlalchemy import delete, select, update

from spamd.admin.ports import StoredSession
from spamd.admin.roles import Role
from spamd.storage.engine import Database, put
from spamd.storage.tables import session
from spamd.storage.times import from_number, to_number


class SqlSessions:
    """Sessions in the database, so that every worker knows them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, one: StoredSession, *, ended: datetime, idle: datetime) -> None:
        row = {
            "digest": one.digest,
            "role": one.role.value,
            "name": one.name,
            "created": to_number(one.created),
            "seen": to_number(one.seen),
        }
        old = (session.c.created < to_number(ended)) | (session.c.seen < to_number(idle))
        async with self._database.writing() as connection:
            await connection.execute(delete(session).where(old))
            await put(connection, session, [row])

    async def find(self, digest: bytes) -> StoredSession | None:
        async with self._database.reading() as connection:
            wanted = select(session).where(session.c.digest == digest)
            row = (await connection.execute(wanted)).first()
        if row is None:
            return None
        return StoredSession(
            digest=row.digest,
            role=Role(row.role),
            name=row.name,
            created=from_number(row.created),
            seen=from_number(row.seen),
        )

    async def seen(self, digest: bytes, time: datetime) -> None:
        change = update(session).where(session.c.digest == digest).values(seen=to_number(time))
        async with self._database.writing() as connection:
            await connection.execute(change)

    async def close(self, digest: bytes | None) -> None:
        gone = delete(session)
        async with self._database.writing() as connection:
            await connection.execute(
                gone if digest is None else gone.where(session.c.digest == digest)
            )
