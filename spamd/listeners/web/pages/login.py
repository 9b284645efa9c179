"""Logging in and out, and the files that pages name."""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.roles import Role, Visitor
from spamd.listeners.web.access.guard import Guard
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.pages.assets import KEPT, Assets
from spamd.listeners.web.pages.frame import Frame, back_to, is_ours, route

TROUBLE = {401: "wrong", 429: "slow"}
"""What the page says of a login that was refused, by the status."""


class LoginPages:
    """Answers there.

    Args:
        frame: surrounds them.
        guard: knows the passwords.
        assets: the files.
    """

    def __init__(self, frame: Frame, guard: Guard, assets: Assets) -> None:
        self._frame = frame
        self._guard = guard
        self._assets = assets

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [
            route("/login", self.show),
            route("/login", self.log_in, "POST"),
            route("/logout", self._frame.changing(self.log_out, Role.READER), "POST"),
            route("/static/{tag}/{name}", self.asset),
        ]

    async def show(self, request: Request) -> Response:
        """Ask for the password."""
        if not self._guard.takes_passwords:
            return back_to("/")
        wanted = request.query_params.get("next", "/")
        ended = "ended" if "ended" in request.query_params and wanted != "/" else ""
        return await self._page(wanted, ended)

    async def log_in(self, request: Request) -> Response:
        """Begin a session, then show what was wanted."""
        guard = self._guard
        wanted = "/"
        try:
            fields = await guard.fields(request)
            wanted = fields.get("next", "/")
            cookie = await guard.log_in(request, fields.get("password", ""))
        except Refusal as refusal:
            trouble = TROUBLE.get(refusal.status, "refused")
            return await self._page(wanted, trouble, refusal.status, refusal.text)
        answer = back_to(wanted if is_ours(wanted) else "/")
        answer.headers["set-cookie"] = cookie
        return answer

    async def log_out(
        self,
        request: Request,
        visitor: Visitor,  # noqa: ARG002 - an endpoint
        fields: Mapping[str, str],  # noqa: ARG002 - likewise
    ) -> Response:
        """End the session."""
        answer = back_to("/login")
        answer.headers["set-cookie"] = await self._guard.log_out(request)
        return answer

    async def asset(self, request: Request) -> Response:
        """Return a file, or that the browser has it."""
        found = self._assets.of(request.path_params["name"])
        if found is None:
            return Response(status_code=HTTPStatus.NOT_FOUND)
        headers = {"etag": found.etag, "cache-control": KEPT}
        if request.headers.get("if-none-match") == found.etag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(found.content, media_type=found.media_type, headers=headers)

    async def _page(
        self, wanted: str, trouble: str, status: int = HTTPStatus.OK, detail: str = ""
    ) -> Response:
        before = wanted if is_ours(wanted) and wanted != "/" else ""
        return await self._frame.page(
            None, "login", "", status, problem=trouble, detail=detail, before=before
        )
