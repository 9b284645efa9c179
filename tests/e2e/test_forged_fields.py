"""What real servers take for a field of ours, and where they find ours: asked, not believed."""

import email
import imaplib
import re
import smtplib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.forged_fields import FRONTS, shapes
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import require
from tests.servers.cyrus import Cyrus
from tests.servers.dovecot import Dovecot
from tests.servers.postfix import Postfix, PostfixOptions, delivering
from tests.waiting import wait_until

SIEVE = 'require ["fileinto"];\nif header :is "X-Spam-Flag" "YES" { fileinto "Junk"; }\n'
SETTINGS = 'relay.bare_newline = "normalize"\nrelay.max_message_bytes = 1000000\n'
NUMBER = re.compile(rb"mail-(\d{4})-")

Login = Callable[[], imaplib.IMAP4]


def sieving_dovecot(stack: ExitStack) -> Dovecot:
    """Start a Dovecot that files what says to be spam."""
    server = Dovecot()
    script = server.directory / "before.sieve"
    script.write_text(SIEVE)
    server.settings = (
        f"protocol lmtp {{\n  mail_plugins = sieve\n}}\nplugin {{\n  sieve_before = {script}\n}}\n"
    )
    return stack.enter_context(server)


def hand_over(port: int, mails: list[bytes], to: str) -> int:
    """Send mails as they are; return how many were taken."""
    taken = 0
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        client.ehlo()
        for raw in mails:
            client.mail("a@x.test")
            client.rcpt(to)
            assert client.docmd("DATA")[0] == 354
            client.send((b"\r\n" + raw).replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n")
            taken += client.getreply()[0] == 250
    return taken


def stored(login: Login, folder: str) -> list[bytes]:
    """Return the mails of a folder."""
    with login() as session:
        if session.select(folder)[1] == [b"0"]:
            return []
        _, rows = session.fetch("1:*", "(BODY.PEEK[])")
        return [row[1] for row in rows if isinstance(row, tuple)]


def numbers(mails: list[bytes]) -> list[int]:
    return sorted(int(found[1]) for mail in mails if (found := NUMBER.search(mail)))


def assert_nobody_was_misled(login: Login, taken: int, *, at_least: int) -> None:
    """Check the Junk folder of the server, and what Python's reader makes of all mails."""
    assert numbers(stored(login, "Junk")) == []
    inbox = stored(login, "INBOX")
    assert len(numbers(inbox)) == taken >= at_least
    for mail in inbox:
        read = email.message_from_bytes(mail)
        assert "X-Spam-Flag" not in read
        assert len(read.get_all("X-Spam-Id", [])) <= 1
        assert mail.replace(b"\r\n", b"\n").count(b"\n\nX-Spam-Flag: YES\nmail-") == 1


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_k3_dovecot_and_its_sieve_take_no_forged_field_for_ours(servers: ExitStack) -> None:
    require("dovecot")
    require("sieve")
    server = sieving_dovecot(servers)
    relay = servers.enter_context(Spamd(f"lmtp://127.0.0.1:{server.lmtp_port}", SETTINGS))
    mails = shapes()
    taken = hand_over(relay.port, mails, "alice@t.test")
    assert_nobody_was_misled(server.login, taken, at_least=len(mails))


def test_k3_cyrus_and_its_sieve_take_no_forged_field_for_ours(servers: ExitStack) -> None:
    require("cyrus")
    server = servers.enter_context(Cyrus())
    server.login().logout()
    server.filter_by(SIEVE)
    relay = servers.enter_context(Spamd(f"lmtp://127.0.0.1:{server.lmtp_port}", SETTINGS))
    taken = hand_over(relay.port, shapes(), "alice")
    assert_nobody_was_misled(server.login, taken, at_least=60)  # it refuses the most crooked


def test_k3_postfix_hands_no_forged_field_to_what_stands_behind(servers: ExitStack) -> None:
    require("postfix")
    require("dovecot")
    require("sieve")
    store = sieving_dovecot(servers)
    behind = delivering(store.lmtp_port, "t.test")
    checks = store.directory / "header_checks"
    checks.write_text("/^X-Spam-Flag/ WARN forged\n/^X-Spam-Id/ WARN ours\n")
    main = {**behind.main, "header_checks": f"regexp:{checks}"}
    server = servers.enter_context(Postfix(PostfixOptions(main=main)))
    relay = servers.enter_context(Spamd(f"smtp://127.0.0.1:{server.port}", SETTINGS))
    mails = shapes()
    taken = hand_over(relay.port, mails, "alice@t.test")
    wait_until(lambda: not server.queue(), what="an empty queue", deadline_s=60)
    assert server.log_text().count(": warning: header X-Spam-Flag") == 0
    assert server.log_text().count(": warning: header X-Spam-Id") == taken
    assert_nobody_was_misled(store.login, taken, at_least=len(mails))


def seen(login: Login, folder: str) -> dict[int, tuple[bytes, ...]]:
    """Return what the server says of each mail: Subject, Date and From, and Python the same."""
    found: dict[int, tuple[bytes, ...]] = {}
    with login() as session:
        session.select(folder)
        _, rows = session.fetch("1:*", "(BODY.PEEK[HEADER.FIELDS (SUBJECT DATE FROM)] BODY.PEEK[])")
        parts = [row[1] for row in rows if isinstance(row, tuple)]
        for fields, raw in zip(parts[::2], parts[1::2], strict=True):
            python = email.message_from_bytes(raw)
            names = [str(python[name]).encode() for name in ("Subject", "Date")]
            found[numbers([raw])[0]] = (fields.strip(), *names)
    return found


def test_g8_what_stands_in_front_of_the_header_hides_neither_its_fields_nor_ours(
    servers: ExitStack,
) -> None:
    """By Dovecot and Python each mail shows what it shows without us, and carries our verdict."""
    require("dovecot")
    require("sieve")
    server = sieving_dovecot(servers)
    mails = [
        front + b"Subject: a subject\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\nFrom: a@x.test\r\n"
        b"\r\nmail-%04d- of words\r\n" % number
        for number, front in enumerate(FRONTS.values())
    ]
    with smtplib.LMTP("127.0.0.1", server.lmtp_port) as client:
        client.ehlo()
        for raw in mails:
            client.mail("a@x.test")
            client.rcpt("bob@t.test")
            client.docmd("DATA")
            client.send(raw.replace(b"\r\n.", b"\r\n..").replace(b"\rS", b" S") + b".\r\n")
            assert client.getreply()[0] == 250
    relay = servers.enter_context(Spamd(f"lmtp://127.0.0.1:{server.lmtp_port}", SETTINGS))
    assert hand_over(relay.port, mails, "alice@t.test") == len(mails)
    without, through = seen(lambda: server.login("bob"), "INBOX"), seen(server.login, "INBOX")
    for number, front in enumerate(FRONTS):
        assert through[number] == without[number], front
    for mail in stored(server.login, "INBOX"):
        first = list(FRONTS.values())[numbers([mail])[0]].replace(b"\r", b"")
        first = first.replace(b"\0", b"\x80")  # Dovecot's way with them
        header = mail.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
        assert b"X-Spam-Id: " in header
        assert b"Subject: a subject\nDate: " in header
        assert first.strip() in header
