"""Lessons for a user by each program that teaches, and that user's verdict by each of them."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import made_up
from tests.docs.blocks import block
from tests.e2e.api_daemon import ApiDaemon
from tests.servers.base import free_port, require
from tests.servers.spamassassin import spamc
from tests.waiting import wait_until

PRINTED = block("docs/users.md", "spamc -u anna@example.org -L spam").splitlines()
NEWS = made_up("ham", 30)
"""A mail that the site takes for ham."""

SETTINGS = """
[spamc]
listen = ["127.0.0.1:{port}", "unix:{folder}/spamc"]
[users]
enabled = true
domain = "example.org"
users_file = "{folder}/users"
"""
NAMES = ("anna", "bob", "carl", "dora", "emil")


class Daemon(ApiDaemon):
    """`spamd serve` for five people, taught a little."""

    def __init__(self) -> None:
        super().__init__()
        self.spamc_port = free_port()
        own = SETTINGS.format(port=self.spamc_port, folder=self.directory)
        self._settings = f'relay.report_networks = ["127.0.0.0/8"]\n{self._settings}{own}'
        (self.directory / "users").write_text("\n".join(NAMES))

    def typed(self, start: str) -> str:
        """Run the printed command that begins so; return what it prints."""
        (line,) = [each for each in PRINTED if each.startswith(start)]
        places = {
            "http://127.0.0.1:11333": self.url,
            "spamc -u": f"spamc -p {self.spamc_port} -u",
            "rspamc ": f"rspamc -h 127.0.0.1:{self.web_port} ",
            "--daemon": f"--daemon --set spamc.listen=unix:{self.directory}/spamc",
        }
        for there, here in places.items():
            line = line.replace(there, here)
        return self.shell(line, NEWS)

    def says(self, user: str, words: str) -> None:
        """Wait until a user's own lessons say this of the mail by each way that judges it."""
        wait_until(lambda: self.said(user) == [words] * 3, what=f"{user} reads {words!r}")

    def said(self, user: str) -> list[str]:
        """Return what a user's own lessons say of the mail: by spamc, by rspamc, by the API."""
        report = spamc("-p", str(self.spamc_port), "-u", user, "-R", mail=NEWS).stdout.decode()
        answer = self.curl(f"/api/scan?user={user}", *MAIL, message=NEWS)
        checked = self.curl("/checkv2", "-H", f"Deliver-To: {user}", *MAIL, message=NEWS)
        fields = checked["milter"]["add_headers"]
        return [found(text) for text in (report, answer["reason"], json.dumps(fields))]


MAIL = ("-H", "Content-Type: message/rfc822", "--data-binary", "@-")
SPAM, HAM = "1 spam, 0 ham", "0 spam, 1 ham"


def found(text: str) -> str:
    """Return what own lessons say by a text, "" for nothing."""
    words = " ".join(text.replace("\\r\\n", " ").split())
    start = words.partition("own lessons on such mail: ")[2]
    return start[: len(SPAM)]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    for program in ("spamassassin", "rspamc"):
        require(program)
    running = Daemon()
    try:
        running.teach_a_little()
        running.start()
        yield running
    finally:
        running.close()


def test_each_program_teaches_for_the_user_it_names_and_that_user_alone_reads_it(
    daemon: Daemon,
) -> None:
    daemon.typed("spamc")
    daemon.says("anna", SPAM)
    daemon.says("bob", "")
    assert "success" in daemon.typed("rspamc")
    daemon.says("bob", SPAM)
    change = json.loads(daemon.typed("curl"))
    assert (change["user"], change["outcome"]) == ("carl@example.org", "learned")
    assert [found(change[each]["reason"]) for each in ("before", "after")] == ["", SPAM]
    daemon.says("carl", SPAM)
    assert daemon.typed("spamd train") == "learned as spam, by the daemon\n"
    daemon.says("dora@example.org", SPAM)
    assert "as ham, by the daemon" in daemon.typed("spamd retrain")
    daemon.says("dora", HAM)
    assert "1 lesson taken back" in daemon.typed("spamd forget")
    daemon.says("dora", "")
    daemon.says("anna", SPAM)
    daemon.says("emil", "")
    # spamc forgets for one user, and the API
    spamc("-p", str(daemon.spamc_port), "-u", "anna", "-L", "forget", mail=NEWS)
    daemon.says("anna", "")
    daemon.curl("/api/forget?user=carl", *MAIL, message=NEWS)
    daemon.says("carl", "")
    daemon.says("bob", SPAM)


def test_a_mail_that_was_scanned_is_taught_and_explained_for_a_user_by_the_api(
    daemon: Daemon,
) -> None:
    scanned = daemon.curl("/api/scan?user=emil", *MAIL, message=NEWS)["id"]
    lesson = f"/api/mails/{scanned}/lesson"
    wait_until(lambda: "scan" in daemon.curl(f"/api/mails/{scanned}"), what="the scan is kept")
    body = json.dumps({"label": "spam", "user": "emil"})
    change = daemon.curl(lesson, "-X", "PUT", "-H", "Content-Type: application/json", "-d", body)
    assert (change["user"], found(change["after"]["reason"])) == ("emil@example.org", SPAM)
    daemon.says("emil", SPAM)
    told = daemon.curl("/api/explain?user=emil", *MAIL, message=NEWS)
    assert found(told["own"]["reason"]) == SPAM
    assert told["now"]["verdict"] != told["own"]["verdict"]
    assert daemon.curl("/api/explain", *MAIL, message=NEWS)["own"] is None
    assert daemon.curl(f"{lesson}?user=emil", "-X", "DELETE")["outcome"] == "forgotten"


def test_who_is_no_user_is_refused_where_a_user_is_asked_for(daemon: Daemon) -> None:
    assert (
        b"un/learned"
        in spamc(
            "-p", str(daemon.spamc_port), "-u", "nobody", "-L", "spam", mail=made_up("spam", 31)
        ).stdout
    )  # an account of the machine: for the site
    arguments = ("train", "spam", "-", "--daemon", "--user", "zoe")
    done = subprocess.run(
        [sys.executable, "-m", "spamd", "--config", str(daemon.config), *arguments],
        input=NEWS, capture_output=True, check=False, timeout=120, env=daemon.environment(),
    )  # fmt: skip
    assert (done.returncode, b"zoe is no user" in done.stderr) == (64, True)
    status = ("-o", "/dev/null", "-w", "%{http_code}")
    assert daemon.curl("/api/teach?label=spam&user=zoe", *MAIL, *status, message=NEWS) == 400
