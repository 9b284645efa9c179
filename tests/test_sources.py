"""One setting, read without loading what can be set: the value is that of the typed settings."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from spamd import sources
from spamd.errors import ConfigError
from spamd.settings import load

FILE = """
[spamc]
listen = ["127.0.0.1:783", "unix:/run/file.sock"]
"""
LONE = '[spamc]\nlisten = "unix:/run/lone.sock"\n'
OTHER = "[relay]\nworkers = 2\n"


@pytest.mark.parametrize("file", [FILE, LONE, OTHER, ""])
@pytest.mark.parametrize(
    "given",
    [
        [],
        ["spamc.listen=unix:/run/given.sock"],
        ["spamc.listen=[]"],
        ['spamc.listen=["127.0.0.1:1"]', "spamc.listen=127.0.0.1:2"],
        ["relay.workers=3"],
    ],
)
@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SPAMD_SPAMC__LISTEN": '["unix:/run/variable.sock"]'},
        {"SPAMD_SPAMC__LISTEN": "127.0.0.1:783", "SPAMD_PORT_8025_TCP": "x"},
        {"SPAMD_SECRETS": "secrets"},
    ],
)
def test_one_value_is_that_of_the_typed_settings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    given: list[str],
    environ: Mapping[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/spamd_spamc__listen").write_text("unix:/run/secret.sock\n")
    (tmp_path / "my.toml").write_text(file)
    environ = {"SPAMD_CONFIG": "my.toml", **environ}

    found = sources.value_of("spamc.listen", (), None, given, environ)

    assert tuple(found) == load(None, given, environ).settings.spamc.listen


def test_the_file_is_not_read_when_a_stronger_source_has_the_value(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.toml")
    given = ["spamc.listen=unix:/run/given.sock"]

    assert sources.value_of("spamc.listen", (), missing, given, {}) == ["unix:/run/given.sock"]
    with pytest.raises(ConfigError, match=r"missing\.toml: the settings file can't be read"):
        sources.value_of("spamc.listen", (), missing, [], {})


def test_a_value_given_for_a_unix_socket_loads_neither_toml_nor_regular_expressions() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from spamd.sources import value_of;"
        "value_of('spamc.listen', (), None, ['spamc.listen=unix:/x'], {});"
        "print(sorted({'re', 'tomllib', 'typing', 'pathlib', 'dataclasses'} & set(sys.modules)))"
    )
    root = str(Path(sources.__file__).parents[1])

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, root],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    assert done.stdout == "[]\n"
