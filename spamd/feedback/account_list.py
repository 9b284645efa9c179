"""Who is to be watched: the accounts of the settings, and the users that their files name by now.

A file of users is read again when it has changed. One that can't be read is told as a fault of its
account, in a sentence; who was watched by it before goes on being watched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spamd.errors import ConfigError
from spamd.feedback.options import AccountOptions
from spamd.files import open_regular
from spamd.wording import reason

USERS_BYTES = 16 * 1024 * 1024
"""Read of a file of users: a million names."""

Stamp = tuple[int, int, int, int] | None
"""Tells one state of a file from the next: device, inode, time and size; None: it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One mailbox to be watched: who logs in to an account, for whom."""

    account: AccountOptions
    login: str
    actor: str

    @property
    def key(self) -> str:
        """The name under which its state is kept, as that of its `Mailbox`."""
        if self.account.maildir:
            return self.account.key
        return f"{self.actor}@{self.account.host}:{self.account.effective_port}"


class AccountList:
    """The users of some accounts; `faults` are the accounts whose file can't be read, and why."""

    def __init__(self, accounts: Sequence[AccountOptions]) -> None:
        self._accounts = accounts
        self._stamps: dict[str, Stamp] = {}
        self._users: dict[str, list[str]] = {}
        self.faults: dict[str, ConfigError] = {}

    def read(self) -> bool:
        """Read the files that changed since the last time; return whether there were any.

        It may wait for a disk.
        """
        changed = False
        for account in self._accounts:
            stamp = _stamp(account.users_file) if account.users_file else None
            if account.key in self._stamps and self._stamps[account.key] == stamp:
                continue
            changed, self._stamps[account.key] = True, stamp
            try:
                self._users[account.key] = users_of(account)
                self.faults.pop(account.key, None)
            except ConfigError as error:
                self._users.setdefault(account.key, list(account.users))
                self.faults[account.key] = error
        return changed

    def logins(self) -> list[Login]:
        """Return all mailboxes that are to be watched."""
        return [
            each
            for account in self._accounts
            for each in logins_of(account, self._users.get(account.key, ()))
        ]


def logins_of(account: AccountOptions, users: Sequence[str]) -> list[Login]:
    """Return the mailboxes of an account; a master user has none of his own."""
    if account.maildir or not (account.users or account.users_file):
        return [Login(account=account, login=account.user, actor=account.user)]
    return [
        Login(account=account, login=f"{user}{account.master_separator}{account.user}", actor=user)
        for user in users
    ]


def users_of(account: AccountOptions) -> list[str]:
    """Return for whom a master user logs in.

    Raises:
        ConfigError: the file with their names can't be read.
    """
    users = list(account.users)
    if account.users_file:
        try:
            with open_regular(account.users_file) as file:
                lines = file.read(USERS_BYTES).decode().splitlines()
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                f"feedback.accounts: {account.users_file}, the users_file of {account.user} at"
                f" {account.host}, can't be read: {reason(error)}"
            ) from error
        users += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return list(dict.fromkeys(users))


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
