"""What a watcher sees of a place where mail is kept, be it an IMAP account or a Maildir.

A `Mailbox` is read only: it has no way to set a flag, to move or to remove anything. `changes`
tells what is new in a folder since a `Cursor`; `summaries` and `content` read; `wait` sleeps until
something may have happened.

A mail is recognised in another folder by its *trace*: 16 bytes over those header fields that no
move changes. What a mail is taught under is its digest or our id (`message.identity`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntFlag, StrEnum
from hashlib import blake2b
from typing import Protocol

from imapclient.imap_utf7 import decode as decode_utf7

from spamd.errors import AccountError
from spamd.feedback.ports import Cursor
from spamd.lists.entry import Effect
from spamd.wording import reason


class Place(IntFlag):
    """Where in an account a mail lies; as flags, all the places it lies in."""

    INBOX = 1
    JUNK = 2
    OTHER = 4  # any folder that is neither of the above nor excluded (Trash, Sent, …)


TRACE_BYTES = 16

BYTES = re.compile(r"b(['\"])(.*)\1", re.DOTALL)

WORDS = 200
"""Characters taken of what a server said: enough for a person to understand, none too many for a
log."""

ID_CHARACTERS = 100
"""Longest X-Spam-Id value that is taken for one of ours: they are far shorter."""

TRACE_FIELDS = ("message-id", "date", "from", "to", "subject", "x-spam-id")
"""Set by the sender or by us at the scan; mail servers and clients leave them alone."""

SUMMARY_FIELDS = (
    *TRACE_FIELDS, "in-reply-to", "references", "x-spam-flag", "cc", "bcc", "auto-submitted",
)  # fmt: skip
"""Read of every mail that is looked at."""


class MailboxError(AccountError):
    """The account can't be used now; the text says what to do about it."""


class AccessError(MailboxError):
    """User name, password or token are wrong, or the server doesn't let us in."""


class FolderError(MailboxError):
    """One folder can't be read; the others can."""

    shown = False  # its text names the folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that is watched.

    name   as people see it
    raw    as the server calls it (IMAP: modified UTF-7), for commands
    place  INBOX, JUNK or OTHER
    kept   it is known not to be the Trash: people keep what they put here
    list   what its owner says of the sender of a mail that he moves here, None: nothing
    """

    name: str
    raw: str
    place: Place
    kept: bool = True
    list: Effect | None = None


class Role(StrEnum):
    """What people keep in a folder, for learning from old mail."""

    JUNK = "junk"
    ARCHIVE = "archive"
    SENT = "sent"
    MAIL = "mail"  # the inbox and folders of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSummary:
    """A mail as the folder lists it.

    key        IMAP UID or Maildir base name
    fields     `SUMMARY_FIELDS`, lower-case names, undecoded values
    trace      the same in every folder the mail lies in
    id         the value of its X-Spam-Id field, None without one that may be ours
    flags      keywords and flags as the server says them
    delivered  when it was delivered to the account (INTERNALDATE); None: unknown
    baseline it may have lain here already when we looked here last
    fault      why it can't be read, one sentence; empty when it can
    """

    key: str
    fields: Mapping[str, str]
    trace: bytes
    id: str | None
    flags: frozenset[str]
    delivered: datetime | None
    baseline: bool
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChanges:
    """What happened in a folder since its cursor.

    keys      mails that are new here, in the order in which they came; with `again` all mails
    marked    mails seen before on which $Junk or $NotJunk is new
    there     all mails that lie here, when some may have left; None: none left, or nobody knows
    start     the cursor to write before anything is read: a kill loses no first poll
    end       the cursor to write when all is read
    numbered  keys are UIDs: the cursor may move with each chunk
    again     keys of earlier polls mean nothing any more: mails are known by their traces alone
    warning   what an operator should know about the folder, one sentence; empty: nothing
    """

    folder: Folder
    keys: Sequence[str]
    marked: Sequence[str]
    there: Collection[str] | None
    start: Cursor
    end: Cursor
    numbered: bool
    again: bool
    warning: str = ""

    def reached(self, key: str) -> Cursor:
        """Return the cursor to write when all mails up to `key` are read."""
        return replace(self.start, next_uid=int(key) + 1) if self.numbered else self.start

    @property
    def keyless(self) -> bool:
        """Whether keys never last here, so that each poll reads the whole folder."""
        return self.numbered and self.end.validity == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    r"""What was marked on mails that had lain in a folder unread.

    read    those that are \Seen now
    acted   those that are \Answered or \Flagged
    others  how many other mails of the folder were marked as read since; None: nobody knows
    singly  each of all these was marked by a change of its own
    """

    read: frozenset[str]
    acted: frozenset[str]
    others: int | None
    singly: bool


NOTHING_OPENED = Opened(read=frozenset(), acted=frozenset(), others=0, singly=True)


class Mailbox(Protocol):
    """An account as the watcher uses it. All methods raise `MailboxError` when it is out of reach.

    key     the name its state is kept under
    actor   whose lessons these are
    """

    key: str
    actor: str

    @property
    def silent(self) -> bool:
        """Whether its server keeps silent about what happens while we wait for it to say so."""
        ...

    async def open(self) -> None:
        """Connect and log in."""
        ...

    async def close(self) -> None:
        """Log out; never fails."""
        ...

    async def folders(self) -> Sequence[Folder]:
        """Return the folders to watch: the inbox, then others, Junk last."""
        ...

    async def sent_folders(self) -> Sequence[Folder]:
        """Return the folders of the owner's own mail, as of the last `folders`."""
        ...

    async def bootstrap_folders(self) -> Sequence[tuple[Folder, Role]]:
        """Return all folders that `bootstrap` may read, with what is kept in them."""
        ...

    async def changes(
        self, folder: Folder, cursor: Cursor | None, *, baseline: bool
    ) -> FolderChanges | None:
        """Return what is new in a folder, None for nothing.

        Without a cursor everything is new; `baseline` says that it then lay there before.

        Raises:
            FolderError: this folder can't be read.
        """
        ...

    async def summaries(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Sequence[MessageSummary]:
        """Return the summaries of some mails; those that vanished are left out."""
        ...

    async def content(self, folder: Folder, key: str) -> bytes | None:
        """Return a mail's bytes (of a huge one the start), None when it vanished."""
        ...

    async def still_there(
        self, folder: Folder, keys: Sequence[str], cursor: Cursor
    ) -> Collection[str]:
        """Return which of these mails lie in a folder now and are not marked as deleted.

        In doubt a mail is there.
        """
        ...

    async def opened(self, folder: Folder, unread: Sequence[str], read: Sequence[str]) -> Opened:
        """Return what was marked on mails that were unread, or read, when this was asked last.

        It costs nothing while nothing changed in the folder.

        Raises:
            FolderError: this folder can't be read.
        """
        ...

    async def raised_baseline(self, folder: Folder, cursor: Cursor) -> Cursor:
        """Return a cursor for which all that lies in a folder now lay there before."""
        ...

    async def in_excluded_folder(self, folder: Folder, message: MessageSummary) -> bool:
        """Return whether a mail of `folder` lies in an excluded one (Trash) as well."""
        ...

    async def wait(self, folder: Folder | None, seconds: float) -> None:
        """Return when something may have happened in `folder`, after `seconds` at the latest."""
        ...


def words(said: object) -> str:
    """Return what a server or an error said, as a short piece of one line."""
    plain = reason(said) if isinstance(said, BaseException) else str(said)
    if (bare := BYTES.fullmatch(plain)) is not None:  # imaplib shows what a server said as bytes
        plain = bare[2]
    text = "".join(sign if sign.isprintable() else " " for sign in plain[: 2 * WORDS])
    text = " ".join(text.split())
    return text if len(text) <= WORDS else f"{text[: WORDS - 1]}…"


def trace(fields: Mapping[str, str]) -> bytes:
    """Return the fingerprint of a mail from its header fields (lower-case names)."""
    text = "\n".join(f"{name}:{fields.get(name, '')}" for name in TRACE_FIELDS)
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=TRACE_BYTES).digest()


def summary_of(
    key: str, header: bytes, *, flags: frozenset[str], delivered: datetime | None, baseline: bool
) -> MessageSummary:
    """Return the summary of a mail from the start of its header."""
    fields = header_fields(header)
    ours = fields.get("x-spam-id", "")
    return MessageSummary(
        key=key,
        fields=fields,
        trace=trace(fields),
        id=ours if 0 < len(ours) <= ID_CHARACTERS else None,
        flags=flags,
        delivered=delivered,
        baseline=baseline,
    )


def unreadable(key: str, fault: str) -> MessageSummary:
    """Return the summary of a mail that is there but can't be read."""
    return MessageSummary(
        key=key,
        fields={},
        trace=b"",
        id=None,
        flags=frozenset(),
        delivered=None,
        baseline=False,
        fault=fault,
    )


def decoded(raw: str) -> str:
    """Return a folder's name from modified UTF-7; one that breaks the coding stays as it is."""
    try:
        return str(decode_utf7(raw.encode("ascii")))
    except ValueError:
        return raw


def header_fields(header: bytes) -> dict[str, str]:
    """Return `SUMMARY_FIELDS`, unfolded, the first of each name; total on any bytes."""
    fields: dict[str, str] = {}
    text = header.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    for line in text.replace("\n ", " ").replace("\n\t", "\t").split("\n"):
        if not line:
            break
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if colon and name in SUMMARY_FIELDS:
            fields.setdefault(name, " ".join(value.split()))
    return fields
