"""The sources of settings, each read into a `Layer`: values, and where each of them stands."""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spamd.errors import ConfigError
from spamd.settings.keys import unknown
from spamd.wording import reason

PREFIX = "SPAMD_"
LOCAL_FILE = Path("config/spamd.toml")
SYSTEM_FILE = Path("/etc/spamd/spamd.toml")
SECRETS_FOLDER = Path("/run/secrets")

OWN_VARIABLES = frozenset({"SPAMD_CONFIG", "SPAMD_SECRETS"})
"""Variables that say where settings are."""

SERVICE_LINK = re.compile(r"SPAMD_(SERVICE_(HOST|PORT\w*)|PORT(_\d+_(TCP|UDP)\w*)?)")
"""What Kubernetes and Docker links set by themselves when a service is called "spamd"."""

TRUTH = {"true": True, "yes": True, "on": True, "1": True}
TRUTH |= {"false": False, "no": False, "off": False, "0": False}
"""How true and false are written in variables and on the command line; TOML has its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The values of one source.

    values    nested: {"relay": {"workers": 2}}
    origins   where each stands: {"relay.workers": "SPAMD_RELAY__WORKERS"}
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]


Entry = tuple[str, str, str]
"""Key, text of the value, origin."""


def settings_file(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: named by the command line, by SPAMD_CONFIG, or found.

    Where spamd is installed its file comes first, so that who stands in a checkout, as whoever
    installs from it does, reads and changes what the daemon runs on.
    """
    if config is not None:
        return config
    if named := environ.get("SPAMD_CONFIG"):
        return Path(named)
    try:
        if SYSTEM_FILE.is_file():
            return SYSTEM_FILE
    except PermissionError:
        return SYSTEM_FILE  # reading it says that we may not
    # A stranger's folder must not configure whoever steps into it, least of all root.
    with suppress(PermissionError):
        if LOCAL_FILE.is_file() and LOCAL_FILE.stat().st_uid == os.geteuid():
            return LOCAL_FILE
    return None


def of_file(file: Path | None, known: Mapping[str, Any]) -> Layer:
    """Return the layer of a settings file, an empty one without a file."""
    if file is None:
        return Layer(values={}, origins={})
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: the settings file can't be read: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not TOML: {error}") from error
    origins: dict[str, str] = {}
    for place, key, name in _leaves(values, known):
        place[name] = _as_list(place[name], known.get(key))
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


def _as_list(value: object, default: object) -> object:
    """Return a lone text as a list of one where a list is wanted: listen = "127.0.0.1:25"."""
    return [value] if isinstance(default, tuple | frozenset) and isinstance(value, str) else value


def overrides(given: Sequence[str], option: str) -> Iterator[Entry]:
    """Yield what an option of the command line sets."""
    for override in given:
        key, equals, value = override.partition("=")
        if not equals or key.count(".") < 1:
            raise ConfigError(f'{option} needs SECTION.KEY=VALUE, not "{override}"')
        yield key.strip(), value, option


def variables(environ: Mapping[str, str]) -> Iterator[Entry]:
    """Yield what the environment sets."""
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or name in OWN_VARIABLES or SERVICE_LINK.fullmatch(name):
            continue
        yield _key_of(name, name), value, name


def secret_files(environ: Mapping[str, str]) -> Iterator[Entry]:
    """Yield what the files of the secrets' folder set."""
    named = environ.get("SPAMD_SECRETS")
    folder = Path(named or environ.get("CREDENTIALS_DIRECTORY") or SECRETS_FOLDER)
    try:
        files = sorted(folder.iterdir()) if named or folder.is_dir() else []
        for file in files:
            if file.name.upper().startswith(PREFIX) and file.is_file():
                key = _key_of(file.name.upper(), str(file))
                yield key, file.read_text("utf-8").rstrip("\r\n"), str(file)
    except OSError as error:
        place = error.filename or folder
        raise ConfigError(f"{place}: the secret can't be read: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{folder}: a secret is not UTF-8 text") from error


def _key_of(name: str, origin: str) -> str:
    """Return "relay.workers" for SPAMD_RELAY__WORKERS."""
    key = name.removeprefix(PREFIX).lower().replace("__", ".")
    if "." not in key or not all(key.split(".")):
        raise ConfigError(f"{origin} is not a setting: variables are called SPAMD_SECTION__KEY")
    return key


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
        place[last] = _as_list(_from_text(text, known[key]), known[key])
        origins[key] = origin
    return Layer(values=values, origins=origins)


def _from_text(text: str, default: object) -> Any:
    """Return a text as a value: as it stands where text is wanted, else read as TOML or JSON."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return TRUTH.get(text.lower(), text)
    for parse in (_toml_value, json.loads):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _toml_value(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]
