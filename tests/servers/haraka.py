"""Haraka with its rspamd plugin, from npm: takes mail for y.test, asks a filter, hands it on."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.servers.base import HARAKA_ROOT, Server, greeting, require


class Haraka(Server):
    """One Haraka.

    rspamd_ini  its configuration of the plugin
    next_port   where mail goes on by SMTP
    """

    name = "haraka"
    start_s = 60

    def __init__(self, rspamd_ini: str, next_port: int) -> None:
        super().__init__()
        self._files = {
            "plugins": "rcpt_to.in_host_list\nrspamd\nqueue/smtp_forward\n",
            "host_list": "y.test\n",
            "me": "mx.test\n",
            "smtp_forward.ini": f"host = 127.0.0.1\nport = {next_port}\n",
            "rspamd.ini": rspamd_ini,
            "log.ini": "level = info\n",
        }

    def configure(self) -> None:
        config = self.directory / "config"
        config.mkdir(exist_ok=True)
        shutil.copy(HARAKA_ROOT / "node_modules/Haraka/config/connection.ini", config)
        (config / "smtp.ini").write_text(f"listen = 127.0.0.1:{self.port}\nnodes = 0\n")
        for name, text in self._files.items():
            (config / name).write_text(text)

    def command(self) -> list[str]:
        program = HARAKA_ROOT / "node_modules/Haraka/bin/haraka"
        return [shutil.which("node") or "node", str(program), "-c", str(self.directory)]

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def logs(self) -> list[Path]:
        return [self.log]


HarakaFactory = Callable[[str, int], Haraka]


@pytest.fixture
def haraka() -> Iterator[HarakaFactory]:
    """Start a Haraka: `haraka(rspamd_ini, sink.port)`."""
    require("haraka")
    with ExitStack() as servers:
        yield lambda ini, next_port: servers.enter_context(Haraka(ini, next_port))
