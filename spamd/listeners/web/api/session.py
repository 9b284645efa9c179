"""Logging in and out, for whoever is no HTML form.

POST   /api/session   {"password": "…"}: begins a session, its cookie comes with the answer
GET    /api/session   who asks, and what X-CSRF-Token must hold
DELETE /api/session   ends it
"""

import json

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spamd.admin.roles import Role
from spamd.listeners.web.access.guard import Guard
from spamd.listeners.web.access.headers import SecurityHeaders
from spamd.listeners.web.answers import Refusal

BODY_BYTES = 4096


class SessionRoutes:
    """Answers there."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        own = [Middleware(SecurityHeaders)]
        path = "/api/session"
        return [
            Route(path, self.log_in, methods=["POST"], middleware=own),
            Route(path, self.show, methods=["GET"], middleware=own),
            Route(path, self.log_out, methods=["DELETE"], middleware=own),
        ]

    async def log_in(self, request: Request) -> Response:
        """Begin a session."""
        try:
            given = json.loads(await self._guard.body(request, BODY_BYTES))
        except (ValueError, RecursionError):
            given = None
        password = given.get("password") if isinstance(given, dict) else None
        if not isinstance(password, str):
            raise Refusal(400, 'the body is no JSON like {"password": "..."}')
        cookie = await self._guard.log_in(request, password)
        return JSONResponse({}, 201, headers={"set-cookie": cookie})

    async def show(self, request: Request) -> Response:
        """Say who asks."""
        visitor = await self._guard.require(request, Role.READER)
        return JSONResponse(
            {
                "name": visitor.name,
                "role": visitor.role.value,
                "way": visitor.way.value,
                "csrf": visitor.form,
            }
        )

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        await self._guard.require(request, Role.READER)
        cookie = await self._guard.log_out(request)
        return Response(status_code=204, headers={"set-cookie": cookie})
