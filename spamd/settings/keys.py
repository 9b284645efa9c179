"""Settings as a flat list of "section.key", and what of them may be shown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

SECRET = re.compile(r"password|secret|token$", re.IGNORECASE)
"""Keys whose values are never shown."""

PASSWORD_IN_URL = re.compile(r"(?<=://)([^:/@\s]*):[^@/\s]*(?=@)")
HIDDEN = "********"


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
    match value:
        case str() if value and SECRET.search(key):
            return HIDDEN
        case str():
            return PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}", value)
        case Mapping():
            return {name: masked(inner, name) for name, inner in value.items()}
        case list() | tuple():
            return [masked(inner, key) for inner in value]
        case frozenset():
            return sorted(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return masked({k: v for k, v in asdict(value).items() if v not in (None, "", ())}, key)
        case _:
            return value
