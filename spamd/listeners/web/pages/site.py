"""All pages together: their routes, for the one web application."""

from collections.abc import Callable, Mapping
from importlib.metadata import version

from starlette.routing import Route

from spamd.admin.administration import Administration
from spamd.listeners.web.access.guard import Guard
from spamd.listeners.web.pages.apart import Apart
from spamd.listeners.web.pages.assets import Assets
from spamd.listeners.web.pages.frame import Frame
from spamd.listeners.web.pages.login import LoginPages
from spamd.listeners.web.pages.rendering import Renderer
from spamd.listeners.web.pages.views.evaluation import EvaluationPage
from spamd.listeners.web.pages.views.history import HistoryPage
from spamd.listeners.web.pages.views.lessons import LessonsPage
from spamd.listeners.web.pages.views.mail import MailPage
from spamd.listeners.web.pages.views.overview import OverviewPage
from spamd.listeners.web.pages.views.plain import PlainPages
from spamd.listeners.web.pages.views.words import WordsPage


def pages(
    guard: Guard,
    administration: Callable[[], Administration],
    bounds: Mapping[str, float],
    apart: Apart | None = None,
) -> list[Route]:
    """Return what is answered where.

    Args:
        guard: decides who may see and change what.
        administration: returns what views show; it may raise `StorageUnavailable`.
        bounds: from which probability on each choice is taken (`decision.thresholds`).
        apart: makes the views; None: they are made here.
    """
    assets = Assets()
    frame = Frame(guard, Renderer(assets, version("spamd")), administration, apart)
    return [*LoginPages(frame, guard, assets).routes(), *views(frame, bounds)]


def views(frame: Frame, bounds: Mapping[str, float]) -> list[Route]:
    """Return the views, and the forms on them."""
    found: list[Route] = []
    for each in (
        OverviewPage(frame),
        HistoryPage(frame),
        MailPage(frame),
        WordsPage(frame),
        LessonsPage(frame),
        PlainPages(frame, bounds),
        EvaluationPage(frame),
    ):
        found += each.routes()
    return found
