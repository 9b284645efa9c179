"""What all watchers of one process share."""

from dataclasses import dataclass, field

from spamd.feedback.kept_choice import Choice
from spamd.feedback.mailboxes.blocking_threads import BlockingThreads
from spamd.feedback.mailboxes.imap_login import TlsContexts
from spamd.feedback.ports import FeedbackObserver, History, KeptMessages, Mailboxes
from spamd.feedback.teacher import Extract, Teacher
from spamd.lists.ports import Correspondents, SenderLists, UserOf
from spamd.ports import Clock

MAILDIR_THREADS = 8
"""Threads that read Maildirs: twice as many as are polled at a time, as some disks may be away."""


async def as_it_stands(name: str) -> str | None:
    """Return the user of an account where names are users."""
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherContext:
    """What watchers know, whom they teach and tell.

    mailboxes  what the folders held at the last poll
    kept       which mail people have read and kept
    choice     which of it is taught
    history    what we said about mail, and what it was taught as
    correspondents  who remembers to whom people write; None: nobody does
    lists      whom people let in and keep out; None: no folder changes that
    user_of    returns the user whom an account's name means, "" for nobody, None: it can't be asked
    """

    mailboxes: Mailboxes
    kept: KeptMessages
    choice: Choice
    history: History
    teacher: Teacher
    extract: Extract
    clock: Clock
    observer: FeedbackObserver
    correspondents: Correspondents | None = None
    lists: SenderLists | None = None
    user_of: UserOf = as_it_stands
    tls: TlsContexts = field(default_factory=TlsContexts)
    maildir_threads: BlockingThreads = field(
        default_factory=lambda: BlockingThreads("maildir", MAILDIR_THREADS)
    )
