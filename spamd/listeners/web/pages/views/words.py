"""`/words`: a word or a pair of words, and what it rests on."""

from datetime import UTC, datetime, time, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.roles import Role, Visitor
from spamd.admin.words import WordFound
from spamd.listeners.web.pages import charts, fields, links
from spamd.listeners.web.pages.charts import Slot
from spamd.listeners.web.pages.frame import Frame, route

LABELS = 5
WEEKS = 104
FEWEST_WEEKS = 12
"""Of the chart: a single week would be a wall."""
"""Weeks shown, at most: two years."""


class WordsPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [route("/words", self._frame.reading(self.show, Role.TEACHER))]

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show a word."""
        given = request.query_params
        asked = fields.text(given, "word")
        here = self._frame.administration()
        found: WordFound | None = None
        slots: list[Slot] = []
        older = None
        if asked is not None:
            people = here.site.shows_people()
            found = await here.words.find(asked, fields.number(given, "behind"), people=people)
            slots = weeks(found)
            if found.behind is not None:
                older = links.asked("/words", word=asked, behind=found.behind)
        return await self._frame.page(
            visitor,
            "words",
            "words",
            asked=asked or "",
            found=found,
            totals=await here.overview.totals(),
            columns=charts.columns(slots),
            labels=charts.named(slots, LABELS),
            older=older,
        )


def weeks(found: WordFound) -> list[Slot]:
    """Return the lessons with a word by week, weeks without one between them too."""
    if not found.weeks:
        return []
    counts = {week.begins: week for week in found.weeks}
    last = found.weeks[-1].begins
    first = min(found.weeks[0].begins, last - timedelta(weeks=FEWEST_WEEKS - 1))
    begin = max(first, last - timedelta(weeks=WEEKS - 1))
    slots = []
    while begin <= last:
        at = datetime.combine(begin, time(), UTC)
        week = counts.get(begin)
        slots.append(
            Slot(
                begins=at,
                ends=at + timedelta(weeks=1),
                ham=week.ham if week else 0,
                unsure=0,
                spam=week.spam if week else 0,
            )
        )
        begin += timedelta(weeks=1)
    return slots
