"""`spamd serve` as a child process, in front of any next hop."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.servers.base import Server, greeting
from tests.storage.migrated import lay

CHECKOUT = Path(__file__).resolve().parents[2]


class Spamd(Server):
    """`spamd serve` with a database and a configuration of its own.

    next_hop  URL
    settings  lines of TOML after ours; may open sections of their own
    """

    name = "spamd"
    start_s = 90  # on a busy machine; migrations of a fresh database included
    stop_s = 60

    def __init__(self, next_hop: str, settings: str = "", *, port: int | None = None) -> None:
        super().__init__()
        self.next_hop = next_hop
        self._settings = settings
        self.port = port or self.port

    @property
    def config(self) -> Path:
        return self.directory / "spamd.toml"

    @property
    def database(self) -> str:
        return f"sqlite:///{self.directory}/spamd.sqlite"

    def configure(self) -> None:
        lay(self.directory / "spamd.sqlite")
        self.config.write_text(
            f'relay.listen = "127.0.0.1:{self.port}"\n'
            'relay.hostname = "mx.test"\n'
            f'next_hop.url = "{self.next_hop}"\n'
            f'database.url = "{self.database}"\n'
            f"{self._settings}\n"
        )

    def command(self) -> list[str]:
        return [sys.executable, "-m", "spamd", "--config", str(self.config), "serve"]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONPATH": str(CHECKOUT)}

    def refusal(self) -> subprocess.CompletedProcess[str]:
        """Start it where it must refuse to; return how it ended."""
        try:
            self.configure()
            return subprocess.run(
                self.command(), capture_output=True, text=True, check=False, timeout=120,
                env=self.environment(), cwd=self.directory,
            )  # fmt: skip
        finally:
            self.close()

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def workers(self) -> list[int]:
        """Return the process ids of the workers, where there are several."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(child) for child in children]

    def events(self, name: str) -> list[dict[str, object]]:
        """Return the log's events of this name."""
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def run(self, *arguments: str, codes: Sequence[int] = (0,)) -> str:
        """Run a command on our configuration and return what it printed."""
        self.configure()
        done = subprocess.run(
            [sys.executable, "-m", "spamd", "--config", str(self.config), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=self.directory,
            env=self.environment(),
        )
        assert done.returncode in codes, done.stderr
        return done.stdout
