"""Settings as a flat list of "section.key", and what of them may be shown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from spamd.wording import HIDDEN, masked_urls

SECRET = re.compile(r"(password|secret)(?!_file$)|token(_command)?$", re.IGNORECASE)
"""Keys whose values are never shown: passwords, and commands that print one."""

ACCOUNTS = re.compile(r"(^|\.)accounts(\.\d+)?$")
"""Keys of tables with passwords; what stands there instead of a table may be anything."""

EMPTY: tuple[object, ...] = (None, "", (), [])


def flat(options: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield (full key, value) of an Options object, of those inside it too."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from flat(value, f"{prefix}.{field.name}")
        else:
            yield f"{prefix}.{field.name}", value


def masked(value: Any, key: str) -> Any:
    """Return a value fit to be shown: passwords are hidden, in URLs too."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {name: inner for name, inner in asdict(value).items() if inner not in EMPTY}
    if SECRET.search(key) and value not in EMPTY:
        return HIDDEN
    match value:
        case Mapping():
            return {name: masked(inner, name) for name, inner in value.items()}
        case list() | tuple():
            return [masked(inner, key) for inner in value]
        case frozenset():
            return sorted(value)
        case str():
            return HIDDEN if ACCOUNTS.search(key) else masked_urls(value)
        case _:
            return value
