"""Makes views where nobody takes requests: the routes of the page, without a listener or a guard.

maker = Maker(administration, bounds)
answered = await maker.answer(asked)      # `ASKED` is it meanwhile
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from importlib.metadata import version

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import Message

from spamd.admin.administration import Administration
from spamd.admin.roles import Role, Visitor
from spamd.listeners.web.pages.apart import Answered, Asked
from spamd.listeners.web.pages.assets import Assets
from spamd.listeners.web.pages.frame import Frame
from spamd.listeners.web.pages.rendering import Renderer
from spamd.listeners.web.pages.site import views

ASKED: ContextVar[Asked] = ContextVar("asked")
"""What is being answered."""


class Maker:
    """Makes views.

    Args:
        administration: returns what views show; it may raise `StorageUnavailable`.
        bounds: from which probability on each choice is taken (`decision.thresholds`).
    """

    def __init__(
        self, administration: Callable[[], Administration], bounds: Mapping[str, float]
    ) -> None:
        frame = Frame(Admitted(), Renderer(Assets(), version("spamd")), administration)
        self._router = Router(routes=views(frame, bounds))

    async def answer(self, asked: Asked) -> Answered:
        """Return a view."""
        ASKED.set(asked)
        scope = {
            "type": "http",
            "method": asked.method,
            "path": asked.path,
            "root_path": "",
            "query_string": asked.query,
            "headers": [],
        }
        messages: list[Message] = []

        async def send(message: Message) -> None:
            messages.append(message)

        await self._router(scope, _nothing_more, send)
        start, *parts = messages
        return Answered(
            status=start["status"],
            headers=tuple(start["headers"]),
            body=b"".join(part["body"] for part in parts),
        )


class Admitted:
    """Lets in who was let in before (`frame.Door`)."""

    @property
    def takes_passwords(self) -> bool:
        """Whether anybody could log in."""
        return ASKED.get().guarded

    async def require(self, request: Request, role: Role) -> Visitor:  # noqa: ARG002 - as a guard
        """Return who asks."""
        return ASKED.get().visitor

    async def form(self, request: Request, role: Role) -> tuple[Visitor, Mapping[str, str]]:
        """Take no form: changes are made where mail is taken."""
        raise NotImplementedError


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
