"""`spamd serve` on a database that is there, to be measured."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.servers.base import Server


class Daemon(Server):
    """A daemon; who measures it says where it listens, and how it is ready."""

    name = "spamd"
    start_s = 60

    def __init__(self, database: Path) -> None:
        super().__init__()
        self._database = database

    def settings(self) -> Sequence[str]:
        """Return "section.key=value" of what is not as ever."""
        raise NotImplementedError

    def configure(self) -> None:
        """All is said on the command line."""

    def command(self) -> list[str]:
        common = (f"database.url=sqlite:///{self._database}", "log.level=error")
        given = [word for each in (*self.settings(), *common) for word in ("--set", each)]
        return [sys.executable, "-m", "spamd", "serve", *given]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": ":".join(path for path in sys.path if path)}
