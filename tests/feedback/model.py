"""A model of an IMAP server for random histories: folders, views of them, UIDs, and its faults.

`ModelSession` stands in for `imap_session.ImapSession`, so the real `ImapMailbox` and `Watcher`
work on it; `ModelMailbox` calls it without a thread. Each call may be the moment at which something
else happens on the server (`Server.inside`), or at which the connection ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

from spamd.feedback.mailboxes.folders import Listed
from spamd.feedback.mailboxes.imap import ImapMailbox
from spamd.feedback.mailboxes.imap_rows import Row, Status
from spamd.feedback.mailboxes.mailbox import FolderError, MailboxError
from tests.fakes import FakeClock

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Mail:
    """What somebody has sent."""

    number: int
    content: bytes

    @property
    def header(self) -> bytes:
        return self.content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    @property
    def identity(self) -> bytes:
        return b"<%d@model.test>" % self.number


@dataclass
class Copy:
    """A mail in a folder."""

    mail: Mail
    date: int
    flags: set[str] = field(default_factory=set)
    changed: int = 0


Show = Callable[[str, Copy], bool]
"""Whether a view shows a mail that lies in a folder."""


@dataclass
class Box:
    """A folder; with `shows`, one that only shows mail of others."""

    name: str
    attributes: frozenset[str] = frozenset()
    validity: int = 1
    next_uid: int = 1
    step: int = 1
    copies: dict[int, Copy] = field(default_factory=dict)
    shows: Show | None = None
    sources: dict[int, tuple[str, int, int]] = field(default_factory=dict)

    def add(self, copy: Copy) -> int:
        uid = self.next_uid
        self.next_uid += self.step
        self.copies[uid] = copy
        return uid

    def renumber(self) -> None:
        """Give all mails new UIDs, under a new UIDVALIDITY."""
        self.validity += 1
        copies, self.copies, self.next_uid = list(self.copies.values()), {}, 1
        for copy in copies:
            self.add(copy)


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How a server differs from a good one.

    keyless   folders whose UIDVALIDITY is 0; restless: a new one at each answer
    next_uid  it tells UIDNEXT
    modseq    it knows CONDSTORE
    forgets   every so many rows are left out of an answer to FETCH; 0: none
    """

    keyless: frozenset[str] = frozenset()
    restless: frozenset[str] = frozenset()
    next_uid: bool = True
    modseq: bool = True
    forgets: int = 0


@dataclass
class Server:
    """All folders of an account."""

    clock: FakeClock
    habits: Habits
    boxes: dict[str, Box] = field(default_factory=dict)
    changes: int = 1
    calls: int = 0
    rows: int = 0
    answers: int = 0
    inside: dict[int, Callable[[], None]] = field(default_factory=dict)
    ends_at: int | None = None

    def now(self) -> int:
        return int(self.clock.now().timestamp())

    def synced(self, name: str) -> Box:
        """Return a folder as it is now; what a view shows is found out."""
        box = self.boxes.get(name)
        if box is None:
            raise FolderError(f"no folder {name}")
        if box.shows is not None:
            shown = {
                (other.name, other.validity, uid): copy
                for other in self.boxes.values()
                if other.shows is None
                for uid, copy in other.copies.items()
                if box.shows(other.name, copy)
            }
            for uid, source in list(box.sources.items()):
                if source not in shown:
                    del box.sources[uid], box.copies[uid]
            known = set(box.sources.values())
            for source, copy in shown.items():
                if source not in known:
                    box.sources[box.add(copy)] = source
        return box

    def called(self) -> None:
        """Let happen what happens at this call."""
        self.calls += 1
        if happens := self.inside.pop(self.calls, None):
            happens()
        if self.ends_at is not None and self.calls >= self.ends_at:
            self.ends_at = None
            raise MailboxError("the connection ended")


class ModelSession:
    """What `ImapSession` asks of a server, answered by the model."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._selected = ""

    def has(self, capability: str) -> bool:
        return capability == "CONDSTORE" and self._server.habits.modseq

    def listed(self) -> list[Listed]:
        self._server.called()
        return [
            Listed(name=box.name, raw=box.name, attributes=box.attributes, delimiter="/")
            for box in self._server.boxes.values()
        ]

    def status(self, raw: str) -> Status:
        if raw == self._selected:
            return self.examine(raw)
        return self._status(raw)

    def examine(self, raw: str) -> Status:
        self._selected = ""
        status = self._status(raw)
        self._selected = raw
        return status

    def _status(self, raw: str) -> Status:
        server, habits = self._server, self._server.habits
        server.called()
        box = server.synced(raw)
        server.answers += 1
        validity = 0 if raw in habits.keyless else box.validity
        return Status(
            validity=server.answers if raw in habits.restless else validity,
            next_uid=box.next_uid if habits.next_uid else 0,
            modseq=server.changes if habits.modseq else 0,
            messages=len(box.copies),
        )

    def uids(self, raw: str, low: int, status: Status, keyword: str = "") -> list[int]:
        self._server.called()
        if status.messages == 0:
            return []
        box = self._server.synced(raw)
        return sorted(
            uid
            for uid, copy in box.copies.items()
            if uid >= low and (not keyword or keyword in copy.flags)
        )

    def rows(self, raw: str, uids: Sequence[int]) -> list[Row]:
        self._server.called()
        server, box = self._server, self._server.synced(raw)
        found = []
        for uid in uids:
            server.rows += 1
            forgotten = server.habits.forgets and server.rows % server.habits.forgets == 0
            if uid in box.copies and not forgotten:
                copy = box.copies[uid]
                row = Row(
                    uid=uid,
                    flags=frozenset(copy.flags),
                    delivered=datetime.fromtimestamp(copy.date, UTC),
                    header=copy.mail.header,
                )
                found.append(row)
        return found

    def content(self, raw: str, uid: int, limit: int) -> bytes | None:
        self._server.called()
        copy = self._server.synced(raw).copies.get(uid)
        return copy.mail.content[:limit] if copy else None

    def marked(self, raw: str, uids: Sequence[int], *marks: str) -> list[int]:
        if not uids:
            return []
        copies = self._copies(raw)
        wanted = {f"\\{mark.capitalize()}" for mark in marks}
        return [uid for uid in uids if uid in copies and copies[uid].flags & wanted]

    def unread(self, raw: str, low: int) -> list[int]:
        copies = self._copies(raw)
        return [uid for uid, copy in copies.items() if uid >= low and "\\Seen" not in copy.flags]

    def read_since(self, raw: str, modseq: int) -> list[int]:
        copies = self._copies(raw)
        return [
            uid for uid, copy in copies.items() if "\\Seen" in copy.flags and copy.changed >= modseq
        ]

    def changes_of(self, raw: str, uids: Sequence[int]) -> dict[int, int]:
        copies = self._copies(raw)
        return {uid: copies[uid].changed if uid in copies else 0 for uid in uids}

    def _copies(self, raw: str) -> dict[int, Copy]:
        self._server.called()
        return self._server.synced(raw).copies

    def holds(self, raw: str, identity: str) -> bool:
        self._server.called()
        copies = self._server.synced(raw).copies.values()
        return any(copy.mail.identity == identity.encode() for copy in copies)


class ModelMailbox(ImapMailbox):
    """An IMAP account on the model."""

    server: Server

    async def open(self) -> None:
        self._session = ModelSession(self.server)  # type: ignore[assignment] # the model
        self._polled = {}

    async def close(self) -> None:
        """Nothing is held open."""

    async def _call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)
