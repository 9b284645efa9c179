"""In-memory twins of the ports, for tests."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from spamd.admin.ports import StoredSession
from spamd.bayes.decision import Action, Verdict
from spamd.bayes.evidence import Explanation
from spamd.feedback.ports import AccountState, Held
from spamd.message.envelope import Envelope
from spamd.ports import Check, Taught
from spamd.report import ScanReport, Verdicts
from spamd.sample import Label


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_800_000_000 + self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


def fake_report(
    verdict: Verdict = Verdict.HAM,
    action: Action = Action.ACCEPT,
    *,
    probability: float | None = 0.01,
    reason: str = "as told",
    size_bytes: int = 0,
) -> ScanReport:
    """Return a report with this verdict and action."""
    return ScanReport(
        id="fake-id",
        verdict=verdict,
        action=action,
        reason=reason,
        probability=probability,
        required=0.9,
        scores={},
        size_bytes=size_bytes,
        tokens=0,
        known=0,
        duration_s=0.0,
        features=None,
    )


HAM = fake_report()
SPAM = fake_report(Verdict.SPAM, Action.TAG, probability=0.999)
REJECT = fake_report(Verdict.SPAM, Action.REJECT, probability=0.999)


@dataclass
class FakeInspector:
    """Judges as it is told and remembers what it saw.

    answer  the report, or how to make one of the content
    own     the reports of recipients whose own differ
    fault   raised instead
    gate    waited for before anything else
    """

    answer: ScanReport | Callable[[bytes], ScanReport] = HAM
    own: Mapping[bytes, ScanReport] = field(default_factory=dict)
    fault: BaseException | None = None
    gate: asyncio.Event | None = None
    seen: list[tuple[bytes, Envelope]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    reads_bytes: int = 4 * 2**20

    async def inspect(
        self,
        read: Callable[[], bytes],
        size_bytes: int,
        envelope: Envelope,
        rest: Callable[[], bytes],
    ) -> Verdicts:
        content = read()
        self.seen.append((content, envelope))
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        site = self.answer if isinstance(self.answer, ScanReport) else self.answer(content)
        own = {address: self.own[address] for address in envelope.readers if address in self.own}
        return Verdicts(site=site, own=own)

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        return fake_report(
            Verdict.UNSCANNED, probability=None, reason=reason, size_bytes=size_bytes
        )

    def explain(self, report: ScanReport, clues: int) -> Explanation | None:
        return None


class NoTeacher:
    """Learns nothing (`ports.MessageTeacher`)."""

    personal = False

    async def knows(self, name: str) -> bool:
        return False

    async def learn(
        self, content: bytes, label: Label, *, source: str, actor: str, user: str = ""
    ) -> Taught:
        raise NotImplementedError

    async def forget(self, content: bytes, *, user: str = "") -> Taught:
        raise NotImplementedError


@dataclass
class FakeTeacher:
    """Answers as it is told and remembers what it was given (`ports.MessageTeacher`).

    fault   raised instead
    known   names of those who have filters of their own, where people have any
    users   for whom it was asked to teach or to forget, in order
    """

    answer: Taught = Taught.LEARNED
    fault: BaseException | None = None
    learned: list[tuple[bytes, Label, str, str]] = field(default_factory=list)
    forgotten: list[bytes] = field(default_factory=list)
    known: tuple[str, ...] = ()
    users: list[str] = field(default_factory=list)

    @property
    def personal(self) -> bool:
        return bool(self.known)

    async def knows(self, name: str) -> bool:
        return name in self.known

    async def learn(
        self, content: bytes, label: Label, *, source: str, actor: str, user: str = ""
    ) -> Taught:
        if self.fault is not None:
            raise self.fault
        self.learned.append((content, label, source, actor))
        self.users.append(user)
        return self.answer

    async def forget(self, content: bytes, *, user: str = "") -> Taught:
        if self.fault is not None:
            raise self.fault
        self.forgotten.append(content)
        self.users.append(user)
        return self.answer


class FakeHealth:
    """Tells what it was given (`ports.Health`)."""

    def __init__(self, *checks: Check) -> None:
        self._checks = checks

    async def checks(self) -> Sequence[Check]:
        return self._checks

    async def metrics(self) -> bytes:
        return b"spamd_workers 1.0\n"


class FakeSessions:
    """Remembers who has logged in (`admin.ports.Sessions`)."""

    def __init__(self) -> None:
        self.rows: dict[bytes, StoredSession] = {}

    async def open(self, session: StoredSession, *, ended: datetime, idle: datetime) -> None:
        gone = [row.digest for row in self.rows.values() if row.created < ended or row.seen < idle]
        for digest in gone:
            del self.rows[digest]
        self.rows[session.digest] = session

    async def find(self, digest: bytes) -> StoredSession | None:
        return self.rows.get(digest)

    async def seen(self, digest: bytes, time: datetime) -> None:
        self.rows[digest] = replace(self.rows[digest], seen=time)

    async def close(self, digest: bytes | None) -> None:
        for one in [*self.rows] if digest is None else [digest]:
            self.rows.pop(one, None)


@dataclass
class FakeObserver:
    """Remembers what it was told."""

    scans: list[tuple[ScanReport, bytes, int]] = field(default_factory=list)
    lessons: list[tuple[Label, str, str, float, float]] = field(default_factory=list)
    holdings: list[Held] = field(default_factory=list)
    states: Mapping[AccountState, int] = field(default_factory=dict)
    events: list[tuple[str, dict[str, str | float]]] = field(default_factory=list)
    faults: list[tuple[str, BaseException]] = field(default_factory=list)

    def scanned(self, report: ScanReport, *, listener: str, reply: bytes, recipients: int) -> None:
        self.scans.append((report, reply, recipients))

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        self.lessons.append((label, source, outcome, before, after))

    def held(self, lesson: Held) -> None:
        self.holdings.append(lesson)

    def watched(self, accounts: Mapping[AccountState, int]) -> None:
        self.states = accounts

    def happened(self, event: str, **details: str | float) -> None:
        self.events.append((event, details))

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        self.faults.append((event, error))
