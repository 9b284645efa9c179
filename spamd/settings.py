"""Where settings come from: command line > environment > secret files > one TOML file > defaults.

Every section is the `Options` dataclass of a room, unchanged; `Settings` puts them side by side.
Sources, the strongest first:

    --set SECTION.KEY=VALUE       VALUE as TOML writes it, or else as plain text
    SPAMD_SECTION__KEY            likewise
    secret files                  a folder of files spamd_section__key, each holding one value: the
                                  folder is SPAMD_SECRETS, CREDENTIALS_DIRECTORY (systemd) or
                                  /run/secrets (Docker, Podman)
    the settings file             --config, else SPAMD_CONFIG, else config/spamd.toml below the
                                  current folder if that file belongs to the user, else
                                  /etc/spamd/spamd.toml; else none
    defaults

Nothing is guessed and nothing ignored: an unknown key, an unknown SPAMD_ variable, a value of the
wrong type or an impossible combination is a `ConfigError`, one sentence that names the file or
variable and the key. Settings are frozen; a reload builds a new object graph.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from spamd.bayes.decision import DecisionOptions
from spamd.bayes.dependence import DependenceOptions
from spamd.bayes.fisher import FisherOptions
from spamd.bayes.fusion import FusionOptions
from spamd.bayes.graham import GrahamOptions
from spamd.bayes.logistic import GramsOptions, LogisticOptions
from spamd.bayes.mixed import FactsOptions
from spamd.bayes.model import BayesOptions
from spamd.bayes.multinomial import MultinomialOptions
from spamd.errors import ConfigError
from spamd.feedback.options import FeedbackOptions
from spamd.observe.options import LogOptions, MetricsOptions
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.storage.options import DatabaseOptions

PREFIX = "SPAMD_"
LOCAL_FILE = Path("config/spamd.toml")
SYSTEM_FILE = Path("/etc/spamd/spamd.toml")
SECRETS_FOLDER = Path("/run/secrets")

OWN_VARIABLES = frozenset({"SPAMD_CONFIG", "SPAMD_SECRETS"})
"""Variables that say where settings are."""

SERVICE_LINK = re.compile(r"SPAMD_(SERVICE_(HOST|PORT\w*)|PORT(_\d+_(TCP|UDP)\w*)?)")
"""What Kubernetes and Docker links set by themselves when a service is called "spamd"."""

SECRET = re.compile(r"password|secret|token$", re.IGNORECASE)
"""Keys whose values are never shown."""

PASSWORD_IN_URL = re.compile(r"(?<=://)([^:/@\s]*):[^@/\s]*(?=@)")
HIDDEN = "********"

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


class _Source(PydanticBaseSettingsSource):
    """Hands one `Layer` to pydantic-settings, which merges them, the strongest first."""

    def __init__(self, settings_cls: type[BaseSettings], layer: Layer) -> None:
        super().__init__(settings_cls)
        self._layer = layer

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - the base class asks for the first
        return self._layer.values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return dict(self._layer.values)


class Settings(BaseSettings):
    """All settings of spamd; made by `load`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", title="spamd")

    relay: RelayOptions = Field(default_factory=RelayOptions)
    next_hop: NextHopOptions = Field(default_factory=NextHopOptions)
    tls: TlsOptions = Field(default_factory=TlsOptions)
    decision: DecisionOptions = Field(default_factory=DecisionOptions)
    graham: GrahamOptions = Field(default_factory=GrahamOptions)
    multinomial: MultinomialOptions = Field(default_factory=MultinomialOptions)
    fisher: FisherOptions = Field(default_factory=FisherOptions)
    logistic: LogisticOptions = Field(default_factory=LogisticOptions)
    grams: GramsOptions = Field(default_factory=GramsOptions)
    facts: FactsOptions = Field(default_factory=FactsOptions)
    dependence: DependenceOptions = Field(default_factory=DependenceOptions)
    fusion: FusionOptions = Field(default_factory=FusionOptions)
    database: DatabaseOptions = Field(default_factory=DatabaseOptions)
    feedback: FeedbackOptions = Field(default_factory=FeedbackOptions)
    metrics: MetricsOptions = Field(default_factory=MetricsOptions)
    log: LogOptions = Field(default_factory=LogOptions)

    @property
    def bayes(self) -> BayesOptions:
        """Return the settings of the heads, of the fusion and of the decision."""
        return BayesOptions(
            graham=self.graham,
            multinomial=self.multinomial,
            fisher=self.fisher,
            logistic=self.logistic,
            grams=self.grams,
            facts=self.facts,
            dependence=self.dependence,
            fusion=self.fusion,
            decision=self.decision,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the layers that `load` found; a `Settings` made by hand has its arguments only."""
        layers: Sequence[Layer] = init_settings().get("layers", ())
        return tuple(_Source(settings_cls, layer) for layer in layers) or (init_settings,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Settings and where each came from.

    file      the settings file that was read, if any
    origins   file or variable of each "section.key" that is not left at its default
    """

    settings: Settings
    file: Path | None
    origins: Mapping[str, str]

    def origin(self, key: str) -> str:
        """Return where the value of "section.key" comes from: a file, a variable or "default"."""
        below = (origin for name, origin in self.origins.items() if name.startswith(f"{key}."))
        return self.origins.get(key) or next(below, "default")

    def shown(self) -> Iterator[tuple[str, Any]]:
        """Yield ("section.key", value) of every setting in order, secrets hidden."""
        for section in Settings.model_fields:
            for key, value in asdict(getattr(self.settings, section)).items():
                yield f"{section}.{key}", masked(value, key)


def load(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Return the settings from all sources.

    Args:
        config: the settings file that the command line names.
        overrides: "section.key=value", as the command line gives them.
        environ: the environment; that of the process by default.

    Raises:
        ConfigError: one sentence on the first thing that is wrong.
    """
    found, faults = read(config, overrides, environ)
    if found is None:
        more = f" (and {len(faults) - 1} more, see spamd config check)" if len(faults) > 1 else ""
        raise ConfigError(faults[0] + more)
    return found


def read(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[Configuration | None, list[str]]:
    """Return the settings, or None and all that is wrong, one sentence each."""
    environ = os.environ if environ is None else environ
    try:
        file = _settings_file(config, environ)
        layers = [
            _layer(_overrides(overrides)),
            _layer(_variables(environ)),
            _layer(_secret_files(environ)),
            _file_layer(file),
        ]
    except ConfigError as error:
        return None, [str(error)]
    origins: dict[str, str] = {}
    for layer in reversed(layers):
        origins.update(layer.origins)
    faults = [fault for layer in layers for fault in _type_faults(layer, origins)]
    if faults:
        return None, faults
    make: Callable[..., Settings] = Settings  # takes the layers besides the sections
    try:
        settings = make(layers=layers)
    except ValidationError as error:
        return None, [_sentence(detail, origins) for detail in error.errors()]
    return Configuration(settings=settings, file=file, origins=origins), []


def _settings_file(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: named by the command line, by SPAMD_CONFIG, or found."""
    if config is not None:
        return config
    if named := environ.get("SPAMD_CONFIG"):
        return Path(named)
    # A stranger's folder must not configure whoever steps into it, least of all root.
    if LOCAL_FILE.is_file() and LOCAL_FILE.stat().st_uid == os.geteuid():
        return LOCAL_FILE
    return SYSTEM_FILE if SYSTEM_FILE.is_file() else None


def _file_layer(file: Path | None) -> Layer:
    if file is None:
        return Layer(values={}, origins={})
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: the settings file can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: the settings file is not TOML: {error}") from error
    known = _defaults()
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
        below = not prefix or any(other.startswith(f"{key}.") for other in known)
        if isinstance(value, dict) and value and below:
            yield from _leaves(value, known, f"{key}.")
        else:
            yield values, key, name


def _as_list(value: object, default: object) -> object:
    """Return a lone text as a list of one where a list is wanted: listen = "127.0.0.1:25"."""
    return [value] if isinstance(default, tuple) and isinstance(value, str) else value


def _overrides(overrides: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or key.count(".") < 1:
            raise ConfigError(f'--set needs SECTION.KEY=VALUE, not "{override}"')
        yield key.strip(), value, "--set"


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or name in OWN_VARIABLES or SERVICE_LINK.fullmatch(name):
            continue
        yield _key_of(name), value, name


def _secret_files(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    named = environ.get("SPAMD_SECRETS")
    folder = Path(named or environ.get("CREDENTIALS_DIRECTORY") or SECRETS_FOLDER)
    try:
        files = sorted(folder.iterdir()) if named or folder.is_dir() else []
        for file in files:
            if file.name.upper().startswith(PREFIX) and file.is_file():
                yield _key_of(file.name.upper()), file.read_text("utf-8").rstrip("\r\n"), str(file)
    except OSError as error:
        place = error.filename or folder
        raise ConfigError(f"{place}: the secret can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{folder}: a secret is not UTF-8 text") from error


def _key_of(name: str) -> str:
    """Return "relay.workers" for SPAMD_RELAY__WORKERS."""
    key = name.removeprefix(PREFIX).lower().replace("__", ".")
    if "." not in key or not all(key.split(".")):
        raise ConfigError(f"{name} is not a setting: variables are called SPAMD_SECTION__KEY")
    return key


def _layer(entries: Iterator[tuple[str, str, str]]) -> Layer:
    """Return the layer of (key, text, origin) entries.

    Raises:
        ConfigError: a key that no section has; said here because only here its origin is sure.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    known = _defaults()
    for key, text, origin in entries:
        if key not in known:
            raise ConfigError(f"{origin}: {_unknown(key, known)}")
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


def _defaults() -> dict[str, Any]:
    """Return the default of each "section.key"."""
    found: dict[str, Any] = {}
    for section, field in Settings.model_fields.items():
        options: Any = field.get_default(call_default_factory=True)
        for key, value in asdict(options).items():
            found[f"{section}.{key}"] = value
            if isinstance(value, dict):
                found |= {f"{section}.{key}.{name}": inner for name, inner in value.items()}
    return found


def _type_faults(layer: Layer, origins: Mapping[str, str]) -> Iterator[str]:
    """Yield what pydantic would silently convert: "2" to a number, true to 1, 1 to true."""
    known = _defaults()
    for key, origin in layer.origins.items():
        if origins[key] != origin:
            continue  # a stronger source has another value
        value, default = _at(layer.values, key), known.get(key)
        if isinstance(default, bool):
            if not isinstance(value, bool):
                yield f"{origin}: {key} must be true or false, not {_shown(value, key)}"
        elif isinstance(default, int | float) and isinstance(value, bool | str):
            kind = "a whole number" if isinstance(default, int) else "a number"
            yield f"{origin}: {key} must be {kind}, not {_shown(value, key)}"


def _at(values: Mapping[str, Any], key: str) -> Any:
    section, _, name = key.partition(".")
    inner = values[section]
    return inner if not name else inner[name] if name in inner else _at(inner, name)


def _unknown(key: str, known: Mapping[str, Any]) -> str:
    section = key.partition(".")[0]
    names = [name for name in (*Settings.model_fields, *known) if name.count(".") == key.count(".")]
    close = get_close_matches(key, names, n=1, cutoff=0.75)
    if not close and "." in key and section not in Settings.model_fields:
        return _unknown(section, known)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{key} is not a {'setting' if '.' in key else 'section'}{hint}"


def _sentence(detail: ErrorDetails, origins: Mapping[str, str]) -> str:
    """Return one sentence on one fault that pydantic found: origin, key, what is wrong."""
    path = detail["loc"]
    key = ".".join(str(part) for part in path)
    value = _shown(detail["input"], key)
    origin = _origin_of([str(part) for part in path], origins) or "settings"
    match detail["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"{origin}: {_unknown(key, _defaults())}"
        case "value_error":
            text = str(detail["ctx"]["error"])
            return f"{_origin_of_text(text, key, origins) or origin}: {_named(text, key)}"
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


def _named(text: str, section: str) -> str:
    """Return a sentence of a section with the key it begins with, or the section, in full."""
    first = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    if first.startswith(f"{section}."):
        return text
    return f"{section}.{text}" if f"{section}.{first}" in _defaults() else f"{section}: {text}"


def _shown(value: object, key: str) -> str:
    """Return a value for a message: as TOML writes it, short, secrets hidden."""
    text = json.dumps(masked(value, key), default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def masked(value: Any, key: str) -> Any:
    """Return a value fit to be shown: passwords are hidden, in URLs too."""
    match value:
        case str() if value and SECRET.search(key):
            return HIDDEN
        case str():
            return PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}", value)
        case dict():
            return {name: masked(inner, name) for name, inner in value.items()}
        case list() | tuple():
            return [masked(inner, key) for inner in value]
        case _:
            return value
