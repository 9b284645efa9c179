"""A small world for feedback tests: an account on a real Dovecot, its watcher, and its owner.

The owner is a second IMAP client (imaplib) that moves, copies, appends and expunges as people's
programs do. What we said about a mail is told to the `FakeSchool`, which also takes the lessons.
"""

import imaplib
import smtplib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from imapclient.imap_utf7 import encode

from spamd.bayes.decision import Verdict
from spamd.feedback.imap import ImapMailbox
from spamd.feedback.learn import Tally, Teacher
from spamd.feedback.mailbox import Mailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.watch import Memory, Watcher
from spamd.message.features import Features, extract
from spamd.sample import Label
from tests.fakes import FakeObserver
from tests.feedback.fakes import FakeHeld, FakeMailboxes, FakeSchool
from tests.servers.dovecot import PASSWORD, Dovecot


class ServerClock:
    """The time that real servers stamp on mail."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def mail(subject: str, *, identity: str = "", body: str = "See you tomorrow.") -> bytes:
    """Return a small mail that came by SMTP a moment ago."""
    now = format_datetime(datetime.now(UTC))
    fields = [
        f"Received: from client.test by mx.test with ESMTP; {now}",
        f"Message-ID: <{subject.replace(' ', '.')}@sender.test>",
        f"Date: {now}",
        "From: Ann <ann@sender.test>",
        "To: alice@our.test",
        f"Subject: {subject}",
    ]
    if identity:
        fields.insert(0, f"X-Spam-Id: {identity}")
    return "\r\n".join([*fields, "", body, ""]).encode()


@dataclass
class Owner:
    """A person's mail program."""

    session: imaplib.IMAP4

    def append(self, folder: str, content: bytes, flags: str = "") -> None:
        self._do(self.session.append(_quoted(folder), flags, "", content))

    def create(self, folder: str) -> None:
        self._do(self.session.create(_quoted(folder)))

    def delete(self, folder: str) -> None:
        self._do(self.session.delete(_quoted(folder)))

    def rename(self, old: str, new: str) -> None:
        self._do(self.session.rename(_quoted(old), _quoted(new)))

    def find(self, folder: str, subject: str) -> str:
        """Select a folder and return the UIDs of the mails with a subject."""
        self._do(self.session.select(_quoted(folder)))
        found = str(self._do(self.session.uid("SEARCH", "SUBJECT", f'"{subject}"'))[0], "ascii")
        assert found, f"no {subject!r} in {folder}"
        return found.replace(" ", ",")

    def move(self, subject: str, old: str, new: str) -> None:
        """Move by UID MOVE, as modern clients do."""
        uids = self.find(old, subject)
        self._do(self.session.uid("MOVE", uids, _quoted(new)))

    def copy(self, subject: str, old: str, new: str) -> None:
        uids = self.find(old, subject)
        self._do(self.session.uid("COPY", uids, _quoted(new)))

    def remove(self, subject: str, folder: str) -> None:
        """Set \\Deleted and expunge."""
        uids = self.find(folder, subject)
        self._do(self.session.uid("STORE", uids, "+FLAGS.SILENT", "(\\Deleted)"))
        self._do(self.session.expunge())

    def copy_and_remove(self, subject: str, old: str, new: str) -> None:
        """Move by COPY and EXPUNGE, as older clients do."""
        self.copy(subject, old, new)
        self.remove(subject, old)

    def upload_and_remove(self, subject: str, old: str, new: str) -> None:
        """Move by FETCH, APPEND and EXPUNGE, as Outlook does between stores."""
        uids = self.find(old, subject)
        answer: list[Any] = self._do(self.session.uid("FETCH", uids, "(BODY.PEEK[])"))
        content = next(item[1] for item in answer if isinstance(item, tuple))
        self.append(new, content, "(\\Seen)")
        self.remove(subject, old)

    def flag(self, subject: str, folder: str, flag: str) -> None:
        uids = self.find(folder, subject)
        self._do(self.session.uid("STORE", uids, "+FLAGS.SILENT", f"({flag})"))

    def flags(self, subject: str, folder: str) -> bytes:
        uids = self.find(folder, subject)
        return bytes(self._do(self.session.uid("FETCH", uids, "(FLAGS)"))[0])

    def _do(self, answer: tuple[str, list[Any]]) -> list[Any]:
        status, data = answer
        assert status == "OK", data
        return data


def _quoted(folder: str) -> str:
    name = encode(folder).decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}"'


@dataclass
class World:
    """Everything around one account."""

    server: Dovecot
    user: str
    owner: Owner
    mailbox: Mailbox
    watcher: Watcher
    school: FakeSchool
    observer: FakeObserver
    mailboxes: FakeMailboxes
    held: FakeHeld
    options: FeedbackOptions
    subjects: dict[bytes, str] = field(default_factory=dict)

    async def look(self) -> Tally:
        return await self.watcher.look()

    def arrives(
        self,
        subject: str,
        verdict: Verdict,
        folder: str = "INBOX",
        *,
        scanned: datetime | None = None,
    ) -> bytes:
        """Deliver a mail that we judged; return it as it lies in the folder."""
        content = mail(subject, identity=f"id-{subject}")
        features = self.school.scanned(content, f"id-{subject}", verdict, scanned)
        self.subjects[features.digest] = subject
        self.owner.append(folder, content)
        return content

    def delivered(self, content: bytes) -> None:
        """Deliver by LMTP, as the next hop does."""
        with smtplib.LMTP("127.0.0.1", self.server.lmtp_port) as connection:
            connection.sendmail("ann@sender.test", [f"{self.user}@our.test"], content)

    def taught(self) -> list[tuple[str, Label]]:
        """Return all lessons so far, by subject."""
        return [(self.subjects.get(digest, "?"), label) for digest, label in self.school.history]


def account_of(server: Dovecot, user: str, port: int = 0) -> AccountOptions:
    return AccountOptions(
        host="127.0.0.1",
        port=port or server.port,
        tls=Tls.NONE,
        user=user,
        password=PASSWORD,
    )


@asynccontextmanager
async def world_at(
    server: Dovecot,
    user: str = "alice",
    *,
    options: FeedbackOptions | None = None,
    account: AccountOptions | None = None,
    extracted: type[Exception] | None = None,
    mailboxes: FakeMailboxes | None = None,
    school: FakeSchool | None = None,
) -> AsyncIterator[World]:
    """Open an account, with nothing in it looked at yet.

    Args:
        extracted: raised for every mail whose body holds the word "poison".
    """
    clock = ServerClock()
    options = options or FeedbackOptions(poll_s=0.2, retry_first_s=0.05, retry_most_s=0.2)
    school = school or FakeSchool(clock)
    mailboxes = mailboxes or FakeMailboxes()
    held = FakeHeld()
    observer = FakeObserver()
    account = account or account_of(server, user)
    mailbox = ImapMailbox(account, options, clock, login=account.user, actor=account.user)

    def careful(content: bytes) -> Features:
        if extracted and b"poison" in content:
            raise extracted("this mail is too much")
        return extract(content)

    memory = Memory(
        mailboxes=mailboxes,
        history=school,
        teacher=Teacher(school, held, clock, options),
        extract=careful,
    )
    watcher = Watcher(mailbox, memory, options, clock, observer, source="imap")
    with server.login(user) as session:
        await mailbox.open()
        try:
            yield World(
                server=server,
                user=user,
                owner=Owner(session),
                mailbox=mailbox,
                watcher=watcher,
                school=school,
                observer=observer,
                mailboxes=mailboxes,
                held=held,
                options=options,
            )
        finally:
            await mailbox.close()


def only(lessons: Sequence[tuple[str, Label]]) -> tuple[str, Label]:
    """Return the one lesson there is."""
    assert len(lessons) == 1, lessons
    return lessons[0]
