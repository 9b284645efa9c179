"""What is generated from the code (`generated.py`, `make docs`) is what the code says now."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from spamd.settings import Settings, load
from tests.docs.generated import FILES, ROOT, documented


def options_classes() -> Iterator[tuple[str, type]]:
    def inside(name: str, options: Any) -> Iterator[tuple[str, type]]:
        yield name, type(options)
        for field in fields(options):
            value = getattr(options, field.name)
            if is_dataclass(value):
                yield from inside(f"{name}.{field.name}", value)

    for name, field in Settings.model_fields.items():
        yield from inside(name, field.get_default(call_default_factory=True))


OPTIONS = dict(options_classes())


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_what_the_code_says(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")

    assert FILES[name](text) == text, "run `make docs`"


@pytest.mark.parametrize("section", OPTIONS)
def test_the_options_say_what_each_setting_is_for(section: str) -> None:
    intro, texts = documented(OPTIONS[section])
    keys = [field.name for field in fields(OPTIONS[section])]

    assert len(intro) > 20
    assert [key for key in keys if len(texts.get(key, "")) < 5] == []


def test_the_settings_file_loads_and_equals_the_defaults() -> None:
    assert load(ROOT / "config/spamd.toml", environ={}).settings == Settings()
