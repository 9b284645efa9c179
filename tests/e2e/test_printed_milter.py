"""What docs/listeners.md prints for the milter is run here as it stands there."""

import smtplib
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.relay_daemon import Spamd
from tests.e2e.test_printed import in_place
from tests.servers.base import free_port, require
from tests.servers.postfix import Postfix, PostfixOptions, SmtpSink
from tests.servers.sendmail import Sendmail

SETTINGS = block("docs/listeners.md", '[milter]\nlisten = ["127.0.0.1:8026"]')
POSTFIX = block("docs/listeners.md", "smtpd_milters = inet:")
FOLDER = block("docs/listeners.md", "install -d -o spamd -g postfix")
UNIX_SETTINGS = block("docs/listeners.md", '[milter]\nlisten = ["unix:')
UNIT = block("docs/listeners.md", "[Service]\nReadWritePaths=/var/spool/postfix")
UNIX_POSTFIX = block("docs/listeners.md", "smtpd_milters = unix:")
SENDMAIL = block("docs/listeners.md", "INPUT_MAIL_FILTER(")


def filtering(stack: ExitStack, settings: str) -> None:
    """Start a daemon with printed settings of the milter."""
    stack.enter_context(Spamd("maildir://./unused", settings))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as servers:
        yield servers


def of_main_cf(text: str) -> dict[str, str]:
    """Return printed lines of main.cf."""
    return {key: value for key, _, value in (line.partition(" = ") for line in text.splitlines())}


def send(port: int) -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        client.sendmail("a@x.test", ["b@y.test"], made_up("spam", 1))


def assert_marked(mails: Sequence[bytes]) -> None:
    (mail,) = map(message_from_bytes, mails)
    assert len(mail.get_all("X-Spam-Status", [])) == 1
    assert mail["Message-ID"] == "<spam1@prizes.example>"


def test_postfix_as_printed(stack: ExitStack) -> None:
    require("postfix")
    port = free_port()
    filtering(stack, in_place(SETTINGS, [("8026", port)]))
    sink = stack.enter_context(SmtpSink())
    main = of_main_cf(in_place(POSTFIX, [("127.0.0.1:8026", f"127.0.0.1:{port}")]))
    main["relayhost"] = f"[127.0.0.1]:{sink.port}"
    postfix = stack.enter_context(Postfix(PostfixOptions(main=main)))
    send(postfix.port)
    assert_marked([mail.content for mail in sink.mails(at_least=1)])


def test_postfix_over_a_unix_socket_as_printed(stack: ExitStack) -> None:
    require("postfix")
    sink = stack.enter_context(SmtpSink())
    main = {**of_main_cf(UNIX_POSTFIX), "relayhost": f"[127.0.0.1]:{sink.port}"}
    postfix = stack.enter_context(Postfix(PostfixOptions(main=main)))
    queue = f"{postfix.directory}/queue"
    us = [("-o spamd", "-o root"), ("/var/spool/postfix", queue)]
    subprocess.run(in_place(FOLDER, us), shell=True, check=True, timeout=10)
    assert UNIT.split("ReadWritePaths=")[1].strip() == FOLDER.split()[-1]
    filtering(stack, in_place(UNIX_SETTINGS, [("/var/spool/postfix", queue)]))
    socket = Path(queue) / "spamd" / "milter"
    assert socket.stat().st_mode & 0o007 == 0
    assert socket.group() == "postfix"
    send(postfix.port)
    assert_marked([mail.content for mail in sink.mails(at_least=1)])


def test_sendmail_as_printed(stack: ExitStack) -> None:
    require("sendmail")
    require("smtp-sink")
    port = free_port()
    filtering(stack, in_place(SETTINGS, [("8026", port)]))
    sink = stack.enter_context(SmtpSink())
    line = in_place(SENDMAIL, [("8026", port)])
    sendmail = stack.enter_context(Sendmail(sink.port, line.strip()))
    send(sendmail.port)
    assert_marked([mail.content for mail in sink.mails(at_least=1)])
