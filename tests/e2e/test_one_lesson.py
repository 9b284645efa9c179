"""One daemon that listens in every way: the same mail is one mail, and one lesson."""

import asyncio
import http.client
import json
import smtplib
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import Filtered, spamd_filter
from tests.e2e.relay_daemon import Spamd
from tests.listeners.milter.mta import Mta
from tests.servers.base import free_port
from tests.waiting import wait_until

MAIL = made_up("spam", 77)


class EveryWay(Spamd):
    """The daemon with all its listeners, each at an address of its own."""

    def __init__(self) -> None:
        super().__init__("maildir://./unused")
        self.lmtp, self.milter, self.spamc, self.web = (free_port() for _ in range(4))
        self.next_hop = f"maildir://{self.directory}/mail"
        self._settings = (
            f'relay.listen_lmtp = "127.0.0.1:{self.lmtp}"\n'
            'relay.report_networks = ["127.0.0.0/8"]\n'
            f'milter.listen = "127.0.0.1:{self.milter}"\n'
            f'spamc.listen = ["127.0.0.1:{self.spamc}", "unix:{self.directory}/spamc"]\n'
            f'web.listen = "127.0.0.1:{self.web}"\n'
            "decision.minimum_ham = 5\ndecision.minimum_spam = 5\n"
        )

    def teach(self) -> None:
        for label in ("spam", "ham"):
            folder = self.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            self.run("train", label, str(folder))

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return what a query finds in the database."""
        with closing(
            sqlite3.connect(f"file:{self.directory}/spamd.sqlite?mode=ro", uri=True)
        ) as db:
            return db.execute(query).fetchall()


@pytest.fixture(scope="module")
def daemon() -> Iterator[EveryWay]:
    every = EveryWay()
    try:
        every.teach()
        every.start()
        yield every
    finally:
        every.close()


def by_smtp(daemon: EveryWay) -> None:
    with smtplib.SMTP("127.0.0.1", daemon.port, timeout=60) as client:
        client.sendmail("a@x.test", ["b@y.test"], MAIL)


def by_lmtp(daemon: EveryWay) -> None:
    with smtplib.LMTP("127.0.0.1", daemon.lmtp, timeout=60) as client:
        client.sendmail("a@x.test", ["b@y.test"], MAIL)


def by_milter(daemon: EveryWay) -> None:
    head, _, body = MAIL.partition(b"\r\n\r\n")
    fields = [tuple(line.split(b":", 1)) for line in head.split(b"\r\n")]

    async def shown() -> None:
        mta = Mta(*await asyncio.open_connection("127.0.0.1", daemon.milter))
        await mta.negotiate()
        await mta.client()
        await mta.envelope()
        await mta.content([(name, value) for name, value in fields], body)
        mta.writer.close()

    asyncio.run(shown())


def asked(daemon: EveryWay, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", daemon.spamc), 60) as connection:
        connection.sendall(request + b"Content-length: %d\r\n\r\n" % len(MAIL) + MAIL)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def by_spamc(daemon: EveryWay) -> None:
    assert asked(daemon, b"CHECK SPAMC/1.5\r\n").startswith(b"SPAMD/1.1 0 EX_OK")


def posted(daemon: EveryWay, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.web, timeout=60)
    with closing(connection):
        connection.request("POST", path, MAIL)
        return connection.getresponse().status


def by_http(daemon: EveryWay) -> None:
    assert posted(daemon, "/checkv2") == 200


def piped(daemon: EveryWay, *arguments: str) -> Filtered:
    where = ["--config", str(daemon.config), *arguments]
    environ = {"SPAMD_DATABASE__URL": daemon.database}
    return spamd_filter(MAIL, *where, folder=daemon.directory, environ=environ)


def by_pipe(daemon: EveryWay) -> None:
    assert piped(daemon).code == 0


WAYS = [by_smtp, by_lmtp, by_milter, by_spamc, by_http, by_pipe]


def test_a_mail_is_one_mail_by_every_way_in(daemon: EveryWay, tmp_path: Path) -> None:
    (tmp_path / "mail.eml").write_bytes(MAIL)
    scanned = json.loads(daemon.run("scan", "--json", str(tmp_path / "mail.eml")))
    alone = piped(daemon, "--set", "spamc.listen=[]", "--only-fields")

    for way in WAYS:
        way(daemon)

    events = daemon.events("message.scanned")
    wait_until(lambda: daemon.rows("SELECT count(*) FROM scan") == [(len(WAYS),)], what="the scans")
    assert [event["listener"] for event in events] == [
        "smtp", "lmtp", "milter", "spamc", "http", "spamc",
    ]  # fmt: skip
    assert {event["probability"] for event in events} == {round(scanned["probability"], 6)}
    assert f"X-Spam-Probability: {scanned['probability']:.6f}\n".encode() in alone.out
    assert daemon.rows("SELECT DISTINCT lower(hex(digest)) FROM scan") == [(scanned["id"],)]


def learned_by_spamc(daemon: EveryWay) -> bool:
    return b"DidSet" in asked(daemon, b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\n")


def learned_by_http(daemon: EveryWay) -> bool:
    return posted(daemon, "/learnspam") == 200


def learned_by_pipe(daemon: EveryWay) -> bool:
    return "learned as spam" in typed(daemon, "train", "spam", "-", "--daemon")


def learned_by_hand(daemon: EveryWay) -> bool:
    return "learned               1" in typed(daemon, "train", "spam", "-")


def typed(daemon: EveryWay, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", "--config", str(daemon.config), *arguments], input=MAIL,
        capture_output=True, check=True, timeout=120, env=daemon.environment(),
        cwd=daemon.directory,
    )  # fmt: skip
    return done.stdout.decode()


LEARN: list[Callable[[EveryWay], bool]] = [
    learned_by_spamc, learned_by_http, learned_by_pipe, learned_by_hand,
]  # fmt: skip


@pytest.mark.parametrize("first", LEARN, ids=lambda way: way.__name__)
def test_a_mail_is_one_lesson_by_every_way_in(
    daemon: EveryWay, first: Callable[[EveryWay], bool]
) -> None:
    before = daemon.rows("SELECT count(*) FROM lesson")

    told = [way(daemon) for way in [first, *(way for way in LEARN if way is not first)]]
    after = daemon.rows("SELECT count(*) FROM lesson")
    taken_back = typed(daemon, "forget", "-", "--daemon")

    assert told == [True, False, False, False]
    assert (before, after) == ([(20,)], [(21,)])
    assert taken_back == "1 lesson taken back, by the daemon\n"
    assert daemon.rows("SELECT count(*) FROM lesson") == before
