"""How each watched account fares, for other processes to see (the port `Accounts`)."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import select, update

from spamd.feedback.ports import AccountState, WatchedAccount
from spamd.storage.engine import Database, chunks, put, retried
from spamd.storage.tables import account
from spamd.storage.times import from_number, to_number


class SqlAccounts:
    """The states of accounts in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accounts(self) -> Sequence[WatchedAccount]:
        there = account.c.state != AccountState.LEFT.value
        async with self._database.reading() as connection:
            rows = await connection.execute(select(account).where(there).order_by(account.c.name))
            return [
                WatchedAccount(
                    name=row.name,
                    state=AccountState(row.state),
                    since=from_number(row.since),
                    reason=row.reason,
                    silent=row.silent,
                )
                for row in rows
            ]

    @retried
    async def write(self, accounts: Sequence[WatchedAccount], watched: datetime) -> None:
        rows = [
            {
                "name": each.name,
                "state": each.state.value,
                "since": to_number(each.since),
                "reason": each.reason,
                "silent": each.silent,
                "watched": to_number(watched),
            }
            for each in accounts
        ]
        async with self._database.writing() as connection:
            await put(connection, account, rows)

    @retried
    async def leave(self, kept: Collection[str]) -> None:
        gone = sorted(each.name for each in await self.accounts() if each.name not in kept)
        for part in chunks(gone):
            these = account.c.name.in_(part)
            async with self._database.writing() as connection:
                left = update(account).where(these).values(state=AccountState.LEFT.value)
                await connection.execute(left)
