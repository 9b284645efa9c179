"""`make run`: from a checkout to the first judged mail, by nothing but the commands it prints."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.base import Server, free_port, greeting

CHECKOUT = Path(__file__).resolve().parents[2]


class MakeRun(Server):
    """`make run` in a folder that has what a checkout has; .venv is lent."""

    name = "make"

    def configure(self) -> None:
        self.page_port = free_port()
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(CHECKOUT / name, self.directory)
        for name in (".ci", "config"):
            shutil.copytree(CHECKOUT / name, self.directory / name, dirs_exist_ok=True)
        if not (self.directory / ".venv").exists():
            (self.directory / ".venv").symlink_to(sys.prefix)

    def environment(self) -> dict[str, str]:
        listen = {"RELAY": self.port, "WEB": self.page_port}
        return super().environment() | {
            f"SPAMD_{key}__LISTEN": f"127.0.0.1:{port}" for key, port in listen.items()
        }

    def command(self) -> list[str]:
        return ["make", "--assume-old=.venv/run.stamp", "run"]

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")


@pytest.fixture
def make_run() -> Iterator[MakeRun]:
    if shutil.which("make") is None:
        pytest.skip("needs make: no make in PATH")
    with MakeRun() as server:
        yield server


def printed_commands(text: str) -> dict[str, str]:
    """Return the shell commands under each heading of the text, by the heading's first word."""
    sections = re.findall(r"^  (\w+).*\n((?:    .*\n)+)", text, re.MULTILINE)
    return dict(sections)


def test_make_run_is_used_as_it_says(make_run: MakeRun) -> None:
    commands = printed_commands(make_run.log_text())
    assert list(commands) == ["Send", "See", "Teach", "Ask"]
    printed = {}
    for heading, script in commands.items():
        done = subprocess.run(
            ["/bin/sh", "-ec", script.replace("8025", str(make_run.port))],
            cwd=make_run.directory,
            env={**make_run.environment(), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (heading, done.stdout, done.stderr)
        printed[heading] = done.stdout
    assert "\nX-Spam-Status: No, " in printed["See"]
    assert "The first mail." in printed["See"]
    assert "1" in printed["Teach"]
    assert "hello" in printed["Ask"]
    page = re.search(r"http://\S+", make_run.log_text())
    assert page is not None
    with urllib.request.urlopen(page[0]) as answer:
        assert b"<h1" in answer.read()
    make_run.stop()
    assert page[0] in make_run.log_text().partition("worker.started")[2]
