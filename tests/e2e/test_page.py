"""Teaching from the page of a running daemon: what it says becomes true of the next mail."""

import http.client
import re
import smtplib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.servers.base import free_port
from tests.waiting import wait_until

SETTINGS = """
[web]
listen = ["127.0.0.1:{port}"]
[decision]
minimum_ham = 3
minimum_spam = 3
"""
WITHIN_S = 2.0
FORM = re.compile(
    r'<form method="post" action="(/mail/[^"]+/teach)".*?name="csrf" value="([^"]+)"', re.DOTALL
)
KNOWN = ("SELECT * FROM token ORDER BY id", "SELECT * FROM fact ORDER BY key",
         "SELECT spam, ham, spam_occurrences, ham_occurrences, vocabulary FROM corpus",
         "SELECT digest, label FROM lesson ORDER BY id")  # fmt: skip


class Paged(Spamd):
    """A daemon with its page, in front of a Maildir."""

    def __init__(self) -> None:
        super().__init__(f"maildir://{Path('/nonexistent')}")
        self.next_hop = f"maildir://{self.directory}/mail"
        self.web_port = free_port()
        self._settings = SETTINGS.format(port=self.web_port)

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], str]:
        """Return the status, the fields and the content of an answer."""
        kind = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
        }
        with closing(http.client.HTTPConnection("localhost", self.web_port, timeout=60)) as asking:
            asking.request(method, path, body or None, kind if body else {})
            answer = asking.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, fields, answer.read().decode()

    def judged(self, content: bytes) -> tuple[str, float]:
        """Have a mail relayed; return its id and probability as its fields have them."""
        folder = self.directory / "mail"
        before = set(folder.rglob("new/*"))
        with smtplib.SMTP("127.0.0.1", self.port, timeout=60) as client:
            client.sendmail("a@x.test", ["you@example.org"], content)
        [path] = set(folder.rglob("new/*")) - before
        mail = message_from_bytes(path.read_bytes())
        return mail["X-Spam-Id"], float(mail["X-Spam-Probability"])

    def press(self, name: str, label: str) -> tuple[float, float]:
        """Press a button on the page of a mail; return the probabilities that it then shows."""
        path = f"/mail/{name}"
        wait_until(lambda: self.ask("GET", path)[0] == 200, what=f"{path} is written down")
        page = self.ask("GET", path)[2]
        found = FORM.search(page)
        assert found is not None, page[:500]
        assert f'name="label" value="{label}"' in page
        given = urlencode({"csrf": found[2], "label": label}).encode()
        status, fields, _ = self.ask("POST", found[1], given)
        assert status == 303
        shown = self.ask("GET", fields["location"])[2]
        assert 'role="status"' in shown
        said = parse_qs(urlsplit(fields["location"]).query)
        return float(said["before"][0]), float(said["after"][0])

    def known(self) -> list[list[tuple[object, ...]]]:
        """Return everything that was learned."""
        with closing(sqlite3.connect(f"{self.directory}/spamd.sqlite")) as database:
            return [database.execute(each).fetchall() for each in KNOWN]


@pytest.fixture
def daemon() -> Iterator[Paged]:
    running = Paged()
    try:
        running.start()
        for label in ("spam", "ham"):
            for number in range(3):
                running.ask("POST", f"/learn{label}", made_up(label, number))
        yield running
    finally:
        running.close()


def until(daemon: Paged, content: bytes, probability: float) -> float:
    """Send a mail until it is judged so; return the seconds that it took."""
    began = time.monotonic()
    while True:
        _, found = daemon.judged(content)
        took = time.monotonic() - began
        if found == pytest.approx(probability, abs=2e-6) or took > 30:
            assert found == pytest.approx(probability, abs=2e-6)
            return took


def test_a_lesson_from_the_page_counts_for_the_next_mail_and_is_taken_back_exactly(
    daemon: Paged,
) -> None:
    content = made_up("spam", 70).replace(b"spamlike", b"harbour regatta")
    learned = daemon.known()
    name, first = daemon.judged(content)
    before, after = daemon.press(name, "ham")
    assert before == pytest.approx(first, abs=2e-6)
    assert after < before - 0.01
    assert until(daemon, content, after) <= WITHIN_S
    again, restored = daemon.press(name, "forget")
    assert again == pytest.approx(after, abs=2e-6)
    assert restored == pytest.approx(before, abs=1e-6)
    assert until(daemon, content, first) <= WITHIN_S
    assert daemon.known() == learned
