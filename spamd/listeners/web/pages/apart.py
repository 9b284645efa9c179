"""A view that another process makes: what is asked there, and what comes back.

Who asks, and whether that person may, is decided before, in the process that takes mail
(`access.guard`), and changes are made there: the other one only reads the database and makes HTML.
"""

from dataclasses import dataclass
from typing import Protocol

from spamd.admin.roles import Visitor
from spamd.ports import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A view that somebody may see.

    path, query   of the address, as ASGI has them
    guarded       people can log in with a password
    checks        what mail needs, and whether it is there; only for the overview
    """

    method: str
    path: str
    query: bytes
    visitor: Visitor
    guarded: bool
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer to a request."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Apart(Protocol):
    """Has views made elsewhere."""

    async def answer(self, asked: Asked) -> Answered:
        """Return a view."""
        ...
