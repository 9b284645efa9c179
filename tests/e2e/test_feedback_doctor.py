"""`spamd doctor` on real servers: a healthy loop, and each way in which it can be broken."""

import asyncio
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from spamd.bayes.model import BayesOptions
from spamd.clock import WallClock
from spamd.feedback.doctor.mailboxes import DoctorImapMailbox
from spamd.feedback.doctor.message import Setup
from spamd.feedback.doctor.steps import Doctor, Finding, Instruments, State
from spamd.feedback.options import FeedbackOptions
from spamd.message.facts import SCHEMA
from spamd.storage.options import DatabaseOptions
from spamd.storage.store import Store
from spamd.training import TrainingOptions
from spamd.training.trainer import Trainer
from tests.e2e.feedback_daemon import CHECKOUT, Daemon
from tests.feedback.world import account_of
from tests.servers.base import free_port
from tests.servers.dovecot import PASSWORD, Dovecot, DovecotFactory
from tests.waiting import wait_until


@dataclass(frozen=True)
class Examined:
    """What the doctor said."""

    code: int
    findings: list[dict[str, str]]

    @property
    def broken(self) -> dict[str, str]:
        found = [finding for finding in self.findings if finding["state"] == "broken"]
        assert len(found) == 1, self.findings
        return found[0]


@pytest.fixture
def daemon(dovecot: DovecotFactory) -> Iterator[Callable[..., Daemon]]:
    with ExitStack() as stack:

        def started(**kwargs: Any) -> Daemon:
            made = Daemon(dovecot(), **kwargs)
            stack.callback(made.close)
            return made.start()

        yield started


def examined(daemon: Daemon, *arguments: str, user: int | None = None) -> Examined:
    done = subprocess.run(
        [sys.executable, "-m", "spamd", "doctor", "--json", "--wait", "5", "--config",
         str(daemon.config), *arguments],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=180, check=False, user=user,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return Examined(done.returncode, json.loads(done.stdout)["findings"])


def account(server: Dovecot, **changes: str) -> str:
    values = {
        "host": '"127.0.0.1"',
        "port": str(server.port),
        "tls": '"none"',
        "user": '"alice"',
        "password": f'"{PASSWORD}"',
        **changes,
    }
    return "[{ " + ", ".join(f"{key} = {value}" for key, value in values.items()) + " }]"


def mails_of(server: Dovecot) -> int:
    """Return how many mails alice has."""
    found = 0
    with server.login() as session:
        for folder in ("INBOX", "Junk"):
            found += int(session.select(folder, readonly=True)[1][0] or b"0")
    return found


@pytest.mark.parametrize("listen", ["relay.listen", "relay.listen_lmtp"])
def test_a_healthy_loop_is_walked_to_its_end_and_left_as_it_was(
    listen: str, daemon: Callable[..., Daemon]
) -> None:
    running = daemon(listen=listen)
    wait_until(lambda: running.events("account.opened"), what="the account is watched")
    result = examined(running)
    assert [finding["step"] for finding in result.findings] == [
        "account", "sending", "delivery", "verdict", "database", "clock", "lesson", "effect",
        "taken back",
    ]  # fmt: skip
    assert {finding["state"] for finding in result.findings} == {"fine"}
    assert result.code == 0
    assert running.lessons() == []
    assert mails_of(running.dovecot) == 0


def test_a_wrong_folder_name_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    wrong = account(running.dovecot, junk_folders='["Werbung"]')
    result = examined(running, "--set", f"feedback.accounts={wrong}")
    assert "no folder called Werbung; it has Junk" in result.broken["seen"]
    assert "junk_folders" in result.broken["cure"]
    assert result.code == 3


def test_a_missing_junk_folder_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    wrong = account(running.dovecot, excluded_folders='["Junk"]')
    result = examined(running, "--set", f"feedback.accounts={wrong}")
    assert "has no Junk folder" in result.broken["seen"]


def test_a_wrong_password_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    wrong = account(running.dovecot, password='"wrong"')
    result = examined(running, "--set", f"feedback.accounts={wrong}")
    assert "refuses the login of alice" in result.broken["seen"]
    assert "password" in result.broken["cure"]


def test_d27_another_database_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    other = f"database.url=sqlite:///{running.directory}/other.sqlite"
    result = examined(running, "--set", other)
    assert result.broken["step"] == "database"
    assert "the daemon uses another database" in result.broken["cure"]
    assert mails_of(running.dovecot) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
def test_j9_root_is_not_warned_of_a_database_that_is_given_to_its_owner(
    daemon: Callable[..., Daemon],
) -> None:
    running = daemon()
    nobody = pwd.getpwnam("nobody")
    os.chown(running.database, nobody.pw_uid, nobody.pw_gid)
    assert "rights" not in {finding["step"] for finding in examined(running).findings}


def test_a_watcher_that_does_not_run_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon(accounts="[]")
    ours = account(running.dovecot)
    result = examined(running, "--set", f"feedback.accounts={ours}")
    assert "no worker watches the accounts" in result.broken["seen"]
    assert "spamd serve" in result.broken["cure"]
    assert mails_of(running.dovecot) == 0


def test_a_next_hop_that_is_down_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    running.stop()
    running.dovecot.lmtp_port = free_port()
    running.start()
    result = examined(running)
    assert result.broken["step"] == "sending"
    assert "the next hop is down" in result.broken["cure"]


def test_a_daemon_that_does_not_run_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    running.stop()
    result = examined(running)
    assert "start spamd serve" in result.broken["cure"]


def test_a_recipient_that_nobody_knows_is_found(daemon: Callable[..., Daemon]) -> None:
    running = daemon()
    result = examined(running, "--recipient", "bob@our.test")
    assert "arrived in no account" in result.broken["seen"]
    assert "--recipient" in result.broken["cure"]


class Yesterday(WallClock):
    """A clock that is a day late."""

    def now(self) -> datetime:
        return super().now() - timedelta(days=1)


async def test_a_clock_that_is_off_is_found(daemon: Callable[..., Daemon]) -> None:
    running = await asyncio.to_thread(daemon)
    server = running.dovecot
    store = await Store.open(
        DatabaseOptions(url=f"sqlite:///{running.database}"),
        schema=SCHEMA,
        bayes=BayesOptions(),
        clock=WallClock(),
    )
    account = account_of(server, "alice")
    mailboxes = DoctorImapMailbox(account, FeedbackOptions(), login="alice", key=account.key)
    try:
        doctor = Doctor(
            Setup(
                host="127.0.0.1",
                port=running.port,
                next_hop="dovecot",
                database="sqlite",
                recipient="alice@our.test",
                sender="alice@our.test",
                mark="doctorclock",
            ),
            Instruments(
                mailboxes=store.mailboxes,
                window_s=FeedbackOptions().rule_window_s,
                history=store.scans,
                leases=store.leases,
                trainer=Trainer(
                    unit_of_work=store.unit_of_work, clock=WallClock(), options=TrainingOptions()
                ),
                clock=Yesterday(),
            ),
            [mailboxes],
            watched=True,
        )
        findings: list[Finding] = [finding async for finding in doctor.examine()]
    finally:
        await store.close()
    warning = next(finding for finding in findings if finding.step == "clock")
    assert warning.state is State.WARNING
    assert "NTP" in warning.cure
    assert findings[-1].step == "taken back", findings
