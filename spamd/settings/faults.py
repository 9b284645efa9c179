"""What is wrong with the settings, one sentence a fault: origin, key, what would be right."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from pydantic_core import ErrorDetails

from spamd.settings.keys import masked, unknown
from spamd.settings.layers import Layer
from spamd.wording import masked_urls

WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dataclass_type": "a table of keys",
    "dict_type": "a table of keys",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "path_type": "a path",
    "string_type": "text in quotes",
    "tuple_type": "a list",
}
"""Pydantic's kinds of faults in words."""


def of_types(layer: Layer, origins: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield what pydantic would take: "2" for a number, true for 1, 1 for true; nan, inf."""
    for key, origin in layer.origins.items():
        if origins[key] != origin:
            continue  # a stronger source has another value
        value, default = _at(layer.values, key), known.get(key)
        if isinstance(default, bool):
            if not isinstance(value, bool):
                yield f"{origin}: {key} must be true or false, not {_shown(value, key)}"
        elif isinstance(default, int | float) and (
            isinstance(value, bool | str) or (isinstance(value, float) and not isfinite(value))
        ):
            kind = "a whole number" if isinstance(default, int) else "a number"
            yield f"{origin}: {key} must be {kind}, not {_shown(value, key)}"


def _at(values: Mapping[str, Any], key: str) -> Any:
    section, _, name = key.partition(".")
    inner = values[section]
    return inner if not name else inner[name] if name in inner else _at(inner, name)


def sentence(detail: ErrorDetails, origins: Mapping[str, str], known: Mapping[str, Any]) -> str:
    """Return one sentence on one fault that pydantic found: origin, key, what is wrong."""
    path = detail["loc"]
    key = ".".join(str(part) for part in path)
    value = _shown(detail["input"], key)
    origin = _origin_of([str(part) for part in path], origins) or "settings"
    match detail["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"{origin}: {unknown(key, known)}"
        case "value_error":
            text = masked_urls(str(detail["ctx"]["error"]))
            return f"{_origin_of_text(text, key, origins) or origin}: {_named(text, key, known)}"
        case "missing":
            return f"{origin}: {key} is missing"
        case "literal_error" | "enum":
            choices = detail["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
            wanted = f"one of {choices}"
        case kind:
            wanted = WANTED.get(kind, "")
    if not wanted:
        return f"{origin}: {key}: {detail['msg'].lower()}"
    return f"{origin}: {key} must be {wanted}, not {value}"


def _origin_of(path: Sequence[str], origins: Mapping[str, str]) -> str:
    """Return where the value at a path, or the first one below it, comes from."""
    for length in range(len(path), 0, -1):
        key = ".".join(path[:length])
        if key in origins:
            return origins[key]
        below = [origin for name, origin in origins.items() if name.startswith(key + ".")]
        if below:
            return below[0]
    return ""


def _origin_of_text(text: str, section: str, origins: Mapping[str, str]) -> str | None:
    """Return the origin of the first key of the section that a sentence names."""
    for word in re.findall(r"\w+", text):
        if (origin := origins.get(f"{section}.{word}")) is not None:
            return origin
    return None


def _named(text: str, section: str, known: Mapping[str, Any]) -> str:
    """Return a sentence of a section with the key it begins with, or the section, in full."""
    first = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    if first.startswith(f"{section}."):
        return text
    return f"{section}.{text}" if f"{section}.{first}" in known else f"{section}: {text}"


def _shown(value: object, key: str) -> str:
    """Return a value for a message: as TOML writes it, short, secrets hidden."""
    text = json.dumps(masked(value, key), default=str)
    return text if len(text) <= 60 else text[:57] + "…"
