"""docs/contributing.md names what there is: targets, files, tests and commits."""

import re
import subprocess

import pytest

from tests.docs.blocks import ROOT, block

PAGE = (ROOT / "docs/contributing.md").read_text("utf-8")
DAILY = block("docs/contributing.md", "make fix")
TITLES = re.findall(r'^"([^"]+)"', PAGE, re.MULTILINE)
PATHS = sorted(set(re.findall(r"`((?:spamd|tests|docs|config|\.ci)/[\w./]*)`", PAGE)))


@pytest.mark.parametrize("command", DAILY.splitlines())
def test_a_daily_command_is_a_target_of_make(command: str) -> None:
    target, *variables = command.split()[1:]
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)
    for variable in variables:
        name, path = variable.split("=")
        assert f"$({name})" in makefile
        assert (ROOT / path).exists()


@pytest.mark.parametrize("path", PATHS)
def test_a_named_file_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("title", TITLES)
def test_a_walk_follows_a_commit_of_this_repository(title: str) -> None:
    found = subprocess.run(
        ["git", "log", "--format=%s", "--fixed-strings", f"--grep={title}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode or not found.stdout:
        pytest.skip("this is no clone with the whole history")

    assert title in found.stdout.splitlines()


def test_there_are_four_walks() -> None:
    assert len(TITLES) == 4
