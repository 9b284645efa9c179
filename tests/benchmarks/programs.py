"""What the benchmarks start besides the tests' servers: our own programs, and an empty sink."""

import sys

from tests.servers.base import Server, greeting


class Program(Server):
    """One of our own Python programs, run like a foreign server."""

    name = "bench"

    start_s = 60

    def __init__(self, module: str, *arguments: str) -> None:
        super().__init__()
        self._module = module
        self._arguments = arguments

    def configure(self) -> None:
        """It reads nothing."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", self._module, str(self.port), *self._arguments]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": ":".join(path for path in sys.path if path)}

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")


class Sink(Server):
    """smtp-sink that throws mail away."""

    name = "sink"

    def configure(self) -> None:
        """It reads nothing."""

    def command(self) -> list[str]:
        return ["/usr/sbin/smtp-sink", "-u", "postfix", f"127.0.0.1:{self.port}", "1024"]

    def is_ready(self) -> bool:
        return greeting(self.port) != b""
