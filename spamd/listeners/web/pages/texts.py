"""The texts of the page, in one file for each language: `texts/en.toml`.

A translation is a file of the same keys beside it. Texts are plain text, never HTML; what stands in
braces is filled in by name. Where a number decides, a text has two forms, `one` and `other`.
"""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

LANGUAGE = "en"


class Section:
    """Texts by name: `text.nav.history`, `text.verdict[name]`."""

    __slots__ = ("_texts",)

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._texts: dict[str, str | Section] = {
            name: Section(value) if isinstance(value, dict) else value
            for name, value in found.items()
        }

    def __getitem__(self, name: str) -> "str | Section":
        """Return a text or a section."""
        return self._texts[name]

    def __getattr__(self, name: str) -> "str | Section":
        """Return a text or a section."""
        try:
            return self._texts[name]
        except KeyError:
            raise AttributeError(name) from None


@lru_cache(1)
def texts() -> Section:
    """Return all texts, by section and name."""
    source = files(__package__).joinpath("texts", f"{LANGUAGE}.toml")
    return Section(tomllib.loads(source.read_text(encoding="utf-8")))
