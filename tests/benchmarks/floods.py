"""What floods do to honest mail: `make bench BENCH=floods`.

A real daemon takes honest mail, one small and one of 100 KB in turn, while clients flood it.
Shown is what honest mail waits, from connecting to the final reply, by itself and beside 1, 3, 10
and 50 clients, how many mails went unscanned, and the memory of the daemon with its helpers.
`SPAMD_BEFORE=FOLDER`, a checkout with a `.venv`, measures that one in turn.

Each flood is a function that plays one client until time is up.
"""

import multiprocessing
import os
import smtplib
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.benchmarks.measure import resident_mib, table, tree
from tests.hostile import MULTIPART
from tests.servers.base import Server, free_port, greeting

CLIENTS = (1, 3, 10, 50)
SECONDS = 15.0
QUIET_S = 8.0
BETWEEN_S = 0.1
"""Between two honest mails."""

SMALL = b"Subject: lunch\r\n\r\n" + b"See you at noon, and bring the plans.\r\n" * 120
LARGE = b"Subject: minutes\r\n\r\n" + b"".join(
    b"Item %d was put off until the next meeting.\r\n" % number for number in range(2_200)
)
PAGES = MULTIPART + (b"--b\nContent-Type: text/html\n\n" + b"<p>" * 2_800 + b"\n") * 490


def heavy_mail(port: int, until: float) -> None:
    """Send mails of 4 MB, 490 parts of `<p>` each (K2)."""
    content = PAGES.replace(b"\n", b"\r\n")
    while time.monotonic() < until:
        with suppress(OSError, smtplib.SMTPException):
            deliver(port, content, "127.0.0.1")


def talk(port: int, until: float, *, head: bytes, body: bytes) -> None:
    """Send `head` and then `body` again and again, 1 MB a second, in session after session (K1)."""
    block = body * max(1, 20_000 // len(body))
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=120) as sock:
            sock.sendall(head)
            while time.monotonic() < until:
                sock.sendall(block)
                with suppress(BlockingIOError):
                    if not sock.recv(2**20, socket.MSG_DONTWAIT):
                        break
                time.sleep(len(block) / 1e6)


_READY = b"EHLO bad.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\n"
FLOODS: dict[str, Callable[[int, float], None]] = {
    "K1: NOOP": partial(talk, head=b"", body=b"NOOP\r\n"),
    "K1: BDAT 2": partial(talk, head=_READY, body=b"BDAT 2\r\nxx"),
    "K2: 4 MB of parts": heavy_mail,
}


def deliver(port: int, content: bytes, source: str) -> None:
    """Deliver a mail in a session of its own."""
    with smtplib.SMTP("127.0.0.1", port, timeout=120, source_address=(source, 0)) as client:
        client.ehlo("client.test")
        client.mail("a@x.test")
        client.rcpt("b@y.test")
        client.putcmd("data")
        client.getreply()
        client.send(content + b".\r\n")
        client.getreply()


class Daemon(Server):
    """`spamd serve` of a checkout, everything in a folder that goes away."""

    name = "spamd"
    start_s = 60
    stop_s = 120

    def __init__(self, checkout: Path, folder: str) -> None:
        super().__init__()
        self._checkout = checkout
        self._folder = folder
        self.web_port = free_port()

    def configure(self) -> None:
        """It is told all on its command line."""

    def command(self) -> list[str]:
        values = {
            "relay.listen": f"127.0.0.1:{self.port}",
            "relay.max_connections_per_client": "0",
            "next_hop.url": f"maildir://{self._folder}/mail",
            "database.url": f"sqlite:///{self._folder}/spamd.db",
            "web.listen": f"127.0.0.1:{self.web_port}",
        }
        program = [str(self._checkout / ".venv/bin/python"), "-P", "-m", "spamd", "serve"]
        return program + [
            word for key, value in values.items() for word in ("--set", f"{key}={value}")
        ]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": str(self._checkout)}

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def unscanned(self) -> int:
        """Return how many messages went on without a verdict."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/metrics") as answer:
            lines: list[str] = answer.read().decode().splitlines()
        found = [line for line in lines if line.startswith("spamd_messages_total{")]
        return sum(int(float(line.split()[-1])) for line in found if "unscanned" in line)


@dataclass
class Seen:
    """What one round showed."""

    small_s: list[float] = field(default_factory=list)
    large_s: list[float] = field(default_factory=list)
    resident_mib: float = 0.0
    unscanned: int = 0


def honest(port: int, until: float, seen: Seen) -> None:
    """Send honest mail until time is up, and write down what it waited."""
    while time.monotonic() < until:
        for content, waited in ((SMALL, seen.small_s), (LARGE, seen.large_s)):
            started = time.monotonic()
            deliver(port, content, "127.0.0.2")
            waited.append(time.monotonic() - started)
            time.sleep(BETWEEN_S)


def play(name: str, clients: int, port: int, seconds: float) -> None:
    """Play a number of clients of one flood; run as a process of its own."""
    os.nice(1)
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=FLOODS[name], args=(port, until)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(daemon: Daemon, flood: str, clients: int) -> Seen:
    """Return what honest mail waits beside so many clients of a flood."""
    seen = Seen()
    seconds = SECONDS if clients else QUIET_S
    player = multiprocessing.get_context("spawn").Process(
        target=play, args=(flood, clients, daemon.port, seconds)
    )
    player.start()
    time.sleep(1.5)  # until all of them send
    thread = threading.Thread(
        target=honest, args=(daemon.port, time.monotonic() + seconds - 2, seen)
    )
    thread.start()
    while thread.is_alive():
        seen.resident_mib = max(seen.resident_mib, resident_mib(tree(daemon.pid)))
        thread.join(0.2)
    player.kill()
    player.join()
    seen.unscanned = daemon.unscanned()
    return seen


def run() -> None:
    """Measure each flood at each checkout and print one table each."""
    checkouts = {"now": Path(__file__).parents[2]}
    if before := os.environ.get("SPAMD_BEFORE"):
        checkouts = {"before": Path(before), **checkouts}
    for flood in FLOODS:
        rows = []
        for name, checkout in checkouts.items():
            for clients in (0, *CLIENTS):
                with (
                    tempfile.TemporaryDirectory(prefix="floods-") as folder,
                    Daemon(checkout, folder) as daemon,
                ):
                    rows.append((name, clients, *_figures(measured(daemon, flood, clients))))
                print(rows[-1], file=sys.stderr, flush=True)
        head = (
            "checkout", "clients", "small ms median", "worst", "100 KB ms median", "worst",
            "honest mails", "unscanned", "resident MiB",
        )  # fmt: skip
        table(flood, head, rows)


def _figures(seen: Seen) -> tuple[object, ...]:
    waits = [f"{1e3 * f(s):.0f}" for s in (seen.small_s, seen.large_s) for f in (_median, max)]
    count = len(seen.small_s) + len(seen.large_s)
    return (*waits, count, seen.unscanned, f"{seen.resident_mib:.0f}")


def _median(values: list[float]) -> float:
    return statistics.median(values)
