"""Every file of tests/bad_configs stops the start with the sentence in its first line."""

from pathlib import Path

import pytest

from spamd.cli.exits import Exit
from spamd.cli.main import run

FOLDER = Path(__file__).parent.parent / "bad_configs"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.toml")), ids=lambda file: file.stem)
def test_a_wrong_configuration_stops_the_start_with_one_sentence(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = file.read_text().splitlines()[0].removeprefix("# ").replace("FILE", str(file))

    code = run(["--config", str(file), "config", "show"])

    assert (code, capsys.readouterr().err) == (Exit.CONFIG, f"spamd: {expected}\n")


def test_config_check_names_every_fault_of_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FOLDER / "two_faults.toml"
    (tmp_path / "var").mkdir()
    monkeypatch.chdir(tmp_path)

    code = run(["config", "check", str(file)])

    assert code == Exit.CONFIG
    assert capsys.readouterr().err.splitlines() == [
        f'spamd: {file}: relay.workers must be a whole number, not "two"',
        f'spamd: {file}: decision.reject must be true or false, not "no"',
    ]
