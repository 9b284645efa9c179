"""The frame of the command line: usage, errors, exit codes, what a command loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spamd.cli.main import hoisted, run
from tests.cli.conftest import Spamd


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_without_arguments_the_help_page_is_shown_and_the_exit_code_is_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 64
    assert "Usage: spamd [OPTIONS] COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["config"], ["scan"]])
def test_a_wrong_command_line_exits_64_and_says_how_to_get_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 64
    assert "--help' for help." in capsys.readouterr().err


def test_help_and_version_exit_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("spamd ")
    assert run(["train", "--help"]) == 0


def test_global_options_may_stand_behind_the_command() -> None:
    line = ["train", "spam", "x", "--config", "a.toml", "--set=b.c=1", "--", "--config", "y"]

    assert hoisted(line) == (
        ["--config", "a.toml", "--set=b.c=1"],
        ["train", "spam", "x", "--", "--config", "y"],
    )


def test_help_loads_none_of_the_rooms() -> None:
    code = (
        "import sys; from spamd.cli.main import run; run(['--help']); "
        "heavy = {'asyncio', 'numpy', 'sqlalchemy', 'pydantic', 'rich', 'regex', 'alembic'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )

    assert python("-c", code).stdout.splitlines()[-1] == "[]"


def test_a_command_loads_no_other() -> None:
    code = (
        "import sys; from spamd.cli.main import run; run(['train', '--help']); "
        "print(*(name for name in sys.modules if name.startswith('spamd.cli.')))"
    )

    loaded = set(python("-c", code).stdout.splitlines()[-1].split())

    assert "spamd.cli.commands.train" in loaded
    assert not loaded & {
        "spamd.cli.commands.scan",
        "spamd.cli.commands.serve",
        "spamd.cli.commands.database",
    }


def test_the_module_and_the_script_are_one_program() -> None:
    script = Path(sys.executable).with_name("spamd")

    assert python("-m", "spamd", "--version").stdout == python(str(script), "--version").stdout


def test_a_reader_that_has_enough_gets_no_complaint(spamd: Spamd, home: Path) -> None:
    command = f"{sys.executable} -m spamd config show | head -1"

    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (ran.stdout.count("\n"), ran.stderr) == (1, "")


def test_output_that_finds_the_disk_full_is_trouble_and_no_bug(spamd: Spamd, home: Path) -> None:
    command = [sys.executable, "-m", "spamd", "config", "show"]

    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (3, "spamd: can't write: No space left on device\n")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "sqlite:///missing/x.db",
            "database.url: missing/x.db: there is no folder",
        ),
        ("sqlite:///var", "database.url: var is not a file"),
        ("sqlite:///broken.db", "database.url: the file broken.db is no intact SQLite database"),
    ],
)
def test_a_database_that_can_t_be_right_exits_78_and_names_key_and_origin(
    spamd: Spamd, home: Path, url: str, sentence: str
) -> None:
    (home / "broken.db").write_bytes(b"this is no database, whatever its name says" * 100)

    ran = spamd("status", "--set", f"database.url={url}")

    assert ran.code == 78
    assert ran.err.startswith(f"spamd: --set: {sentence}")
    assert ran.err.count("\n") == 1


def test_a_database_that_does_not_answer_exits_75(spamd: Spamd) -> None:
    ran = spamd("status", "--set", "database.url=postgresql://nobody@127.0.0.1:1/none")

    assert ran.code == 75
    assert ran.err.endswith("; try again later\n")


def test_a_port_that_is_taken_stops_the_start_with_one_sentence(spamd: Spamd) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = spamd("serve", "--set", f"relay.listen={address}")

    assert ran.code == 78
    assert ran.err.startswith("spamd: --set: relay.listen")
    assert ran.err.count("\n") == 1


def test_config_show_is_a_settings_file_itself(spamd: Spamd, home: Path) -> None:
    shown = spamd("config", "show", "--set", "relay.workers=3")
    (home / "again.toml").write_text(shown.out)

    ran = spamd("config", "show", "--json", "--config", "again.toml")

    assert ran.json["settings"]["relay.workers"] == {"value": 3, "origin": "again.toml"}


def test_config_show_says_where_each_value_comes_from(
    spamd: Spamd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPAMD_LOG__LEVEL", "warning")

    settings = spamd("config", "show", "--json").json["settings"]

    assert settings["log.level"] == {"value": "warning", "origin": "SPAMD_LOG__LEVEL"}
    assert settings["decision.minimum_ham"] == {"value": 5, "origin": "--set"}
    assert settings["log.format"]["origin"] == "default"


def test_config_show_derives_the_thresholds_from_the_losses(spamd: Spamd) -> None:
    found = spamd("config", "show", "--json", "--set", "decision.reject=true").json["thresholds"]

    assert list(found) == ["accept", "unsure", "tag", "reject"]
    assert found["accept"] == 0.0
    assert found["unsure"] < found["tag"] < found["reject"] < 1


def test_config_check_says_that_all_is_fine(spamd: Spamd, home: Path) -> None:
    (home / "fine.toml").write_text("[relay]\nworkers = 2\n")

    ran = spamd("config", "check", "fine.toml")

    assert ran.code == 0
    assert ran.out == "fine.toml: 3 settings, no fault\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave files of root behind")
def test_a_command_run_as_root_leaves_the_database_to_the_daemon_s_user(
    spamd: Spamd, home: Path
) -> None:
    os.chown(home / "var", 65534, 65534)

    assert spamd("train", "spam", "spam").code == 0
    assert spamd("database", "reset", "--yes").code == 0

    owners = {file.name: file.stat().st_uid for file in (home / "var").iterdir()}
    assert len(owners) >= 2
    assert set(owners.values()) == {65534}


def test_a_bug_exits_3_and_says_that_it_is_one(spamd: Spamd) -> None:
    # No command line can hold a NUL, so nobody has thought of what writing such a file says.
    ran = spamd("database", "export", "a\0b")

    assert ran.code == 3
    assert ran.err.endswith("spamd: this is a bug: ValueError\n")


def test_long_values_and_tables_are_toml_too(spamd: Spamd, home: Path) -> None:
    (home / "var" / "cur").mkdir()
    (home / "a.toml").write_text(
        '[next_hop.routes]\n"example.org" = "smtp://127.0.0.1:25"\n'
        '[[feedback.accounts]]\nmaildir = "var"\nuser = "me"\n'
    )
    shown = spamd("config", "show", "--changed", "--config", "a.toml").out
    (home / "b.toml").write_text(shown)

    assert 'routes = { "example.org" = "smtp://127.0.0.1:25" }' in shown
    assert spamd("config", "check", "b.toml").code == 0


def test_a_faulty_file_is_reported_as_json(spamd: Spamd, home: Path) -> None:
    (home / "bad.toml").write_text("[relay]\nworkers = 'x'\n")

    ran = spamd("config", "check", "bad.toml", "--json")

    assert ran.code == 78
    assert ran.json["faults"] == ['bad.toml: relay.workers must be a whole number, not "x"']
