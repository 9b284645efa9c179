"""How the daemon begins when its database does not answer yet."""

import json
import smtplib
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email import message_from_bytes
from email.mime.message import MIMEMessage
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port, require
from tests.servers.postgresql import Postgresql
from tests.waiting import wait_until


class Late(Spamd):
    """`spamd serve` on a database that may not be there yet."""

    def __init__(self, next_hop: str, database: str, settings: str = "") -> None:
        super().__init__(next_hop, settings)
        self._database = database

    @property
    def database(self) -> str:
        return self._database


Start = Callable[..., Late]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(stack: ExitStack) -> Postgresql:
    """A PostgreSQL with an empty database `spamd`."""
    require("postgresql")
    server = stack.enter_context(Postgresql())
    server.do("CREATE DATABASE spamd TEMPLATE template0")
    return server


@pytest.fixture
def spamd(stack: ExitStack, tmp_path: Path) -> Start:
    def made(database: str, settings: str = "") -> Late:
        daemon = Late(f"maildir://{tmp_path}/mail", database, settings)
        stack.callback(daemon.close)
        return daemon

    return made


def send(daemon: Spamd, to: str = "you@x.test") -> None:
    with smtplib.SMTP("127.0.0.1", daemon.port, timeout=60) as client:
        client.sendmail("a@x.test", [to], made_up("ham", 1))


def verdicts(daemon: Spamd) -> list[object]:
    return [event["verdict"] for event in daemon.events("message.scanned")]


@pytest.mark.parametrize("workers", [1, 2])
def test_j4_the_daemon_waits_for_a_database_that_does_not_answer_and_takes_mail_meanwhile(
    server: Postgresql, spamd: Start, workers: int
) -> None:
    daemon = spamd(server.url("spamd"), f"relay.workers = {workers}")
    daemon.run("database", "upgrade")
    server.do("CHECKPOINT")  # it loses what it has not written when it is stopped at once
    server.stop()
    daemon.start()
    send(daemon)
    wait_until(lambda: verdicts(daemon) == ["unscanned"], what="the mail goes on")
    wait_until(lambda: len(daemon.events("storage.lost")) == workers, what="each worker says so")
    assert {event["job"] for event in daemon.events("storage.lost")} == {"start"}
    server.start()
    wait_until(
        lambda: len(daemon.events("storage.regained")) == workers, what="the database is found"
    )
    send(daemon)
    wait_until(lambda: verdicts(daemon) == ["unscanned", "unsure"], what="mail is judged")
    assert len(daemon.events("storage.lost")) == workers
    daemon.stop()


def test_j4_mail_is_deferred_where_the_setting_says_so(
    spamd: Start,
) -> None:
    daemon = spamd(
        f"postgresql://spamd@127.0.0.1:{free_port()}/spamd",
        'relay.on_fault = "defer"',
    )
    daemon.start()
    with pytest.raises(smtplib.SMTPDataError) as refusal:
        send(daemon)
    assert refusal.value.smtp_code == 451
    daemon.stop()


def test_j4_a_report_is_kept_until_the_database_answers(server: Postgresql, spamd: Start) -> None:
    daemon = spamd(
        server.url("spamd"),
        'relay.report_networks = "127.0.0.1"\nfeedback.spam_addresses = "spam@x.test"',
    )
    daemon.run("database", "upgrade")
    server.do("CHECKPOINT")
    server.stop()
    daemon.start()
    with smtplib.SMTP("127.0.0.1", daemon.port, timeout=60) as client:
        report = MIMEMessage(message_from_bytes(made_up("spam", 1)))
        client.sendmail("a@x.test", ["spam@x.test"], report.as_bytes())
    assert json.loads(daemon.run("status", "--json", codes=(75,)))["waiting"] == 1
    server.start()
    wait_until(lambda: daemon.events("lessons.caught_up"), what="it is learned")
    assert json.loads(daemon.run("status", "--json"))["corpus"]["spam"] == 1
    daemon.stop()


def test_j4_a_database_that_takes_the_connection_and_says_nothing_delays_the_start_for_a_moment(
    spamd: Start,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        daemon = spamd(f"postgresql://spamd@127.0.0.1:{silent.getsockname()[1]}/spamd")
        daemon.start()
        send(daemon)
        (lost,) = daemon.events("storage.lost")
        assert "answer" in str(lost["cause"])
        daemon.stop()


def test_j4_a_database_that_comes_without_its_tables_is_told_of_and_needs_no_restart(
    server: Postgresql, spamd: Start
) -> None:
    daemon = spamd(server.url("spamd"))
    server.stop()
    daemon.start()
    server.start()
    wait_until(lambda: len(daemon.events("storage.lost")) == 2, what="what is missing is said")
    assert "spamd database upgrade" in str(daemon.events("storage.lost")[1]["cause"])
    daemon.run("database", "upgrade")
    wait_until(lambda: daemon.events("storage.regained"), what="the tables are found")
    assert len(daemon.events("storage.lost")) == 2
