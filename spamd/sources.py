"""Where settings stand, the strongest first, for whoever must not load what can be set.

    --set SECTION.KEY=VALUE > SPAMD_SECTION__KEY > secret files > one TOML file > defaults

`settings.layers` makes layers of them, for typed settings; `spamd filter`, which runs once for
each mail, asks for the value of a single key. So nothing here loads regular expressions, types or
TOML until it has to: each of them takes as long as a mail.
"""

import os

from spamd.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

Entry = tuple[str, str, str]
"""Key, text of the value, origin."""

PREFIX = "SPAMD_"
LOCAL_FILE = "config/spamd.toml"
SYSTEM_FILE = "/etc/spamd/spamd.toml"
SECRETS_FOLDER = "/run/secrets"

OWN_VARIABLES = frozenset({"SPAMD_CONFIG", "SPAMD_SECRETS"})
"""Variables that say where settings are."""

TRUTH = {"true": True, "yes": True, "on": True, "1": True}
TRUTH |= {"false": False, "no": False, "off": False, "0": False}
"""How true and false are written in variables and on the command line; TOML has its own words."""


def value_of(
    key: str,
    default: object,
    config: "str | None",
    given: "Sequence[str]",
    environ: "Mapping[str, str]",
) -> "Any":
    """Return the value of one setting, not looked at; of the default's kind if all is well.

    Raises:
        ConfigError: a source can't be read; weaker ones than that which has the key are not looked
            at.
    """
    for entries in (overrides(given, "--set"), variables(environ), secret_files(environ)):
        texts = [text for name, text, _ in entries if name == key]
        if texts:
            return as_list(from_text(texts[-1], default), default)
    file = settings_file(config, environ)
    value: Any = {} if file is None else of_toml(file)
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            return default
        value = value[name]
    return as_list(value, default)


def settings_file(config: "str | None", environ: "Mapping[str, str]") -> "str | None":
    """Return the file to read: named by the command line, by SPAMD_CONFIG, or found.

    Where spamd is installed its file comes first, so that who stands in a checkout, as whoever
    installs from it does, reads and changes what the daemon runs on.
    """
    if config is not None:
        return config
    if named := environ.get("SPAMD_CONFIG"):
        return named
    try:
        os.stat(SYSTEM_FILE)
    except PermissionError:
        return SYSTEM_FILE  # reading it says that we may not
    except OSError:
        pass
    if os.path.isfile(SYSTEM_FILE):
        return SYSTEM_FILE
    # A stranger's folder must not configure whoever steps into it, least of all root.
    if os.path.isfile(LOCAL_FILE) and os.stat(LOCAL_FILE).st_uid == os.geteuid():
        return LOCAL_FILE
    return None


def of_toml(file: str) -> "dict[str, Any]":
    """Return what a settings file says.

    Raises:
        ConfigError: it can't be read.
    """
    import tomllib

    try:
        with open(file, "rb") as opened:
            return tomllib.loads(opened.read().decode("utf-8"))
    except OSError as error:
        from spamd.wording import reason

        raise ConfigError(f"{file}: the settings file can't be read: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not TOML: {error}") from error


def overrides(given: "Iterable[str]", option: str) -> "Iterator[Entry]":
    """Yield what an option of the command line sets."""
    for override in given:
        key, equals, value = override.partition("=")
        if not equals or key.count(".") < 1:
            raise ConfigError(f'{option} needs SECTION.KEY=VALUE, not "{override}"')
        yield key.strip(), value, option


def variables(environ: "Mapping[str, str]") -> "Iterator[Entry]":
    """Yield what the environment sets."""
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        if name not in OWN_VARIABLES and not _service_link(name):
            yield _key_of(name, name), environ[name], name


def _service_link(name: str) -> bool:
    """Tell whether Kubernetes or Docker set this because a service is called "spamd"."""
    if not name.startswith(("SPAMD_SERVICE_", "SPAMD_PORT")):
        return False
    import re

    link = r"SPAMD_(SERVICE_(HOST|PORT\w*)|PORT(_\d+_(TCP|UDP)\w*)?)"
    return re.fullmatch(link, name) is not None


def secret_files(environ: "Mapping[str, str]") -> "Iterator[Entry]":
    """Yield what the files of the secrets' folder set."""
    named = environ.get("SPAMD_SECRETS")
    folder = named or environ.get("CREDENTIALS_DIRECTORY") or SECRETS_FOLDER
    try:
        names = sorted(os.listdir(folder)) if named or os.path.isdir(folder) else []
        for name in names:
            file = os.path.join(folder, name)
            if name.upper().startswith(PREFIX) and os.path.isfile(file):
                key = _key_of(name.upper(), file)
                with open(file, "rb") as opened:
                    yield key, opened.read().decode("utf-8").rstrip("\r\n"), file
    except OSError as error:
        from spamd.wording import reason

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


def as_list(value: object, default: object) -> object:
    """Return a lone text as a list of one where a list is wanted: listen = "127.0.0.1:25"."""
    return [value] if isinstance(default, tuple | frozenset) and isinstance(value, str) else value


def from_text(text: str, default: object) -> "Any":
    """Return a text as a value: as it stands where text is wanted, else read as TOML or JSON."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return TRUTH.get(text.lower(), text)
    if text.startswith("unix:/"):
        return text  # no value of either; most texts that `spamd filter` is given begin so
    import json
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text
