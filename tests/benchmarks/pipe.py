"""What one mail through a pipe costs: `spamd filter` beside starting Python, and beside spamc.

The daemon is one that answers at once: what it takes to judge is measured by the other ways.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.measure import in_turn, table
from tests.cli.pipe.agent import MAIL, as_arguments, daemon, environment, marks

ROUNDS = 40


def run() -> None:
    """Measure and print."""
    script = Path(sys.executable).with_name("spamd")
    with tempfile.TemporaryDirectory() as name, daemon(Path(name), marks) as address:
        folder = Path(name)
        (folder / "spamd.toml").write_text(f'[spamc]\nlisten = "{address}"\n')
        told = [str(script), "filter", *as_arguments(address)]
        candidates: list[tuple[str, Sequence[str]]] = [
            ("python -S -c pass", [sys.executable, "-S", "-c", "pass"]),
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("python -c 'import socket'", [sys.executable, "-c", "import socket"]),
            ("spamd filter, told the socket", told),
            ("spamd filter, by its file", [str(script), "filter", "--config", "spamd.toml"]),
            ("spamd filter, no daemon", [str(script), "filter", *as_arguments("unix:/nowhere")]),
        ]
        if spamc := shutil.which("spamc"):
            candidates.append(("spamc", [spamc, "-U", address.removeprefix("unix:")]))
        took: dict[str, tuple[float, float]] = {}
        for what, command in in_turn(candidates, ROUNDS):
            cpu_ms, wall_ms = _once(command, folder)
            best = took.get(what, (cpu_ms, wall_ms))
            took[what] = min(best[0], cpu_ms), min(best[1], wall_ms)
        rows = [(what, *took[what]) for what, _ in candidates]
        head = ("one mail", "CPU ms", "ms")
        table(f"a mail through a pipe, the best of {ROUNDS}", head, rows)


def _once(command: Sequence[str], folder: Path) -> tuple[float, float]:
    before, started = _used_s(), time.perf_counter()
    subprocess.run(
        command, input=MAIL, check=True, capture_output=True, cwd=folder, timeout=60,
        env=environment(folder) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return (_used_s() - before) * 1e3, (time.perf_counter() - started) * 1e3


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
