"""Four workers, one address for what all of them count; some of them are killed meanwhile."""

import json
import os
import random
import signal
import smtplib
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port, require
from tests.servers.postfix import SmtpSinkFactory
from tests.servers.postgresql import Postgresql
from tests.test_metrics import Samples, samples
from tests.waiting import wait_until

KILLS = 3
MAILS = 25


class Watched(Spamd):
    """`spamd serve` with an address for HTTP."""

    def __init__(self, next_hop: str, database: str = "", settings: str = "") -> None:
        self.web_port = free_port()
        self._url = database
        super().__init__(next_hop, f'web.listen = "127.0.0.1:{self.web_port}"\n{settings}')

    @property
    def database(self) -> str:
        return self._url or super().database

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        """Ask for a path; return status and text."""
        url = f"http://127.0.0.1:{self.web_port}{path}"
        asked = urllib.request.Request(url, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self) -> tuple[Samples, Samples]:
        """Return what only rises, and what is true of a moment."""
        status, text = self.get("/metrics")
        assert status == 200
        return samples(text)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(stack: ExitStack) -> Postgresql:
    require("postgresql")
    server = stack.enter_context(Postgresql())
    server.do("CREATE DATABASE spamd TEMPLATE template0")
    return server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ""
    server: Postgresql = request.getfixturevalue("server")
    return f"postgresql://postgres@127.0.0.1:{server.port}/spamd"


class Senders:
    """Clients that send until each has had so many mails accepted; what breaks is sent again."""

    def __init__(self, port: int) -> None:
        self.accepted = 0
        self._port = port
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=[n]) for n in range(4)]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _send(self, number: int) -> None:
        left = MAILS
        while left:
            with suppress(OSError, smtplib.SMTPException):
                self._send_one(number * 1000 + left)
                left -= 1

    def _send_one(self, number: int) -> None:
        with smtplib.SMTP("127.0.0.1", self._port, timeout=60) as client:
            client.sendmail("a@x.test", ["b@y.test"], made_up("ham", number))
            with self._lock:
                self.accepted += 1


def messages(rising: Samples) -> float:
    return sum(n for (name, _), n in rising.items() if name == "spamd_messages_total")


def assert_promtool_accepts(text: str) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_four_workers_count_at_one_address_and_what_is_killed_loses_nothing(
    stack: ExitStack, smtp_sink: SmtpSinkFactory, url: str
) -> None:
    require("promtool")
    sink, chance = smtp_sink(), random.Random(4)
    daemon = Watched(f"smtp://127.0.0.1:{sink.port}", url, "relay.workers = 4")
    stack.callback(daemon.close)
    daemon.run("database", "upgrade")
    daemon.start()
    wait_until(lambda: len(daemon.events("worker.started")) == 4, what="four workers")
    seen: Samples = {}
    killed: set[int] = set()

    def looked() -> Samples:
        """Look once: what was counted has not fallen."""
        with suppress(OSError):  # the worker that would have answered was killed
            rising, _ = daemon.metrics()
            assert {key: n for key, n in seen.items() if rising.get(key, 0.0) < n} == {}
            seen.update(rising)
        return seen

    with Senders(daemon.port) as senders:
        while senders.busy or len(killed) < KILLS:
            looked()
            started = {event["process"] for event in daemon.events("worker.started")}
            ready = sorted(set(daemon.workers()) & started - killed)
            if ready and len(killed) < KILLS and chance.random() < 0.3:
                worker = chance.choice(ready)
                killed.add(worker)
                os.kill(worker, signal.SIGKILL)
    dead = len(killed)
    wait_until(lambda: len(daemon.events("worker.started")) == 4 + dead, what="all replaced")
    wait_until(lambda: daemon.metrics()[1]["spamd_workers", ()] == 4, what="four live")
    assert messages(looked()) >= senders.accepted == 4 * MAILS
    assert messages(seen) <= senders.accepted + 4 * dead  # those that were sent again
    assert seen["spamd_workers_lost_total", ()] == dead
    assert seen["spamd_scan_seconds_count", ()] == messages(seen)
    assert_promtool_accepts(daemon.get("/metrics")[1])


def test_readyz_says_in_words_what_is_missing_and_since_when(
    stack: ExitStack, server: Postgresql, smtp_sink: SmtpSinkFactory
) -> None:
    sink = smtp_sink()
    url = f"postgresql://postgres@127.0.0.1:{server.port}/spamd"
    daemon = Watched(f"smtp://127.0.0.1:{sink.port}", url)
    stack.callback(daemon.close)
    daemon.run("database", "upgrade")
    server.stop()
    daemon.start()
    status, text = daemon.get("/readyz")
    assert status == 503
    assert "FAULT model: not loaded: the database has not answered since the start" in text
    assert "FAULT database: away since 20" in text
    assert "ok next_hop: answers\n" in text
    assert text.endswith("\nnot ready\n")
    assert daemon.get("/healthz") == (200, "ok\n")
    server.start()
    wait_until(lambda: daemon.get("/readyz")[0] == 200, what="it is ready")
    assert "ok model: loaded: 0 spam and 0 ham messages learned\n" in daemon.get("/readyz")[1]
    server.stop()
    wait_until(lambda: daemon.get("/readyz")[0] == 503, what="the database is missed")
    assert daemon.get("/readyz?exclude=database")[0] == 200
    _, moment = daemon.metrics()
    assert moment["spamd_ready", (("check", "database"),)] == 0
    assert moment["spamd_ready", (("check", "model"),)] == 1
    server.start()
    wait_until(lambda: daemon.get("/readyz")[0] == 200, what="it is back")


def test_readyz_says_that_the_next_hop_is_away_and_that_it_is_back(
    stack: ExitStack, smtp_sink: SmtpSinkFactory
) -> None:
    sink = smtp_sink()
    daemon = stack.enter_context(Watched(f"smtp://127.0.0.1:{sink.port}"))
    assert daemon.get("/readyz")[0] == 200
    sink.stop()
    client = smtplib.SMTP("127.0.0.1", daemon.port, timeout=60)
    with client, pytest.raises(smtplib.SMTPException):  # a mail meets it before anybody asks
        client.sendmail("a@x.test", ["b@y.test"], made_up("ham", 1))
    status, text = daemon.get("/readyz", accept="application/json")
    check = json.loads(text)["checks"]["next_hop"]
    assert (status, check["ok"]) == (503, False)
    assert check["text"].startswith("away since 20")
    sink.start()
    wait_until(lambda: daemon.get("/readyz")[0] == 200, what="it is back")
