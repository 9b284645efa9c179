"""Whatever listens at the address of the daemon: no byte of the mail is lost or altered."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from spamd.cli.pipe.daemon import NoAnswerError, TryLaterError, ask
from spamd.cli.pipe.fields import NotOursError, fields_of
from spamd.cli.pipe.spool import Spool
from tests.cli.pipe.agent import (
    CODES,
    FIELDS,
    LARGE,
    MAIL,
    Behaviour,
    answers,
    as_arguments,
    daemon,
    reply,
    request,
    spamd_filter,
    with_fields,
    wrong,
)


def dies(connection: socket.socket) -> None:
    """Die while the mail comes."""
    connection.recv(100)


def dies_answering(connection: socket.socket) -> None:
    request(connection)
    connection.sendall(reply(FIELDS + MAIL)[:-60])


def spooled(mail: bytes) -> Spool:
    """Return a mail as it is after it was read."""
    reading, writing = os.pipe()
    os.write(writing, mail)
    os.close(writing)
    spool = Spool()
    spool.read(reading)
    os.close(reading)
    return spool


def hangs_up(connection: socket.socket) -> None:
    """Hang up at once."""


BROKEN: dict[str, Behaviour] = {
    "hangs up": hangs_up,
    "dies while it reads": dies,
    "dies while it answers": dies_answering,
    "says nothing": answers(b""),
    "is a web server": answers(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "is a mail server": answers(b"220 mx.test ESMTP\r\n"),
    "refuses": answers(b"SPAMD/1.0 69 Service Unavailable: no\r\n"),
    "has a fault": answers(b"SPAMD/1.0 70 EX_SOFTWARE\r\n\r\n"),
    "announces more than it says": answers(reply(FIELDS, length=5000)),
    "announces gigabytes": answers(reply(FIELDS, length=10**12)),
    "announces nonsense": answers(reply(FIELDS).replace(b"length: ", b"length: -")),
    "is SpamAssassin": answers(reply(b"X-Spam-Checker-Version: SpamAssassin 4.0.1\r\n" + MAIL)),
    "says no verdict": answers(reply(FIELDS.replace(b"verdict=", b"v="))),
    "says another verdict": answers(reply(FIELDS.replace(b"verdict=spam", b"verdict=eggs"))),
    "says two": answers(reply(FIELDS * 2)),
    "says no header": answers(reply(b"")),
    "says octets of no field": answers(reply(FIELDS.replace(b"Yes", b"Y\xe9\x00s"))),
    "says a line too long": answers(reply(FIELDS + b"X-Spam-More: " + b"x" * 2000 + b"\r\n")),
    "says too much": answers(reply(FIELDS + b"X-Spam-More: x\r\n" * 5000)),
    "says another line end": answers(reply(FIELDS.replace(b"Flag: YES\r", b"Flag: YES\r\r"))),
    "never ends its head": answers(b"SPAMD/1.1 0 EX_OK\r\n" + b"a: b\r\n" * 10_000),
}
"""What may listen at the address of the daemon, or become of it."""


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_is_not_exactly_as_a_daemons_is_none(tmp_path: Path, name: str) -> None:
    def verdict(address: str) -> str:
        _, header = ask([address], "HEADERS", {}, spooled(MAIL), time.monotonic() + 60)
        return fields_of(header)[0]

    with daemon(tmp_path, BROKEN[name]) as address, pytest.raises((NoAnswerError, NotOursError)):
        verdict(address)


def test_a_daemon_that_is_too_slow_is_not_waited_for(tmp_path: Path) -> None:
    done = threading.Event()

    def never_answers(connection: socket.socket) -> None:
        request(connection)
        done.wait(60)

    with daemon(tmp_path, never_answers) as address:
        with pytest.raises(TryLaterError):
            ask([address], "HEADERS", {}, spooled(MAIL), time.monotonic() + 0.05)
        done.set()


@pytest.mark.parametrize("name", ["dies while it reads", "dies while it answers", "refuses"])
def test_whatever_the_daemon_does_the_mail_is_judged_without_it(taught: Path, name: str) -> None:
    mail = (taught / "spam/5.eml").read_bytes()
    with daemon(taught, BROKEN[name]) as address:
        done = spamd_filter(mail, *as_arguments(address), "--exit-code", folder=taught)

    assert (done.code, done.err) == (0, b"")
    assert done.out.startswith(b"X-Spam-Status: Yes")
    assert done.out.endswith(b"\r\n" + mail)


@pytest.mark.parametrize("name", ["dies while it answers", "hangs up", "announces gigabytes"])
def test_with_such_a_daemon_and_no_database_the_mail_comes_out_as_it_came_in(
    tmp_path: Path, name: str
) -> None:
    unusable = wrong("no database", tmp_path)
    with daemon(tmp_path, BROKEN[name]) as address:
        done = spamd_filter(LARGE, *as_arguments(address), folder=tmp_path, environ=unusable)

    assert done == type(done)(code=0, out=LARGE, err=b"")


@pytest.mark.parametrize(("options", "code"), CODES)
def test_a_daemon_that_has_no_answer_now_is_not_helped_out(
    taught: Path, options: list[str], code: int
) -> None:
    busy = answers(b"SPAMD/1.0 75 Temporary failure: too many connections\r\n")
    with daemon(taught, busy) as address:
        done = spamd_filter(MAIL, *as_arguments(address), *options, folder=taught)

    assert (done.code, done.out) == (code, MAIL)


def test_a_lie_of_the_daemon_reaches_no_byte_of_the_mail(tmp_path: Path) -> None:
    lie = reply(FIELDS + b"Subject: another\r\nBcc: x@example.org\r\n\r\nanother body\r\n")
    with daemon(tmp_path, answers(lie)) as address:
        done = spamd_filter(MAIL, *as_arguments(address), folder=tmp_path)

    assert done.out == with_fields(MAIL)


UNSCANNED = FIELDS.replace(b"verdict=spam", b"verdict=unscanned")


@pytest.mark.parametrize(("options", "code"), CODES)
def test_a_mail_that_the_daemon_could_not_judge_counts_as_not_judged(
    tmp_path: Path, options: list[str], code: int
) -> None:
    with daemon(tmp_path, answers(reply(UNSCANNED))) as address:
        done = spamd_filter(MAIL, *as_arguments(address), *options, folder=tmp_path)

    assert (done.code, done.out) == (code, MAIL if code == 75 else UNSCANNED + MAIL)
