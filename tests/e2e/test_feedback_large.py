"""A huge folder: memory, progress over a kill, nothing twice."""

import imaplib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.feedback_daemon import CHECKOUT, Daemon
from tests.feedback.world import Owner
from tests.memory import run_measured
from tests.servers.dovecot import Dovecot, DovecotFactory
from tests.sizes import sized
from tests.waiting import wait_until

MAILS = sized(10_000, 100_000)
MEMORY_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Ran:
    """What one run said, and the most memory it held."""

    said: dict[str, object]
    memory_bytes: int
    seconds: float


def command(daemon: Daemon) -> list[str]:
    config = str(daemon.config)
    return [sys.executable, "-m", "spamd", "feedback", "once", "--json", "--config", config]


def run(daemon: Daemon, output: Path) -> Ran:
    started = time.monotonic()
    note = output.with_suffix(".peak")
    code, peak = run_measured(command(daemon), cwd=CHECKOUT, output=output, note=note)
    assert code == 0, output.read_text()
    return Ran(json.loads(output.read_bytes()), peak, time.monotonic() - started)


def next_uid(daemon: Daemon) -> int:
    """Return how far Junk was read."""
    try:
        connection = sqlite3.connect(f"file:{daemon.database}?mode=ro", uri=True)
        rows = connection.execute("SELECT next_uid FROM cursor WHERE folder = 'Junk'").fetchall()
        connection.close()
    except sqlite3.OperationalError:
        return 0
    return int(rows[0][0]) if rows else 0


def patient_login(server: Dovecot) -> imaplib.IMAP4:
    """Log alice in; Dovecot may take minutes to index and search this folder."""
    session = server.login()
    session.sock.settimeout(600)
    return session


def fill(server: Dovecot, memory: Path) -> None:
    """Put the mails into alice's Junk as files, as Dovecot would have done over the years.

    Args:
        memory: an empty folder for all of alice's mail; on a disk that would take minutes
    """
    homes = server.directory / "home"
    owner = homes.stat()
    os.chown(memory, owner.st_uid, owner.st_gid)
    (homes / "alice").symlink_to(memory)
    with server.login() as session:
        session.select("Junk")  # Dovecot makes the folder
    folder = server.maildir("alice") / ".Junk" / "cur"
    for number in range(MAILS):
        path = folder / f"{1_700_000_000 + number}.M{number}P1.host:2,S"
        path.write_bytes(
            b"Message-ID: <%d@old.test>\nDate: Tue, 14 Nov 2023 12:00:00 +0000\n"
            b"From: <a%d@old.test>\nTo: <alice@our.test>\nSubject: number %d\n\nOld.\n"
            % (number, number, number)
        )
        os.chown(path, owner.st_uid, owner.st_gid)


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one, that every user may enter."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.timeout(1800)
def test_e12_a_huge_folder_is_read_in_little_memory_and_resumed_after_a_kill(
    dovecot: DovecotFactory, tmp_path: Path, quick_folder: Path
) -> None:
    server = dovecot()
    fill(server, quick_folder)
    with patient_login(server) as session:
        assert session.select("Junk", readonly=True)[1][0] == b"%d" % MAILS
    daemon = Daemon(server)
    try:
        daemon.configure()
        first = subprocess.Popen(command(daemon), cwd=CHECKOUT, stdout=subprocess.DEVNULL)
        wait_until(lambda: next_uid(daemon) > MAILS // 10, what="a tenth is read", deadline_s=600)
        first.send_signal(signal.SIGKILL)
        first.wait()
        reached = next_uid(daemon)
        assert MAILS // 10 < reached < MAILS
        second = run(daemon, tmp_path / "second")
        assert second.said["examined"] == MAILS - reached + 1
        assert second.memory_bytes < MEMORY_BYTES
        with patient_login(server) as session:
            Owner(session).move(f"number {MAILS - 1}", "Junk", "INBOX")
        third = run(daemon, tmp_path / "third")
        assert (third.said["examined"], third.said["learned"]) == (1, {"ham": 1})
        assert third.memory_bytes < MEMORY_BYTES
        fourth = run(daemon, tmp_path / "fourth")
        assert (fourth.said["examined"], fourth.said["learned"]) == (0, {})
        print(second, third, fourth)
    finally:
        daemon.close()
