"""What an export holds of people beside lessons: entries of lists, wishes, and whom they know.

{"entry": {"effect": "allow", "kind": "domain", "value": "shop.example", …}}
{"wish": {"owner": "anna@example.org", "tag_from": 0.8, …}}
{"user_lesson": {"user": "anna@example.org", "digest": "…", "label": "spam", …}}
{"user_sample": {"digest": "…", "sender_domain": "shop.example", "content": "…"}}
{"known": {"key": "…", "owner": "anna@example.org", "pair": 17, "address": 4, …}}

Known addresses are keyed hashes: they mean something with the secret of the installation only,
which an export does not hold. So an import takes them into the one that they come from, as after a
reset; elsewhere they are left out, and folders of sent mail bring them back. `key` tells which.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.lists.entry import Entry
from spamd.lists.known import KnownOptions
from spamd.ports import Clock
from spamd.storage.engine import Database
from spamd.storage.layers import user_rows
from spamd.storage.layers.user_rows import LessonRow, SampleRow
from spamd.storage.people import wishes
from spamd.storage.people.wishes import SqlWishes
from spamd.storage.senders import entries, known_addresses
from spamd.storage.senders.entries import SqlEntries
from spamd.storage.senders.known_addresses import KnownRow, SqlKnownAddresses
from spamd.storage.senders.rows import entry_of_json, entry_to_json
from spamd.users.wishes import Wished

Row = Entry | Wished | KnownRow | LessonRow | SampleRow


async def walk(connection: AsyncConnection) -> AsyncIterator[dict[str, object]]:
    """Yield the rows of an export."""
    async for entry in entries.walk(connection):
        yield {"entry": entry_to_json(entry)}
    async for wished in wishes.walk(connection):
        yield {"wish": wishes.to_json(wished)}
    async for row in user_rows.walk(connection):
        yield row
    async for known in known_addresses.walk(connection):
        yield {"known": asdict(known)}


def row_of(line: Mapping[str, Any]) -> Row | None:
    """Return what a line of an export holds, None for something else than such a row.

    Raises:
        KeyError, TypeError, ValueError: it can't be read.
    """
    if line.keys() == {"entry"}:
        return entry_of_json(line["entry"])
    if line.keys() == {"wish"}:
        return wishes.wished_of(line["wish"])
    if line.keys() in ({"user_lesson"}, {"user_sample"}):
        return user_rows.row_of(line)
    if line.keys() == {"known"}:
        return known_addresses.row_of(line["known"])
    return None


async def add_missing(database: Database, clock: Clock, rows: Sequence[Row]) -> None:
    """Keep the rows of an import; what is there for the same name stays."""
    if found := [row for row in rows if isinstance(row, Entry)]:
        await SqlEntries(database).add_missing(found)
    if wished := [row for row in rows if isinstance(row, Wished)]:
        await SqlWishes(database, clock).add_missing(wished)
    if taught := [row for row in rows if isinstance(row, LessonRow | SampleRow)]:
        await user_rows.add_missing(database, taught)
    if known := [row for row in rows if isinstance(row, KnownRow)]:
        await SqlKnownAddresses(database, KnownOptions()).add_missing(known)
