"""config/spamd.toml shows every setting: loads, equals the defaults, says what each is for."""

import re
from pathlib import Path

from spamd.settings import Settings, defaults, load

FILE = Path(__file__).parent.parent.parent / "config/spamd.toml"


def keys_with_comments() -> dict[str, str]:
    """Return each key of the file with the comment above it."""
    found: dict[str, str] = {}
    section, comment = "", ""
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("# "):
            comment += line[1:]
        elif header := re.fullmatch(r"\[([\w.]+)\]", line):
            section, comment = header[1], ""
        elif key := re.match(r"(\w+) = ", line):
            found[f"{section}.{key[1]}"] = comment.strip()
            comment = ""
        else:
            comment = ""
    return found


def test_the_file_lists_every_setting_and_no_other() -> None:
    assert list(keys_with_comments()) == list(defaults())


def test_the_file_says_what_each_setting_is_for() -> None:
    silent = [key for key, comment in keys_with_comments().items() if len(comment) < 5]

    assert silent == []


def test_the_file_loads_and_equals_the_defaults() -> None:
    assert load(FILE, environ={}).settings == Settings()
