"""What the global options of one command line say, and the settings they lead to."""

import re
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from spamd.loading import loading

if TYPE_CHECKING:
    from spamd.settings import Configuration, Settings

T = TypeVar("T")

KEY = re.compile(r"[a-z_]+\.[a-z_]+\b")


@dataclass(slots=True, kw_only=True)
class Session:
    """One run of the command line."""

    config: Path | None = None
    overrides: list[str] = field(default_factory=list)
    _configuration: "Configuration | None" = None

    @property
    def configuration(self) -> "Configuration":
        """Return the settings and their origins, read once.

        Raises:
            ConfigError: something is wrong with them.
        """
        if self._configuration is None:
            with loading():
                from spamd.settings import load

            self._configuration = load(self.config, self.overrides)
        return self._configuration

    @property
    def settings(self) -> "Settings":
        """Return the settings."""
        return self.configuration.settings

    def read_again(self) -> "Settings":
        """Return the settings as they are by now.

        Raises:
            ConfigError: something is wrong with them.
        """
        from spamd.settings import load

        return load(self.config, self.overrides).settings

    def varied(self, changes: list[str]) -> "Settings":
        """Return the settings with changes that an evaluation tries.

        Raises:
            ConfigError: something is wrong with them.
        """
        from spamd.settings import load

        return load(self.config, self.overrides, varied=changes).settings

    def located(self, text: str) -> str:
        """Return a sentence; if it begins with a key, with the place of its value in front."""
        key = KEY.match(text)
        if key is None or self._configuration is None:
            return text
        origin = self._configuration.origin(key[0])
        return text if origin == "default" else f"{origin}: {text}"


def session(context: typer.Context) -> Session:
    """Return the session that a command runs in."""
    return context.ensure_object(Session)


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """Return what the work of a command comes to, done on an event loop of its own."""
    from asyncio import run  # takes as long as all else that a help page needs

    return run(work)
