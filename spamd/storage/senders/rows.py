"""A row of the lists as the entry that it holds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spamd.lists.entry import Effect, Entry, EntryError, Kind, named
from spamd.storage.times import from_number

ENTRIES = "list_entry"
KNOWN = "known_address"


def entry_to_json(entry: Entry) -> dict[str, object]:
    """Return an entry as an export has it; its number is given anew by an import."""
    return {
        "effect": entry.effect.value,
        "kind": entry.kind.value,
        "value": entry.value,
        "owner": entry.owner,
        "unproven": entry.unproven,
        "expires": None if entry.expires is None else entry.expires.isoformat(),
        "source": entry.source,
        "created": None if entry.created is None else entry.created.isoformat(),
    }


def entry_of_json(row: Mapping[str, Any]) -> Entry:
    """Return the entry that a line of an export holds.

    Raises:
        KeyError, TypeError, ValueError: it holds none.
    """
    kind, value = Kind(row["kind"]), str(row["value"])
    prefix = {Kind.LIST: "list:", Kind.RECIPIENT: "to:"}.get(kind, "")
    if named(prefix + value) != (kind, value):
        raise EntryError(f"{value!r} is no {kind}")
    return Entry(
        effect=Effect(row["effect"]),
        kind=kind,
        value=value,
        owner=str(row["owner"]),
        unproven=row["unproven"] is True,
        expires=_time(row["expires"]),
        source=str(row["source"]),
        created=_time(row["created"]),
    )


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise EntryError("the time has no time zone")
    return time


def entry_of(row: Mapping[Any, Any]) -> Entry:
    """Return the entry that a row of `list_entry` holds, by the names of its columns."""
    expires = row["expires"]
    return Entry(
        effect=Effect(row["effect"]),
        kind=Kind(row["kind"]),
        value=row["value"],
        owner=row["owner"],
        unproven=bool(row["unproven"]),
        expires=None if expires is None else from_number(expires),
        source=row["source"],
        created=from_number(row["created"]),
        number=row["id"],
    )
