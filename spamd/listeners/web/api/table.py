"""The table of all operations, and the document that describes it.

routes(operations(bounds), guard, administration)
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from spamd.admin.roles import Role
from spamd.listeners.web.api import owned, reading, teaching
from spamd.listeners.web.api.openapi import document
from spamd.listeners.web.api.operation import Operation, Operations, Visit
from spamd.listeners.web.api.reading import Nothing
from spamd.listeners.web.api.scanning import MailOperations
from spamd.network.shared import Shared


def operations(shared: Shared, bounds: Mapping[str, float]) -> Operations:
    """Return all there is; `bounds`: from which probability on each choice is taken."""
    table: Operations = ()

    async def openapi(_visit: Visit, _asked: Nothing) -> Mapping[str, Any]:
        return document(table, version("spamd"))

    own: Operation[Any, Any] = Operation(
        method="GET", path="/api/openapi.json", role=Role.READER, asks=Nothing,
        gives=Mapping[str, Any], do=openapi, summary="This document",
    )  # fmt: skip
    table = (
        own,
        *reading.operations(bounds),
        *MailOperations(shared).operations(),
        *teaching.operations(),
        *owned.operations(),
    )
    return table
