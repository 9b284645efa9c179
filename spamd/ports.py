"""What several use cases need of the outside world: time, somebody to tell, a judge, a teacher.

What only one of them needs stands next to it: `relay/ports.py`, `feedback/ports.py`,
`training/ports.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from spamd.bayes.evidence import Explanation
from spamd.message.envelope import Envelope
from spamd.person import Person
from spamd.report import ScanReport, Verdicts
from spamd.sample import Label


class Clock(Protocol):
    """Time, so that no test waits for it."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        ...


class Observer(Protocol):
    """Whom we tell what happened: log lines and metrics."""

    def happened(self, event: str, **details: str | float) -> None:
        """Tell of an event (`noun.past_participle`) worth a line at info."""
        ...

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Tell of a fault to look at; the traceback goes to the log, never to a peer."""
        ...


class MessageObserver(Observer, Protocol):
    """Whom a listener tells what happened."""

    def scanned(self, report: ScanReport, *, listener: str, reply: bytes, recipients: int) -> None:
        """Tell of one message: what was found, and the final reply the client got.

        listener  the way it came in: "smtp", "lmtp", "milter", "spamc", "http"
        """


class People(Protocol):
    """Who knows for whom a mail is."""

    async def of(self, recipients: Sequence[bytes]) -> Mapping[bytes, Person]:
        """Return the person behind each recipient; who is not among them is judged as the site.

        It never fails, and never waits longer than a small limit: what is not known by then is said
        in `Person.missing`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that mail needs: whether it is there, and a sentence about it.

    The sentence is for anybody who asks: it names no address and quotes no fault.
    """

    name: str
    ok: bool
    text: str


class Health(Protocol):
    """Who tells how the daemon is."""

    async def checks(self) -> Sequence[Check]:
        """Return what mail needs, and whether it is there."""

    async def metrics(self) -> bytes:
        """Return what was counted, in the text format of Prometheus."""


class Inspector(Protocol):
    """Who judges a message for a listener."""

    @property
    def reads_bytes(self) -> int:
        """How much of the start of a message is looked at, lines ended by LF."""

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> Verdicts:
        """Return the verdicts on a message of about that size, for each of `envelope.readers`.

        `read` returns it (header and body as plain bytes, not dot-stuffed) and is called when its
        turn has come, so that no mail lies in memory while it waits; of one that is larger than
        `reads_bytes` it may be the start. `rest` then returns what stands for all of it
        (`identity.rest_of`); it is called in a thread. Content never makes it fail.

        Raises:
            Overloaded: others are in front; it is the client's to come again.
            TemporaryError: the message can't be judged now; `relay.on_fault` says what follows.
        """

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""

    def explain(self, report: ScanReport, clues: int) -> Explanation | None:
        """Return why the message was judged as it was, with so many clues for each classifier.

        The counts are those of now. None for a message that was not judged.
        """


class Taught(StrEnum):
    """What became of a message that a client told us to learn or to forget."""

    LEARNED = "learned"
    KNOWN = "known"  # it was taught before, with that label
    HELD = "held"  # it waits for a review
    WAITING = "waiting"  # it lies on the disk until the database answers
    FORGOTTEN = "forgotten"
    UNKNOWN = "unknown"  # it was never taught: nothing to forget


class MessageTeacher(Protocol):
    """Who learns and forgets single messages for a listener."""

    @property
    def personal(self) -> bool:
        """Whether people have filters of their own; else all is taught for the site."""

    async def knows(self, name: str) -> bool:
        """Tell whether somebody of that name has a filter of their own.

        Raises:
            TemporaryError: that can't be asked now.
        """

    async def learn(
        self, content: bytes, label: Label, *, source: str, actor: str, user: str = ""
    ) -> Taught:
        """Learn a message as it was scanned, if that is known, else as it is.

        source  the way it came in, as the journal keeps it: "spamc", "http"
        actor   who says so, as the listener knows them
        user    for whom, as the client names them; where that is nobody, for the site

        Raises:
            TemporaryError: nothing was learned; the client may come again.
        """

    async def forget(self, content: bytes, *, user: str = "") -> Taught:
        """Take back what a message taught, for all or only by this user.

        Raises:
            TemporaryError: nothing has changed; the client may come again.
        """


class Outcome(StrEnum):
    """What became of a message for one recipient, where the client's reply could not say it."""

    TAKEN = "taken"
    REFUSED = "refused"


class TakenStore(Protocol):
    """Remembers outcomes for all workers; messages and recipients are hashes (`relay.taken`).

    All raise StorageUnavailable when the database does not answer.
    """

    async def of(self, message: bytes) -> Mapping[bytes, Outcome]:
        """Return what is known of a message."""

    async def add(self, message: bytes, outcomes: Mapping[bytes, Outcome]) -> None:
        """Remember more of a message; what was taken stays taken."""

    async def since(self, time: int) -> tuple[Mapping[bytes, Mapping[bytes, Outcome]], int]:
        """Return all that was remembered since a time of the database, and the time by now."""
