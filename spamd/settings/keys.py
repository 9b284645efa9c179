"""Settings as a flat list of "section.key": which there are, and what of them may be shown."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from difflib import get_close_matches
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


def unknown(key: str, known: Mapping[str, Any]) -> str:
    """Return that there is no such key, and which one may be meant."""
    sections = list(dict.fromkeys(name.partition(".")[0] for name in known))
    section = key.partition(".")[0]
    names = [name for name in (*sections, *known) if name.count(".") == key.count(".")]
    close = get_close_matches(key, names, n=1, cutoff=0.75)
    if not close and "." in key and section not in sections:
        return unknown(section, known)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{key} is not a {'setting' if '.' in key else 'section'}{hint}"


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


def toml(value: object) -> str:
    """Return a value as TOML writes it."""
    match value:
        case dict():
            inner = ", ".join(f"{json.dumps(name)} = {toml(v)}" for name, v in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(toml(inner) for inner in value)}]"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case _:
            return json.dumps(str(value), ensure_ascii=False)
