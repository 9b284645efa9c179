"""The tutorial works: its commands, run one after the other as they stand."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import block

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")
START = "make run"
PATIENCE_S = 60.0


STEPS = (
    block("README.md", "export PATH="),
    block("README.md", "for n in"),
    block("README.md", "sleep 3"),
    block("README.md", "spamd explain"),
    block("README.md", "spamd retrain"),
)
FIELDS = block("README.md", "X-Spam-Status:")


def shape(text: str) -> str:
    """Return printed fields without what is another at each run."""
    hidden = re.sub(r"[0-9a-f]{20}-[0-9a-f]{16}", "ID", text)
    return " ".join(re.sub(r"\d+\.\d+", "0.0", hidden).split())


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"spamd does not listen:\n{log.read_text()[-2000:]}")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run what `make run` runs, in a folder of its own and on a free port."""
    found = free_port()
    (tmp_path / "var").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("spamd", "python3"):
        (tmp_path / ".venv/bin" / name).symlink_to(Path(sys.executable).with_name(name))
    shutil.copytree(ROOT / "config", tmp_path / "config")
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "spamd", "serve", "--set", f"relay.listen=127.0.0.1:{found}"],
            cwd=tmp_path,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(found, process, log)
        yield found
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, log.read_text()[-2000:]


def test_the_tutorial_begins_with_make_run() -> None:
    assert block("README.md", "make run").strip() == START


def test_the_commands_of_the_tutorial_lead_to_a_tagged_mail(tmp_path: Path, port: int) -> None:
    script = "\n".join(["set -eu", *STEPS]).replace("8025", str(port))

    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        timeout=200,
    )

    assert ran.returncode == 0, ran.stderr
    said = ran.stdout
    first, _, later = said.partition("examined")
    assert shape(FIELDS) in shape(first)
    assert "verdict=unsure (too little training: ham 0 of" in " ".join(first.split())
    assert "X-Spam-Status: Yes" in later
    assert "X-Spam-Flag: YES" in later
    assert re.search(r"^spam  [01]\.\d{4}  var/try/again.eml$", later, re.MULTILINE)
    assert "Without" in later or "No small set of words" in later
    assert "1 lesson taken back" in later


def test_every_link_of_the_tutorial_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert [link for link in links if not (ROOT / link).exists()] == []
