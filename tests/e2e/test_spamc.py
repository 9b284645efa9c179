"""Clients of SpamAssassin ask spamd, beside SpamAssassin's own: replies and exit codes."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port, require
from tests.servers.spamassassin import SpamAssassin, spamassassin, spamc
from tests.waiting import wait_until

__all__ = ["spamassassin"]

GTUBE = b"XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X\n"
SPAM = made_up("spam", 3).replace(b"\r\n", b"\n") + GTUBE
"""Spam to both: SpamAssassin's own test text, in words that we were taught."""

HAM = (
    b"Received: from mx.work.example by mx.test with ESMTP id 1; Sat, 28 Nov 2026 10:00:00 +0000\n"
    b"Date: Sat, 28 Nov 2026 10:00:00 +0000\n" + made_up("ham", 4).replace(b"\r\n", b"\n")
)
MAILS = {"spam": SPAM, "ham": HAM}


@dataclass(frozen=True)
class Both:
    """SpamAssassin's daemon and ours."""

    theirs: SpamAssassin
    ours: "Ours"

    def ask(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the replies of the two to the same bytes."""
        return _ask(self.theirs.port, data), _ask(self.ours.spamc_port, data)


class Ours(Spamd):
    """`spamd serve` with a SPAMC listener."""

    def __init__(self) -> None:
        self.spamc_port = free_port()
        super().__init__("smtp://127.0.0.1:9")
        self._settings = (
            f'spamc.listen = ["127.0.0.1:{self.spamc_port}", "unix:{self.socket}"]\n'
            'relay.report_networks = ["127.0.0.0/8"]\n'
            "[decision]\nminimum_ham = 5\nminimum_spam = 5\n"
        )

    @property
    def socket(self) -> Path:
        return self.directory / "spamc"


@pytest.fixture(scope="module")
def both(spamassassin: SpamAssassin) -> Iterator[Both]:
    """Return both daemons, taught the same."""
    with Ours() as ours:
        for number in range(10, 22):
            for label in ("spam", "ham"):
                for port in (spamassassin.port, ours.spamc_port):
                    told = spamc("-p", str(port), "-L", label, mail=made_up(label, number))
                    assert told.stdout == b"Message successfully un/learned\n"
        yield Both(spamassassin, ours)


def _ask(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        reply = b""
        while block := connection.recv(65536):
            reply += block
        return reply


def shape(reply: bytes) -> str:
    """Return a reply with only its form left: numbers, and texts of one's own, are put aside."""
    head, blank, body = reply.partition(b"\r\n\r\n")
    lines = re.sub(rb"-?[0-9]+\.[0-9](?= )|-?[0-9]+\.[0-9]$", b"S", head, flags=re.MULTILINE)
    lines, announced = re.subn(rb"length: [0-9]+", b"length: N", lines)
    if announced:
        assert b"Content-length: %d" % len(body) in head
    for mail in MAILS.values():
        if mail.partition(b"\n\n")[2] in body:
            body = b"<mail>"
    if re.fullmatch(rb"[A-Z0-9_]+(,[A-Z0-9_]+)*", body.removesuffix(b"\r\n")):
        body = b"<names>" + body[len(body.removesuffix(b"\r\n")) :]
    elif len(body) > 30:
        body = b"<text>"
    return (lines + blank + body).decode("latin_1")


VERBS = ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS")


@pytest.mark.parametrize("version", ["1.2", "1.3", "1.5"])
@pytest.mark.parametrize("kind", ["spam", "ham"])
def test_a_reply_has_the_shape_of_spamassassins_for_each_verb_and_version(
    both: Both, kind: str, version: str
) -> None:
    mail = MAILS[kind]
    for verb in VERBS:
        request = f"{verb} SPAMC/{version}\r\nContent-length: {len(mail)}\r\n\r\n".encode()
        theirs, ours = map(shape, both.ask(request + mail))
        assert ours == theirs, verb


def test_the_oldest_client_gets_the_bare_mail(both: Both) -> None:
    replies = both.ask(b"PROCESS SPAMC/1.0\r\n" + HAM)
    for reply in replies:
        assert reply.startswith(b"SPAMD/1.0 0 EX_OK\r\n")
        assert reply.endswith(HAM.partition(b"\n\n")[2])


SAME = [
    b"",
    b"PING SPAMC/1.2\r\n",
    b"PING SPAMC/1.5\r\n\r\n",
    b"PING SPAMC/1.5\r\n",
    b"SKIP SPAMC/1.5\r\n\r\n",
    b"SKIP SPAMC/1.2\r\n",
    b"HELO x\r\n",
    b"check SPAMC/1.5\r\n\r\n",
    b"CHECK SPAMC/1.5\r\n",
    b"CHECK SPAMC/1.5\r\nUser: a\r\n",
    b"CHECK SPAMC/1.5\r\nUser\r\n\r\n",
    b"CHECK SPAMC/1.5\r\nUser: a\tb\r\n\r\n",
    b"CHECK SPAMC/1.5\r\nContent-length: 1x\r\n\r\n",
    b"CHECK SPAMC/1.5\r\nContent-length: 50\r\n\r\n" + b"Subject: a\n\nb\n",
    b"CHECK SPAMC/1.5\r\nCompress: gzip\r\n\r\n",
    b"CHECK SPAMC/1.5\r\nCompress: zlib\r\n\r\n",
    b"CHECK SPAMC/1.5\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\nRemove: local\r\n\r\n",
    b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: remote\r\nRemove: remote\r\n\r\n",
]


@pytest.mark.parametrize("request_bytes", SAME, ids=range(len(SAME)))
def test_what_needs_no_verdict_is_answered_with_the_same_bytes(
    both: Both, request_bytes: bytes
) -> None:
    theirs, ours = both.ask(request_bytes)
    assert ours == theirs


def test_a_lesson_is_answered_with_the_same_bytes(both: Both) -> None:
    mail = made_up("spam", 77)
    lesson = b"Message-class: spam\r\nSet: local\r\n"
    for headers in (
        lesson, lesson, b"Remove: local\r\n", b"Remove: local\r\n",
        b"Message-class: spam\r\nSet: local,remote\r\n", b"Remove: local,remote\r\n",
        b"Message-class: ham\r\nSet: local\r\nRemove: remote\r\n", b"Remove: local\r\n",
    ):  # fmt: skip
        length = b"Content-length: %d\r\n\r\n" % len(mail)
        theirs, ours = both.ask(b"TELL SPAMC/1.5\r\n" + headers + length + mail)
        assert ours == theirs, headers


OPTIONS = [
    (), ("-c",), ("-E",), ("-y",), ("-R",), ("-r",), ("--headers",), ("-x",), ("-X",), ("-B",),
    ("-t", "20"), ("-n", "20"), ("-l",), ("-u", "bob"), ("-s", "100"), ("-K",), ("-4",), ("-z",),
    ("-F", "/dev/null"), ("-H",), ("-x", "-E"), ("-c", "-u", "bob"), ("--headers", "-x"),
    ("-f",), ("--filter-retries=1", "--filter-retry-sleep=1"),
]  # fmt: skip


def printed(output: bytes) -> str:
    """Return what spamc printed with only its form left."""
    if re.fullmatch(rb"[A-Z0-9_]+(,[A-Z0-9_]+)*", output):
        return "<names>"
    for mail in MAILS.values():
        if output == mail:
            return "<mail as it was>"
        if output.endswith(mail.partition(b"\n\n")[2]):
            flag = re.findall(rb"^X-Spam-(?:Flag|Status): \w+", output, re.MULTILINE)
            return f"<mail> {sorted(flag)}"
    text = re.sub(rb"-?[0-9]+\.[0-9]/5\.0", b"S/5.0", output).decode()
    return re.sub(r"(?s)^(S/5.0\n)?.{30,}", r"\1<text>", text)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("kind", ["spam", "ham"])
def test_spamc_ends_and_prints_as_with_spamassassin(
    both: Both, kind: str, options: tuple[str, ...]
) -> None:
    mail = MAILS[kind]
    theirs = spamc("-p", str(both.theirs.port), *options, mail=mail)
    ours = spamc("-p", str(both.ours.spamc_port), *options, mail=mail)
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
    assert printed(ours.stdout) == printed(theirs.stdout)


@pytest.mark.parametrize("options", [("-c",), ("-r",), ()], ids=" ".join)
def test_spamc_by_the_socket_is_as_with_spamassassin(both: Both, options: tuple[str, ...]) -> None:
    theirs = spamc("-U", str(both.theirs.socket), *options, mail=SPAM)
    ours = spamc("-U", str(both.ours.socket), *options, mail=SPAM)
    assert ours.returncode == theirs.returncode
    assert printed(ours.stdout) == printed(theirs.stdout)


def test_lessons_by_spamc_are_as_with_spamassassin(both: Both) -> None:
    mail = made_up("spam", 78)
    told = (
        "-L spam,-L spam,-L ham,-L forget,-L forget,-C report,-C report,-L spam,-C revoke,"
        "-C revoke,-L ham,-C report,-L forget"
    )
    for options in told.split(","):
        theirs = spamc("-p", str(both.theirs.port), *options.split(), mail=mail)
        ours = spamc("-p", str(both.ours.spamc_port), *options.split(), mail=mail)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), options


class TwoWorkers(Ours):
    """The same with two workers."""

    def configure(self) -> None:
        super().configure()
        self.config.write_text("relay.workers = 2\n" + self.config.read_text())


def test_two_workers_answer_at_both_addresses_also_after_a_reload_and_end_in_time() -> None:
    require("spamassassin")
    with TwoWorkers() as daemon:
        addresses = (("-p", str(daemon.spamc_port)), ("-U", str(daemon.socket)))
        for address in addresses * 4:
            assert spamc(*address, "-c", mail=HAM).stdout.endswith(b"/5.0\n")
        os.kill(daemon.pid, signal.SIGHUP)
        for address in addresses * 10:  # while workers are replaced
            assert spamc(*address, "-c", mail=HAM).stdout.endswith(b"/5.0\n")
        wait_until(
            lambda: len(daemon.events("worker.stopped")) == 2,
            what="both workers are replaced",
            deadline_s=90,
        )
        for address in addresses * 4:
            assert spamc(*address, "-c", mail=HAM).stdout.endswith(b"/5.0\n")
        wait_until(
            lambda: len(daemon.events("message.scanned")) == 36, what="each is in the log once"
        )
        daemon.stop()
        for address in addresses:
            assert spamc(*address, mail=HAM).stdout == HAM
