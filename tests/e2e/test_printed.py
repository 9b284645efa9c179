"""What docs/operations.md prints for Postfix, Exim and Dovecot is run here as it stands there.

Only addresses, ports and paths are put in place of the printed ones: `in_place` fails when what is
to be replaced does not stand there. Every fenced block of the three sections is used.
"""

import contextlib
import re
import smtplib
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.feedback_daemon import settled
from tests.e2e.relay_daemon import Spamd
from tests.feedback.world import Owner
from tests.servers.base import free_port, require
from tests.servers.dovecot import MASTER_PASSWORD, PASSWORD, Dovecot
from tests.servers.exim import EximAdditions, EximFactory
from tests.servers.postfix import Postfix, PostfixFactory, PostfixOptions, SmtpSink, SmtpSinkFactory
from tests.servers.stranger import Stranger, refused
from tests.waiting import wait_until

FEW = "\n[decision]\nminimum_ham = 5\nminimum_spam = 5\n"
"""Verdicts after ten lessons; the only line that is ours."""


def in_place(block: str, places: Sequence[tuple[str, object]]) -> str:
    """Return a block with what is true here in place of what is printed."""
    for there, here in places:
        assert there in block, f"{there!r} does not stand in:\n{block}"
        block = block.replace(there, str(here))
    return block


SETTINGS = block("docs/operations.md", '[relay]\nlisten = ["127.0.0.1:8025"]')
POSTFIX = block("docs/operations.md", "smtp      inet")
POSTFIX_AFTER = block("docs/operations.md", "content_filter =")
EXIM_MAIN = block("docs/operations.md", "local_interfaces =")
EXIM_ROUTER = block("docs/operations.md", "to_spamd:")
EXIM_TRANSPORT = block("docs/operations.md", "spamd:")
DOVECOT = block("docs/operations.md", "[relay]\nlisten_lmtp")
DOVECOT_FRONT = block("docs/operations.md", "mailbox_transport =")
DOVECOT_SIEVE = block("docs/operations.md", "protocol lmtp {")
SIEVE = block("docs/operations.md", 'require ["fileinto"')
COMPILED = block("docs/operations.md", "sievec ")
MX = block("docs/operations.md", '[relay]\nlisten = ["0.0.0.0:25"')
MX_POSTFIX = block("docs/operations.md", "127.0.0.1:10025 inet n - y")
ACCOUNTS = block("docs/training.md", "[[feedback.accounts]]")
REPORTS = block("docs/training.md", "[feedback]\nspam_addresses")
ELSEWHERE = "victim@elsewhere.example"


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


def send_both(port: int, to: str, host: str = "127.0.0.1") -> None:
    """Send a mail of each label."""
    with smtplib.SMTP(host, port, timeout=60) as client:
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


DEBIAN = {
    "mynetworks": "127.0.0.0/8 [::ffff:127.0.0.0]/104 [::1]/128",
    "smtpd_relay_restrictions": (
        "permit_mynetworks permit_sasl_authenticated defer_unauth_destination"
    ),
    "mydestination": "",
    "relay_domains": "y.test",
    "relay_transport": "smtp",
}
"""What Debian's package sets, for a server that takes mail for y.test."""


def assert_refused_elsewhere(stranger: Stranger, port: int, local: str) -> None:
    """Play the stranger who wants to send elsewhere; what is for here is taken from him."""
    assert refused(stranger.asks(port, ELSEWHERE)), "an open relay"
    for address in (f"victim%elsewhere.example@{local.partition('@')[2]}", f"@y.test:{ELSEWHERE}"):
        assert refused(stranger.asks(port, address)), f"an open relay by {address}"
    assert stranger.asks(port, local).startswith("250")


@pytest.mark.parametrize("way", ["before its queue", "behind its queue"])
def test_j1_postfix_with_what_is_printed(
    postfix: PostfixFactory,
    smtp_sink: SmtpSinkFactory,
    servers: ExitStack,
    stranger: Stranger,
    way: str,
) -> None:
    master = POSTFIX
    sink, port, door, reentry = smtp_sink(), free_port(), free_port(), free_port()
    master = in_place(
        master,
        [
            ("smtp      inet", f"{stranger.host}:{door} inet"),
            ("127.0.0.1:10025", f"127.0.0.1:{reentry}"),
        ],
    )
    main = {"relayhost": f"[127.0.0.1]:{sink.port}", **DEBIAN}
    if way == "behind its queue":
        line = "    -o smtpd_proxy_filter=127.0.0.1:8025\n"
        master = in_place(master, [(line, "")])
        name, _, value = in_place(POSTFIX_AFTER.strip(), [("8025", port)]).partition(" = ")
        main[name] = value
    else:
        master = in_place(master, [("127.0.0.1:8025", f"127.0.0.1:{port}")])
    postfix(PostfixOptions(main=main, services=tuple(master.splitlines())))
    daemon = taught(servers, settings(port, reentry), port)
    assert_refused_elsewhere(stranger, door, "b@y.test")
    assert "refused" in stranger.says(reentry, "NOOP")[0]
    send_both(door, "b@y.test", host=stranger.host)
    assert_judged([mail.content for mail in sink.mails(at_least=2)])
    assert len(daemon.events("message.scanned")) == 2


def test_j1_exim_with_what_is_printed(
    exim: EximFactory, servers: ExitStack, stranger: Stranger
) -> None:
    port = free_port()
    server = exim(
        lambda door, reentry: EximAdditions(
            main=in_place(
                EXIM_MAIN,
                [
                    ("0.0.0.0.25", f"127.0.0.1.{door} ; {stranger.host}.{door}"),
                    ("127.0.0.1.10025", f"127.0.0.1.{reentry}"),
                ],
            ),
            router=in_place(EXIM_ROUTER, [("10025", reentry)]),
            transport=in_place(EXIM_TRANSPORT, [("8025", port)]),
        )
    )
    daemon = taught(servers, settings(port, server.reentry_port), port)
    send_both(server.port, "b@y.test")
    wait_until(lambda: len(server.mails()) == 2, what="two mails in the Maildir")
    assert_judged(server.mails())
    assert len(daemon.events("message.scanned")) == 2
    assert_refused_elsewhere(stranger, server.port, "b@y.test")
    assert "refused" in stranger.says(server.reentry_port, "NOOP")[0]


def test_j14_dovecot_with_what_is_printed(
    postfix: PostfixFactory, servers: ExitStack, tmp_path: Path, stranger: Stranger
) -> None:
    require("dovecot")
    require("sieve")
    store = Dovecot("alice")
    folder = store.directory / "etc"  # root's, as /etc/dovecot is: nobody else writes there
    folder.mkdir()
    rule = folder / "spamd.sieve"
    rule.write_text(SIEVE)
    store.settings = in_place(DOVECOT_SIEVE, [("/etc/dovecot/spamd.sieve", rule)])
    servers.enter_context(store)
    steps = in_place(
        COMPILED,
        [("/etc/dovecot", folder), ("sievec ", f"sievec -c {store.directory}/dovecot.conf ")],
    )
    subprocess.run(["/bin/sh", "-euc", f"umask 077\n{steps}"], check=True, timeout=60)
    port, lmtp, door = free_port(), free_port(), free_port()
    (tmp_path / "password").write_text(MASTER_PASSWORD)
    (tmp_path / "users").write_text("alice\n")
    here = in_place(
        DOVECOT,
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
    name, _, value = in_place(DOVECOT_FRONT.strip(), [("8026", lmtp)]).partition(" = ")
    front = postfix(
        PostfixOptions(
            main={**DEBIAN, name: value, "mydestination": "t.test", "relay_domains": ""},
            services=(
                "local unix - n n - - local",
                f"{stranger.host}:{door} inet n - n - - smtpd",
            ),
        )
    )
    send_both(front.port, "alice@t.test")
    wait_until(lambda: len(daemon.events("message.scanned")) == 2, what="two mails are judged")
    junk, inbox = store.maildir("alice") / ".Junk", store.maildir("alice")
    wait_until(lambda: mails_in(junk) and mails_in(inbox), what="both mails are delivered")
    assert_judged([*mails_in(junk), *mails_in(inbox)])
    assert message_from_bytes(mails_in(junk)[0])["X-Spam-Flag"] == "YES"
    faults = [
        line
        for line in store.log_text().splitlines()
        if re.search("error|failed", line, re.IGNORECASE)
    ]
    assert faults == []
    assert_refused_elsewhere(stranger, door, "alice@t.test")
    assert "refused" in stranger.says(lmtp, "NOOP")[0]
    both = {"INBOX", "Junk"}  # what the very first look finds is old mail and teaches nothing
    wait_until(lambda: both <= folders_read(daemon), what="alice is watched")
    database = Path(daemon.database.removeprefix("sqlite:///"))
    wait_until(lambda: settled(database, 1, "Junk"), what="its mail is seen long enough")
    with store.login() as session:
        Owner(session).move("winner", "Junk", "INBOX")
    wait_until(lambda: daemon.events("lesson.learned"), what="the move is a lesson")
    (lesson,) = daemon.events("lesson.learned")
    assert (lesson["label"], lesson["source"]) == ("ham", "imap")


class Mx(NamedTuple):
    """The printed set-up of an MX: the stranger's port, the daemon, the server behind it."""

    port: int
    daemon: Printed
    server: Postfix


def mx(
    postfix: PostfixFactory,
    servers: ExitStack,
    stranger: Stranger,
    tmp_path: Path,
    *,
    master: str = MX_POSTFIX,
    toml: str = MX,
) -> Mx:
    port, reentry = free_port(), free_port()
    sink = servers.enter_context(SmtpSink())
    master = in_place(master, [("127.0.0.1:10025", f"127.0.0.1:{reentry}")])
    server = postfix(
        PostfixOptions(
            main={**DEBIAN, "relayhost": f"[127.0.0.1]:{sink.port}"},
            services=tuple(master.splitlines()),
        )
    )  # fmt: skip
    certificate = tmp_path / "mail.pem"
    trustme.CA().issue_cert("mx.test").private_key_and_cert_chain_pem.write_to_path(certificate)
    toml = in_place(
        toml,
        [
            ('"0.0.0.0:25", "[::]:25"', f'"{stranger.host}:{port}", "127.0.0.1:{port}"'),
            ("10025", reentry),
            ("/etc/ssl/mail.pem", certificate),
        ],
    )
    return Mx(port, taught(servers, toml, port), server)


def test_j1_an_mx_with_what_is_printed(
    postfix: PostfixFactory, servers: ExitStack, stranger: Stranger, tmp_path: Path
) -> None:
    port, daemon, server = mx(postfix, servers, stranger, tmp_path)
    assert_refused_elsewhere(stranger, port, "b@y.test")
    server.wait_for_log(f"from unknown[{stranger.address}]: 454 4.7.1 <{ELSEWHERE}>")
    send_both(port, "b@y.test", host=stranger.host)
    wait_until(lambda: len(daemon.events("message.scanned")) == 2, what="two mails are judged")
    told = daemon.run("doctor", "--json", "--wait", "1", codes=(3,))
    assert '"step": "open relay", "state": "fine"' in told
    assert daemon.events("next_hop.unsafe") == []


def test_j1_an_mx_without_the_line_of_xclient_takes_no_mail(
    postfix: PostfixFactory, servers: ExitStack, stranger: Stranger, tmp_path: Path
) -> None:
    line = "    -o smtpd_authorized_xclient_hosts=127.0.0.1\n"
    master = in_place(MX_POSTFIX, [(line, "")])
    port, daemon, _ = mx(postfix, servers, stranger, tmp_path, master=master)
    assert stranger.asks(port, ELSEWHERE).startswith("421 4.3.5 ")
    assert stranger.asks(port, "b@y.test").startswith("421 4.3.5 ")
    wait_until(lambda: daemon.events("session.failed"), what="the log says it")
    assert "XCLIENT" in str(daemon.events("session.failed")[0]["cause"])
    wait_until(
        lambda: daemon.events("next_hop.not_identified"), what="the log says it at the start"
    )
    assert "smtpd_authorized_xclient_hosts" in daemon.run("doctor", "--wait", "1", codes=(3,))
    assert "smtpd_authorized_xclient_hosts" in daemon.run("status")


def test_j1_an_mx_whose_server_trusts_us_and_is_not_told_the_client_is_called_an_open_relay(
    postfix: PostfixFactory, servers: ExitStack, stranger: Stranger, tmp_path: Path
) -> None:
    line = "xclient = true                 # the server sees the real client, and decides by it\n"
    toml = in_place(MX, [(line, "")])
    port, daemon, _ = mx(postfix, servers, stranger, tmp_path, toml=toml)
    assert stranger.asks(port, ELSEWHERE).startswith("250")
    wait_until(lambda: daemon.events("next_hop.unsafe"), what="the log says it")
    assert "OPEN RELAY" in daemon.run("doctor", "--wait", "1", codes=(1, 3))
    assert "OPEN RELAY" in daemon.run("status")


def test_j12_accounts_as_printed_are_watched(servers: ExitStack, tmp_path: Path) -> None:
    require("dovecot")
    store = servers.enter_context(Dovecot("ann"))
    (tmp_path / "password").write_text(PASSWORD)
    bob = tmp_path / "bob"
    for folder in ("cur", "new", "tmp"):
        (bob / folder).mkdir(parents=True)
    host = f'host = "localhost"\nport = {store.port}\nca_file = "{store.authority}"'
    here = in_place(
        ACCOUNTS,
        [
            ('host = "imap.example.org"', host),
            ("/etc/spamd/ann.password", tmp_path / "password"),
            ("/var/mail/bob", bob),
        ],
    )
    port = free_port()
    daemon = taught(servers, f'relay.listen = "127.0.0.1:{port}"\n{here}', port)
    wait_until(lambda: len(daemon.events("account.opened")) == 2, what="both are watched")


def test_j12_report_addresses_as_printed_take_reports(servers: ExitStack) -> None:
    port = free_port()
    door = f'relay.listen = "127.0.0.1:{port}"\nrelay.report_networks = "127.0.0.1"\n'
    taught(servers, door + REPORTS, port)
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        client.ehlo()
        for address in ("spam@example.org", "ham@example.org"):
            client.mail("ann@example.org")
            assert client.rcpt(address) == (250, b"2.1.5 Report address OK")
            client.rset()


def folders_read(daemon: Printed) -> set[str]:
    """Return the folders that the watcher has read to the end."""
    path = daemon.database.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return {row[0] for row in connection.execute("SELECT folder FROM cursor")}


def mails_in(folder: Path) -> list[bytes]:
    files = [*(folder / "new").glob("*"), *(folder / "cur").glob("*")]
    return [file.read_bytes() for file in files]
