"""Several daemons on one database, as on several machines, and what is asked of them."""

import http.client
import json
import random
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.relay_daemon import Spamd
from tests.servers.base import require
from tests.servers.postgresql import Postgresql

QUICK = """
[decision]
minimum_spam = 1
minimum_ham = 1
"""
"""Verdicts after the first lessons."""


class Member(Spamd):
    """One daemon of a site: a relay, and HTTP at a socket."""

    def __init__(self, database: str, settings: str = "", next_hop: str = "") -> None:
        super().__init__(next_hop or f"maildir://{Path('/nonexistent')}")
        if not next_hop:
            self.next_hop = f"maildir://{self.directory}/mail"
        self._database = database
        self._workers = ""
        self._top = ""
        self._settings = f'web.listen = "unix:{self.directory}/web"\n{settings}'

    @property
    def database(self) -> str:
        return self._database

    def also(self, settings: str) -> None:
        """Add settings before it starts."""
        self._settings += settings

    def at_the_top(self, settings: str) -> None:
        """Add settings of no section before it starts."""
        self._top += settings

    def with_workers(self, number: int) -> None:
        """Have so many workers from the next start on."""
        self._workers = f"relay.workers = {number}\n"

    def keep_in_a_file(self) -> None:
        """Use a SQLite database of its own."""
        self._database = f"sqlite:///{self.directory}/spamd.db"

    def configure(self) -> None:
        super().configure()
        self.config.write_text(self._top + self._workers + self.config.read_text())

    def metrics(self) -> dict[str, float]:
        """Return the metrics, by name with labels."""
        asking = Client(self)
        asking.request("GET", "/metrics")
        lines = asking.getresponse().read().decode().splitlines()
        asking.close()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


class Client(http.client.HTTPConnection):
    """A connection to the HTTP listener of a daemon."""

    def __init__(self, member: Spamd) -> None:
        super().__init__("localhost", timeout=120)
        self._path = f"{member.directory}/web"

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def post(self, path: str, content: bytes) -> Any:
        """Return what a daemon answers to a mail; `status` holds the code besides."""
        self.request("POST", path, content)
        response = self.getresponse()
        return {**json.loads(response.read()), "status": response.status}


@contextmanager
def site(members: int, settings: str = QUICK) -> Iterator[tuple[Postgresql, list[Member]]]:
    """Give a PostgreSQL and some daemons that use it."""
    require("postgresql")
    with ExitStack() as stack:
        server = stack.enter_context(Postgresql())
        server.do("CREATE DATABASE spamd TEMPLATE template0")
        daemons = [Member(server.url("spamd"), settings) for _ in range(members)]
        for each in daemons:
            stack.callback(each.close)
        daemons[0].run("database", "upgrade")
        for each in daemons:
            each.start()
        yield server, daemons


WORDS = [f"{start}{end}{tail}" for start in ("cheap", "meet", "offer", "plan", "note", "win")
         for end in ("ing", "er", "ly", "able", "est") for tail in range(60)]  # fmt: skip


def lesson(number: int) -> tuple[str, bytes]:
    """Return the label and the bytes of a lesson: each number another mail, words in common."""
    chosen = random.Random(number)
    label = "spam" if chosen.random() < 0.5 else "ham"
    half = WORDS[::2] if label == "spam" else WORDS[1::2]
    words = chosen.sample(half, 25) + chosen.sample(WORDS, 10)
    return label, (
        f"From: {label}{number % 50}@{label}.example\r\nTo: you@example.org\r\n"
        f"Subject: {words[0]} {words[1]}\r\nMessage-ID: <{number}@{label}.example>\r\n\r\n"
        f"{' '.join(words)}\r\nunique{number}\r\n"
    ).encode()


def teach_from_all(members: Sequence[Spamd], numbers: Sequence[int], *, each: int = 2) -> None:
    """Give lessons to all daemons at once, over some connections to each."""
    doors = [member for member in members for _ in range(each)]

    def teach(place: int) -> None:
        client = Client(doors[place])
        for number in numbers[place :: len(doors)]:
            label, content = lesson(number)
            answer = client.post(f"/learn{label}", content)
            assert answer["status"] == 200, answer
        client.close()

    with ThreadPoolExecutor(len(doors)) as threads:
        for done in [threads.submit(teach, place) for place in range(len(doors))]:
            done.result()
