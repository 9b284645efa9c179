"""What all views share: who may see them, what surrounds them, and what is said when one fails.

    frame = Frame(guard, renderer)
    Route("/history", frame.reading(show))           # show(request, visitor) → Response
    Route("/evaluation", frame.changing(begin))      # begin(request, visitor, fields) → Response

Whoever has to log in first comes back to where he wanted to go. A form that was sent answers with
303 to the view that shows what it did, so that a page loaded again sends nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Protocol
from urllib.parse import quote

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from spamd.admin.administration import Administration
from spamd.admin.roles import Role, Visitor
from spamd.errors import TemporaryError
from spamd.listeners.web.access.headers import SecurityHeaders
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.pages.apart import Apart, Asked
from spamd.listeners.web.pages.rendering import Renderer

Show = Callable[[Request, Visitor], Awaitable[Response]]
Change = Callable[[Request, Visitor, Mapping[str, str]], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

PROBLEMS = {403: "forbidden", 404: "not_found", 429: "busy", 503: "away"}
"""What a page says of refusals, by their status."""

BY_HTMX = "hx-request"

OVERVIEW = "/"
"""It tells how the process is that takes mail."""


class Door(Protocol):
    """Who is let in (`access.guard.Guard`)."""

    @property
    def takes_passwords(self) -> bool:
        """Whether anybody could log in."""
        ...

    async def require(self, request: Request, role: Role) -> Visitor:
        """Return who asks, if that person has the role."""
        ...

    async def form(self, request: Request, role: Role) -> tuple[Visitor, Mapping[str, str]]:
        """Return who has sent a form, and its fields, each once."""
        ...


class Frame:
    """Surrounds views.

    Args:
        guard: decides who may see and change what.
        renderer: makes pages of templates.
        administration: returns what views show; it may raise `StorageUnavailable`.
        apart: makes the views; None: they are made here.
    """

    def __init__(
        self,
        guard: Door,
        renderer: Renderer,
        administration: Callable[[], Administration],
        apart: Apart | None = None,
    ) -> None:
        self.guard = guard
        self.administration = administration
        self._renderer = renderer
        self._apart = apart

    def reading(self, show: Show, role: Role = Role.READER) -> Endpoint:
        """Return the endpoint of a view."""

        async def endpoint(request: Request) -> Response:
            visitor = None
            try:
                visitor = await self.guard.require(request, role)
                if self._apart is not None:
                    return await self._made(self._apart, request, visitor)
                return await show(request, visitor)
            except Refusal as refusal:
                return await self._refused(request, visitor, refusal)
            except TemporaryError:
                return await self.problem(visitor, "away", HTTPStatus.SERVICE_UNAVAILABLE)

        return endpoint

    async def _made(self, apart: Apart, request: Request, visitor: Visitor) -> Response:
        """Return a view that is made elsewhere."""
        path = request.scope["path"]
        site = self.administration().site
        found = await apart.answer(
            Asked(
                method=request.method,
                path=path,
                query=request.scope["query_string"],
                visitor=visitor,
                guarded=self.guard.takes_passwords,
                checks=tuple(await site.checks()) if path == OVERVIEW else (),
            )
        )
        response = Response(found.body, found.status)
        response.raw_headers = list(found.headers)
        return response

    def changing(self, change: Change, role: Role = Role.TEACHER) -> Endpoint:
        """Return the endpoint of a form."""

        async def endpoint(request: Request) -> Response:
            visitor = None
            try:
                visitor, fields = await self.guard.form(request, role)
                return await change(request, visitor, fields)
            except Refusal as refusal:
                return await self._refused(request, visitor, refusal)
            except TemporaryError:
                return await self.problem(visitor, "away", HTTPStatus.SERVICE_UNAVAILABLE)

        return endpoint

    async def page(
        self,
        visitor: Visitor | None,
        name: str,
        active: str,
        status: int = HTTPStatus.OK,
        /,
        **values: object,
    ) -> Response:
        """Return the page of a template, made in a thread: a long list takes some milliseconds."""
        around = {
            "visitor": visitor,
            "active": active,
            "may_teach": visitor is not None and visitor.role.may(Role.TEACHER),
        }
        html = await asyncio.to_thread(self._renderer.page, name, {**around, **values})
        return HTMLResponse(html, status, headers={"vary": "Cookie, HX-Request"})

    async def problem(
        self, visitor: Visitor | None, name: str, status: int, detail: str = ""
    ) -> Response:
        """Return the page that says what did not work."""
        return await self.page(visitor, "problem", "", status, problem=name, detail=detail)

    async def _refused(
        self, request: Request, visitor: Visitor | None, refusal: Refusal
    ) -> Response:
        if refusal.status == HTTPStatus.UNAUTHORIZED and self.guard.takes_passwords:
            return _log_in_first(request)
        name = PROBLEMS.get(refusal.status, "refused")
        return await self.problem(visitor, name, refusal.status, refusal.text)


def route(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
    """Return a route whose answers tell the browser to trust nothing but ourselves."""
    return Route(path, endpoint, methods=[method], middleware=[Middleware(SecurityHeaders)])


def back_to(path: str) -> Response:
    """Return the answer to a form: look there."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)


def is_ours(path: str) -> bool:
    """Tell whether a path leads to a page of ours, whoever has written it."""
    return path.startswith("/") and path[1:2] not in {"/", "\\"} and path.isprintable()


def _log_in_first(request: Request) -> Response:
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method != "GET":
        wanted = "/"
    path = f"/login?ended=1&next={quote(wanted)}"
    if BY_HTMX in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"hx-redirect": path})
    return back_to(path)
