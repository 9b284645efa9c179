"""The texts of the page stand in one file, and each of them is used."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from spamd.listeners.web.pages.texts import texts

FOLDER = files("spamd.listeners.web.pages")
FOUND: dict[str, Any] = tomllib.loads(FOLDER.joinpath("texts", "en.toml").read_text("utf-8"))


def leaves(found: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def test_texts_are_found_by_section_and_name() -> None:
    assert str(texts()["nav"]["history"]) == "History"  # type: ignore[index]  # a section
    assert texts().common.clear == "Clear"  # type: ignore[union-attr]  # no method has that name


def test_no_text_is_empty_or_holds_markup() -> None:
    for name, value in leaves(FOUND):
        assert isinstance(value, str), name
        assert not re.search(r"<[a-z/!]", value), name


def test_templates_hold_no_text_of_their_own() -> None:
    for path in FOLDER.joinpath("templates").iterdir():
        plain = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", path.read_text("utf-8"), flags=re.DOTALL)
        words = re.findall(r"[^\W\d_]{2,}", re.sub(r"<[^>]*>", " ", plain))
        assert set(words) <= {"UID"}, path.name
