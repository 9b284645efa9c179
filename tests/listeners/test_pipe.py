"""`spamd filter` with the real daemon, set up as docs/listeners.md prints it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import as_arguments, spamd_filter
from tests.e2e.test_printed import Printed, in_place
from tests.listeners.agents import PIPE
from tests.servers.base import free_port


class PipeDaemon(Printed):
    """The daemon with the printed address, in its own folder."""

    def __init__(self) -> None:
        port = free_port()
        super().__init__(PIPE, port=port)
        self._printed = in_place(PIPE, [("/run/spamd", self.directory)])
        self._printed += (
            f'\n[relay]\nlisten = ["127.0.0.1:{port}"]\n[next_hop]\nurl = "smtp://[::1]:9"\n'
        )

    @property
    def address(self) -> str:
        return f"unix:{self.directory}/spamc"


@contextmanager
def daemon_that_learned() -> Iterator[PipeDaemon]:
    """Give a daemon that has learned ten mails of each label, and runs."""
    daemon = PipeDaemon()
    try:
        daemon.teach()
        daemon.start()
        yield daemon
    finally:
        daemon.close()


@pytest.fixture(scope="module")
def pipe_daemon() -> Iterator[PipeDaemon]:
    with daemon_that_learned() as daemon:
        yield daemon


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
