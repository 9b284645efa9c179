"""How the daemon is, for machines that watch it: at the same addresses as everything else by HTTP.

    GET /metrics   what all workers have counted, for Prometheus
    GET /healthz   200 "ok": this worker answers; if it doesn't, restart it
    GET /readyz    200 when all is there that mail needs, else 503; a line for each check, or JSON
                   for who accepts that. ?exclude=database leaves a check out, also several times

They need no password and say nothing of any mail, person or address.
"""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from spamd.ports import Health

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format: what every collector reads."""

_UNCACHED = {"cache-control": "no-store"}


class HealthRoutes:
    """Answers those who watch.

    Args:
        health: knows how the daemon is.
    """

    def __init__(self, health: Health) -> None:
        self._health = health

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [
            Route("/metrics", self.metrics),
            Route("/healthz", self.alive),
            Route("/readyz", self.ready),
        ]

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Return what was counted."""
        text = await self._health.metrics()
        return Response(text, headers={"content-type": METRICS_TYPE, **_UNCACHED})

    async def alive(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Say that we answer."""
        return PlainTextResponse("ok\n", headers=_UNCACHED)

    async def ready(self, request: Request) -> Response:
        """Return what is there and what is not."""
        left_out = set(request.query_params.getlist("exclude"))
        checks = [each for each in await self._health.checks() if each.name not in left_out]
        ready = all(each.ok for each in checks)
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        if "application/json" in request.headers.get("accept", ""):
            found = {each.name: {"ok": each.ok, "text": each.text} for each in checks}
            return JSONResponse({"ready": ready, "checks": found}, status, headers=_UNCACHED)
        lines = [f"{'ok' if each.ok else 'FAULT'} {each.name}: {each.text}" for each in checks]
        lines.append("ready" if ready else "not ready")
        return PlainTextResponse("\n".join([*lines, ""]), status, headers=_UNCACHED)
