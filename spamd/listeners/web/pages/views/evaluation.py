"""`/evaluation`: how good the verdicts are on what was taught."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.roles import Visitor
from spamd.listeners.web.pages import charts
from spamd.listeners.web.pages.frame import Frame, back_to, route

LEAST = 1e-4
"""The lower end of the axes of the ROC; a rate of 0 is drawn there."""


class EvaluationPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [
            route("/evaluation", self._frame.reading(self.show)),
            route("/evaluation", self._frame.changing(self.begin), "POST"),
        ]

    async def show(self, request: Request, visitor: Visitor) -> Response:  # noqa: ARG002 - an endpoint
        """Show what came of the last one."""
        found = await self._frame.administration().evaluation.found()
        points = [
            (charts.tens(lost / 100, least=LEAST), charts.tens(missed / 100, least=LEAST))
            for lost, missed in found.figures.get("roc", [])
        ]
        return await self._frame.page(
            visitor, "evaluation", "evaluation", found=found, roc=charts.curve(points)
        )

    async def begin(
        self,
        request: Request,  # noqa: ARG002 - an endpoint
        visitor: Visitor,  # noqa: ARG002 - likewise
        fields: Mapping[str, str],  # noqa: ARG002 - likewise
    ) -> Response:
        """Begin one."""
        await self._frame.administration().evaluation.ask()
        return back_to("/evaluation")
