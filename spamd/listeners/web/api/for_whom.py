"""The user that a request is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.api.operation import Text, Visit
from spamd.wording import printable

ForWhom = Annotated[
    Text, Field(description="for this user, an address or a login name; empty: for the site")
]


async def user_of(visit: Visit, name: str) -> str:
    """Return the user behind a name, "" for none.

    Raises:
        NoOwner: nobody is.
        TemporaryError: that can't be asked now.
    """
    return await visit.office.owned.owner(name, "")


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse what nobody can be or wish, with the reason."""
    try:
        yield
    except ValueError as error:
        text = printable(str(error), 200)
        raise Refusal(400, text.encode("ascii", "backslashreplace").decode()) from None
