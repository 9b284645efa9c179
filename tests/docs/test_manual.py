"""The manual pages say all that the command line takes, and shells complete what may follow."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.docs.blocks import ROOT, block
from tests.docs.generated import COMMANDS
from tests.docs.manual import pages
from tests.servers.base import require

PAGES = sorted(pages())
BASH = block("docs/operations.md", "install -d /usr/local/share/bash-completion")
MAN = block("docs/operations.md", "install -d /usr/local/share/man")
PROGRAMS = Path(sys.executable).parent


def test_there_is_a_page_for_each_command_and_no_other() -> None:
    there = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "man").iterdir())
    wanted = {"man/spamd.1", *(f"man/spamd-{name.split()[0]}.1" for name in COMMANDS)}
    assert there == PAGES == sorted(wanted)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_names_each_option_and_argument_of_its_command(name: str) -> None:
    text = (
        (ROOT / f"man/spamd-{name.split(maxsplit=1)[0]}.1").read_text("utf-8").replace("\\-", "-")
    )
    assert f"spamd {name}" in text
    command = COMMANDS[name]
    for param in command.get_params(typer.Context(command)):
        words = param.opts if param.param_type_name == "option" else [param.metavar]
        if not getattr(param, "hidden", False):
            assert [word for word in words if word not in text] == []


def test_what_formats_pages_has_no_fault_to_tell() -> None:
    require("groff")
    for page in PAGES:
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tascii", "-P-bcou", str(ROOT / page)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", page
        assert {"NAME", "SYNOPSIS", "DESCRIPTION"} <= set(re.findall("[A-Z]+", done.stdout))


def completed(folder: Path, words: str) -> list[str]:
    """Return what a bash offers that read the script as printed."""
    script = folder / "spamd"
    told = BASH.replace("/usr/local/share/bash-completion/completions", str(folder))
    assert str(script) in told
    *before, last = words.split(" ")
    asked = f"""\
set -e
{told}
. {script}
COMP_WORDS=({" ".join(before)} '{last}') COMP_CWORD={len(before)}
_spamd_completion spamd
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p spamd
"""
    done = subprocess.run(
        ["bash", "-c", asked],
        env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *offered, registered = done.stdout.split("\n")[:-1]
    assert registered == "complete -o default -F _spamd_completion spamd"
    return [each for each in offered if each]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("spamd tr", ["train"]),
        ("spamd re", ["retrain"]),
        ("spamd lessons ", ["held", "release", "drop"]),
        ("spamd lessons release --a", ["--all"]),
        ("spamd train /t", []),  # bash itself completes files
    ],
)
def test_bash_offers_commands_and_options(tmp_path: Path, words: str, offered: list[str]) -> None:
    assert completed(tmp_path, words) == offered


def test_the_pages_are_where_man_looks_as_printed(tmp_path: Path) -> None:
    told = MAN.replace("/usr/local/share/man", str(tmp_path))
    subprocess.run(["sh", "-ec", told], cwd=ROOT, check=True)
    assert {path.name for path in (tmp_path / "man1").iterdir()} == {
        Path(page).name for page in PAGES
    }
