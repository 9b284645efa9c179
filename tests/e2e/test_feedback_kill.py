"""Lessons and SIGKILL: a move is learned once, whole or not at all, whenever we are killed."""

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.feedback_daemon import CHECKOUT, Daemon
from tests.feedback.world import Owner, mail
from tests.servers.dovecot import DovecotFactory
from tests.sizes import sized
from tests.waiting import wait_until

MAILS = sized(30, 60)
KILLS = sized(3, 6)


def test_every_move_is_learned_once_however_often_the_daemon_is_killed(
    dovecot: DovecotFactory, tmp_path: Path
) -> None:
    server = dovecot()
    daemon = Daemon(server)
    moments = random.Random(6)
    try:
        daemon.start()
        wait_until(lambda: daemon.events("account.opened"), what="the account is watched")
        with server.login() as session:
            owner = Owner(session)
            for number in range(MAILS):
                owner.append("INBOX", mail(f"number {number:03}", body=f"words of {number}"))
            seen = "all mails are seen"
            wait_until(lambda: daemon.settled(MAILS), what=seen, deadline_s=90)
            for number in range(MAILS):
                owner.move(f"number {number:03}", "INBOX", "Junk")
                if number % (MAILS // KILLS) == MAILS // KILLS - 1:
                    time.sleep(moments.uniform(0.3, 1.2))  # somewhere within a look
                    daemon.kill()
                    daemon.start()
        wait_until(lambda: len(daemon.lessons()) >= MAILS, what="all lessons", deadline_s=60)
        daemon.stop()
        lessons = daemon.lessons()
    finally:
        checked = subprocess.run(
            [sys.executable, "-m", "spamd", "database", "verify", "--config", str(daemon.config)],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        daemon.close()
    assert [lesson[:3] for lesson in lessons] == [("spam", "imap", "alice")] * MAILS
    assert checked.returncode == 0, checked.stdout + checked.stderr
