"""Who a name on a command line means: the same user as in mail and at a login."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.exits import UsageProblem
from spamd.cli.session import awaited, session
from spamd.errors import TemporaryError
from spamd.message.authentication.sender import domain_name
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.settings import Settings
    from spamd.users.ports import Named


UserOption = Annotated[
    str, typer.Option("--user", metavar="USER", help="For this user: an address or a login name.")
]


class _Told:
    """Keeps what a directory says about whom it asks."""

    def __init__(self) -> None:
        self.fault = ""

    def happened(self, event: str, **details: str | float) -> None:
        """Take no note of what is well."""

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:  # noqa: ARG002 - the port
        """Keep why it could not be asked."""
        self.fault = str(error)


async def named(settings: "Settings", names: Sequence[str]) -> "tuple[Mapping[str, Named], str]":
    """Return who is behind each name, and why it could not be asked, "" when it could.

    Raises:
        ConfigError: a file of the users can't be used.
    """
    told = _Told()
    directory = resources.directory(settings, told)
    try:
        return {name: await directory.one(name) for name in names}, told.fault
    finally:
        await directory.close()


def owner_named(context: typer.Context, user: str = "", domain: str = "") -> str:
    """Return the owner that a user's or a domain's name means, "" where neither is given.

    Raises:
        UsageProblem: both are given, or one that is none.
        TemporaryError: it could not be asked who the user is.
        ConfigError: a file of the users can't be used.
    """
    if user and domain:
        raise UsageProblem("give --user or --domain, not both", context)
    if user.startswith("@"):
        user, domain = "", user
    if domain:
        found = domain_name(domain.lstrip("@"))
        if not found:
            raise UsageProblem(f"{printable(domain)} is no domain", context)
        return f"@{found}"
    if not user:
        return ""
    people, fault = awaited(named(session(context).settings, [user]))
    owner = people[user].user
    if fault:
        raise TemporaryError(f"who {printable(user)} is could not be asked: {fault}")
    if not owner or owner.startswith("@"):
        raise UsageProblem(f"{printable(user)} is no user (spamd user find)", context)
    return owner
