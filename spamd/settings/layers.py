"""The sources of settings, each read into a `Layer`: values, and where each of them stands.

Where they stand and how they are written: `spamd.sources`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spamd.errors import ConfigError
from spamd.settings.keys import unknown
from spamd.sources import Entry, as_list, from_text, of_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The values of one source.

    values    nested: {"relay": {"workers": 2}}
    origins   where each stands: {"relay.workers": "SPAMD_RELAY__WORKERS"}
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]


def of_file(file: Path | None, known: Mapping[str, Any]) -> Layer:
    """Return the layer of a settings file, an empty one without a file."""
    if file is None:
        return Layer(values={}, origins={})
    values = of_toml(str(file))
    origins: dict[str, str] = {}
    for place, key, name in _leaves(values, known):
        place[name] = as_list(place[name], known.get(key))
        origins[key] = str(file)
    return Layer(values=values, origins=origins)


def _leaves(
    values: dict[str, Any], known: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield each value as (the table it is in, its full key, its name there)."""
    for name, value in values.items():
        key = prefix + name
        table = isinstance(value, dict) and bool(value)
        if table and (not prefix or any(other.startswith(f"{key}.") for other in known)):
            yield from _leaves(value, known, f"{key}.")
        else:
            yield values, key, name


def of_texts(entries: Iterable[Entry], known: Mapping[str, Any]) -> Layer:
    """Return the layer of entries whose values are texts.

    Raises:
        ConfigError: a key that no section has; said here because only here its origin is sure.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, text, origin in entries:
        if key not in known:
            raise ConfigError(f"{origin}: {unknown(key, known)}")
        *path, last = key.split(".")
        place = values
        for name in path:
            place = place.setdefault(name, {})
        place[last] = as_list(from_text(text, known[key]), known[key])
        origins[key] = origin
    return Layer(values=values, origins=origins)
