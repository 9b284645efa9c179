"""Which user is behind an address or a login name: the port `Names`.

    by the rules      lower case, without tag, with a domain                  names.py
    by the tables     users.aliases, users.aliases_file                       aliases.py
    by asking         users.query or users.command, with what was said before lookup.py
    who is a user     users.users_file; without it whoever was found so far

Who is none has what their domain has ("@example.org"), and else the site's. An address that leads
to several people is nobody's, unless it leads to itself, or to one user only.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spamd.users import aliases
from spamd.users.aliases import Aliases
from spamd.users.lookup import CachedLookup
from spamd.users.names import canonical, domain_of
from spamd.users.options import UsersOptions
from spamd.users.ports import Named

NOT_ASKED = "who they are could not be asked"
"""Said of those whose name is by the rules because nothing answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """What is known of an address before anything is asked: its name, who is behind it, and how."""

    name: str
    user: str
    how: str


class Directory:
    """The users of the settings.

    Args:
        options: rules and tables.
        lookup: whom to ask, None: nobody.

    Raises:
        ConfigError: a file can't be used; the text begins with its key.
    """

    def __init__(self, options: UsersOptions, lookup: CachedLookup | None = None) -> None:
        self._options = options
        self._lookup = lookup
        lines = list(aliases.of_settings(options.aliases))
        if options.aliases_file:
            lines += aliases.lines_of(Path(options.aliases_file), "users.aliases_file")
        self._aliases = Aliases(lines, tagged=self._tagged, plain=self.plain)
        self._users: frozenset[str] | None = None
        if options.users_file:
            names = aliases.names_of(Path(options.users_file), "users.users_file")
            self._users = frozenset(map(self.plain, names))

    def plain(self, address: str | bytes) -> str:
        """Return the name of an address by the rules alone."""
        options = self._options
        return canonical(address, separators=options.separators, domain=options.domain)

    def _tagged(self, address: str) -> str:
        return canonical(address, domain=self._options.domain)

    async def of(self, addresses: Sequence[bytes]) -> Mapping[bytes, Named]:
        """Return who is behind each address, within `users.timeout_s`."""
        deadline = asyncio.get_running_loop().time() + self._options.timeout_s
        steps = {address: self._steps(address) for address in addresses}
        if self._lookup is None:
            return {address: self._named(step) for address, step in steps.items()}
        wanted = dict.fromkeys(step.user for step in steps.values() if _may_be_asked(step.user))
        found = await self._lookup.of(list(wanted), deadline)
        return {address: self._asked(step, found) for address, step in steps.items()}

    async def one(self, name: str) -> Named:
        """Return who is behind an address or a login name."""
        address = name.encode("utf-8", "surrogateescape")
        return (await self.of([address]))[address]

    def _steps(self, address: bytes) -> _Steps:
        text = address.decode("utf-8", "replace")
        name, found = self.plain(text), self._aliases.of(text)
        if name in found:
            return _Steps(name=name, user=name, how="rules")
        return _Steps(name=name, user=self._only(name, found), how="aliases")

    def _only(self, name: str, found: Collection[str]) -> str:
        """Return the one user among names, "" for none or several."""
        if name in found:
            return name
        if self._users is not None:
            found = [each for each in found if each in self._users]
        return next(iter(found)) if len(found) == 1 else ""

    def _asked(self, step: _Steps, found: Mapping[str, tuple[str, ...]]) -> Named:
        if not _may_be_asked(step.user):
            return self._nobody(step.name, step.how if not step.user else "rules")
        answer = found.get(step.user)
        if answer is None:
            return self._named(step, NOT_ASKED)
        users = {name for name in map(self.plain, answer) if name}
        how = "query" if self._options.query else "command"
        return self._named(_Steps(name=step.name, user=self._only(step.user, users), how=how))

    def _named(self, step: _Steps, missing: str = "") -> Named:
        if step.user and (self._users is None or step.user in self._users):
            return Named(user=step.user, missing=missing, how=step.how)
        return self._nobody(step.name, "users_file" if step.user else step.how, missing)

    @staticmethod
    def _nobody(name: str, how: str, missing: str = "") -> Named:
        domain = domain_of(name)
        return Named(user=f"@{domain}" if domain else "", missing=missing, how=how)

    async def close(self) -> None:
        """Leave whom we ask."""
        if self._lookup is not None:
            await self._lookup.close()


def _may_be_asked(name: str) -> bool:
    """Tell whether a name can be a user's: nothing is asked about what strangers make up."""
    return bool(name) and len(name) <= MOST_NAME and name.isprintable()


MOST_NAME = 320
"""Characters of an address: 64 before the @ and 255 behind it (RFC 5321 §4.5.3.1)."""
