"""The servers of these tests do what the tests believe of them."""

import imaplib
import re
import smtplib
import ssl
from pathlib import Path

import pytest

from tests.servers.base import (
    Server,
    ServerError,
    free_port,
    greeting,
    group_members,
    missing,
    require,
)
from tests.servers.dovecot import PASSWORD, DovecotFactory
from tests.servers.postfix import (
    PostfixFactory,
    SmtpSinkFactory,
    SmtpSource,
    after_queue,
    before_queue,
    delivering,
)
from tests.waiting import wait_until

MAIL = b"Subject: s\r\n\r\nhello\r\n.dots\r\n"


class Silent(Server):
    """A server that ends at once, having said why."""

    name = "silent"

    def configure(self) -> None:
        tried = self.directory / "ports"
        before = tried.read_text() if tried.exists() else ""
        tried.write_text(f"{before}{self.port}\n")

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", "echo no such table; exit 3"]

    def is_ready(self) -> bool:
        return False


def send(port: int, *recipients: str) -> None:
    with smtplib.SMTP("127.0.0.1", port) as client:
        client.sendmail("a@x.test", recipients or ("b@y.test",), MAIL)


def test_a_server_that_ends_at_its_start_is_tried_on_another_port_then_shown_with_its_log() -> None:
    server = Silent()
    with pytest.raises(ServerError, match="no such table"):
        server.start()
    first, second = (server.directory / "ports").read_text().split()
    assert first != second
    with pytest.raises(ServerError), server:
        pass
    assert not server.directory.exists()


def test_nothing_is_left_of_a_closed_server(postfix: PostfixFactory) -> None:
    server = postfix(before_queue(free_port(), free_port()))
    group = server.pid
    assert len(group_members(group)) > 1
    server.close()
    assert group_members(group) == []
    assert greeting(server.port) == b""
    assert not server.directory.exists()


def test_a_missing_thing_fails_the_test_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.servers.base.CORPORA", Path("/nonexistent"))
    monkeypatch.setenv("TEST_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="needs corpora: no /nonexistent/"):
        require("corpora")
    monkeypatch.setenv("TEST_REQUIRE", "postfix,corpora")
    with pytest.raises(pytest.fail.Exception, match=r"needs corpora: .*\(TEST_REQUIRE names it\)"):
        require("corpora")
    with pytest.raises(ValueError, match="courier"):
        missing("courier")


def test_the_sink_keeps_envelope_and_message(smtp_sink: SmtpSinkFactory) -> None:
    sink = smtp_sink()
    send(sink.port, "b@y.test", "c@y.test")
    (mail,) = sink.mails(at_least=1)
    assert mail.sender.startswith("<a@x.test>")
    assert mail.recipients == ("<b@y.test>", "<c@y.test>")
    assert mail.content == MAIL.replace(b"\r\n", b"\n")


def test_the_sink_refuses_as_told(smtp_sink: SmtpSinkFactory) -> None:
    sink = smtp_sink("-f", "RCPT", "-B", "550 5.1.1 nobody here")
    with pytest.raises(smtplib.SMTPRecipientsRefused, match="nobody here"):
        send(sink.port)


def test_postfix_passes_mail_through_a_filter_before_its_queue(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory
) -> None:
    next_hop = smtp_sink()
    filtering = smtp_sink()
    server = postfix(before_queue(filtering.port, next_hop.port))
    send(server.port)
    assert b"hello" in filtering.mails(at_least=1)[0].content
    server.wait_for_log("proxy-accept: END-OF-MESSAGE: 250")
    send(server.reentry_port)
    assert b"hello" in next_hop.mails(at_least=1)[0].content


def test_postfix_passes_queued_mail_through_a_filter(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, smtp_source: SmtpSource
) -> None:
    filtering = smtp_sink()
    server = postfix(after_queue(filtering.port, free_port()))
    smtp_source(server.port, messages=20, sessions=4, length=1000)
    assert len(filtering.mails(at_least=20)) == 20


def test_postfix_keeps_mail_while_the_next_hop_is_down(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory
) -> None:
    sink = smtp_sink()
    server = postfix(after_queue(sink.port, free_port()))
    sink.stop()
    send(server.port)
    wait_until(
        lambda: any(mail["queue_name"] == "deferred" for mail in server.queue()), what="deferred"
    )
    sink.start()
    server.flush()
    assert len(sink.mails(at_least=1)) == 1
    assert len(sink.mails()) == 1


def test_postfix_delivers_to_dovecot_and_dovecot_serves_it(
    postfix: PostfixFactory, dovecot: DovecotFactory
) -> None:
    mailboxes = dovecot()
    server = postfix(delivering(mailboxes.lmtp_port, "t.test"))
    send(server.port, "alice@t.test")
    server.wait_for_log("status=sent")
    with mailboxes.login("alice") as session:
        session.select("INBOX")
        _, parts = session.fetch("1", "(BODY.PEEK[TEXT])")
        assert any(b"hello" in part[1] for part in parts if isinstance(part, tuple))
        _, folders = session.list()
        assert any(isinstance(folder, bytes) and rb"\Junk" in folder for folder in folders)
    assert list((mailboxes.maildir("alice") / "cur").iterdir())


def test_dovecot_speaks_tls_with_a_certificate_of_its_own_authority(
    dovecot: DovecotFactory,
) -> None:
    server = dovecot()
    context = ssl.create_default_context(cafile=server.authority)
    with imaplib.IMAP4_SSL("localhost", server.imaps_port, ssl_context=context) as session:
        session.login("bob", PASSWORD)
    with imaplib.IMAP4("localhost", server.port) as session:
        session.starttls(context)
        session.login("bob", PASSWORD)


def test_dovecot_killed_starts_again_on_its_ports_with_its_mail(dovecot: DovecotFactory) -> None:
    server = dovecot("carol")
    ports = (server.port, server.lmtp_port)
    with smtplib.LMTP("127.0.0.1", server.lmtp_port) as client:
        client.sendmail("a@x.test", ["carol@t.test"], MAIL)
    server.kill()
    assert greeting(server.port) == b""
    server.start()
    assert (server.port, server.lmtp_port) == ports
    with server.login("carol") as session:
        _, count = session.select("INBOX")
        assert count == [b"1"]


def test_the_corpora_are_those_the_figures_speak_of(
    spamassassin_corpus: Path, modern_corpus: Path, hostile_corpus: Path
) -> None:
    index = (spamassassin_corpus / "index").read_text().splitlines()
    assert len(index) == 6046
    assert all(re.match("(spam|ham) ", line) for line in index)
    assert len((modern_corpus / "index").read_text().splitlines()) == 2000
    assert (hostile_corpus / "MANIFEST.tsv").is_file()
