"""What questions and forms hold, as they came: wrong values are no condition at all.

Somebody may write anything into an address; a list then shows what the rest of it asks for.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from spamd.admin.history import place_of
from spamd.admin.ports import Place
from spamd.sample import Label
from spamd.training.ports import Selection

Choice = TypeVar("Choice", bound=StrEnum)

LONGEST = 200
"""Characters of a value that are looked at."""

DIGITS = 18
"""Of a number that is looked at."""


def text(fields: Mapping[str, str], name: str) -> str | None:
    """Return what a field holds, None for nothing."""
    return fields.get(name, "").strip()[:LONGEST] or None


def choice(fields: Mapping[str, str], name: str, kind: type[Choice]) -> Choice | None:
    """Return the choice that a field holds, None for none."""
    try:
        return kind(fields.get(name, ""))
    except ValueError:
        return None


def label(fields: Mapping[str, str], name: str = "label") -> Label | None:
    """Return the label that a field holds, None for none."""
    return choice(fields, name, Label)


def moment(fields: Mapping[str, str], name: str) -> datetime | None:
    """Return the time that a field holds, taken for UTC, None for none."""
    try:
        found = datetime.fromisoformat(fields.get(name, ""))
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def place(fields: Mapping[str, str]) -> Place | None:
    """Return where a part of a list begins, None for its beginning."""
    try:
        return place_of(fields.get("at", ""))
    except ValueError:
        return None


def number(fields: Mapping[str, str], name: str) -> int | None:
    """Return the whole number that a field holds, None for none."""
    found = fields.get(name, "")
    return int(found) if found.isascii() and found.isdecimal() and len(found) < DIGITS else None


def selection(fields: Mapping[str, str], *, people: bool) -> Selection:
    """Return which lessons fields mean; who may not see people does not find them either."""
    return Selection(
        label=label(fields),
        source=text(fields, "source"),
        actor=text(fields, "actor") if people else None,
        sender_domain=text(fields, "sender_domain") if people else None,
        since=moment(fields, "since"),
        until=moment(fields, "until"),
    )


def share(fields: Mapping[str, str], name: str) -> float | None:
    """Return the number between 0 and 1 that a field holds, None for none."""
    try:
        found = float(fields.get(name, ""))
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


def repeated(fields: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return what fields hold, all of these names, as the address of the next part has it."""
    return {name: text(fields, name) or "" for name in names}
