"""Clients of rspamd ask spamd, as docs/listeners.md prints it: rspamc, Haraka, Exim, curl."""

import json
import os
import re
import smtplib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.relay_daemon import Spamd
from tests.e2e.test_printed import in_place
from tests.servers.base import free_port, require
from tests.servers.exim import EximAdditions, EximFactory
from tests.servers.haraka import HarakaFactory
from tests.servers.postfix import SmtpSinkFactory

SETTINGS = block("docs/listeners.md", "[web]\nlisten")
COMMANDS = block("docs/listeners.md", "spamd password")
HARAKA = block("docs/listeners.md", "host = 127.0.0.1\nport = 11333")
EXIM_MAIN = block("docs/listeners.md", "spamd_address = 127.0.0.1 11333")
EXIM_ACL = block("docs/listeners.md", "  warn   remove_header")
DOVECOT_SCRIPT = block("docs/listeners.md", "#!/bin/sh\nexec curl")

PASSWORD = "correct horse"
FORGED = b"X-Spam-Flag: NO\r\nX-Spam-Status: No, score=-9\r\n"


class Web(Spamd):
    """`spamd serve` with the HTTP listener that is printed."""

    def __init__(self, more: str = "") -> None:
        super().__init__("smtp://127.0.0.1:9")
        self.web_port = free_port()
        self.password_file.write_text("")
        self._settings = f"{self.printed(SETTINGS)}\n{more}"

    @property
    def socket(self) -> Path:
        return self.directory / "web"

    @property
    def password_file(self) -> Path:
        return self.directory / "web.password"

    def printed(self, text: str) -> str:
        """Return what is printed with our places in it."""
        here = [
            ("127.0.0.1:11333", f"127.0.0.1:{self.web_port}"),
            ("/run/spamd/web", self.socket),
            ("/etc/spamd/web.password", self.password_file),
        ]
        return in_place(text, [(there, place) for there, place in here if there in text])

    def choose_password(self) -> None:
        """Write the password file, as printed but for the terminal."""
        line = self.printed(COMMANDS.splitlines()[0])
        done = self._typed(f"echo '{PASSWORD}' | {line}")
        assert done.returncode == 0, done.stderr

    def shell(self, script: str, message: bytes = b"") -> subprocess.CompletedProcess[str]:
        """Run lines in a folder that holds a message."""
        (self.directory / "message.eml").write_bytes(message)
        return self._typed(script)

    def _typed(self, script: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["/bin/sh", "-c", script], cwd=self.directory, capture_output=True, text=True,
            check=False, timeout=120, env={"PATH": path, "PASSWORD": PASSWORD},
        )  # fmt: skip


MINIMUM = "[decision]\nminimum_ham = 5\nminimum_spam = 5\n"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """Return a daemon that was taught a little."""
    daemon = Web(MINIMUM)
    try:
        daemon.choose_password()
        for label in ("spam", "ham"):
            folder = daemon.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            daemon.run("train", label, str(folder))
        daemon.start()
        yield daemon
    finally:
        daemon.close()


def line(web: Web, word: str) -> str:
    """Return the printed line that holds a word, as it runs here."""
    (found,) = [each for each in COMMANDS.splitlines() if word in each]
    return web.printed(found)


def rspamc(web: Web, *arguments: str, message: bytes) -> subprocess.CompletedProcess[str]:
    require("rspamc")
    call = ["rspamc", "-h", f"127.0.0.1:{web.web_port}", *arguments]
    return subprocess.run(
        call, input=message.decode(), capture_output=True, text=True, check=False, timeout=60
    )


def test_rspamc_as_printed_shows_the_verdict(web: Web) -> None:
    require("rspamc")
    spam = web.shell(line(web, "# the verdict"), made_up("spam", 11))
    ham = web.shell(line(web, "# the verdict"), made_up("ham", 11))
    assert (spam.returncode, ham.returncode) == (0, 0), spam.stdout
    assert "Action: add header\nSpam: true\n" in spam.stdout
    assert "Action: no action\nSpam: false\n" in ham.stdout
    assert re.search(r"Score: \d+\.\d+ / 5\.00", spam.stdout)
    assert "Symbol: SPAMD_GRAHAM (" in spam.stdout
    assert "Message-ID: spam11@prizes.example" in spam.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["-z"], ["--mime"], ["-j"], ["-i", "192.0.2.1", "-F", "a@x.test", "-r", "b@y.test"],
        ["--helo", "x.test", "--hostname", "mx.x.test", "-u", "ann", "-d", "ann@y.test"],
        ["--pass-all"], ["--header", "X-Extra=1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_rspamc_with_its_options_gets_the_same_verdict(web: Web, options: list[str]) -> None:
    done = rspamc(web, *options, "symbols", message=made_up("spam", 12))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'(?:Action: |-Action: |"action": ")add header', done.stdout), done.stdout


def test_rspamc_says_why_it_may_not_teach(web: Web) -> None:
    done = rspamc(web, "learn_spam", message=made_up("spam", 13))
    assert done.returncode == 1
    assert "HTTP error: 401, the password is missing or wrong" in done.stdout


def test_rspamc_as_printed_teaches_once_and_is_content_twice(web: Web) -> None:
    require("rspamc")
    teach = line(web, "learn_spam")
    first, second = (web.shell(teach, made_up("spam", 14)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stdout
    assert "success = true" in first.stdout
    assert "already learned as spam" in second.stdout
    assert web.events("lesson.learned")[-1]["source"] == "http"


def test_rspamc_as_printed_shows_what_was_scanned_and_learned(web: Web) -> None:
    require("rspamc")
    done = web.shell(line(web, " stat "))
    assert done.returncode == 0
    assert re.search(r"Messages scanned: \d+", done.stdout)
    assert re.search(r"Total learns: [2-9]\d", done.stdout)
    assert rspamc(web, "-P", PASSWORD, "uptime", message=b"").returncode == 0


def test_curl_and_the_script_for_dovecot_teach_by_the_unix_socket(web: Web) -> None:
    large = made_up("ham", 15) + b"line\r\n" * 300_000  # above 1 MB curl waits for 100 Continue
    learned = web.shell(line(web, "learnham"), large)
    assert json.loads(learned.stdout) == {"success": True}
    script = web.printed(DOVECOT_SCRIPT)
    done = web.shell(f"{script.splitlines()[1]} <message.eml", made_up("spam", 16))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"success": True})


def test_haraka_with_what_is_printed_marks_and_defers(
    web: Web, haraka: HarakaFactory, smtp_sink: SmtpSinkFactory
) -> None:
    sink = smtp_sink()
    ini = in_place(HARAKA, [("11333", web.web_port)])
    server = haraka(ini, sink.port)
    with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
        for label in ("spam", "ham"):
            client.sendmail("a@x.test", ["b@y.test", "c@y.test"], FORGED + made_up(label, 17))
    flags = {}
    for mail in map(message_from_bytes, (each.content for each in sink.mails(at_least=2))):
        assert len(mail.get_all("X-Spam-Status", [])) == 1
        flags[str(mail["Message-ID"])] = mail.get_all("X-Spam-Flag")
    assert flags == {"<spam17@prizes.example>": ["YES"], "<ham17@work.example>": None}
    assert web.events("message.scanned")[-1]["recipients"] == 2


def test_haraka_has_the_client_come_again_while_the_daemon_is_away(
    haraka: HarakaFactory, smtp_sink: SmtpSinkFactory
) -> None:
    sink = smtp_sink()
    server = haraka(in_place(HARAKA, [("11333", free_port())]), sink.port)
    with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
        with pytest.raises(smtplib.SMTPDataError) as refused:
            client.sendmail("a@x.test", ["b@y.test"], made_up("ham", 18))
        with suppress(smtplib.SMTPException):
            client.quit()
    assert 400 <= refused.value.smtp_code < 500


def test_haraka_refuses_what_is_to_be_rejected(
    haraka: HarakaFactory, smtp_sink: SmtpSinkFactory
) -> None:
    daemon = Web(f"{MINIMUM}reject = true\nreject_losses = [9.0, 0.0]\n")
    try:
        daemon.choose_password()
        for label in ("spam", "ham"):
            (daemon.directory / label).mkdir()
            for number in range(10):
                path = daemon.directory / label / f"{number}.eml"
                path.write_bytes(made_up(label, number))
            daemon.run("train", label, str(daemon.directory / label))
        daemon.start()
        sink = smtp_sink()
        server = haraka(in_place(HARAKA, [("11333", daemon.web_port)]), sink.port)
        with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
            with pytest.raises(smtplib.SMTPDataError) as refused:
                client.sendmail("a@x.test", ["b@y.test"], made_up("spam", 19))
            client.sendmail("a@x.test", ["b@y.test"], made_up("ham", 19))
        assert (refused.value.smtp_code, refused.value.smtp_error) == (550, b"Rejected as spam")
        assert len(sink.mails(at_least=1)) == 1
    finally:
        daemon.close()


def test_exim_with_what_is_printed_marks_by_the_protocol_before_http(
    web: Web, exim: EximFactory
) -> None:
    server = exim(
        lambda port, reentry: EximAdditions(
            main=f"daemon_smtp_ports = {port} : {reentry}\n"
            + in_place(EXIM_MAIN, [("127.0.0.1 11333", f"127.0.0.1 {web.web_port}")]),
            acl=f"{EXIM_ACL}  accept\n",
        )
    )
    with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
        for label in ("spam", "ham"):
            client.sendmail("a@x.test", ["b@y.test"], FORGED + made_up(label, 20))
    flags = {
        str(mail["Message-ID"]): mail.get_all("X-Spam-Flag")
        for mail in map(message_from_bytes, server.mails())
    }
    assert flags == {"<spam20@prizes.example>": ["YES"], "<ham20@work.example>": None}


def test_exim_with_what_is_printed_has_the_client_come_again_while_the_daemon_is_away(
    exim: EximFactory,
) -> None:
    server = exim(
        lambda port, reentry: EximAdditions(
            main=f"daemon_smtp_ports = {port} : {reentry}\n"
            + in_place(EXIM_MAIN, [("127.0.0.1 11333", f"127.0.0.1 {free_port()}")]),
            acl=f"{EXIM_ACL}  accept\n",
        )
    )
    with (
        smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client,
        pytest.raises(smtplib.SMTPDataError) as refused,
    ):
        client.sendmail("a@x.test", ["b@y.test"], made_up("ham", 21))
    assert 400 <= refused.value.smtp_code < 500
    assert not server.mails()


def test_learning_by_http_changes_the_next_verdict(web: Web) -> None:
    words = "quarterly sauna newsletter with birch twigs and towels"
    mails = [
        f"From: s{n}@sauna.example\r\nSubject: {words}\r\nMessage-ID: <{n}@sauna.example>\r\n"
        f"\r\n{words} {n}\r\n".encode()
        for n in range(8)
    ]
    before = rspamc(web, "symbols", message=mails[7])
    for mail in mails[:7]:
        assert rspamc(web, "-P", PASSWORD, "learn_spam", message=mail).returncode == 0
    after = rspamc(web, "symbols", message=mails[7])
    assert "Spam: false" in before.stdout
    assert "Spam: true" in after.stdout
