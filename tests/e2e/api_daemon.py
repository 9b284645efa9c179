"""`spamd serve` with its API, a token for a teacher, and some mail that was taught and scanned.

`python -m tests.e2e.api_daemon 300` (`make fuzz-api`) sends it requests for so many seconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port

SETTINGS = """
[web]
listen = ["127.0.0.1:{port}"]
token_file = "{folder}/tokens"
local_role = "nobody"
[decision]
minimum_ham = 5
minimum_spam = 5
"""

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method,ignored_auth,positive_data_acceptance,negative_data_rejection"  # noqa: E501 - one argument

NAMES = "^/api/(lists|wishes|teach|forget|mails/.mail./lesson)$"
"""Operations that take names: whether a text is one of somebody, no schema says."""


class ApiDaemon(Spamd):
    """It."""

    def __init__(self, settings: str = "", database: str = "") -> None:
        super().__init__("smtp://127.0.0.1:9")
        self.web_port = free_port()
        self._database = database
        folder = self.directory
        self._settings = SETTINGS.format(port=self.web_port, folder=folder) + settings
        (folder / "tokens").write_text("")
        done = subprocess.run(
            [sys.executable, "-m", "spamd", "password", "--token", "tests", "--role", "teacher"],
            capture_output=True, text=True, check=True, env=self.environment(),
        )  # fmt: skip
        (folder / "tokens").write_text(done.stdout)
        self.token = done.stderr.split()[-1]

    @property
    def database(self) -> str:
        return self._database or super().database

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    def teach_a_little(self) -> None:
        """Teach ten mails of each label, before it starts."""
        for label in ("spam", "ham"):
            folder = self.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            self.run("train", label, str(folder))

    def shell(self, script: str, message: bytes = b"") -> str:
        """Run lines in a folder that holds a message; return what they print."""
        (self.directory / "message.eml").write_bytes(message)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-euc", script], cwd=self.directory, capture_output=True, text=True,
            check=False, timeout=120, env={"PATH": path, "TOKEN": self.token},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def curl(self, path: str, *arguments: str, message: bytes = b"") -> Any:
        """Ask it, with the token; return what it answers."""
        done = subprocess.run(
            ["curl", "-s", "-H", f"Authorization: Bearer {self.token}", *arguments,
             f"{self.url}{path}"],
            input=message, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return json.loads(done.stdout)

    def fuzz(self, seconds: int, *more: str) -> list[subprocess.CompletedProcess[str]]:
        """Send it what its OpenAPI document allows and forbids, for so long."""
        named = seconds // 4
        return [
            self._fuzzed(seconds - named, CHECKS, "--exclude-path-regex", NAMES, *more),
            self._fuzzed(
                named,
                CHECKS.replace("positive_data_acceptance,", ""),
                "--include-path-regex",
                NAMES,
                *more,
            ),
        ]

    def _fuzzed(self, seconds: int, checks: str, *more: str) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).parent / "schemathesis")
        return subprocess.run(
            [program, "run", f"{self.url}/api/openapi.json",
             "-H", f"Authorization: Bearer {self.token}", "--max-time", str(seconds), "--checks",
             checks, "--warnings", "off", "--continue-on-failure", *more],
            capture_output=True, text=True, check=False, timeout=seconds + 120, cwd=self.directory,
            env={**self.environment(), "SCHEMATHESIS_HOOKS": "tests.e2e.api_hooks"},
        )  # fmt: skip


def main() -> None:
    """Send requests for so long."""
    daemon = ApiDaemon(database=os.environ.get("DATABASE", ""))
    try:
        daemon.teach_a_little()
        daemon.start()
        done = daemon.fuzz(int(sys.argv[1]), *sys.argv[2:])
        for each in done:
            print(each.stdout[-20_000:], each.stderr[-3000:])
        for event in ("session.failed", "message.failed", "job.failed"):
            print(event, len(daemon.events(event)), daemon.events(event)[:3])
    finally:
        daemon.close()
    sys.exit(max(each.returncode for each in done))


if __name__ == "__main__":
    main()
