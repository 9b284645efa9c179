"""The whole loop on real servers: SMTP in, LMTP to Dovecot, a person moves it, the next counts."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.feedback_daemon import CHECKOUT, Daemon, delivered, lesson_mails, probability
from tests.feedback.world import Owner
from tests.servers.dovecot import MASTER, MASTER_PASSWORD, DovecotFactory
from tests.waiting import wait_until, within_s


@pytest.fixture
def start(dovecot: DovecotFactory, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a Dovecot and a daemon before it that knows a little of spam and ham."""
    with ExitStack() as stack:

        def started(**kwargs: str) -> Daemon:
            daemon = Daemon(dovecot(), **kwargs)
            stack.callback(daemon.close)
            daemon.configure()
            for label in ("spam", "ham"):
                spamd(daemon, "train", label, str(lesson_mails(tmp_path, label)))
            daemon.start()
            return daemon

        yield started


def spamd(daemon: Daemon, *arguments: str) -> str:
    """Run a command on the daemon's settings; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "spamd", *arguments, "--config", str(daemon.config)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def strange(number: int) -> bytes:
    """Return a mail about something that was never taught, each number another copy of it."""
    return (
        f"Message-ID: <strange{number}@quux.test>\r\nFrom: Zed <zed{number}@quux.test>\r\n"
        f"Subject: wombat {number}\r\n\r\nBuy wombats, marsupials and quokkas by the dozen.\r\n"
        f"Every kangaroo included. Copy {number}.\r\n"
    ).encode()


def test_a_mail_moved_to_junk_changes_the_running_verdict_within_five_seconds(
    start: Callable[..., Daemon],
) -> None:
    daemon = start()
    wait_until(lambda: daemon.events("account.opened"), what="the account is watched")
    daemon.send(strange(0))
    daemon.send(strange(1))  # the numbers are words too: what they do alone is no lesson
    before = max(probability(delivered(daemon.dovecot, f"wombat {n}")[0]) for n in (0, 1))
    wait_until(lambda: daemon.settled(2), what="both are seen where they lie")
    with daemon.dovecot.login() as session:
        moved_at = time.monotonic()
        Owner(session).move("wombat 1", "INBOX", "Junk")
    number = 2

    def changed() -> bool:
        nonlocal number
        daemon.send(strange(number))
        now = probability(delivered(daemon.dovecot, f"wombat {number}")[0])
        number += 1
        return now > before + 0.2 and bool(daemon.lessons())

    wait_until(changed, what="the verdict changes", pause_s=0.2)
    took_s = time.monotonic() - moved_at
    assert took_s < within_s(5)
    lesson = daemon.lessons()[0]
    assert lesson[:3] == ("spam", "imap", "alice")
    assert lesson[4] > lesson[3]


def test_d29_a_lesson_of_the_command_line_reaches_the_running_daemon(
    start: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon = start()
    daemon.send(strange(1))
    before = probability(delivered(daemon.dovecot, "wombat 1")[0])
    (tmp_path / "wombat.eml").write_bytes(strange(0))
    spamd(daemon, "train", "spam", str(tmp_path / "wombat.eml"))
    number = 2

    def changed() -> bool:
        nonlocal number
        daemon.send(strange(number))
        now = probability(delivered(daemon.dovecot, f"wombat {number}")[0])
        number += 1
        return now > before + 0.2  # far more than what a number alone does

    wait_until(changed, what="the verdict changes", pause_s=0.2)


def test_a_rescue_from_junk_is_learned_as_scanned_and_can_be_taken_back(
    start: Callable[..., Daemon],
) -> None:
    daemon = start()
    wait_until(lambda: daemon.events("account.opened"), what="the account is watched")
    untouched = corpus(daemon)
    daemon.send(strange(1))
    identity = str(delivered(daemon.dovecot, "wombat 1")[0]["X-Spam-Id"])
    wait_until(lambda: daemon.settled(1), what="it is seen where it lies")
    with daemon.dovecot.login() as session:
        owner = Owner(session)
        owner.move("wombat 1", "INBOX", "Junk")
        wait_until(daemon.lessons, what="a lesson")
        wait_until(lambda: daemon.settled(1, "Junk"), what="it is seen in Junk")
        owner.move("wombat 1", "Junk", "INBOX")
        wait_until(lambda: daemon.lessons()[-1][0] == "ham", what="the correction")
    assert len(daemon.lessons()) == 1
    spamd(daemon, "forget", identity)
    assert corpus(daemon) == untouched


def corpus(daemon: Daemon) -> object:
    """Return what status says, without accounts and size, which are those of the moment."""
    said = json.loads(spamd(daemon, "status", "--json"))
    return {name: value for name, value in said.items() if name not in {"accounts", "size"}}


def test_feedback_once_catches_up_with_what_happened_while_nobody_watched(
    start: Callable[..., Daemon],
) -> None:
    daemon = start()
    wait_until(lambda: daemon.events("account.opened"), what="the account is watched")
    for number in range(3):
        daemon.send(strange(number))
    wait_until(lambda: daemon.settled(3), what="all are seen where they lie")
    daemon.stop()
    with daemon.dovecot.login() as session:
        owner = Owner(session)
        owner.move("wombat 1", "INBOX", "Junk")
        owner.copy_and_remove("wombat 2", "INBOX", "Junk")
    assert '"learned": {"spam": 2}' in spamd(daemon, "feedback", "once", "--json")
    assert '"learned": {}' in spamd(daemon, "feedback", "once", "--json")


def test_f9_d27_the_master_user_watches_everybody(dovecot: DovecotFactory, tmp_path: Path) -> None:
    server = dovecot("alice", "bob")
    accounts = (
        f'[{{ host = "127.0.0.1", port = {server.port}, tls = "starttls",'
        f' ca_file = "{server.authority}", user = "{MASTER}", password = "{MASTER_PASSWORD}",'
        f' users = ["alice", "bob"] }}]'
    )
    daemon = Daemon(server, accounts=accounts)
    try:
        daemon.configure()
        spamd(daemon, "feedback", "once")
        for user in ("alice", "bob"):
            with server.login(user) as session:
                owner = Owner(session)
                owner.append("INBOX", strange(len(user)))
                spamd(daemon, "feedback", "once")
                owner.move("wombat", "INBOX", "Junk")
        spamd(daemon, "feedback", "once")
        assert {lesson[2] for lesson in daemon.lessons()} == {"alice", "bob"}
    finally:
        daemon.close()
