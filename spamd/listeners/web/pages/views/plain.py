"""`/accounts` and `/settings`: what is watched, and what holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.ports import SettingRow
from spamd.admin.roles import Visitor
from spamd.listeners.web.pages import fields, links
from spamd.listeners.web.pages.frame import Frame, route

DEFAULT = "default"

ACCOUNTS = 100
"""Shown at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Settings of one section."""

    name: str
    settings: tuple[SettingRow, ...]

    @property
    def changed(self) -> int:
        """Return how many differ from their defaults."""
        return sum(row.origin != DEFAULT for row in self.settings)


def _part(begin: int) -> str:
    """Return where the accounts from one on are shown."""
    return links.asked("/accounts", **{"from": begin or None})


class PlainPages:
    """Answers there.

    Args:
        frame: surrounds them.
        bounds: from which probability on each choice is taken (`decision.thresholds`).
    """

    def __init__(self, frame: Frame, bounds: Mapping[str, float]) -> None:
        self._frame = frame
        self._bounds = bounds

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        frame = self._frame
        return [
            route("/accounts", frame.reading(self.accounts)),
            route("/account", frame.reading(self.account)),
            route("/settings", frame.reading(self.settings)),
        ]

    async def accounts(self, request: Request, visitor: Visitor) -> Response:
        """Show accounts, so many at a time."""
        begin = fields.number(request.query_params, "from") or 0
        found = await self._frame.administration().accounts.all(begin, ACCOUNTS)
        end = begin + ACCOUNTS
        return await self._frame.page(
            visitor,
            "accounts",
            "accounts",
            found=found,
            before=_part(max(0, begin - ACCOUNTS)) if begin else None,
            after=_part(end) if end < found.in_all else None,
        )

    async def account(self, request: Request, visitor: Visitor) -> Response:
        """Show one account."""
        name = fields.text(request.query_params, "name") or ""
        found = await self._frame.administration().accounts.one(name)
        if found is None:
            return await self._frame.problem(visitor, "not_found", HTTPStatus.NOT_FOUND)
        return await self._frame.page(visitor, "account", "accounts", found=found)

    async def settings(self, request: Request, visitor: Visitor) -> Response:
        """Show all settings, or those that differ from their defaults."""
        changed = "changed" in request.query_params
        rows = self._frame.administration().site.settings()
        shown = [row for row in rows if not changed or row.origin != DEFAULT]
        sections = [
            Section(name=name, settings=tuple(of))
            for name, of in groupby(shown, lambda row: row.key.rpartition(".")[0])
        ]
        return await self._frame.page(
            visitor, "settings", "settings", sections=sections, bounds=self._bounds, changed=changed
        )
