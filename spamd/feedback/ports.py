"""What feedback remembers between two polls, as Protocols with the rows they hold.

`storage` implements them; tests use the in-memory ones of `tests/feedback/fakes.py`.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from spamd.bayes.decision import Verdict
from spamd.bayes.selection import Standing
from spamd.message.features import Features
from spamd.ports import Observer
from spamd.sample import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A mail where it lay when its folder was looked at last. One row for each (folder, key).

    folder     its name as people see it (decoded)
    key        IMAP UID or Maildir base name, as text
    mail       16 bytes over its header: the same in every folder it lies in
    delivered  when it was delivered to the account, in seconds since 1970; 0: unknown
    """

    folder: str
    key: str
    mail: bytes
    delivered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a folder was read. One row for each (account, folder).

    account    "user@host:port" or "maildir:/path"
    folder     the folder's name as people see it (decoded)
    validity   UIDVALIDITY; 0: the server has none
    next_uid   the first UID that was not looked at
    modseq     highest CONDSTORE mod-sequence looked at; 0: the server has none
    messages   how many messages the folder held
    baseline UIDs below this one lay there already when we could have seen them come
    marked     UIDs seen with $Junk and with $NotJunk, as "3:7,12/8"; may be long
    time       when this was written (UTC)
    """

    account: str
    folder: str
    validity: int
    next_uid: int
    modseq: int
    messages: int
    baseline: int
    marked: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A mail that could not be learned. One row for each (account, folder, uid).

    uid        IMAP UID or Maildir base name, as text
    attempts   how often it was tried; it is given up at `feedback.attempts`
    reason     one sentence
    label      what it is taught as once it can be read; None: nothing, or nobody knows yet
    """

    account: str
    folder: str
    validity: int
    uid: str
    attempts: int
    reason: str
    time: datetime
    label: Label | None = None


class Mailboxes(Protocol):
    """What the feedback watchers remember between two polls; about 100 bytes for each mail.

    Sightings are what the folders held at the last poll, no more: a mail that left is forgotten.
    """

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        """Return the cursors of an account by folder."""
        ...

    async def lying(self, account: str, folder: str) -> Sequence[Sighting]:
        """Return what a folder held at the last poll."""
        ...

    async def seen(
        self, account: str, mails: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Sighting]]:
        """Return where mails lay at the last poll; those that lay nowhere are left out."""
        ...

    async def save(
        self,
        account: str,
        cursors: Sequence[Cursor],
        came: Sequence[Sighting] = (),
        left: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Write cursors, forget the mails that left (folder, key), add those that came.

        All in one transaction: what was seen and how far was read are never at odds.
        """
        ...

    async def rename(self, account: str, old: str, new: str) -> None:
        """Give a folder's cursor and sightings to a new name, in place of what that had."""
        ...

    async def forget(self, account: str, folder: str) -> None:
        """Remove the cursor and the sightings of a folder that is gone."""
        ...

    async def park(self, parked: Parked) -> None:
        """Insert or replace one row of the mails that could not be learned."""
        ...

    async def parked(self, account: str | None = None) -> Sequence[Parked]:
        """Return the mails that could not be learned, of one account or of all, oldest first."""
        ...

    async def unpark(self, account: str, folder: str, uid: str) -> None:
        """Remove a row of `park`; nothing happens when it is not there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What we said about a mail, and what it was taught as.

    scanned      when we judged it (UTC); None: never, or forgotten since
    verdict      what we said then; None like `scanned`
    probability  of spam, as we said it then; None like `scanned`
    label        the lesson in force; None: it was not taught
    source       where that lesson came from ("imap", "cli", …); None like `label`
    before       probability before that lesson was learned, after: and after it
    """

    digest: bytes
    scanned: datetime | None = None
    verdict: Verdict | None = None
    probability: float | None = None
    label: Label | None = None
    source: str | None = None
    before: float | None = None
    after: float | None = None


class KeptState(StrEnum):
    """How far a mail has come on its way to a lesson of the source "kept"."""

    UNREAD = "unread"  # it came to the inbox and waits for its reader
    READ = "read"  # a person has read it; will he leave it where it is?
    KEPT = "kept"  # he did: it may be taught
    TAUGHT = "taught"  # it was; when that is taken back, it is not taught again


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptScan:
    """What we said of a mail that was kept, when it came; `sender` is its sender's domain."""

    digest: bytes
    verdict: Verdict
    probability: float
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMessage:
    """A mail that its owner may read and keep. One row for each (account, folder, key).

    key          IMAP UID or Maildir base name, as text
    mail         16 bytes over its header, as in `Sighting`
    came         when it was delivered, or seen for the first time (UTC)
    since        when it came into this state (UTC)
    deliberate   its owner has answered, flagged or filed it
    scan         what we said of it; None until it is kept
    """

    folder: str
    key: str
    mail: bytes
    state: KeptState
    came: datetime
    since: datetime
    deliberate: bool = False
    scan: KeptScan | None = None


class KeptMessages(Protocol):
    """The mail of the last days that came to an inbox unread; about 100 bytes for each.

    What left its folder before it was kept is forgotten by `Mailboxes.save`. What was kept stays
    some days, as it tells how often mail in the inbox was right there.
    """

    async def waiting(self, account: str) -> Sequence[KeptMessage]:
        """Return the mail of an account that is unread, or read and not kept yet."""
        ...

    async def put(
        self, account: str, rows: Sequence[KeptMessage], gone: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Forget mails (folder, key), then insert or replace rows."""
        ...

    async def teachable(self, most: int) -> Sequence[tuple[str, KeptMessage]]:
        """Return mails that are kept and may be taught, each with its account.

        They lie where they lay, and no lesson is in force about them; of more than `most`, those
        that we were least sure of.
        """
        ...

    async def standing(self, since: datetime, today: datetime) -> Standing:
        """Return what people taught since a time by mailboxes and reports; command lines aside.

        From the time `today` on, lessons of kept mail count as those of this day.
        """
        ...

    async def unsure(
        self, account: str, actor: str, since: datetime
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return the probabilities of unsure mail that a person moved to Junk, and of what he kept.

        As we said them when it came, oldest first.
        """
        ...


class History(Protocol):
    """What we know about mails: the `scan` and `lesson` tables, read only."""

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Known]:
        """Return what is known under each of our ids; forged and unknown ones are left out."""
        ...

    async def by_digest(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        """Return what is known under each digest, scanned or only taught; unknown: left out."""
        ...

    async def kept(self, digest: bytes) -> Features | None:
        """Return the features as they were scanned, None when they are no longer kept."""
        ...


class AccountState(StrEnum):
    """How an account fares."""

    NOT_YET = "not yet"  # nobody has reached it since the watchers began
    WATCHING = "watching"
    LOST = "lost"
    LEFT = "left"  # nobody is to watch it any more


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedAccount:
    """One account that is to be watched.

    name     "user@host:port" or "maildir:/path", as in `Cursor`
    since    when it came into this state (UTC)
    reason   why it is lost, in words; else empty
    silent   its server tells nothing in IDLE: moves are found by the poll
    """

    name: str
    state: AccountState
    since: datetime
    reason: str
    silent: bool


class Accounts(Protocol):
    """How the watched accounts fare, for other processes to see."""

    async def accounts(self) -> Sequence[WatchedAccount]:
        """Return the accounts that are to be watched, by name."""
        ...

    async def write(self, accounts: Sequence[WatchedAccount], watched: datetime) -> None:
        """Insert or replace the states of accounts that are watched at that time."""
        ...

    async def leave(self, kept: Collection[str]) -> None:
        """Say of all accounts but these that nobody watches them any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lesson that waits for a review: it belongs to a burst that contradicts the model.

    number        given by the store, 0 before
    probability   what the model says of the mail, 0 … 1
    """

    number: int
    features: Features
    label: Label
    source: str
    actor: str
    probability: float
    reason: str
    time: datetime

    @property
    def verdict(self) -> Verdict:
        """What we said of the mail: unsure contradicts nothing, so it was the other label."""
        return Verdict.HAM if self.label is Label.SPAM else Verdict.SPAM


class HeldLessons(Protocol):
    """Lessons that were not learned yet; `spamd lessons held|release|drop`."""

    async def hold(self, held: Sequence[Held]) -> None:
        """Store lessons; one with the same digest as another replaces it."""
        ...

    async def held(self) -> Sequence[Held]:
        """Return the lessons that wait, oldest first."""
        ...

    async def drop(self, numbers: Sequence[int]) -> int:
        """Remove lessons and return how many there were."""
        ...

    async def contradictions(self, actor: str, since: datetime) -> int:
        """Return how many lessons of a person since then contradict a clear verdict.

        Those in force and those that wait, whichever process took them.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """Who holds a lease, and since when and until when it was last renewed (UTC)."""

    holder: str
    renewed: datetime
    expires: datetime

    def holds(self, now: datetime) -> bool:
        """Return whether the lease has not run out.

        One renewed further ahead than it lasts is from before the clock was set back: nobody's.
        """
        return self.renewed - (self.expires - self.renewed) <= now < self.expires


class Leases(Protocol):
    """Named leases in the database: of several equal workers one does the work."""

    async def acquire(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew a lease; False while somebody else's has not run out."""
        ...

    async def acquire_all(self, names: Sequence[str], holder: str, seconds: float) -> Set[str]:
        """Take or renew leases in one transaction; return those that are ours now."""
        ...

    async def release(self, names: Sequence[str], holder: str) -> None:
        """Give leases back; nothing happens to those that are not ours."""
        ...

    async def holder(self, name: str) -> LeaseHolder | None:
        """Return who holds a lease, None when nobody does or it has run out."""
        ...

    async def held(self, start: str) -> Mapping[str, LeaseHolder]:
        """Return the leases that somebody holds, by name, of those whose names begin so."""
        ...


class FeedbackObserver(Observer, Protocol):
    """Whom feedback tells what happened."""

    def held(self, lesson: Held) -> None:
        """Tell of a lesson that waits for a review."""
        ...

    def watched(self, accounts: Mapping[AccountState, int]) -> None:
        """Tell how many accounts are in which state."""
        ...
