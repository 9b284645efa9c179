"""Who a mail is for: the port `People`.

    recipient → canonical name → the person, with what is their own

A mail never waits for it longer than a small limit, and no fault here costs one.
"""

from collections.abc import Mapping, Sequence

from spamd.person import Person
from spamd.users.names import canonical
from spamd.users.options import UsersOptions


class KnownPeople:
    """The people of the settings.

    Args:
        options: how addresses become people.
    """

    def __init__(self, options: UsersOptions) -> None:
        self._options = options

    async def of(self, recipients: Sequence[bytes]) -> Mapping[bytes, Person]:
        """Return the person behind each recipient."""
        return {recipient: Person(user=self._name(recipient)) for recipient in recipients}

    def _name(self, recipient: bytes) -> str:
        options = self._options
        return canonical(recipient, separators=options.separators, domain=options.domain)
