"""What docs/operations.md prints for Postfix, Exim and Dovecot is run here as it stands there.

Only addresses, ports and paths are put in place of the printed ones: `in_place` fails when what is
to be replaced does not stand there. Every fenced block of the three sections is used.
"""

import contextlib
import re
import smtplib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import CHECKOUT, Spamd
from tests.feedback.world import Owner
from tests.servers.base import free_port, require, wait_until
from tests.servers.dovecot import MASTER_PASSWORD, Dovecot
from tests.servers.exim import EximAdditions, EximFactory
from tests.servers.postfix import PostfixFactory, PostfixOptions, SmtpSinkFactory

OPERATIONS = (CHECKOUT / "docs/operations.md").read_text("utf-8")
FEW = "\n[decision]\nminimum_ham = 5\nminimum_spam = 5\n"
"""Verdicts after ten lessons; the only line that is ours."""


def printed(heading: str) -> list[str]:
    """Return the fenced blocks of a section."""
    section = OPERATIONS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def in_place(block: str, places: Sequence[tuple[str, object]]) -> str:
    """Return a block with what is true here in place of what is printed."""
    for there, here in places:
        assert there in block, f"{there!r} does not stand in:\n{block}"
        block = block.replace(there, str(here))
    return block


SETTINGS = next(block for block in printed("Install") if block.startswith("[relay]"))
POSTFIX = printed("In front of Postfix")
EXIM = printed("In front of Exim")
DOVECOT = printed("In front of Dovecot")


class Printed(Spamd):
    """`spamd serve` with the settings that are printed."""

    def __init__(self, settings: str, *, port: int) -> None:
        super().__init__("", port=port)
        self._printed = settings

    def configure(self) -> None:
        database = ("sqlite:////var/lib/spamd/spamd.db", self.database)
        text = self._printed
        if database[0] in text:
            text = in_place(text, [database])
        else:
            text += f'\n[database]\nurl = "{self.database}"\n'
        self.config.write_text(text + FEW)

    def teach(self) -> None:
        """Learn ten plain mails of each label."""
        for label in ("spam", "ham"):
            folder = self.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            self.run("train", label, str(folder))


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def taught(servers: ExitStack, settings: str, port: int) -> Printed:
    daemon = Printed(settings, port=port)
    servers.callback(daemon.close)
    daemon.teach()
    daemon.start()
    return daemon


def send_both(port: int, to: str) -> None:
    """Send a mail of each label."""
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        for label in ("spam", "ham"):
            client.sendmail("a@x.test", [to], made_up(label, 11))


def assert_judged(mails: Sequence[bytes]) -> None:
    """Hold mails to what must have become of the two that `send_both` sent."""
    flags = {}
    for mail in map(message_from_bytes, mails):
        assert len(mail.get_all("X-Spam-Status", [])) == 1
        flags[str(mail["Message-ID"])] = mail["X-Spam-Flag"]
    assert flags == {"<spam11@prizes.example>": "YES", "<ham11@work.example>": None}
    assert len(mails) == 2


def settings(port: int, next_hop: int) -> str:
    """Return the settings that are printed for a server that takes the mail back."""
    return in_place(SETTINGS, [("127.0.0.1:8025", f"127.0.0.1:{port}"), ("10025", next_hop)])


@pytest.mark.parametrize("way", ["before its queue", "behind its queue"])
def test_postfix_with_what_is_printed(
    postfix: PostfixFactory, smtp_sink: SmtpSinkFactory, servers: ExitStack, way: str
) -> None:
    master, after = POSTFIX
    sink, port, door, reentry = smtp_sink(), free_port(), free_port(), free_port()
    master = in_place(
        master,
        [("smtp      inet", f"127.0.0.1:{door} inet"), ("127.0.0.1:10025", f"127.0.0.1:{reentry}")],
    )
    main = {"relayhost": f"[127.0.0.1]:{sink.port}"}
    if way == "behind its queue":
        line = "    -o smtpd_proxy_filter=127.0.0.1:8025\n"
        master = in_place(master, [(line, "")])
        name, _, value = in_place(after.strip(), [("8025", port)]).partition(" = ")
        main[name] = value
    else:
        master = in_place(master, [("127.0.0.1:8025", f"127.0.0.1:{port}")])
    postfix(PostfixOptions(main=main, services=tuple(master.splitlines())))
    daemon = taught(servers, settings(port, reentry), port)
    send_both(door, "b@y.test")
    assert_judged([mail.content for mail in sink.mails(at_least=2)])
    assert len(daemon.events("message.scanned")) == 2


def test_exim_with_what_is_printed(exim: EximFactory, servers: ExitStack) -> None:
    main, router, transport = EXIM
    port = free_port()
    server = exim(
        lambda door, reentry: EximAdditions(
            main=in_place(main, [("0.0.0.0.25", f"127.0.0.1.{door}"), ("1.10025", f"1.{reentry}")]),
            router=in_place(router, [("10025", reentry)]),
            transport=in_place(transport, [("8025", port)]),
        )
    )
    daemon = taught(servers, settings(port, server.reentry_port), port)
    send_both(server.port, "b@y.test")
    wait_until(lambda: len(server.mails()) == 2, what="two mails in the Maildir")
    assert_judged(server.mails())
    assert len(daemon.events("message.scanned")) == 2


def test_dovecot_with_what_is_printed(
    postfix: PostfixFactory, servers: ExitStack, tmp_path: Path
) -> None:
    require("dovecot")
    require("sieve")
    toml, main, sieve_on, sieve = DOVECOT
    store = Dovecot("alice")
    rule = store.directory / "spamd.sieve"
    rule.write_text(sieve)
    store.directory.chmod(0o777)  # Dovecot writes the compiled rule beside it
    store.settings = in_place(sieve_on, [("/etc/dovecot/spamd.sieve", rule)])
    servers.enter_context(store)
    port, lmtp = free_port(), free_port()
    (tmp_path / "password").write_text(MASTER_PASSWORD)
    (tmp_path / "users").write_text("alice\n")
    here = in_place(
        toml,
        [
            ("[relay]\n", f'[relay]\nlisten = ["127.0.0.1:{port}"]\n'),
            ("8026", lmtp),
            ("/run/dovecot/lmtp", f"{store.directory}/run/lmtp"),
            ("port = 143", f"port = {store.port}"),
            ("/etc/spamd/imap.password", tmp_path / "password"),
            ("/etc/spamd/users", tmp_path / "users"),
        ],
    )
    daemon = taught(servers, here, port)
    name, _, value = in_place(main.strip(), [("8026", lmtp)]).partition(" = ")
    front = postfix(
        PostfixOptions(
            main={name: value, "mydestination": "t.test"},
            services=("local unix - n n - - local",),
        )
    )
    send_both(front.port, "alice@t.test")
    wait_until(lambda: len(daemon.events("message.scanned")) == 2, what="two mails are judged")
    junk, inbox = store.maildir("alice") / ".Junk", store.maildir("alice")
    wait_until(lambda: mails_in(junk) and mails_in(inbox), what="both mails are delivered")
    assert_judged([*mails_in(junk), *mails_in(inbox)])
    assert message_from_bytes(mails_in(junk)[0])["X-Spam-Flag"] == "YES"
    both = {"INBOX", "Junk"}  # what the very first look finds is old mail and teaches nothing
    wait_until(lambda: both <= folders_read(daemon), what="alice is watched")
    with store.login() as session:
        Owner(session).move("winner", "Junk", "INBOX")
    wait_until(lambda: daemon.events("lesson.learned"), what="the move is a lesson")
    (lesson,) = daemon.events("lesson.learned")
    assert (lesson["label"], lesson["source"]) == ("ham", "imap")


def folders_read(daemon: Printed) -> set[str]:
    """Return the folders that the watcher has read to the end."""
    path = daemon.database.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return {row[0] for row in connection.execute("SELECT folder FROM cursor")}


def mails_in(folder: Path) -> list[bytes]:
    files = [*(folder / "new").glob("*"), *(folder / "cur").glob("*")]
    return [file.read_bytes() for file in files]
