"""The one web application: routes come from the modules that answer them.

What is refused, unknown or failed is answered here, for all of them in one form.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from spamd.listeners.web.access.headers import SECURITY
from spamd.listeners.web.answers import Refusal, WholeAnswer, refusal
from spamd.listeners.web.body import ClientGone
from spamd.network.shared import Shared


def application(routes: Sequence[BaseRoute], shared: Shared) -> ASGIApp:
    """Return the application that answers on these routes."""
    app = Starlette(
        routes=routes,
        exception_handlers={
            Refusal: _refused,
            HTTPException: _unknown,
            ClientGone: _gone,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False
    return Border(app, shared)


class Border:
    """The border around one request: no fault of it ends the connections of others."""

    def __init__(self, app: ASGIApp, shared: Shared) -> None:
        self._app = app
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:  # the daemon ends; this is the last that the task does
            scope["state"]["peer"].answer(refusal(503, "shutting down, try again later"))
        except Exception as error:  # noqa: BLE001 - `_failed` has answered
            self._shared.observer.failed("session.failed", error, listener="http")


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 - as it is registered
    rspamc: bool = request.state.peer.rspamc
    headers = {**SECURITY, **(error.headers or {})}
    return WholeAnswer(refusal(error.status, error.text, headers, rspamc=rspamc))


def _unknown(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as it is registered
    text = HTTPStatus(error.status_code).phrase
    return WholeAnswer(refusal(error.status_code, text, {**(error.headers or {}), **SECURITY}))


def _gone(_request: Request, _error: Exception) -> Response:
    return WholeAnswer(b"")


def _failed(request: Request, _error: Exception) -> Response:
    rspamc: bool = request.state.peer.rspamc
    return WholeAnswer(refusal(500, "temporary internal error", rspamc=rspamc))
