"""What the page and the API show and do, once the database has answered.

    opening.follow(opened, teacher)     # when the store is open, and after each reload
    opening.administration()            # what they ask of us; raises until then
    opening.views                       # the process that makes the views of the page

`site`, with all that it needs, is loaded only then, and only where there is a page.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from spamd.errors import StorageUnavailable
from spamd.feedback.durable_teacher import DurableTeacher
from spamd.health import DaemonHealth
from spamd.observe.log import LogObserver
from spamd.settings import Settings
from spamd.store_opening import OpenStore
from spamd.viewing.process import ViewProcess

if TYPE_CHECKING:
    from spamd.admin.administration import Administration
    from spamd.users.ports import Names


class SiteOpening:
    """The administration of a daemon, which may not be there yet.

    Args:
        settings: returns those in force.
        names: returns what names users.
        health: of the daemon.
        observer: is told what people do.

    Attributes:
        views: makes the views of the page.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        names: "Callable[[], Names]",
        health: DaemonHealth,
        observer: LogObserver,
    ) -> None:
        self._settings = settings
        self._names = names
        self._health = health
        self._observer = observer
        self._found: Administration | None = None
        self._is_open = asyncio.Event()
        self.views = ViewProcess(settings)

    def follow(self, opened: OpenStore, teacher: DurableTeacher) -> None:
        """Take what is in force from now on."""
        from spamd.site import DaemonSite, administration  # noqa: PLC0415 - only with web.listen

        told = DaemonSite(self._settings, self._health), teacher, self._observer
        self._found = administration(opened, self._settings(), *told, self._names, self._found)
        self._is_open.set()
        self.views.renew()

    def administration(self) -> "Administration":
        """Return what the page and the API ask.

        Raises:
            StorageUnavailable: the database has not answered yet.
        """
        if self._found is None:
            raise StorageUnavailable("the database has not answered since the start")
        return self._found

    async def evaluate(self) -> None:
        """Evaluate what was taught whenever somebody asks."""
        await self._is_open.wait()
        await self.administration().evaluation.run()
