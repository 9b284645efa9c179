"""What a person or a supervisor waits for: help, one scan, the start of the daemon, its memory.

The database holds a million tokens: the SpamAssassin corpus and random ones besides.
"""

import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import corpora, installed, resident_mib, table, tree
from tests.benchmarks.scan import MILLION
from tests.benchmarks.training import folders, spamd
from tests.servers.base import free_port, greeting

TIMES = 5
UNDECLARED = "Привет, как дела? Приходи к нам сегодня вечером. ".encode("koi8-r") * 20


def run() -> None:
    """Measure and print."""
    with corpora() as corpus, tempfile.TemporaryDirectory() as name:
        below = Path(name)
        database = below / "spamd.db"
        rows: list[tuple[str, float]] = []
        mail = next((corpus / "modern").glob("*.eml"))
        spamd(["scan", str(mail)], database)
        rows.append(("spamd --help", _median(["--help"], database)))
        scan = ["scan", str(mail)]
        rows.append(("spamd scan of one mail, empty database", _median(scan, database)))
        for label, folder in folders(corpus / "spamassassin", below).items():
            spamd(["train", label, str(folder)], database)
        tokens = _fill(database, MILLION)
        rows.append((f"spamd scan of one mail, {tokens:,} tokens", _median(scan, database)))
        _daemon(below, database)  # once for its bytecode
        listens_s, greets_s, mib, more_mib = _daemon(below, database)
        rows.append((f"spamd serve until it listens, {tokens:,} tokens", listens_s))
        rows.append(("… until it greets the first client", greets_s))
        table("commands, seconds", ("what", "seconds"), rows)
        print(f"\nresident memory of one worker: {mib:.0f} MiB")
        print(f"… once it has guessed at a charset that no mail declared: {more_mib:.0f} MiB")


def _median(arguments: list[str], database: Path) -> float:
    return statistics.median(spamd(arguments, database) for _ in range(TIMES))


def _fill(database: Path, size: int) -> int:
    """Add random tokens until there are `size`; return how many there are."""
    with sqlite3.connect(database) as connection:
        (there,) = connection.execute("SELECT count(*) FROM token").fetchone()
        ids = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, max(0, size - there), np.int64)
        connection.executemany(
            "INSERT OR IGNORE INTO token"
            " (id, spam, ham, spam_occurrences, ham_occurrences, weight) VALUES (?, 1, 1, 1, 1, 1)",
            ((number,) for number in np.sort(ids).tolist()),
        )
        (there,) = connection.execute("SELECT count(*) FROM token").fetchone()
    return int(there)


def _daemon(below: Path, database: Path) -> tuple[float, float, float, float]:
    """Return seconds until clients are let in (they wait), and greeted; MiB after two mails."""
    port = free_port()
    (below / "Maildir").mkdir(exist_ok=True)
    command = [
        sys.executable, "-m", "spamd", "serve",
        "--set", f"relay.listen=127.0.0.1:{port}",
        "--set", f"next_hop.url=maildir://{below / 'Maildir'}",
        "--set", f"database.url=sqlite:///{database}",
    ]  # fmt: skip
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=installed())
    try:
        listens_s = _connected(port) - started
        while not greeting(port):
            time.sleep(0.01)
        greets_s = time.monotonic() - started
        _send(port, b"hi")
        mib = resident_mib(tree(process.pid))
        _send(port, UNDECLARED)
        return listens_s, greets_s, mib, resident_mib(tree(process.pid))
    finally:
        process.terminate()
        process.wait(30)


def _send(port: int, text: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(
            b"EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.test>\r\nDATA\r\n"
            b"Subject: hi\r\n\r\n" + text + b"\r\n.\r\nQUIT\r\n"
        )
        while client.recv(4096):
            pass


def _connected(port: int) -> float:
    """Return when a connection was accepted first."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)):
                return time.monotonic()
        except ConnectionRefusedError:
            time.sleep(0.01)
