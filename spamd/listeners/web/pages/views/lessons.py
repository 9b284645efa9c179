"""`/lessons`: the journal, lessons that are held for a review, and taking many back at once."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.roles import Role, Visitor
from spamd.listeners.web.pages import fields, links
from spamd.listeners.web.pages.frame import Frame, back_to, route
from spamd.training.ports import Selection

CONDITIONS = ("label", "source", "actor", "sender_domain", "since", "until")
SOURCES = ("cli", "imap", "maildir", "address", "kept", "import", "http", "spamc", "page", "api")
GROUPS = 50
"""Shown of what a rollback would take back."""

HELD = "held-"
HELD_ROWS = 50
"""Shown of those that are held; the others follow once these are reviewed."""

SAID = ("released", "dropped", "taken_back")


class LessonsPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        frame = self._frame
        return [
            route("/lessons", frame.reading(self.show)),
            route("/lessons/held", frame.changing(self.review), "POST"),
            route("/lessons/rollback", frame.reading(self.preview, Role.TEACHER)),
            route("/lessons/rollback", frame.changing(self.roll_back), "POST"),
        ]

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show a part of the journal, and what is held."""
        given = request.query_params
        here = self._frame.administration()
        people = here.site.shows_people()
        selection = fields.selection(given, people=people)
        found = await here.lessons.journal(selection, fields.place(given), people=people)
        asked = fields.repeated(given, CONDITIONS)
        return await self._frame.page(
            visitor,
            "lessons",
            "lessons",
            found=found,
            held=await here.lessons.waiting(HELD_ROWS, people=people),
            held_in_all=await here.records.count_held(),
            people=people,
            sources=SOURCES,
            chosen=asked,
            filtered=selection != Selection(),
            said=next((name for name in SAID if name in given), None),
            number=next((fields.number(given, name) for name in SAID if name in given), 0) or 0,
            left=fields.number(given, "left") or 0,
            newer=found.newer and links.asked("/lessons", **asked, at=found.newer),
            older=found.older and links.asked("/lessons", **asked, at=found.older),
        )

    async def review(
        self,
        request: Request,  # noqa: ARG002 - an endpoint
        visitor: Visitor,  # noqa: ARG002 - likewise
        given: Mapping[str, str],
    ) -> Response:
        """Release or drop the chosen ones."""
        lessons = self._frame.administration().lessons
        chosen = [name.removeprefix(HELD) for name in given if name.startswith(HELD)]
        numbers = [int(each) for each in chosen if each.isdecimal() and len(each) < fields.DIGITS]
        if not numbers:
            return back_to("/lessons")
        if given.get("do") == "release":
            done = await lessons.release(numbers)
            return back_to(links.asked("/lessons", released=done.done))
        done = await lessons.drop(numbers)
        return back_to(links.asked("/lessons", dropped=done.done))

    async def preview(self, request: Request, visitor: Visitor) -> Response:
        """Show what would be taken back."""
        given = request.query_params
        here = self._frame.administration()
        people = here.site.shows_people()
        selection = fields.selection(given, people=people)
        found = await here.lessons.preview(selection, GROUPS, people=people)
        chosen = fields.repeated(given, CONDITIONS)
        return await self._frame.page(visitor, "rollback", "lessons", found=found, chosen=chosen)

    async def roll_back(
        self,
        request: Request,  # noqa: ARG002 - an endpoint
        visitor: Visitor,  # noqa: ARG002 - likewise
        given: Mapping[str, str],
    ) -> Response:
        """Take lessons back, as many as one request may."""
        here = self._frame.administration()
        selection = fields.selection(given, people=here.site.shows_people())
        if selection == Selection():  # all of it is `spamd database reset`, not a slip of a finger
            return back_to("/lessons")
        done = await here.lessons.rollback(replace(selection, newest=None))
        asked = fields.repeated(given, CONDITIONS) if done.left else {}
        return back_to(
            links.asked("/lessons", **asked, taken_back=done.taken_back, left=done.left or None)
        )
