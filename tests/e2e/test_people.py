"""People with wishes, on a real Postfix with aliases and a real Dovecot: who gets what.

The site rejects the surest spam. The domain wishes that nothing is rejected, carl that it is, anna
that nothing is ever called spam, and bob nothing.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import smtplib
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.relay_daemon import CHECKOUT, Spamd
from tests.e2e.test_printed import in_place
from tests.listeners.milter.mta import Mta
from tests.listeners.spamc.clients import request
from tests.servers.base import free_port, require
from tests.servers.dovecot import Dovecot
from tests.servers.postfix import PostfixFactory, PostfixOptions, relaying
from tests.waiting import wait_until

PRINTED = block("docs/users.md", "[users]\nenabled = true")
TABLE = block("docs/users.md", "info@example.org    anna@example.org")
AFTER = block("docs/users.md", "postmap hash:/etc/postfix/virtual")
LINES = "decision.minimum_ham = 5\ndecision.minimum_spam = 5\ndecision.reject = true\n"
NAMES = ("anna", "bob", "carl")
ALL = [f"{name}@example.org" for name in NAMES]


def settings(table: Path, *listening: str) -> str:
    printed = in_place(PRINTED, [("/etc/postfix/virtual", table)])
    return "\n".join([LINES, *listening, printed])


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("etc") / "virtual"
    path.write_text(TABLE)
    path.parent.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def taught(virtual: Path) -> Iterator[Path]:
    """Return a database in which ten mails of each label and the wishes stand."""
    daemon = Spamd("smtp://[::1]:9", settings(virtual))
    try:
        for label in ("spam", "ham"):
            folder = daemon.directory / label
            folder.mkdir()
            for number in range(10):
                (folder / f"{number}.eml").write_bytes(made_up(label, number))
            daemon.run("train", label, str(folder))
        daemon.run("user", "set", "info@example.org", "--never-tag")  # an alias of anna's
        daemon.run("user", "set", "@example.org", "--never-reject")
        daemon.run("user", "set", "carl", "--reject")
        yield daemon.directory / "spamd.sqlite"
    finally:
        daemon.close()


@pytest.fixture(scope="module")
def store() -> Iterator[Dovecot]:
    require("dovecot")
    with Dovecot(*NAMES) as server:
        yield server


Start = Callable[..., contextlib.AbstractContextManager[Spamd]]


@pytest.fixture
def started(taught: Path, virtual: Path) -> Start:
    """Start a daemon with the taught database in front of a next hop."""

    @contextlib.contextmanager
    def start(next_hop: str, *listening: str) -> Iterator[Spamd]:
        daemon = Spamd(next_hop, settings(virtual, *listening))
        shutil.copy(taught, daemon.directory / "spamd.sqlite")
        with daemon:
            yield daemon

    return start


def copies(store: Dovecot, subject: str) -> dict[str, list[str]]:
    """Return what each has of a mail: "flagged" or "plain" for each copy."""
    found: dict[str, list[str]] = {name: [] for name in NAMES}
    for name in NAMES:
        for path in store.maildir(name).glob("new/*"):
            text = path.read_text("utf-8", "replace")
            if f"Message-ID: <{subject}>" in text:
                found[name].append("flagged" if "X-Spam-Flag: YES" in text else "plain")
    return found


def spam(subject: str) -> bytes:
    return made_up("spam", 11).replace(b"<spam11@prizes.example>", f"<{subject}>".encode())


def lmtp(port: int, recipients: list[str], mail: bytes) -> list[int]:
    """Return the reply to each recipient."""
    with smtplib.LMTP("127.0.0.1", port) as client:
        client.ehlo("c.test")
        client.mail("a@x.test")
        for recipient in recipients:
            assert client.rcpt(recipient)[0] == 250
        client.docmd("DATA")
        client.send(mail + b"\r\n.\r\n")
        return [client.getreply()[0] for _ in recipients]


def test_over_lmtp_each_gets_their_own_fields_and_reply(store: Dovecot, started: Start) -> None:
    port = free_port()
    with started(f"lmtp://127.0.0.1:{store.lmtp_port}", f'relay.listen_lmtp = "127.0.0.1:{port}"'):
        assert lmtp(port, ALL, spam("by-lmtp")) == [250, 250, 550]
    assert copies(store, "by-lmtp") == {"anna": ["plain"], "bob": ["flagged"], "carl": []}


@pytest.mark.parametrize(
    ("rule", "all_get"),
    [
        ("split", {"anna": ["plain"], "bob": ["flagged"], "carl": ["flagged"]}),
        ("site", {key: ["flagged"] for key in NAMES}),
        ("single", {"anna": ["plain"], "bob": ["flagged"], "carl": []}),
    ],
)
def test_over_smtp_the_setting_says_what_all_get(
    store: Dovecot, started: Start, rule: str, all_get: dict[str, list[str]]
) -> None:
    with (
        started(
            f"lmtp://127.0.0.1:{store.lmtp_port}", f'relay.several_verdicts = "{rule}"'
        ) as daemon,
        smtplib.SMTP("127.0.0.1", daemon.port, timeout=60) as client,
    ):
        refused = client.sendmail("a@x.test", ALL, spam(rule))
        told = {name: code for name, (code, _) in refused.items()}
        if rule != "single":
            assert told == {}
        else:
            assert told == {"bob@example.org": 452, "carl@example.org": 452}
            assert client.sendmail("a@x.test", ["bob@example.org"], spam(rule)) == {}
            with pytest.raises(smtplib.SMTPDataError, match="550"):
                client.sendmail("a@x.test", ["carl@example.org"], spam(rule))
    assert copies(store, rule) == all_get


def test_a_postfix_in_front_tries_again_and_each_gets_one_copy_or_an_honest_refusal(
    store: Dovecot, started: Start, postfix: PostfixFactory
) -> None:
    """bob's mailbox can't be used for a while, nobody@ is not there: the mixed replies."""
    session = store.login("bob")
    session.select()  # his Maildir is made
    session.logout()
    aside = store.maildir("bob").with_name("aside")
    store.maildir("bob").rename(aside)
    store.maildir("bob").write_text("no Maildir")
    with started(f"lmtp://127.0.0.1:{store.lmtp_port}") as daemon:
        front = postfix(relaying(daemon.port))
        with smtplib.SMTP("127.0.0.1", front.port, timeout=60) as client:
            client.sendmail("a@x.test", [*ALL, "nobody@example.org"], spam("mixed"))
        wait_until(lambda: copies_of(store, "anna", "mixed"), what="anna's copy", deadline_s=60)
        wait_until(front.queue, what="bob waits")
        store.maildir("bob").unlink()
        aside.rename(store.maildir("bob"))
        wait_until(
            lambda: not [mail for mail in front.queue() if mail["sender"] == "a@x.test"],
            what="all are told", deadline_s=90,
        )  # fmt: skip
    assert copies(store, "mixed") == {"anna": ["plain"], "bob": ["flagged"], "carl": ["flagged"]}
    log = (front.directory / "mail.log").read_text()
    bounced = [line for line in log.splitlines() if "status=bounced" in line]
    assert {name for name in (*ALL, "nobody@example.org") if f"to=<{name}>" in str(bounced)} == {
        "nobody@example.org"
    }


def copies_of(store: Dovecot, name: str, subject: str) -> list[str]:
    return copies(store, subject)[name]


def test_a_stranger_with_postfix_and_its_alias_table_follows_what_is_printed(
    store: Dovecot, started: Start, postfix: PostfixFactory, virtual: Path
) -> None:
    """Postfix in front hands on aliases as they are; Postfix behind expands them by its table."""
    command, reload = in_place(AFTER, [("/etc/postfix/virtual", virtual)]).strip().split("\n")
    subprocess.run(command.split(), check=True, env={**os.environ, "MAIL_CONFIG": "/etc/postfix"})
    behind = postfix(
        PostfixOptions(
            main={
                "virtual_mailbox_domains": "example.org",
                "virtual_mailbox_maps": "",
                "recipient_delimiter": "+",
                "virtual_alias_maps": f"hash:{virtual}",
                "virtual_transport": f"lmtp:inet:127.0.0.1:{store.lmtp_port}",
            }
        )
    )
    with (
        started(f"smtp://127.0.0.1:{behind.port}") as daemon,
        smtplib.SMTP("127.0.0.1", daemon.port, timeout=60) as client,
    ):
        client.sendmail("a@x.test", ["Info+x@Example.org", "sales@example.org"], spam("aliases"))
        wait_until(lambda: copies_of(store, "bob", "aliases"), what="bob's", deadline_s=60)
        wait_until(lambda: copies_of(store, "anna", "aliases"), what="anna's", deadline_s=60)
        assert copies(store, "aliases") == {
            "anna": ["plain"], "bob": ["flagged"], "carl": [],
        }  # fmt: skip
        text = virtual.read_text()
        virtual.write_text(text.replace("sales@example.org   bob", "sales@example.org   anna"))
        assert reload == "systemctl reload spamd"
        subprocess.run(command.split(), check=True)
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: daemon.events("settings.reloaded"), what="it is read again")
        client.sendmail("a@x.test", ["sales@example.org"], spam("moved"))
        wait_until(lambda: copies_of(store, "anna", "moved"), what="anna's", deadline_s=60)
        assert copies(store, "moved")["anna"] == ["plain"]
        virtual.write_text("sales@example.org\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: daemon.events("reload.failed"), what="the mistake is told")
        (told,) = daemon.events("reload.failed")
        assert f"{virtual}: line 1: sales@example.org leads" in str(told["cause"])
    virtual.write_text(text)


# One table, all ways

USERS = {
    b"Info+x@Example.org": "unsure", b"info": "unsure", b"anna@example.org": "unsure",
    b"bob@example.org": "spam", b"Sales@example.org": "spam", b"else@example.org": "spam",
}  # fmt: skip
"""A recipient or login name, and what their mail is called."""


def _verdict(text: str) -> str:
    return text.partition("verdict=")[2].partition(" ")[0].strip('"')


def by_spamc(port: int, user: bytes) -> str:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("HEADERS", spam("spamc"), [f"User: {user.decode()}"]))
        writer.write_eof()
        try:
            return await reader.read()
        finally:
            writer.close()

    return _verdict(asyncio.run(ask()).decode())


def by_http(port: int, user: bytes) -> str:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/checkv2", spam("http"), {"Deliver-To": user.decode()}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        found = json.load(answer)
    return "spam" if found["action"] in {"add header", "rewrite subject", "reject"} else "unsure"


def by_milter(port: int, user: bytes) -> str:
    async def ask() -> str:
        mta = Mta(*await asyncio.open_connection("127.0.0.1", port))
        await mta.negotiate()
        await mta.client()
        await mta.envelope(f"<{user.decode()}>")
        outcome = await mta.content([(b"From", b" a@prizes.example")], spam("milter"))
        mta.writer.close()
        return _verdict(b"".join(value for _, value in outcome.header).decode())

    return asyncio.run(ask())


def test_one_user_is_the_same_by_every_way(store: Dovecot, started: Start) -> None:
    ports = [free_port() for _ in range(4)]
    ways = {"relay.listen_lmtp": ports[0], "spamc.listen": ports[1], "web.listen": ports[2]}
    lines = [f'{key} = "127.0.0.1:{port}"' for key, port in ways.items()]
    lines.append(f'milter.listen = "127.0.0.1:{ports[3]}"')
    with started(f"lmtp://127.0.0.1:{store.lmtp_port}", *lines):
        found = {
            (name, user): by(port, user)
            for name, by, port in (
                ("spamc", by_spamc, ports[1]), ("http", by_http, ports[2]),
                ("milter", by_milter, ports[3]),
            )
            for user in USERS
        }  # fmt: skip
    assert found == {
        (name, user): verdict
        for name in ("spamc", "http", "milter")
        for user, verdict in USERS.items()
    }


def test_a_mail_that_is_piped_is_for_the_account_that_pipes_it(
    store: Dovecot, started: Start
) -> None:
    port = free_port()
    with started(
        f"lmtp://127.0.0.1:{store.lmtp_port}", f'spamc.listen = "127.0.0.1:{port}"'
    ) as daemon:
        before = piped(daemon)
        daemon.run("user", "set", "root", "--never-tag")
        wait_until(lambda: piped(daemon) == "unsure", what="it follows")
    assert before == "spam"


def piped(daemon: Spamd) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", "--config", str(daemon.config), "filter"],
        input=spam("pipe"), capture_output=True, check=True, timeout=60,
        env={**daemon.environment(), "PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    return _verdict(done.stdout.decode())
