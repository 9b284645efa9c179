"""`spamd serve` as a child process between an SMTP client and a Dovecot, watching alice's mail."""

import json
import smtplib
import sqlite3
import sys
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from spamd.feedback.options import FeedbackOptions
from spamd.feedback.watching.move_verifier import DATE_S
from tests.cli.conftest import made_up
from tests.servers.base import Server, greeting
from tests.servers.dovecot import PASSWORD, Dovecot
from tests.storage.migrated import lay

CHECKOUT = Path(__file__).resolve().parents[2]


class Daemon(Server):
    """`spamd serve` with SQLite, taught with a few mails of each label before its first start.

    settings   lines of TOML after ours; may open sections of their own
    accounts   the value of feedback.accounts; None: alice of the Dovecot
    listen     the setting that names where mail is taken
    """

    name = "spamd"
    start_s = 60
    stop_s = 30

    def __init__(
        self,
        dovecot: Dovecot,
        *,
        accounts: str | None = None,
        settings: str = "",
        listen: str = "relay.listen",
    ) -> None:
        super().__init__()
        self._listen = listen
        self.dovecot = dovecot
        self._settings = settings
        self._accounts = accounts or (
            f'[{{ host = "127.0.0.1", port = {dovecot.port}, tls = "none", user = "alice",'
            f' password = "{PASSWORD}" }}]'
        )

    @property
    def config(self) -> Path:
        return self.directory / "spamd.toml"

    @property
    def database(self) -> Path:
        return self.directory / "spamd.sqlite"

    def configure(self) -> None:
        lay(self.database)
        self.config.write_text(
            f"""
{self._listen} = "127.0.0.1:{self.port}"
next_hop.url = "lmtp://127.0.0.1:{self.dovecot.lmtp_port}"
database.url = "sqlite:///{self.database}"
decision.minimum_spam = 5
decision.minimum_ham = 5
feedback.accounts = {self._accounts}
{self._settings}
"""
        )

    def command(self) -> list[str]:
        return [sys.executable, "-m", "spamd", "serve", "--config", str(self.config)]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONPATH": str(CHECKOUT)}

    def is_ready(self) -> bool:
        return greeting(self.port).startswith(b"220 ")

    def events(self, name: str) -> list[dict[str, object]]:
        """Return the lines of the log with this event."""
        lines = self.log.read_text(errors="replace").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if event["event"] == name]

    def send(self, content: bytes) -> None:
        """Send a mail to alice, as a stranger's server does."""
        with smtplib.SMTP("127.0.0.1", self.port, timeout=20) as session:
            session.sendmail("ann@sender.test", ["alice@our.test"], content)

    def settled(self, mails: int, folder: str = "INBOX") -> bool:
        """Return whether we have seen so many mails in a folder, for longer than a rule takes."""
        return settled(self.database, mails, folder)

    def lessons(self) -> list[tuple[str, str, str, float, float]]:
        """Return (label, source, actor, before, after) of all lessons but those of the start."""
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            return connection.execute(
                "SELECT label, source, actor, probability_before, probability_after FROM lesson"
                " WHERE source <> 'cli' ORDER BY id"
            ).fetchall()
        finally:
            connection.close()


def settled(database: Path, mails: int, folder: str = "INBOX") -> bool:
    """Return whether a folder was seen with so many mails that a move of theirs is a lesson."""
    if not database.exists():
        return False
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        held, newest = connection.execute(
            "SELECT count(*), max(delivered) FROM sighting WHERE folder = ?", (folder,)
        ).fetchone()
        times = connection.execute(
            "SELECT max(time) FROM cursor WHERE folder = ?", (folder,)
        ).fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    late = DATE_S + FeedbackOptions().rule_window_s
    return bool(held >= mails and times[0] and times[0] / 1e6 >= (newest or 0) + late)


def delivered(dovecot: Dovecot, subject: str, folder: str = "INBOX") -> list[Message]:
    """Return alice's mails with a subject, newest last."""
    with dovecot.login() as session:
        session.select(folder, readonly=True)
        _, found = session.search(None, "SUBJECT", f'"{subject}"')
        mails = []
        for number in found[0].split():
            _, answer = session.fetch(number.decode(), "(BODY.PEEK[])")
            item = answer[0]
            assert isinstance(item, tuple)
            mails.append(message_from_bytes(item[1]))
        return mails


def probability(mail: Message) -> float:
    """Return the probability of spam that we wrote on a mail."""
    return float(mail["X-Spam-Probability"])


def lesson_mails(folder: Path, label: str) -> Path:
    """Write mails of a label to teach before the start; return their folder."""
    target = folder / label
    target.mkdir(parents=True)
    for number in range(8):
        (target / f"{number}.eml").write_bytes(made_up(label, number))
    return target
