"""`make stranger`: from a bare Debian to the first verdict, lesson, metric and the page.

    python -m tests.stranger [RELEASE…]    bookworm (Debian 12), trixie (Debian 13); both by default

README.md's tutorial, the installation of docs/operations.md and all of docs/mail-server.md are
typed as printed (see `steps.py`), then the page is opened in Chromium. Prints each step with the
seconds it took; ends with 1 at the first that is not as printed, with what it said. Root only.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Error

from tests.message.browser import PROGRAM
from tests.stranger.page import opened
from tests.stranger.steps import BEFORE, RELEASES, SHELLS, TUTORIAL, Step, script, server
from tests.stranger.system import System

MARK = "--- step: "
STARTED = "make run >/tmp/run.log 2>&1 & made=$!"
"""The terminal in which the tutorial's first command is left running."""

ENDED = 'kill "$made"; wait "$made" || true'
LOOKED = "for n in $(seq 1200); do [ -e /root/looked ] && break; sleep 0.1; done"
LOOK = "the page"
WHY = """\
trap '[ $? = 0 ] || { systemctl status --no-pager spamd-relay; journalctl --no-pager -n 40; }' EXIT
"""
"""What the service said, where a step fails."""


class Report:
    """Hears what is printed, step by step, and what must come of each."""

    def __init__(self, system: System, steps: tuple[Step, ...]) -> None:
        self._system = system
        self._wanted = {step.name: step.printed for step in steps}
        self._name = "start of the system"
        self._began = time.monotonic()
        self._said: list[str] = []
        self.done: list[str] = []

    def hear(self, line: str) -> None:
        """Take a line."""
        if not line.startswith(MARK):
            self._said.append(line)
            return
        self.end()
        self._name = line.removeprefix(MARK).strip()
        if self._name == LOOK:
            for seen in opened(self._system.network, "http://127.0.0.1:11333/"):
                print(f"          {seen}")
            (self._system.root / "root/looked").touch()

    def rest(self) -> str:
        """Return what the step said that was not ended."""
        return f"{self._name}:\n{''.join(self._said)}"

    def end(self) -> None:
        """Close a step: what it printed is as it must be."""
        said = "".join(self._said)
        took = time.monotonic() - self._began
        if not re.search(self._wanted.get(self._name, ""), said, re.MULTILINE):
            raise SystemExit(f"not as printed: {self._name}\n{said}")
        print(f"{took:7.1f} s  {self._name}", flush=True)
        self.done.append(self._name)
        self._said, self._began = [], time.monotonic()


def stranger(release: str) -> None:
    """Be a stranger on one release."""
    print(f"{release}:")
    with tempfile.TemporaryDirectory(prefix="stranger-") as folder:
        system = System(Path(folder))
        began = time.monotonic()
        system.make(release)
        print(f"{time.monotonic() - began:7.1f} s  debootstrap", flush=True)
        for name, typed in BEFORE:
            began = time.monotonic()
            system.typed(typed)
            print(f"{time.monotonic() - began:7.1f} s  {name}", flush=True)
        later = (*server(release), Step(LOOK, LOOKED), *SHELLS)
        report = Report(system, (*TUTORIAL, *later))
        typed = "\n".join(
            [
                STARTED,
                # A terminal of its own: what it exports must not reach the installation.
                f"(\n{script(TUTORIAL, MARK.__add__)}\n)",
                ENDED,
                WHY,
                script(later, MARK.__add__),
            ]
        )
        try:
            system.booted(typed, report.hear)
        except (AssertionError, Error) as error:
            raise SystemExit(f"{error}\n{report.rest()}") from error
        report.end()
        print(f"{release}: {len(report.done)} steps as printed", flush=True)


def main() -> None:
    """Be a stranger on each release."""
    if not PROGRAM.exists():
        raise SystemExit("there is no Chromium here: .ci/install-packages tests")
    for release in sys.argv[1:] or RELEASES:
        stranger(release)


main()
