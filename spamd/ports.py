"""What the use cases need of the outside world, in domain words.

The relay asks an `Inspector`, training works on a `UnitOfWork`, everything that happens is told to
an `Observer`, and time comes from a `Clock`. The real ones live in `scanning`, `storage` and
`observe`; tests use the in-memory twins of `tests/fakes.py`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag, StrEnum
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.decision import Verdict
from spamd.bayes.learning import Effect
from spamd.bayes.model import Model
from spamd.message.envelope import Envelope
from spamd.message.features import Features, Texts
from spamd.report import ScanReport
from spamd.sample import Label, Sample


class Clock(Protocol):
    """Time, so that no test waits for it."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        ...


class Inspector(Protocol):
    """Who judges a message for the relay."""

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""
        ...

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> ScanReport:
        """Return the report on a message of about that size.

        `read` returns it (header and body as plain bytes, not dot-stuffed) and is called when its
        turn has come, so that no mail lies in memory while it waits; of one that is larger than
        `reads_bytes` it may be the start. `rest` then returns what stands for all of it
        (`identity.rest_of`); it is called in a thread. Content never makes it fail.

        Raises:
            Overloaded: others are in front; it is the client's to come again.
            TemporaryError: the message can't be judged now; `relay.on_fault` says what follows.
        """
        ...

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        ...


class ScanLog(Protocol):
    """Remembers what was said about a message until a person may disagree."""

    def record(self, report: ScanReport) -> None:
        """Keep the report for some days; never blocks, never fails."""
        ...


class Observer(Protocol):
    """Whom we tell what happened: log lines and metrics."""

    def scanned(self, report: ScanReport, *, reply: bytes, recipients: int) -> None:
        """Tell of one message: what was found, and the final reply the client got."""
        ...

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        """Tell of one lesson: outcome, and the probability of spam before and after it."""
        ...

    def held(self, lesson: "Held") -> None:
        """Tell of a lesson that waits for a review."""
        ...

    def watched(self, accounts: "Mapping[AccountState, int]") -> None:
        """Tell how many accounts are in which state."""
        ...

    def happened(self, event: str, **details: str | float) -> None:
        """Tell of an event (`noun.past_participle`) worth a line at info."""
        ...

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Tell of a fault to look at; the traceback goes to the log, never to a peer."""
        ...


# ── feedback: what people do with their mail ────────────────────────────────────────────────────


class Place(IntFlag):
    """Where in an account a mail lies; as flags, all the places it lies in."""

    INBOX = 1
    JUNK = 2
    OTHER = 4  # any folder that is neither of the above nor excluded (Trash, Sent, …)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a folder was read. One row for each (account, folder).

    account    "user@host:port" or "maildir:/path"
    folder     the folder's name as people see it (decoded)
    validity   UIDVALIDITY; 0: the server has none
    next_uid   the first UID that was not looked at
    modseq     highest CONDSTORE mod-sequence looked at; 0: the server has none
    messages   how many messages the folder held
    first_look UIDs below this one lay there already when we could have seen them come
    marked     UIDs seen with $Junk and with $NotJunk, as "3:7,12/8"; may be long
    time       when this was written (UTC)
    """

    account: str
    folder: str
    validity: int
    next_uid: int
    modseq: int
    messages: int
    first_look: int
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
    """What the feedback watchers remember between two looks; about 100 bytes for each mail.

    Sightings are what the folders held at the last look, no more: a mail that left is forgotten.
    """

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        """Return the cursors of an account by folder."""
        ...

    async def lying(self, account: str, folder: str) -> Sequence[Sighting]:
        """Return what a folder held at the last look."""
        ...

    async def seen(
        self, account: str, mails: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Sighting]]:
        """Return where mails lay at the last look; those that lay nowhere are left out."""
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


class Leases(Protocol):
    """Named leases in the database: of several equal workers one does the work."""

    async def acquire(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew a lease; False while somebody else's has not run out."""
        ...

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back; nothing happens when it is not ours."""
        ...

    async def holder(self, name: str) -> LeaseHolder | None:
        """Return who holds a lease, None when nobody does or it has run out."""
        ...


class ReportDesk(Protocol):
    """Takes mail sent to the report addresses (`spam@…`, `ham@…`); asked by the relay."""

    def label_for(self, recipient: bytes) -> Label | None:
        """Return what mail to this address (without angle brackets) teaches, None for any other."""
        ...

    async def take(self, content: bytes, label: Label, actor: str) -> str:
        """Learn the mails attached to a report and return the receipt, one line of ASCII text.

        `actor` is who logged in, else the address of the client.

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """
        ...


# ── storage: what was taught ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonHead:
    """One row of the journal without what it taught.

    source   where the label came from: "cli", "imap", "maildir", "address", "bootstrap", "import"
    actor    who said so, as the source knows them
    before   probability of spam before the lesson was learned, after: and after it, each 0 … 1
    """

    digest: bytes
    label: Label
    source: str
    actor: str
    sender_domain: str
    time: datetime
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One lesson with all that is needed to take it back exactly.

    sample   the tokens taught (at most `bayes.counts.TAUGHT_TOKENS`), facts and grams
    """

    digest: bytes
    label: Label
    source: str
    actor: str
    sender_domain: str
    time: datetime
    effect: Effect
    sample: Sample
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which lessons are meant: those that fit every condition that isn't None.

    newest   of these, only so many that were learned last
    """

    digests: tuple[bytes, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    source: str | None = None
    actor: str | None = None
    sender_domain: str | None = None
    label: Label | None = None
    newest: int | None = None


class UnitOfWork(Protocol):
    """One transaction on what was taught: nobody else changes it meanwhile.

    `async with` it; what is not committed never happened. Anything here may raise
    `StorageUnavailable`; nothing has changed then, and the same work may be tried again.
    """

    async def __aenter__(self) -> Self:
        """Wait for other writers, then begin."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End; what was not committed is undone."""
        ...

    async def listed(self, selection: Selection) -> Sequence[LessonHead]:
        """Return the lessons that fit, in the order of learning."""
        ...

    async def lessons(self, digests: Sequence[bytes]) -> Mapping[bytes, Lesson]:
        """Return those of these lessons that are in force, with what they taught."""
        ...

    async def model(self, ids: NDArray[np.int64]) -> Model:
        """Return a model of its own that knows these tokens (distinct, any order) and no others."""
        ...

    async def settle(self, digests: Sequence[bytes]) -> int:
        """Drop what waits for a review about these mails, as they are taught; return how many."""
        ...

    async def commit(self, learned: Sequence[Lesson], taken_back: Sequence[Lesson]) -> None:
        """Write what the model learned and unlearned since `model`, with its lessons; then commit.

        A digest may stand in both: first taken back, then learned anew.
        """
        ...


# ── services: what a daemon runs ────────────────────────────────────────────────────────────────


class Service(Protocol):
    """Something that stands while the process runs: a pool of connections, a relay."""

    async def start(self) -> None:
        """Begin; on return it works.

        Raises:
            ConfigError: a setting makes it impossible.
        """
        ...

    async def stop(self) -> None:
        """Finish what is in flight, and end."""
        ...


class Job(Protocol):
    """Work that goes on for ever beside the services: following the corpus, watching folders."""

    @property
    def name(self) -> str:
        """Return its name, for the log."""
        ...

    async def run(self) -> None:
        """Work until cancelled; when it fails it is started again after a pause."""
        ...


class Application(Protocol):
    """Everything one process runs.

    Start: ground, jobs, doors. Stop: doors, jobs, ground; so nobody comes in before all stands, and
    the last mail still finds everything in place.
    """

    @property
    def observer(self) -> Observer:
        """Return whom to tell of starts, stops and faults."""
        ...

    @property
    def ground(self) -> Sequence[Service]:
        """Return what the others stand on: storage, the corpus in memory."""
        ...

    @property
    def jobs(self) -> Sequence[Job]:
        """Return what runs beside."""
        ...

    @property
    def doors(self) -> Sequence[Service]:
        """Return what lets others in: the relay, metrics."""
        ...

    def reload(self) -> None:
        """Read certificates and settings again.

        Raises:
            ConfigError: they can't be used; the old ones stay.
        """
        ...
