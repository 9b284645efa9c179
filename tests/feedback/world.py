"""A small world for feedback tests: an account on a real Dovecot, its watcher, and its owner.

The owner is a second IMAP client (imaplib) that moves, copies, appends and expunges as people's
programs do. What we said about a mail is told to the `FakeJournal`, which also takes the lessons.
"""

import asyncio
import imaplib
import smtplib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from imapclient.imap_utf7 import encode

from spamd.bayes.decision import Verdict
from spamd.feedback.account_states import AccountStates
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.mailbox import Mailbox
from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.teacher import Teacher
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.watcher import Watcher
from spamd.lists.ports import Correspondents, SenderLists
from spamd.message.features import Features, extract
from spamd.ports import Clock
from spamd.sample import Label
from tests.fakes import FakeObserver
from tests.feedback.fakes import EveryKept, FakeAccounts, FakeHeld, FakeJournal, FakeMailboxes
from tests.servers.dovecot import PASSWORD, Dovecot


class ServerClock:
    """The time that real servers stamp on mail, or a time ahead of it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return time.monotonic()


WRITTEN = format_datetime(datetime.now(UTC))
"""Of all mails: a mail that is made again is the same one."""


def mail(subject: str, *, identity: str = "", body: str = "See you tomorrow.") -> bytes:
    """Return a small mail that came by SMTP a moment ago."""
    now = format_datetime(datetime.now(UTC))
    fields = [
        f"Received: from client.test by mx.test with ESMTP; {now}",
        f"Message-ID: <{subject.replace(' ', '.')}@sender.test>",
        f"Date: {WRITTEN}",
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
class Bench:
    """An open account with its watcher and everything the watcher talks to."""

    mailbox: Mailbox
    watcher: Watcher
    journal: FakeJournal
    observer: FakeObserver
    mailboxes: FakeMailboxes
    held: FakeHeld
    subjects: dict[bytes, str] = field(default_factory=dict)

    async def poll(self) -> RunSummary:
        return await self.watcher.poll()

    def judged(
        self, subject: str, verdict: Verdict, *, scanned: datetime | None = None, body: str = "Hi."
    ) -> bytes:
        """Return a mail that we judged, by default a moment ago."""
        content = mail(subject, identity=f"id-{subject}", body=body)
        features = self.journal.scanned(content, f"id-{subject}", verdict, scanned)
        self.subjects[features.digest] = subject
        return content

    def taught(self) -> list[tuple[str, Label]]:
        """Return all lessons so far, by subject."""
        return [(self.subjects.get(digest, "?"), label) for digest, label in self.journal.history]


@dataclass
class World(Bench):
    """The bench of an account on a real server, and the owner of the account."""

    server: Dovecot = field(kw_only=True)
    user: str = field(kw_only=True)
    owner: Owner = field(kw_only=True)

    def arrives(
        self,
        subject: str,
        verdict: Verdict,
        folder: str = "INBOX",
        *,
        scanned: datetime | None = None,
    ) -> bytes:
        """Deliver a mail that we judged; return it as it lies in the folder."""
        content = self.judged(subject, verdict, scanned=scanned)
        self.owner.append(folder, content)
        return content

    def delivered(self, content: bytes) -> None:
        """Deliver by LMTP, as the next hop does."""
        with smtplib.LMTP("127.0.0.1", self.server.lmtp_port) as connection:
            connection.sendmail("ann@sender.test", [f"{self.user}@our.test"], content)


def account_of(server: Dovecot, user: str, port: int = 0) -> AccountOptions:
    return AccountOptions(
        host="127.0.0.1",
        port=port or server.port,
        tls=Tls.NONE,
        user=user,
        password=PASSWORD,
    )


MakeMailbox = Callable[[AccountOptions, FeedbackOptions, Clock, FakeMailboxes], Mailbox]


def imap_mailbox(
    account: AccountOptions, options: FeedbackOptions, clock: Clock, _: FakeMailboxes
) -> Mailbox:
    return ImapMailbox(account, options, clock, login=account.user, actor=account.user)


QUICK = FeedbackOptions(
    poll_s=0.2, timeout_s=5, retry_first_s=0.05, retry_most_s=0.2, rule_window_s=0
)


@asynccontextmanager
async def bench_at(
    account: AccountOptions,
    *,
    options: FeedbackOptions = QUICK,
    poison: type[Exception] | None = None,
    mailboxes: FakeMailboxes | None = None,
    journal: FakeJournal | None = None,
    clock: Clock | None = None,
    make: MakeMailbox = imap_mailbox,
    reachable: bool = True,
    correspondents: Correspondents | None = None,
    lists: SenderLists | None = None,
) -> AsyncIterator[Bench]:
    """Open an account, with nothing in it looked at yet.

    Args:
        poison: raised for every mail that holds the word "poison".
        reachable: log in now; else the test is about why that fails.
    """
    clock = clock or ServerClock()
    journal = journal or FakeJournal(clock)
    mailboxes = mailboxes or FakeMailboxes()
    held = FakeHeld(journal)
    observer = FakeObserver()
    mailbox = make(account, options, clock, mailboxes)

    def careful(content: bytes) -> Features:
        if poison and b"poison" in content:
            raise poison("this mail is too much")
        return extract(content)

    context = WatcherContext(
        mailboxes=mailboxes,
        kept=mailboxes,
        choice=EveryKept(mailboxes),
        history=journal,
        teacher=Teacher(journal, held, clock, options, observer),
        extract=careful,
        clock=clock,
        observer=observer,
        correspondents=correspondents,
        lists=lists,
    )
    states = AccountStates(FakeAccounts(), clock, observer)
    watcher = Watcher(mailbox, context, options, source="imap", states=states)
    if reachable:
        await mailbox.open()
    try:
        yield Bench(
            mailbox=mailbox,
            watcher=watcher,
            journal=journal,
            observer=observer,
            mailboxes=mailboxes,
            held=held,
        )
    finally:
        await mailbox.close()


@contextmanager
def _session(server: Dovecot, user: str) -> Iterator[imaplib.IMAP4]:
    """Log in, and log out if the server is still the same."""
    session = server.login(user)
    try:
        yield session
    finally:
        try:
            session.logout()
        except (imaplib.IMAP4.abort, OSError):
            with suppress(OSError):
                session.shutdown()


@asynccontextmanager
async def world_at(
    server: Dovecot,
    user: str = "alice",
    *,
    port: int = 0,
    options: FeedbackOptions = QUICK,
    poison: type[Exception] | None = None,
    mailboxes: FakeMailboxes | None = None,
    journal: FakeJournal | None = None,
    clock: Clock | None = None,
    make: MakeMailbox = imap_mailbox,
    correspondents: Correspondents | None = None,
    lists: SenderLists | None = None,
) -> AsyncIterator[World]:
    """Open an account on a real server; its owner uses the real port, we may use another."""
    with _session(server, user) as session:
        async with bench_at(
            account_of(server, user, port),
            options=options,
            poison=poison,
            mailboxes=mailboxes,
            journal=journal,
            clock=clock,
            make=make,
            correspondents=correspondents,
            lists=lists,
        ) as bench:
            yield World(
                mailbox=bench.mailbox,
                watcher=bench.watcher,
                journal=bench.journal,
                observer=bench.observer,
                mailboxes=bench.mailboxes,
                held=bench.held,
                server=server,
                user=user,
                owner=Owner(session),
            )


def only(lessons: Sequence[tuple[str, Label]]) -> tuple[str, Label]:
    """Return the one lesson there is."""
    assert len(lessons) == 1, lessons
    return lessons[0]


@asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[None]:
    """Let the watcher run on its own; it is stopped at the end, within two seconds."""
    await bench.mailbox.close()
    task = asyncio.create_task(bench.watcher.run())
    try:
        yield
    finally:
        task.cancel()
        _, pending = await asyncio.wait([task], timeout=2)
        assert not pending, "the watcher does not stop"


def watcher_context(options: FeedbackOptions = QUICK) -> WatcherContext:
    """Return what all watchers share, in memory."""
    clock = ServerClock()
    journal, mailboxes = FakeJournal(clock), FakeMailboxes()
    return WatcherContext(
        mailboxes=mailboxes,
        kept=mailboxes,
        choice=EveryKept(mailboxes),
        history=journal,
        teacher=Teacher(journal, FakeHeld(journal), clock, options, FakeObserver()),
        extract=extract,
        clock=clock,
        observer=FakeObserver(),
    )


def journal_of(context: WatcherContext) -> FakeJournal:
    """Return the journal that a context teaches."""
    journal = context.history
    assert isinstance(journal, FakeJournal)
    return journal
