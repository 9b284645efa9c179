"""All that is known of a user, counted. How it is forgotten: `storage.layers.forgetting`."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.storage.layers.tables import user_lesson
from spamd.storage.people_tables import known_address, list_entry, wish
from spamd.storage.tables import scan

COUNTED = {
    "lessons": user_lesson.c.user,
    "list_entries": list_entry.c.owner,
    "wishes": wish.c.owner,
    "known_addresses": known_address.c.owner,
    "scans": scan.c.user,
}
"""What is told of a user, and where it lies."""


async def counted(
    connection: AsyncConnection, user: str | None = None
) -> dict[str, dict[str, int]]:
    """Return by user how many rows of each kind there are, of one user or of all."""
    found: dict[str, dict[str, int]] = {}
    for name, owner in COUNTED.items():
        wanted = select(owner, func.count()).group_by(owner)
        wanted = (
            wanted.where(owner.not_like("@%"), owner != "")
            if user is None
            else wanted.where(owner == user)
        )
        for who, number in await connection.execute(wanted):
            found.setdefault(who, dict.fromkeys(COUNTED, 0))[name] = number
    return dict(sorted(found.items()))
