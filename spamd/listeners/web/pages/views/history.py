"""`/history`: what was scanned, newest first, by verdict, action, listener, time and id."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.history import COUNTED, history
from spamd.admin.ports import ScanFilter
from spamd.admin.roles import Visitor
from spamd.bayes.decision import Action, Verdict
from spamd.listeners.web.pages import fields, links
from spamd.listeners.web.pages.frame import Frame, route

CONDITIONS = ("verdict", "action", "listener", "since", "until", "id", "queue_id")
LISTENERS = ("smtp", "lmtp", "milter", "spamc", "http", "pipe")


class HistoryPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [route("/history", self._frame.reading(self.show))]

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show a part of the list."""
        given = request.query_params
        chosen = ScanFilter(
            verdict=fields.choice(given, "verdict", Verdict),
            action=fields.choice(given, "action", Action),
            listener=fields.text(given, "listener"),
            since=fields.moment(given, "since"),
            until=fields.moment(given, "until"),
            id=fields.text(given, "id"),
            queue_id=fields.text(given, "queue_id"),
        )
        records = self._frame.administration().records
        found = await history(records, chosen, fields.place(given))
        asked = fields.repeated(given, CONDITIONS)
        return await self._frame.page(
            visitor,
            "history",
            "history",
            found=found,
            most=COUNTED,
            chosen=asked,
            filtered=chosen != ScanFilter(),
            listeners=LISTENERS,
            newer=found.newer and links.asked("/history", **asked, at=found.newer),
            older=found.older and links.asked("/history", **asked, at=found.older),
        )
