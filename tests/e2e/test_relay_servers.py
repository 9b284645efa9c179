"""Between real servers: Postfix in front and behind, Dovecot behind, swaks as the client."""

import os
import re
import signal
import smtplib
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from spamd.message.features import extract
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port
from tests.servers.dovecot import Dovecot
from tests.servers.postfix import (
    PostfixFactory,
    SmtpSinkFactory,
    SmtpSource,
    after_queue,
    before_queue,
    delivering,
)
from tests.waiting import wait_until

MAIL = "From: a@x.test\r\nTo: b@y.test\r\nSubject: from afar\r\n\r\nSome words.\r\n"
XFORWARD = 'relay.trusted_networks = ["127.0.0.0/8"]'

Start = Callable[..., Spamd]


@pytest.fixture
def spamd() -> Iterator[Start]:
    """Start a daemon: `spamd(next_hop_url, settings, port=…)`."""
    with ExitStack() as stack:

        def start(next_hop: str, settings: str = "", *, port: int | None = None) -> Spamd:
            return stack.enter_context(Spamd(next_hop, settings, port=port))

        yield start


def send(port: int, text: str = MAIL, sender: str = "a@x.test", to: str = "b@y.test") -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        client.sendmail(sender, [to], text)


def test_postfix_before_its_queue(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, spamd: Start
) -> None:
    sink, port = smtp_sink(), free_port()
    server = postfix(before_queue(port, sink.port))
    spamd(f"smtp://127.0.0.1:{server.reentry_port}", XFORWARD, port=port)
    send(server.port)
    (mail,) = sink.mails(at_least=1)
    text = mail.content.decode()
    assert text.count("X-Spam-Status: No") == 1
    assert text.index("(spamd) with ESMTP") < text.index("X-Spam-Status") < text.index("from afar")
    assert "Some words." in text


def test_postfix_before_its_queue_tells_its_client_of_a_next_hop_that_is_down(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, spamd: Start
) -> None:
    sink, port = smtp_sink(), free_port()
    server = postfix(before_queue(port, sink.port))
    spamd(f"smtp://127.0.0.1:{free_port()}", port=port)
    with pytest.raises(smtplib.SMTPException) as caught:
        send(server.port)
    assert 400 <= getattr(caught.value, "smtp_code", 450) < 500
    assert sink.mails() == []


def test_postfix_behind_its_queue(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, spamd: Start
) -> None:
    sink, port = smtp_sink(), free_port()
    server = postfix(after_queue(port, sink.port))
    daemon = spamd(f"smtp://127.0.0.1:{server.reentry_port}", XFORWARD, port=port)
    for number in range(20):
        send(server.port, MAIL.replace("afar", f"afar {number}"))
    mails = sink.mails(at_least=20)
    subjects = {re.search(rb"from afar (\d+)", mail.content)[1] for mail in mails}  # type: ignore[index]
    assert len(mails) == len(subjects) == 20
    wait_until(lambda: not server.queue(), what="an empty queue")
    assert len(daemon.events("message.scanned")) == 20


def test_dovecot_behind_by_lmtp(dovecot: Callable[[], Dovecot], spamd: Start) -> None:
    server = dovecot()
    daemon = spamd(f"lmtp://127.0.0.1:{server.lmtp_port}")
    send(daemon.port, to="alice@t.test")
    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        send(daemon.port, to="nobody@t.test")
    ((code, text),) = caught.value.recipients.values()
    assert code == 550
    assert b"User doesn't exist" in text
    (path,) = (server.maildir("alice") / "new").iterdir()
    assert "X-Spam-Status: No" in path.read_text()


def test_four_servers_in_a_row(
    postfix: PostfixFactory, dovecot: Callable[[], Dovecot], spamd: Start
) -> None:
    store, port = dovecot(), free_port()
    behind = postfix(delivering(store.lmtp_port, "t.test"))
    front = postfix(before_queue(port, free_port()))
    spamd(f"smtp://127.0.0.1:{behind.port}", port=port)
    send(front.port, to="alice@t.test")
    new = store.maildir("alice") / "new"
    wait_until(lambda: new.is_dir() and list(new.iterdir()), what="the mail in the INBOX")


def test_d14_postfix_and_dovecot_behind_leave_the_tokens_that_were_judged(
    postfix: PostfixFactory, dovecot: Callable[[], Dovecot], spamd: Start
) -> None:
    store = dovecot()
    behind = postfix(delivering(store.lmtp_port, "t.test"))
    daemon = spamd(f"smtp://127.0.0.1:{behind.port}")
    sent = (
        "Received: from far.test ([192.0.2.1]) by near.test (Exim 4.96) with esmtps id 1rJx\r\n"
        "X-Spam-Id: 0011223344-0011223344556677\r\n"
        "Received: from first.test by far.test; Mon, 1 Jan 2024 10:00:00 +0000\r\n"
        f"Message-ID: <1@x.test>\r\nDate: Mon, 1 Jan 2024 10:00:00 +0000\r\n{MAIL}"
    )
    send(daemon.port, sent, to="alice@t.test")
    new = store.maildir("alice") / "new"
    wait_until(lambda: new.is_dir() and list(new.iterdir()), what="the mail in the INBOX")
    (path,) = new.iterdir()
    delivered = path.read_bytes()
    judged = extract(sent.encode(), arriving=True)

    assert delivered.count(b"Received:") > sent.count("Received:") + 1
    assert {"received:near.test", "received:first.test"} <= set(judged.texts)
    assert list(extract(delivered).texts) == list(judged.texts)
    (event,) = daemon.events("message.scanned")
    assert event["tokens"] == len(judged.texts)


ENDS = [b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r", b"\r\n.\r", b"\r\n.\r\r\n", b"\r\r\n.\r\r\n",
        b"\r\n\x00.\r\n", b"\r\n.\x00\r\n"]  # fmt: skip
SECOND = b"MAIL FROM:<evil@x.test>\r\nRCPT TO:<victim@y.test>\r\nDATA\r\nSubject: evil\r\n\r\n"


def test_c1_nothing_is_smuggled_into_a_postfix_behind(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, spamd: Start
) -> None:
    sink = smtp_sink()
    server = postfix(before_queue(sink.port, sink.port))
    daemon = spamd(f"smtp://127.0.0.1:{server.reentry_port}")
    for end in ENDS:
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as client:
            replies = client.makefile("rb")
            client.sendall(b"EHLO c.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n")
            while not replies.readline().startswith(b"354"):
                pass
            client.sendall(b"Subject: x\r\n\r\nhello" + end + SECOND + b"hello\r\n.\r\nQUIT\r\n")
            assert replies.readline().startswith(b"250 ")
            assert replies.readline().startswith(b"221 ")
    mails = sink.mails(at_least=len(ENDS))
    assert len(mails) == len(ENDS)
    assert {mail.sender.split(" ")[0] for mail in mails} == {"<a@x.test>"}


def test_swaks_delivers_to_the_embedded_maildir(spamd: Start, tmp_path: Path) -> None:
    swaks = Path("/usr/bin/swaks")
    if not swaks.exists():
        pytest.skip("needs swaks")
    daemon = spamd(f"maildir://{tmp_path}/mail")
    done = subprocess.run(
        [swaks, "--server", f"127.0.0.1:{daemon.port}", "--from", "a@x.test", "--to", "b@y.test",
         "--header", "Subject: s", "--body", "hello"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    (path,) = (tmp_path / "mail" / "new").iterdir()
    assert "X-Spam-Status: No" in path.read_text()


def test_smtp_source_sends_many(
    smtp_sink: SmtpSinkFactory, smtp_source: SmtpSource, spamd: Start
) -> None:
    sink = smtp_sink()
    daemon = spamd(f"smtp://127.0.0.1:{sink.port}")
    smtp_source(daemon.port, messages=200, sessions=10)
    assert len(sink.mails(at_least=200)) == 200


def test_sigterm_lets_a_message_in_flight_finish(smtp_sink: SmtpSinkFactory, spamd: Start) -> None:
    sink = smtp_sink("-w", "1")  # a second passes before the final reply
    daemon = spamd(f"smtp://127.0.0.1:{sink.port}")
    client = smtplib.SMTP("127.0.0.1", daemon.port, timeout=60)
    client.ehlo()
    client.mail("a@x.test")
    client.rcpt("b@y.test")
    client.putcmd("data")
    assert client.getreply()[0] == 354
    client.send(MAIL.encode() + b".\r\n")
    os.kill(daemon.pid, signal.SIGTERM)
    assert client.getreply()[0] == 250
    assert client.docmd("QUIT")[0] == 421
    client.close()
    assert len(sink.mails(at_least=1)) == 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('relay.lissten = "127.0.0.1:1"', "relay.lissten"),
        ("relay.workers = -1", "relay.workers"),
        ('relay.bare_newline = "maybe"', "relay.bare_newline"),
        ("relay.proxy_protocol = true", "relay.proxy_protocol"),
        ('relay.spool_directory = "/no/such/folder"', "relay.spool_directory"),
        ('tls.certificate = "/no/such/file"', "tls.certificate"),
        ("tls.required = true", "tls.required"),
    ],
)
def test_a_mistake_stops_the_start_with_one_sentence(settings: str, sentence: str) -> None:
    daemon = Spamd("maildir:///tmp/never-used", settings)
    done = daemon.refusal()
    assert done.returncode == 78
    assert sentence in done.stderr
    assert str(daemon.config) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken_stops_the_start_with_one_sentence(workers: int) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        daemon = Spamd("maildir:///tmp/never-used", f"relay.workers = {workers}", port=port)
        try:
            daemon.configure()
            done = subprocess.run(
                daemon.command(), capture_output=True, text=True, check=False, timeout=120,
                env=daemon.environment(), cwd=daemon.directory,
            )  # fmt: skip
        finally:
            daemon.close()
    assert done.returncode == 78
    assert re.search(rf"relay\.listen: 127\.0\.0\.1:{port}: .*in use", done.stderr)
    assert "Traceback" not in done.stderr
