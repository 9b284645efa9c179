"""How the daemon ends when something does not want to."""

import smtplib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.relay_daemon import Spamd


@pytest.fixture
def spamd(tmp_path: Path) -> Iterator[Spamd]:
    server = Spamd(f"maildir://{tmp_path}/mail")
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_k9_sigterm_ends_the_daemon_within_its_time_though_the_database_is_locked(
    spamd: Spamd,
) -> None:
    writer = sqlite3.connect(spamd.database.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with smtplib.SMTP("127.0.0.1", spamd.port) as client:
        for number in range(3):
            client.sendmail("a@b.test", ["c@d.test"], f"Subject: {number}\r\n\r\nmail\r\n")
    began = time.monotonic()
    spamd.stop()
    assert time.monotonic() - began < 20  # was 57; `relay.drain_s` is 30
    (lost,) = spamd.events("scans.lost")
    assert (lost["scans"], lost["cause"]) == (3, "the database was busy for 5 s")
    writer.close()
