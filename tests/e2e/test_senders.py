"""Senders through the running daemon: forged ones are not let in, answers from known people are.

Border and results are as a Postfix with milters in front of us writes them; the settings are those
that docs/lists.md prints.
"""

import http.client
import json
import smtplib
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.relay_daemon import Spamd
from tests.message.authentication.test_proof import BORDER, DMARC, OURS
from tests.servers.base import free_port
from tests.waiting import wait_until

TRUST = block("docs/lists.md", "[auth]\ntrusted")
FRIEND = "friend@else.example"
FORGED = {
    "the sender": (OURS + "dmarc=fail header.from=shop.example", BORDER, "From: news@shop.example"),
    "an own domain": (OURS + "spf=fail", BORDER, "From: boss@example.org"),
    "a look-alike": (OURS + "dmarc=pass header.from=sh0p.example", BORDER, "From: a@sh0p.example"),
    "results": (
        DMARC.replace("mx.example.org", "mx.evil.example"),
        BORDER,
        "From: news@shop.example",
    ),
    "two From fields": (DMARC, BORDER, "From: news@shop.example", "From: x@evil.example"),
    "two addresses": (DMARC, BORDER, "From: news@shop.example, x@evil.example"),
    "a display name": (
        OURS + "dmarc=pass header.from=evil.example",
        BORDER,
        'From: "news@shop.example" <x@evil.example>',
    ),
}


class Daemon(Spamd):
    """The daemon with relay and HTTP in front of a Maildir."""

    def __init__(self) -> None:
        super().__init__("maildir://./unused")
        self.web = free_port()
        self.next_hop = f"maildir://{self.directory}/mail"
        self._settings = (
            f'web.listen = "127.0.0.1:{self.web}"\n'
            "users.enabled = true\nknown.own = 10.0\n"
            "decision.minimum_ham = 5\ndecision.minimum_spam = 5\n"
            f'{TRUST}own_domains = ["example.org"]\n'
        )

    def sent(self, *fields: str, words: bytes) -> dict[str, str]:
        """Send a mail to anna and return the fields that it is delivered with."""
        before = set(self.directory.glob("mail/**/new/*"))
        content = "\r\n".join([*fields, "Subject: offer", "To: anna@example.org", "", ""]).encode()
        with smtplib.SMTP("127.0.0.1", self.port, timeout=60) as client:
            client.sendmail("a@x.test", ["anna@example.org"], content + words)
        (there,) = set(self.directory.glob("mail/**/new/*")) - before
        return dict(message_from_bytes(there.read_bytes()).items())

    def asked(self, mail: bytes, **fields: str) -> None:
        """Let a mail server ask about a mail by HTTP."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.web, timeout=60)) as connection:
            connection.request("POST", "/checkv2", mail, fields)
            with connection.getresponse() as answer:
                assert answer.status == 200, answer.read()


WORDS = made_up("spam", 5).partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    here = Daemon()
    try:
        for label in ("spam", "ham"):
            folder = here.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            here.run("train", label, str(folder))
        for name in ("news@shop.example", "shop.example", "example.org"):
            here.run("allow", "add", name)
        here.start()
        yield here
    finally:
        here.close()


def test_the_genuine_sender_is_let_in(daemon: Daemon) -> None:
    fields = daemon.sent(DMARC, BORDER, "From: news@shop.example", words=WORDS)
    assert "X-Spam-Flag" not in fields
    assert "allow entry" in fields["X-Spam-Status"]


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_is_marked_as_spam_all_the_same(daemon: Daemon, name: str) -> None:
    fields = daemon.sent(*FORGED[name], words=WORDS)
    assert fields["X-Spam-Flag"] == "YES", fields["X-Spam-Status"]


def mail_of(*fields: str) -> bytes:
    return "\r\n".join([*fields, "Subject: offer", "", ""]).encode() + WORDS


def test_who_was_written_to_is_known_to_the_writer_and_forged_mail_is_told(daemon: Daemon) -> None:
    answer = (OURS + "dmarc=pass header.from=else.example", BORDER, f"From: {FRIEND}")
    forged = (OURS + "dmarc=fail header.from=else.example", BORDER, f"From: {FRIEND}")
    anna = "anna@example.org"

    def known(*fields: str, to: str = anna) -> tuple[object, object, bool]:
        """Return what the log says of a mail's sender, its verdict, and whether that turned it."""
        daemon.asked(mail_of(*fields), From=FRIEND, Rcpt=to)
        line = daemon.events("message.scanned")[-1]
        turned = "its reader has written to its sender" in str(line["reason"])
        return line["known_sender"], line["verdict"], turned

    assert known(*answer) == ("", "spam", False)
    daemon.asked(made_up("ham", 3), User=anna, From=anna, Rcpt=FRIEND)
    wait_until(lambda: known(*answer) == ("own", "ham", True), what="a known friend", pause_s=0.5)
    assert known(*answer, to="bob@example.org") == ("others", "spam", False)
    assert known(*forged) == ("forged", "spam", False)
    assert "its reader has written" in daemon.sent(*answer, words=WORDS)["X-Spam-Status"]
    file = daemon.directory / "answer.eml"
    file.write_bytes(mail_of(*answer))
    explained = daemon.run("explain", str(file))
    assert "somebody here has written to its sender (-1.00)" in explained
    assert json.loads(daemon.run("explain", "--json", str(file)))["sender"]["adds"] == -1.0
