"""Everything that the page and the API show and do, of one open store."""

from dataclasses import dataclass

from spamd.admin.ports import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """What stands behind the page and the API.

    secret     of the installation: a key for what only we may have written
    sessions   who has logged in
    """

    secret: bytes
    sessions: Sessions
