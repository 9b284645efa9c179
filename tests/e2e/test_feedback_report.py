"""Report addresses on a running daemon: a forward as attachment teaches, and goes no further."""

import smtplib

import pytest

from tests.e2e.feedback_daemon import Daemon, delivered
from tests.feedback.test_report_address import report
from tests.servers.dovecot import DovecotFactory
from tests.waiting import wait_until

ADDRESSES = """
feedback.spam_addresses = ["spam@our.test"]
feedback.ham_addresses = ["ham@our.test"]
"""


def offered(daemon: Daemon, recipient: str, content: bytes) -> str:
    """Send a mail and return the reply to its end."""
    with smtplib.SMTP("127.0.0.1", daemon.port, timeout=20) as session:
        session.ehlo()
        session.mail("bob@our.test")
        code, text = session.rcpt(recipient)
        assert code == 250, text
        code, text = session.data(content)
        return f"{code} {text.decode()}"


def wombat(number: int) -> bytes:
    return (
        b"Message-ID: <wombat%d@quux.test>\r\nFrom: zed@quux.test\r\nSubject: wombat %d\r\n\r\n"
        b"Buy wombats and quokkas by the dozen.\r\n" % (number, number)
    )


@pytest.mark.parametrize("trusted", [True, False])
def test_a_report_teaches_only_when_it_comes_from_a_trusted_network(
    dovecot: DovecotFactory, *, trusted: bool
) -> None:
    networks = '["127.0.0.0/8"]' if trusted else "[]"
    settings = f"{ADDRESSES}relay.report_networks = {networks}\n"
    daemon = Daemon(dovecot("alice", "bob", "spam"), settings=settings)
    try:
        daemon.start()
        daemon.send(wombat(1))
        seen = delivered(daemon.dovecot, "wombat 1")[0]
        copy = report(seen.as_bytes(), wombat(2))
        reply = offered(daemon, "spam@our.test", copy)
        if trusted:
            assert reply == "250 2.0.0 2 reported as spam, 2 learned"
            wait_until(lambda: len(daemon.lessons()) == 2, what="two lessons")
            assert {lesson[:3] for lesson in daemon.lessons()} == {
                ("spam", "address", "127.0.0.1")  # what MAIL FROM says is nobody's word
            }
            with daemon.dovecot.login("bob") as session:
                session.select("INBOX", readonly=True)
                subject = '"Your report: 2 reported as spam, 2 learned"'
                assert len(session.search(None, "SUBJECT", subject)[1][0].split()) == 1
            assert "2 known" in offered(daemon, "spam@our.test", copy)
            assert "nothing learned" in offered(daemon, "ham@our.test", wombat(3))
        else:
            assert "reported" not in reply
            assert daemon.lessons() == []
        with daemon.dovecot.login("spam") as session:
            held = int(session.select("INBOX", readonly=True)[1][0] or b"0")
        assert held == (0 if trusted else 1)
    finally:
        daemon.close()
