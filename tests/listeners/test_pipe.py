"""`spamd filter` with the real daemon, set up as docs/listeners.md prints it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import as_arguments, spamd_filter
from tests.listeners.pipe_daemon import PipeDaemon


@pytest.mark.parametrize("named", ["by the settings", "by the command line"])
@pytest.mark.parametrize(("label", "code"), [("spam", 0), ("ham", 1)])
def test_the_daemon_judges_what_is_piped(
    pipe_daemon: PipeDaemon, tmp_path: Path, label: str, code: int, named: str
) -> None:
    mail = made_up(label, 11 + code + 2 * len(named))
    where = ["--config", str(pipe_daemon.config)]
    if named == "by the command line":
        where = [*as_arguments(pipe_daemon.address)]
    before = len(pipe_daemon.events("message.scanned"))

    done = spamd_filter(mail, *where, "--exit-code", folder=tmp_path)

    assert (done.code, done.err) == (code, b"")
    assert done.out.startswith(b"X-Spam-Status: ")
    assert done.out.endswith(b"\r\n" + mail)
    (scanned,) = pipe_daemon.events("message.scanned")[before:]
    assert scanned["listener"] == "spamc"
    assert f"X-Spam-Id: {scanned['id']}\r\n".encode() in done.out


def test_the_verdict_is_that_of_spamd_scan(pipe_daemon: PipeDaemon, tmp_path: Path) -> None:
    (tmp_path / "mail.eml").write_bytes(made_up("spam", 21))
    arguments = ["--config", str(pipe_daemon.config), "scan", "--json", str(tmp_path / "mail.eml")]
    scanned = subprocess.run(
        [sys.executable, "-m", "spamd", *arguments], capture_output=True, text=True, check=False,
        timeout=120, env=pipe_daemon.environment(),
    )  # fmt: skip
    probability = scanned.stdout.partition('"probability": ')[2].split(",")[0]

    done = spamd_filter(made_up("spam", 21), *as_arguments(pipe_daemon.address), folder=tmp_path)

    assert f"X-Spam-Probability: {float(probability):.6f}\r\n".encode() in done.out
