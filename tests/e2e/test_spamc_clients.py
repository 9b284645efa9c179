"""Other clients than spamc: aiospamc, Exim's spam condition, isbg; and what we print for them."""

import imaplib
import json
import os
import re
import smtplib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.test_printed import in_place
from tests.e2e.test_spamc import HAM, SPAM, Ours
from tests.servers.base import SPAMC_CLIENTS, require
from tests.servers.dovecot import PASSWORD, Dovecot
from tests.servers.exim import EximAdditions, EximFactory
from tests.servers.spamassassin import SPAMC, SpamAssassin, spamassassin, spamc
from tests.waiting import wait_until

__all__ = ["spamassassin"]

SETTINGS = block("docs/listeners.md", '[spamc]\nlisten = ["127.0.0.1:783"')
TYPED = block("docs/listeners.md", "spamc -K")
EXIM_MAIN = block("docs/listeners.md", "spamd_address = 127.0.0.1 783")
EXIM_ACL = block("docs/listeners.md", "  warn  remove_header")
ISBG = block("docs/listeners.md", "isbg --imaphost")


class Printed(Ours):
    """`spamd serve` with the settings that are printed."""

    def configure(self) -> None:
        super().configure()
        settings = in_place(
            SETTINGS,
            [("127.0.0.1:783", f"127.0.0.1:{self.spamc_port}"), ("/run/spamd/spamc", self.socket)],
        )
        self.config.write_text(
            f'{settings}\nlisten = "127.0.0.1:{self.port}"\n[next_hop]\nurl = "{self.next_hop}"\n'
            f'[database]\nurl = "{self.database}"\n'
            "[decision]\nminimum_ham = 5\nminimum_spam = 5\n"
        )


@pytest.fixture(scope="module")
def ours() -> Iterator[Printed]:
    """Return spamd with the printed settings, taught ten of each label by spamc."""
    require("spamassassin")
    with Printed() as daemon:
        for number in range(10, 22):
            for label in ("spam", "ham"):
                spamc("-p", str(daemon.spamc_port), "-L", label, mail=made_up(label, number))
        yield daemon


@pytest.fixture
def programs(ours: Printed, tmp_path: Path) -> Path:
    """Return a folder with a spamc that asks our daemon."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return _spamc_in(folder, ours.spamc_port)


def _spamc_in(folder: Path, port: int) -> Path:
    """Put a spamc that asks a port into a folder."""
    (folder / "spamc").write_text(f'#!/bin/sh\nexec {SPAMC} -p {port} "$@"\n')
    (folder / "spamc").chmod(0o755)
    return folder


def test_what_is_printed_for_spamc_does_what_stands_beside_it(
    programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "message.eml").write_bytes(SPAM)
    said = ""
    for line in TYPED.splitlines():
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": f"{programs}:/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == (" -c " in line), done
        said += done.stdout
    assert said.startswith("SPAMD/1.5 0\n")
    assert re.search(r"^[0-9]+\.[0-9]/5\.0$", said, re.MULTILINE)
    assert "SPAMD_SPAM,BAYES_99," in said
    assert "What each classifier says" in said
    assert said.endswith("Message successfully un/learned\n")
    assert b"X-Spam-Flag: YES\n" in (tmp_path / "marked.eml").read_bytes()


AIOSPAMC = """
import asyncio, json, sys
import aiospamc
from loguru import logger
logger.remove()
port, mail = int(sys.argv[1]), sys.stdin.buffer.read()

def shape(answer):
    headers = {name: str(value) for name, value in answer.headers.items()}
    spam = answer.headers.get("Spam")
    if spam is not None:
        headers["Spam"] = [spam.value, spam.threshold]
    body = answer.body
    if mail.partition(b"\\n\\n")[2] in body:
        body = b"<mail>"
    length = headers.pop("Content-length", None)
    assert length is None or answer.headers["Content-length"].length == len(answer.body)
    return [answer.version, int(answer.status_code), answer.message, sorted(headers.items()),
            length is None, len(body) > 20, body == b"<mail>"]

async def main():
    found = {}
    for compress in (False, True):
        options = dict(host="127.0.0.1", port=port, compress=compress)
        for verb in (aiospamc.check, aiospamc.headers, aiospamc.process, aiospamc.report,
                     aiospamc.report_if_spam, aiospamc.symbols):
            found[f"{verb.__name__} {compress}"] = shape(await verb(mail, **options))
        for kind, action in (("spam", "set"), ("spam", "set"), ("spam", "remove")):
            place = {"remove_action" if action == "remove" else "set_action": aiospamc.ActionOption(local=True, remote=False)}
            answer = await aiospamc.tell(mail, message_class=kind, **place, **options)
            found.setdefault(f"tell {compress}", []).append(shape(answer))
    found["ping"] = shape(await aiospamc.ping(host="127.0.0.1", port=port))
    print(json.dumps(found, default=str))

asyncio.run(main())
"""  # noqa: E501 - a program of its own


@pytest.mark.parametrize("mail", [SPAM, HAM], ids=["spam", "ham"])
def test_aiospamc_reads_the_same_of_us_as_of_spamassassin(
    ours: Printed, spamassassin: SpamAssassin, mail: bytes
) -> None:
    require("spamc-clients")
    told, answers = mail + b"by aiospamc\n", []
    for port in (spamassassin.port, ours.spamc_port):
        done = subprocess.run(
            [sys.executable, "-c", AIOSPAMC, str(port)], input=told, capture_output=True,
            check=False, timeout=100, env={"PYTHONPATH": str(SPAMC_CLIENTS)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        answers.append(json.loads(done.stdout))
    theirs, of_us = answers
    assert of_us.keys() == theirs.keys()
    for asked in theirs:
        assert of_us[asked] == theirs[asked], asked


def test_exim_marks_and_refuses_mail_by_our_answer(ours: Printed, exim: EximFactory) -> None:
    def additions(port: int, reentry_port: int) -> EximAdditions:
        main = in_place(EXIM_MAIN, [("127.0.0.1 783", f"127.0.0.1 {ours.spamc_port}")])
        listen = f"local_interfaces = <; 127.0.0.1.{port} ; 127.0.0.1.{reentry_port}\n"
        return EximAdditions(main=listen + main, acl=EXIM_ACL + "  accept\n")

    server = exim(additions)
    scanned = len(ours.events("message.scanned"))
    forged = b"X-Spam-Flag: YES\r\nX-Spam-Status: Yes\r\n"

    def send(content: bytes) -> tuple[int, bytes]:
        with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
            client.ehlo()
            client.mail("sender@work.example")
            client.rcpt("bob@y.test")
            client.rcpt("carol@y.test")
            return client.data(content)

    assert send(forged + made_up("ham", 40))[0] == 250
    refused = send(made_up("spam", 41))
    assert refused[0] == 550
    assert b"looks like spam" in refused[1]
    wait_until(server.mails, what="the ham is delivered")
    (mail, *_) = server.mails()
    header = mail.partition(b"\n\n")[0]
    assert header.count(b"X-Spam-Status: No, score=-") == 1
    assert b"X-Spam-Flag" not in header
    events = ours.events("message.scanned")[scanned:]
    assert [event["verdict"] for event in events] == ["ham", "spam"]
    assert [event["recipients"] for event in events] == [2, 2]


def test_exim_lets_mail_pass_while_nobody_is_there(ours: Printed, exim: EximFactory) -> None:
    def additions(port: int, reentry_port: int) -> EximAdditions:
        main = in_place(EXIM_MAIN, [("127.0.0.1 783", "127.0.0.1 9")])
        listen = f"local_interfaces = <; 127.0.0.1.{port} ; 127.0.0.1.{reentry_port}\n"
        return EximAdditions(main=listen + main, acl=EXIM_ACL + "  accept\n")

    server = exim(additions)
    with smtplib.SMTP("127.0.0.1", server.port, timeout=60) as client:
        client.sendmail("sender@work.example", ["bob@y.test"], made_up("spam", 42))
    wait_until(server.mails, what="the mail is delivered")


def test_isbg_does_with_us_what_it_does_with_spamassassin(
    ours: Printed, spamassassin: SpamAssassin, tmp_path: Path
) -> None:
    require("dovecot")
    require("spamc-clients")
    theirs = _isbg(spamassassin.port, tmp_path / "theirs")
    before = len(ours.events("lesson.learned"))
    assert _isbg(ours.spamc_port, tmp_path / "ours") == theirs
    printed, (subject,) = theirs
    assert "1/1 spams learned" in printed
    assert "1 spams found in 2 messages" in printed
    assert b"Subject: " + subject in SPAM
    lessons = ours.events("lesson.learned")[before:]
    assert {(lesson["label"], lesson["source"]) for lesson in lessons} == {
        ("spam", "spamc"), ("ham", "spamc"),
    }  # fmt: skip


def _isbg(port: int, folder: Path) -> tuple[str, list[bytes]]:
    """Run the printed command on a mailbox; return what it prints, and the subjects in Junk."""
    folder.mkdir()
    _spamc_in(folder, port)
    with Dovecot() as dovecot, _inbox(dovecot) as imap:
        for name, mail in (
            ("INBOX", SPAM), ("INBOX", HAM), ("Junk/Learn", made_up("spam", 52)),
            ("Junk/Ham", made_up("ham", 53)),
        ):  # fmt: skip
            imap.append(name, "", "", mail.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
        command = in_place(
            ISBG,
            [
                ("isbg ", f"{sys.executable} -m isbg --nossl --imapport {dovecot.port} "),
                ("imap.example.org", "127.0.0.1"),
                ("--imapuser ann", "--imapuser alice"),
            ],
        )
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PASSWORD": PASSWORD,
            "PYTHONPATH": str(SPAMC_CLIENTS),
        }
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True,
            text=True, check=False, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr, _subjects(imap, "Junk")


def _inbox(dovecot: Dovecot) -> imaplib.IMAP4:
    imap = imaplib.IMAP4("127.0.0.1", dovecot.port)
    imap.login("alice", PASSWORD)
    for folder in ("Junk/Learn", "Junk/Ham"):
        imap.create(folder)
    return imap


def _subjects(imap: imaplib.IMAP4, folder: str) -> list[bytes]:
    imap.select(folder)
    found = imap.fetch("1:*", "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])")[1]
    return [row[1].split(b":")[1].strip() for row in found if isinstance(row, tuple)]
