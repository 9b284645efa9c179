"""Where settings come from: command line > environment > secret files > one TOML file > defaults.

Every section is the `Options` dataclass of a package, unchanged; `Settings` holds them all.
Sources, the strongest first:

    --set SECTION.KEY=VALUE       VALUE as TOML writes it, or else as plain text
    SPAMD_SECTION__KEY            likewise
    secret files                  a folder of files spamd_section__key, each holding one value: the
                                  folder is SPAMD_SECRETS, CREDENTIALS_DIRECTORY (systemd) or
                                  /run/secrets (Docker, Podman)
    the settings file             --config, else SPAMD_CONFIG, else /etc/spamd/spamd.toml, else
                                  config/spamd.toml below the current folder if that file belongs
                                  to the user; else none
    defaults

Nothing is guessed and nothing ignored: an unknown key, an unknown SPAMD_ variable, a value of the
wrong type or an impossible combination is a `ConfigError`, one sentence that names the file or
variable and the key. Settings are frozen; a reload builds a new object graph.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from spamd import sources
from spamd.bayes.classifiers.confidence import ConfidenceOptions
from spamd.bayes.classifiers.dependence import DependenceOptions
from spamd.bayes.classifiers.fisher import FisherOptions
from spamd.bayes.classifiers.graham import GrahamOptions
from spamd.bayes.classifiers.logistic import GramsOptions, LogisticOptions
from spamd.bayes.classifiers.mixed import FactsOptions
from spamd.bayes.classifiers.multinomial import MultinomialOptions
from spamd.bayes.decision import DecisionOptions
from spamd.bayes.fusion import FusionOptions
from spamd.bayes.model import BayesOptions
from spamd.errors import ConfigError
from spamd.feedback.options import FeedbackOptions
from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.spamc.options import SpamcOptions
from spamd.listeners.web.options import WebOptions
from spamd.lists.known import KnownOptions
from spamd.message.authentication.proof import AuthOptions
from spamd.message.features import ReadingOptions
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.network.addresses import Listener
from spamd.observe.options import LogOptions
from spamd.relay.options import NextHopOptions, RelayOptions, TlsOptions
from spamd.settings import faults, keys
from spamd.settings.layers import Layer, of_file, of_texts
from spamd.storage.options import Ages, DatabaseOptions
from spamd.training import TrainingOptions
from spamd.users.options import UsersOptions


class _Source(PydanticBaseSettingsSource):
    """Gives one `Layer` to pydantic-settings, which merges them, the strongest first."""

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
    milter: MilterOptions = Field(default_factory=MilterOptions)
    spamc: SpamcOptions = Field(default_factory=SpamcOptions)
    web: WebOptions = Field(default_factory=WebOptions)
    decision: DecisionOptions = Field(default_factory=DecisionOptions)
    graham: GrahamOptions = Field(default_factory=GrahamOptions)
    multinomial: MultinomialOptions = Field(default_factory=MultinomialOptions)
    fisher: FisherOptions = Field(default_factory=FisherOptions)
    confidence: ConfidenceOptions = Field(default_factory=ConfidenceOptions)
    logistic: LogisticOptions = Field(default_factory=LogisticOptions)
    grams: GramsOptions = Field(default_factory=GramsOptions)
    facts: FactsOptions = Field(default_factory=FactsOptions)
    dependence: DependenceOptions = Field(default_factory=DependenceOptions)
    fusion: FusionOptions = Field(default_factory=FusionOptions)
    tokenizer: TokenizerOptions = Field(default_factory=TokenizerOptions)
    auth: AuthOptions = Field(default_factory=AuthOptions)
    known: KnownOptions = Field(default_factory=KnownOptions)
    database: DatabaseOptions = Field(default_factory=DatabaseOptions)
    training: TrainingOptions = Field(default_factory=TrainingOptions)
    feedback: FeedbackOptions = Field(default_factory=FeedbackOptions)
    users: UsersOptions = Field(default_factory=UsersOptions)
    log: LogOptions = Field(default_factory=LogOptions)

    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> Mapping[str, str]:
        """Return the file or variable of each "section.key" that is not left at its default."""
        return self._origins

    def __eq__(self, other: object) -> bool:
        """Tell whether all values are the same, wherever they came from."""
        if not isinstance(other, Settings):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Settings.model_fields)

    __hash__ = None  # type: ignore[assignment]  # next_hop.routes is a dict: no hash goes with it

    def stem_from(self, origins: Mapping[str, str]) -> None:
        """Note where the values came from; `load` does."""
        self._origins = origins

    def origin(self, key: str) -> str:
        """Return where the value of "section.key" comes from: a file, a variable or "default"."""
        for name, origin in self._origins.items():
            if key == name or key.startswith(f"{name}.") or name.startswith(f"{key}."):
                return origin
        return "default"

    def shown(self) -> Iterator[tuple[str, Any]]:
        """Yield ("section.key", value) of every setting in order, secrets hidden."""
        for section in type(self).model_fields:
            for key, value in keys.flat(getattr(self, section), section):
                yield key, keys.masked(value, key)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return every address to listen on; the part of its key before the dot is its section."""
        sections = (self.relay, self.milter, self.spamc, self.web)
        return tuple(listener for section in sections for listener in section.listeners)

    @property
    def reading(self) -> ReadingOptions:
        """Return all that steers how bytes become features."""
        tokenizer = self.tokenizer
        return ReadingOptions(without=tokenizer.without, limits=tokenizer.limits, auth=self.auth)

    @property
    def bayes(self) -> BayesOptions:
        """Return the settings of the classifiers, of the fusion and of the decision."""
        return BayesOptions(
            graham=self.graham,
            multinomial=self.multinomial,
            fisher=self.fisher,
            confidence=self.confidence,
            logistic=self.logistic,
            grams=self.grams,
            facts=self.facts,
            dependence=self.dependence,
            fusion=self.fusion,
            decision=self.decision,
        )

    @property
    def remembers_addresses(self) -> bool:
        """Tell whether it is remembered to whom people write.

        Not where no server is trusted: nothing would ever be proven, and so nothing be decided.
        """
        return self.known.enabled and bool(self.auth.trusted)

    @property
    def ages(self) -> Ages:
        """Return how long what is written down stays."""
        return Ages(
            scans_days=self.database.scans_days,
            changes_hours=self.database.changes_hours,
            seen_days=self.feedback.seen_days,
            parked_days=self.feedback.parked_days,
            held_days=self.feedback.held_days,
            attempts=self.feedback.attempts,
            known_days=self.known.days,
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
    """

    settings: Settings
    file: Path | None

    @property
    def origins(self) -> Mapping[str, str]:
        """Return the file or variable of each "section.key" that is not left at its default."""
        return self.settings.origins

    @property
    def read_from(self) -> str:
        """Return the settings file in words; every command that people look at says it."""
        return str(self.file.absolute()) if self.file else "none, all defaults"

    def origin(self, key: str) -> str:
        """Return where the value of "section.key" comes from: a file, a variable or "default"."""
        return self.settings.origin(key)

    def shown(self) -> Iterator[tuple[str, Any]]:
        """Yield ("section.key", value) of every setting in order, secrets hidden."""
        return self.settings.shown()


def load(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    varied: Sequence[str] = (),
) -> Configuration:
    """Return the settings from all sources.

    Args:
        config: the settings file that the command line names.
        overrides: "section.key=value", as the command line gives them.
        environ: the environment; that of the process by default.
        varied: what `spamd evaluate --compare` tries; stronger than all else.

    Raises:
        ConfigError: one sentence on the first thing that is wrong.
    """
    found, wrong = _read(config, overrides, environ, varied)
    if wrong:
        more = f" (and {len(wrong) - 1} more, see spamd config check)" if len(wrong) > 1 else ""
        raise ConfigError(wrong[0] + more)
    return found


def check(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[Configuration, list[str]]:
    """Return the settings and all that is wrong with them and the files they name.

    A key with a fault stands at its default, a section whose keys do not fit at its defaults.
    """
    from spamd.settings import files  # noqa: PLC0415 - it loads TLS and the relay

    found, wrong = _read(config, overrides, environ)
    for key, text in files.faults(found.settings):
        origin = found.origin(key)
        wrong.append(f"{key}: {text}" if origin == "default" else f"{origin}: {key}: {text}")
    return found, wrong


def _read(
    config: Path | None,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None,
    varied: Sequence[str] = (),
) -> tuple[Configuration, list[str]]:
    environ = os.environ if environ is None else environ
    known = defaults()
    found_file = sources.settings_file(None if config is None else str(config), environ)
    file = None if found_file is None else Path(found_file)
    layers: list[Layer] = []
    wrong: list[str] = []
    texts = (
        sources.overrides(varied, "--compare"),
        sources.overrides(overrides, "--set"),
        sources.variables(environ),
        sources.secret_files(environ),
    )
    readers = [partial(of_texts, each) for each in texts]
    for source in (*readers, partial(of_file, file)):
        try:
            layers.append(source(known))
        except ConfigError as error:
            wrong.append(str(error))
    origins: dict[str, str] = {}
    for layer in reversed(layers):
        origins.update(layer.origins)
    wrong += [fault for layer in layers for fault in faults.of_types(layer, origins, known)]
    settings, details = _made(layers)
    wrong += [faults.sentence(detail, origins, known) for detail in details]
    settings.stem_from(origins)
    found = Configuration(settings=settings, file=file)
    wrong += _conflicts(found)
    return found, list(dict.fromkeys(wrong))


def _conflicts(found: Configuration) -> Iterator[str]:
    """Yield what is wrong between two sections, each of which may be right by itself."""
    days, scans_days = found.settings.feedback.kept_days, found.settings.database.scans_days
    if days >= scans_days:
        keys_set = [
            key for key in ("feedback.kept_days", "database.scans_days") if key in found.origins
        ]
        origin = found.origins[keys_set[0]] if keys_set else "settings"
        yield (
            f"{origin}: feedback.kept_days ({days:g}) must be less than database.scans_days"
            f" ({scans_days}), as a mail is taught as it was scanned; 0 turns kept mail off"
        )


def _made(layers: Sequence[Layer]) -> tuple[Settings, list[ErrorDetails]]:
    """Return the settings of these layers, what is wrong left at its default; and the faults."""
    make: Callable[..., Settings] = Settings  # takes the layers besides the sections
    wrong: list[ErrorDetails] = []
    while True:
        try:
            return make(layers=layers), wrong
        except ValidationError as error:
            found = error.errors()
        wrong += found
        for detail in found:
            path = [str(part) for part in detail["loc"][:2]]
            layers = [replace(each, values=_without(each.values, path)) for each in layers]


def _without(values: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the values without the one at the path, a section or a key of one."""
    section, *key = path
    inner = values.get(section)
    if key and isinstance(inner, Mapping):
        left = {name: value for name, value in inner.items() if name != key[0]}
        return {**values, section: left}
    return {name: value for name, value in values.items() if name != section}


def defaults() -> dict[str, Any]:
    """Return the default of each "section.key"."""
    found: dict[str, Any] = {}
    for section, field in Settings.model_fields.items():
        found |= keys.flat(field.get_default(call_default_factory=True), section)
    return found
