"""In-memory twins of the ports of feedback; `test_contracts` holds them to the ports' word."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from spamd.bayes.decision import Verdict
from spamd.bayes.selection import Standing
from spamd.errors import StorageUnavailable
from spamd.feedback.durable_teacher import DurableTeacher, Knowledge
from spamd.feedback.ports import (
    AccountState,
    Cursor,
    Held,
    KeptMessage,
    KeptState,
    Known,
    LeaseHolder,
    Parked,
    Sighting,
    WatchedAccount,
)
from spamd.feedback.teacher import Teacher
from spamd.lists.ports import Written
from spamd.message.features import Features, extract
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.ports import KEPT
from spamd.training.trainer import Trainer
from spamd.training.user_ports import UserUnitOfWork
from spamd.training.user_trainer import UserTrainer
from tests.fakes import FakeClock

WAITING = {KeptState.UNREAD, KeptState.READ}


@dataclass
class FakeMailboxes:
    """Cursors, traces, kept and parked mails (the ports `Mailboxes` and `KeptMessages`)."""

    rows: dict[tuple[str, str], Cursor] = field(default_factory=dict)
    sightings: dict[tuple[str, str, str], Sighting] = field(default_factory=dict)
    parked_rows: dict[tuple[str, str, str], Parked] = field(default_factory=dict)
    kept: dict[tuple[str, str, str], KeptMessage] = field(default_factory=dict)
    saves: int = 0
    down_after: int | None = None

    async def cursors(self, account: str) -> Mapping[str, Cursor]:
        return {folder: row for (name, folder), row in self.rows.items() if name == account}

    async def lying(self, account: str, folder: str) -> Sequence[Sighting]:
        return [
            row
            for (name, where, _), row in self.sightings.items()
            if name == account and where == folder
        ]

    async def seen(self, account: str, mails: Sequence[bytes]) -> Mapping[bytes, list[Sighting]]:
        wanted = set(mails)
        found: dict[bytes, list[Sighting]] = {}
        for (name, _, _), row in self.sightings.items():
            if name == account and row.mail in wanted:
                found.setdefault(row.mail, []).append(row)
        return found

    async def save(
        self,
        account: str,
        cursors: Sequence[Cursor],
        came: Sequence[Sighting] = (),
        left: Sequence[tuple[str, str]] = (),
    ) -> None:
        if self.down_after is not None and self.saves >= self.down_after:
            raise StorageUnavailable("the database is away")
        self.saves += 1
        for cursor in cursors:
            self.rows[account, cursor.folder] = cursor
        for folder, key in left:
            self.sightings.pop((account, folder, key), None)
            row = self.kept.get((account, folder, key))
            if row is not None and row.state in WAITING:
                del self.kept[account, folder, key]
        for one in came:
            self.sightings[account, one.folder, one.key] = one

    async def rename(self, account: str, old: str, new: str) -> None:
        await self.forget(account, new)
        if cursor := self.rows.pop((account, old), None):
            self.rows[account, new] = replace(cursor, folder=new)
        for name, folder, key in list(self.sightings):
            if (name, folder) == (account, old):
                row = self.sightings.pop((name, folder, key))
                self.sightings[name, new, key] = replace(row, folder=new)
        for name, folder, key in list(self.kept):
            if (name, folder) == (account, old):
                kept = self.kept.pop((name, folder, key))
                self.kept[name, new, key] = replace(kept, folder=new)

    async def forget(self, account: str, folder: str) -> None:
        self.rows.pop((account, folder), None)
        for rows in (self.sightings, self.kept):
            for name, where, key in list(rows):
                if (name, where) == (account, folder):
                    del rows[name, where, key]

    async def waiting(self, account: str) -> Sequence[KeptMessage]:
        return [
            row
            for (name, _, _), row in self.kept.items()
            if name == account and row.state in WAITING
        ]

    async def put(
        self, account: str, rows: Sequence[KeptMessage], gone: Sequence[tuple[str, str]] = ()
    ) -> None:
        for folder, key in gone:
            self.kept.pop((account, folder, key), None)
        for row in rows:
            self.kept[account, row.folder, row.key] = row

    async def teachable(self, most: int) -> Sequence[tuple[str, KeptMessage]]:
        rows = [
            (name, row)
            for (name, folder, key), row in self.kept.items()
            if row.state is KeptState.KEPT
            and (lying := self.sightings.get((name, folder, key))) is not None
            and lying.mail == row.mail
        ]
        return rows[:most]

    async def standing(self, since: datetime, today: datetime) -> Standing:
        return Standing()

    async def unsure(
        self, account: str, actor: str, since: datetime
    ) -> tuple[Sequence[float], Sequence[float]]:
        return (), ()

    async def park(self, parked: Parked) -> None:
        self.parked_rows[parked.account, parked.folder, parked.uid] = parked

    async def parked(self, account: str | None = None) -> Sequence[Parked]:
        rows = [row for row in self.parked_rows.values() if account in {None, row.account}]
        return sorted(rows, key=lambda row: row.time)

    async def unpark(self, account: str, folder: str, uid: str) -> None:
        self.parked_rows.pop((account, folder, uid), None)


@dataclass
class EveryKept:
    """Chooses all that is kept (the port `Choice`)."""

    mailboxes: FakeMailboxes

    async def chosen(self, account: str, actor: str) -> list[KeptMessage]:
        return [row for name, row in await self.mailboxes.teachable(1000) if name == account]


@dataclass
class FakeAccounts:
    """How accounts fare."""

    rows: dict[str, WatchedAccount] = field(default_factory=dict)
    times: dict[str, datetime] = field(default_factory=dict)

    async def accounts(self) -> Sequence[WatchedAccount]:
        there = [row for row in self.rows.values() if row.state is not AccountState.LEFT]
        return sorted(there, key=lambda row: row.name)

    async def write(self, accounts: Sequence[WatchedAccount], watched: datetime) -> None:
        self.rows |= {row.name: row for row in accounts}
        self.times |= dict.fromkeys((row.name for row in accounts), watched)

    async def leave(self, kept: Collection[str]) -> None:
        for name, row in self.rows.items():
            if name not in kept:
                self.rows[name] = replace(row, state=AccountState.LEFT)


@dataclass
class FakeHeld:
    """Held lessons; of those in force it knows what the journal knows."""

    journal: "FakeJournal | None" = None
    rows: list[Held] = field(default_factory=list)
    numbers: int = 0

    async def hold(self, held: Sequence[Held]) -> None:
        for one in held:
            digest = one.features.digest
            self.rows = [row for row in self.rows if row.features.digest != digest]
            self.numbers += 1
            self.rows.append(replace(one, number=self.numbers))

    async def held(self) -> Sequence[Held]:
        return list(self.rows)

    async def drop(self, numbers: Sequence[int]) -> int:
        before = len(self.rows)
        self.rows = [row for row in self.rows if row.number not in numbers]
        return before - len(self.rows)

    async def contradictions(self, actor: str, since: datetime) -> int:
        held = sum(row.actor == actor and row.time >= since for row in self.rows)
        return held + (self.journal.contradictions(actor, since) if self.journal else 0)


@dataclass
class FakeLeases:
    """Leases that run out by the clock."""

    clock: Clock
    rows: dict[str, LeaseHolder] = field(default_factory=dict)
    away: bool = False

    async def acquire(self, name: str, holder: str, seconds: float) -> bool:
        now = self.clock.now()
        row = self.rows.get(name)
        ahead = now + timedelta(seconds=seconds)
        if row and row.holder != holder and row.expires > now and row.renewed <= ahead:
            return False
        self.rows[name] = LeaseHolder(holder=holder, renewed=now, expires=ahead)
        old = now - timedelta(days=1)
        self.rows = {name: row for name, row in self.rows.items() if row.expires >= old}
        return True

    async def acquire_all(self, names: Sequence[str], holder: str, seconds: float) -> Set[str]:
        return {name for name in names if await self.acquire(name, holder, seconds)}

    async def release(self, names: Sequence[str], holder: str) -> None:
        for name in names:
            row = self.rows.get(name)
            if row is not None and row.holder == holder:
                del self.rows[name]

    async def holder(self, name: str) -> LeaseHolder | None:
        return (await self.held(name)).get(name)

    async def held(self, start: str) -> Mapping[str, LeaseHolder]:
        if self.away:
            raise StorageUnavailable("the database is away")
        now = self.clock.now()
        return {
            name: row
            for name, row in self.rows.items()
            if name.startswith(start) and row.holds(now)
        }


@dataclass
class FakeJournal(Trainer):
    """Journal and scan log in one: teaches like `training.Trainer`, knows like `History`.

    lessons  digest → (label, source, actor), in the order of learning
    history  every act of teaching that changed something
    sources  where each of these came from
    rehearsals  how often lessons were mixed again
    refreshed   how many acts of teaching there were when old lessons were learned again, and
                whether by their first scores
    """

    clock: Clock
    ids: dict[str, Known] = field(default_factory=dict)
    samples: dict[bytes, Features] = field(default_factory=dict)
    lessons: dict[bytes, tuple[Label, str, str]] = field(default_factory=dict)
    history: list[tuple[bytes, Label]] = field(default_factory=list)
    down: bool = False
    rehearsals: int = 0
    refresh_fails: bool = False
    refreshed: list[tuple[int, bool]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    times: dict[bytes, datetime] = field(default_factory=dict)

    def contradictions(self, actor: str, since: datetime) -> int:
        """Return how many lessons of a person since then contradict a clear verdict."""
        clear = {(Label.SPAM, Verdict.HAM), (Label.HAM, Verdict.SPAM)}
        verdicts = {known.digest: known.verdict for known in self.ids.values()}
        return sum(
            self.times[digest] >= since and by == actor and (label, verdicts.get(digest)) in clear
            for digest, (label, _, by) in self.lessons.items()
        )

    def scanned(
        self, content: bytes, identity: str, verdict: Verdict, when: datetime | None = None
    ) -> Features:
        """Remember a scan of a mail, as the relay does."""
        features = extract(content)
        probability = {Verdict.SPAM: 0.99, Verdict.HAM: 0.01}.get(verdict, 0.5)
        self.ids[identity] = Known(
            digest=features.digest,
            scanned=when or self.clock.now(),
            verdict=verdict,
            probability=probability,
        )
        self.samples[features.digest] = features
        return features

    def taught(self, label: Label) -> int:
        """Return how many mails are taught as `label` now."""
        return sum(lesson[0] is label for lesson in self.lessons.values())

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Known]:
        return {one: self._with_lesson(self.ids[one]) for one in ids if one in self.ids}

    async def by_digest(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        scans = {known.digest: known for known in self.ids.values()}
        return {
            digest: self._with_lesson(scans.get(digest, Known(digest=digest)))
            for digest in digests
            if digest in scans or digest in self.lessons
        }

    async def kept(self, digest: bytes) -> Features | None:
        return self.samples.get(digest)

    async def train(
        self,
        batch: Sequence[Features],
        label: Label,
        *,
        source: str,
        actor: str,
        given: datetime | None = None,
    ) -> list[Outcome]:
        if self.down:
            raise StorageUnavailable("the database is away")
        outcomes = []
        for features in batch:
            old = self.lessons.get(features.digest)
            result = Result.LEARNED if old is None else Result.RELABELLED
            if old is not None and (old[0] is label or source == KEPT):
                result = Result.KNOWN
            else:
                self.lessons[features.digest] = (label, source, actor)
                self.history.append((features.digest, label))
                self.sources.append(source)
                self.times[features.digest] = self.clock.now()
            outcomes.append(
                Outcome(digest=features.digest, result=result, label=label, before=0.5, after=0.9)
            )
        return outcomes

    async def refresh(self, *, first_scores: bool) -> int:
        if self.refresh_fails:
            raise StorageUnavailable("the database is away")
        self.refreshed.append((len(self.history), first_scores))
        return 0

    async def rehearse(self) -> int:
        if self.down:
            raise StorageUnavailable("the database is away")
        self.rehearsals += 1
        return 0

    def _with_lesson(self, known: Known) -> Known:
        lesson = self.lessons.get(known.digest)
        return replace(known, label=lesson[0], source=lesson[1]) if lesson else known


def durable(journal: FakeJournal, teacher: Teacher) -> DurableTeacher:
    """Return what teaches for a client that names mails; nothing waits when that fails."""

    def no_work() -> UserUnitOfWork:
        raise NotImplementedError

    users = UserTrainer(unit_of_work=no_work, clock=FakeClock(), options=TrainingOptions())
    knowledge = Knowledge(
        history=journal, teacher=teacher, trainer=journal, own=teacher, users=users
    )
    return DurableTeacher(knowledge, None, FakeClock())


@dataclass
class FakeCorrespondents:
    """To whom users wrote (the port `Correspondents`), each address with the number of mails."""

    seen: dict[str, Counter[str]] = field(default_factory=dict)
    last: dict[tuple[str, str], datetime] = field(default_factory=dict)

    async def wrote(self, user: str, mails: Sequence[Written]) -> None:
        for mail in mails:
            for address in mail.addresses:
                if self.last.get((user, address)) != mail.time:
                    self.seen.setdefault(user, Counter())[address] += 1
                self.last[user, address] = mail.time

    def of(self, user: str) -> list[str]:
        return sorted(self.seen.get(user, ()))
