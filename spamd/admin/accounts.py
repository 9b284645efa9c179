"""The mailboxes from whose moves we learn: how each fares, and the folders found there."""

from dataclasses import dataclass
from datetime import datetime

from spamd.feedback.account_states import LEASE
from spamd.feedback.ports import Accounts, AccountState, Leases, Mailboxes, Parked, WatchedAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRow:
    """A folder that is watched: messages in it, and when it was looked at last."""

    name: str
    messages: int
    looked: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account, and of how many messages learning is still tried or was given up."""

    account: WatchedAccount
    parked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsNow:
    """All accounts, or a part of them; `watched_by` is the worker at it, "" while there is none."""

    accounts: tuple[AccountRow, ...]
    watched_by: str
    in_all: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNow:
    """One account with its folders, and the messages that could not be learned."""

    account: WatchedAccount
    folders: tuple[FolderRow, ...]
    parked: tuple[Parked, ...]


class Watched:
    """Shows accounts.

    Args:
        accounts: how they fare.
        mailboxes: what was found in them.
        leases: who watches them.
    """

    def __init__(self, accounts: Accounts, mailboxes: Mailboxes, leases: Leases) -> None:
        self._accounts = accounts
        self._mailboxes = mailboxes
        self._leases = leases

    async def all(self, begin: int = 0, most: int | None = None) -> AccountsNow:
        """Return the accounts that are to be watched, the lost ones first; from one on, so many.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        accounts = await self._accounts.accounts()
        parked = await self._mailboxes.parked()
        of: dict[str, int] = {}
        for each in parked:
            of[each.account] = of.get(each.account, 0) + 1
        shown = sorted(accounts, key=lambda each: (each.state is not AccountState.LOST, each.name))
        if most is not None:
            shown = shown[begin : begin + most]
        holder = await self._leases.holder(LEASE)
        return AccountsNow(
            accounts=tuple(AccountRow(account=each, parked=of.get(each.name, 0)) for each in shown),
            watched_by=holder.holder if holder else "",
            in_all=len(accounts),
        )

    async def one(self, name: str) -> AccountNow | None:
        """Return an account, None for one that nobody watches.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        account = next((one for one in await self._accounts.accounts() if one.name == name), None)
        if account is None:
            return None
        cursors = await self._mailboxes.cursors(name)
        folders = sorted(cursors.values(), key=lambda cursor: cursor.folder)
        return AccountNow(
            account=account,
            folders=tuple(
                FolderRow(name=each.folder, messages=each.messages, looked=each.time)
                for each in folders
            ),
            parked=tuple(await self._mailboxes.parked(name)),
        )
