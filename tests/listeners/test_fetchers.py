"""getmail and Dovecot's Sieve with `spamd filter`, as docs/listeners.md prints them."""

import smtplib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.test_printed import in_place
from tests.listeners.agents import (
    PROGRAM,
    SOCKET,
    Getmail,
    installed,
    is_unaltered,
    python_of_all,
)
from tests.listeners.pipe_daemon import PipeDaemon
from tests.servers.base import require
from tests.servers.dovecot import Dovecot, DovecotFactory
from tests.waiting import wait_until

DOVECOT = block(
    "docs/listeners.md", "protocol lmtp {\n  mail_plugins = $mail_plugins sieve\n}\nprotocol imap {"
)
PROGRAMS = {
    "spamd-filter": block("docs/listeners.md", "#!/bin/sh\nexec /usr/local/bin/spamd filter"),
    "spamd-learn": block("docs/listeners.md", "#!/bin/sh\nexec /usr/local/bin/spamd train"),
}
SCRIPTS = {
    "filter": block("docs/listeners.md", 'require ["vnd.dovecot.filter"'),
    "learn-spam": block("docs/listeners.md", 'require ["vnd.dovecot.pipe", "copy"];'),
    "learn-ham": block("docs/listeners.md", 'require ["vnd.dovecot.pipe", "copy", "environment"'),
}


def test_getmail_fetches_marked_mail(
    dovecot: DovecotFactory, pipe_daemon: PipeDaemon, home: Path
) -> None:
    require("getmail")
    store = dovecot()
    agent = Getmail(home, store, pipe_daemon.address)
    mails = [made_up(label, 41) for label in ("spam", "ham")]

    agent.offer(mails)
    code = agent.fetch()

    assert (code, agent.offered()) == (0, 0)
    inbox = sorted(agent.inbox(), key=lambda mail: b"number41 ham" in mail)
    for mail, delivered in zip(mails, inbox, strict=True):
        assert is_unaltered(delivered, mail.replace(b"\r\n", b"\n"))
        assert b"X-Spam-Status: " in delivered


@pytest.fixture
def sieve(pipe_daemon: PipeDaemon, home: Path) -> Iterator[Dovecot]:
    """Give a running Dovecot with the printed configuration, programs and scripts."""
    require("sieve")
    require("dovecot")
    store = Dovecot()
    spamd = installed(home, python_of_all())
    for name, text in PROGRAMS.items():
        program = home / name
        places = [(PROGRAM, spamd), (SOCKET, pipe_daemon.address)]
        program.write_text(in_place(text, places))
        program.chmod(0o755)
    for name, text in SCRIPTS.items():
        (home / f"{name}.sieve").write_text(text)
    store.settings = in_place(
        DOVECOT, [("/usr/local/lib/dovecot/sieve", home), ("/etc/dovecot/sieve", home)]
    )
    with store:
        yield store


def deliver(store: Dovecot, *mails: bytes) -> None:
    with smtplib.LMTP("127.0.0.1", store.lmtp_port, timeout=60) as client:
        for mail in mails:
            client.sendmail("a@x.test", ["alice@t.test"], mail)


def test_sieve_filters_what_is_delivered(sieve: Dovecot) -> None:
    deliver(sieve, made_up("spam", 42), made_up("ham", 42))

    with sieve.login() as session:
        for folder, label in (("Junk", b"spam42@"), ("INBOX", b"ham42@")):
            session.select(folder)
            mail = repr(session.fetch("1", "(RFC822)")).encode()
            assert label in mail
            assert b"X-Spam-Status: " in mail


def test_sieve_has_the_daemon_learn_what_a_person_moves(
    sieve: Dovecot, pipe_daemon: PipeDaemon
) -> None:
    def taught() -> list[tuple[object, object]]:
        found = pipe_daemon.events("lesson.learned")
        return [(each["label"], each["source"]) for each in found if each["source"] == "spamc"]

    deliver(sieve, made_up("ham", 43))
    with sieve.login() as session:
        session.select("INBOX")
        session.copy("1", "Junk")
        wait_until(lambda: taught()[-1:] == [("spam", "spamc")], what="the lesson")
        session.select("Junk")
        session.copy("1", "INBOX")
        wait_until(lambda: taught()[-1:] == [("ham", "spamc")], what="the correction")
        session.copy("1", "Trash")
        session.select("INBOX")
        session.append("Junk", None, None, made_up("ham", 44))
        wait_until(lambda: len(taught()) > 2, what="the lesson that follows")

    assert [label for label, _ in taught()] == ["spam", "ham", "spam"]
