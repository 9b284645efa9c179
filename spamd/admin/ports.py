"""What the page and the API read of the store, as Protocols with the rows they get.

Lists come in parts, newest first: the next part begins behind a `Place`, so none costs more than
another, however long the list is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spamd.admin.roles import Role
from spamd.bayes.counts import Totals
from spamd.bayes.decision import Action, Verdict
from spamd.bayes.model import Model
from spamd.lists.senders import Standing
from spamd.message.features import Features
from spamd.ports import Check
from spamd.report import ScanReport
from spamd.sample import Label, Sample
from spamd.training.ports import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFilter:
    """Which scans are meant: those that fit every condition that isn't None.

    id   our id of the message, or its beginning
    """

    verdict: Verdict | None = None
    action: Action | None = None
    listener: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    id: str | None = None
    queue_id: str | None = None

    @property
    def looks_through(self) -> bool:
        """Whether scans are looked through for those that fit: no index leads to them."""
        rare = (self.verdict, self.action, self.listener)
        return any(rare) and self.id is None and self.queue_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a part of a list begins: behind this row, towards older or newer ones.

    time   microseconds since 1970
    key    tells rows of the same time apart
    """

    time: int
    key: str
    newer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRow:
    """One scan as a list shows it.

    mail          the identity of the message in hex: lessons name it so
    label         the lesson in force about the message
    place         where the list goes on behind this row
    """

    id: str
    mail: str
    time: datetime
    verdict: Verdict
    action: Action
    probability: float | None
    listener: str
    queue_id: str
    label: Label | None
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRow:
    """One lesson as a list shows it; `id` is the identity of the message in hex."""

    id: str
    label: Label
    source: str
    actor: str
    sender_domain: str
    time: datetime
    before: float
    after: float
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class HourCount:
    """Mails answered within the hour that began at `hour`."""

    hour: datetime
    listener: str
    verdict: Verdict
    action: Action
    mails: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """Lessons of one source and label."""

    source: str
    label: Label
    lessons: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonGroup:
    """Lessons of one label, source and person, counted."""

    label: Label
    source: str
    actor: str
    lessons: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMail:
    """A lesson that waits for a review; `mail` is the identity of the message in hex."""

    number: int
    mail: str
    label: Label
    probability: float
    actor: str
    reason: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonGroups:
    """The largest of so many groups, most first, and the lessons of all of them by the label."""

    found: tuple[LessonGroup, ...]
    number: int
    lessons: Mapping[Label, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLesson:
    """A lesson that taught a word, so many times."""

    lesson: LessonRow
    occurrences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLessons:
    """The lessons that taught a word, as far as was looked; newest first.

    looked   lessons that were looked through
    behind   the number of the last of them, from which to look on; None: there are no more
    """

    found: tuple[WordLesson, ...]
    looked: int
    behind: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of the last evaluation; `content` is JSON."""

    time: datetime
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """Somebody who has logged in.

    digest  the SHA-256 of what the browser holds
    name    by what: the login ends when that is another by now
    """

    digest: bytes
    role: Role
    name: str
    created: datetime
    seen: datetime


class Records(Protocol):
    """The store as lists and single rows; whatever is asked may raise `StorageUnavailable`."""

    async def scans(self, chosen: ScanFilter, at: Place | None, limit: int) -> Sequence[ScanRow]:
        """Return scans, newest first, also when they stand before a place."""
        ...

    async def horizon(self, chosen: ScanFilter, at: Place | None, scans: int) -> datetime | None:
        """Return the time of the scan so many scans behind a place; None: there are fewer.

        Scans of any kind within the times of `chosen` count.
        """
        ...

    async def count_scans(self, chosen: ScanFilter, most: int) -> int:
        """Return how many scans fit, at most so many."""
        ...

    async def scan(self, name: str) -> tuple[ScanRow, Features] | None:
        """Return a scan by its id, or the last one of a message by its identity in hex."""
        ...

    async def hours(self, since: datetime, step: int = 1) -> Sequence[HourCount]:
        """Return how many mails there were by the hour, from that time on.

        With a step of more hours those are summed, from midnight (UTC) on, over all listeners.
        """
        ...

    async def lessons(
        self, selection: Selection, at: Place | None, limit: int
    ) -> Sequence[LessonRow]:
        """Return lessons, newest first, also when they stand before a place."""
        ...

    async def lesson(self, digest: bytes) -> LessonRow | None:
        """Return the lesson in force about a message."""
        ...

    async def sources(self) -> Sequence[SourceCount]:
        """Return all lessons, counted; most first."""
        ...

    async def count_held(self) -> int:
        """Return how many lessons wait for a review."""
        ...

    async def held(self, most: int) -> Sequence[HeldMail]:
        """Return the lessons that wait for a review, oldest first, at most so many."""
        ...

    async def groups(
        self, selection: Selection, most: int | None = None, *, people: bool = True
    ) -> LessonGroups:
        """Return the lessons that fit, counted: the largest groups; without `people` unnamed."""
        ...

    async def word(self, text: str, behind: int | None, within_s: float) -> WordLessons:
        """Return lessons that taught a word or pair, looking for so long."""
        ...

    async def samples(self, newest: int) -> Sequence[tuple[Sample, Label, str]]:
        """Return what the newest lessons of each label taught, oldest first, and the senders."""
        ...

    async def trial(self, name: str) -> Trial | None:
        """Return what was written under a name last."""
        ...

    async def write_trial(self, name: str, trial: Trial | None) -> None:
        """Write under a name, or remove what stands there."""
        ...


class Knowledge(Protocol):
    """What was learned, as of now; whatever is asked may raise `StorageUnavailable`."""

    async def model(self, ids: NDArray[np.int64]) -> Model:
        """Return a model of its own that knows these tokens and no others: a thread may use it."""
        ...

    async def totals(self) -> Totals:
        """Return how much was taught."""
        ...

    async def standing(self, features: Features) -> Standing:
        """Return what is known of the sender of a mail."""
        ...

    async def report(self, features: Features, user: str) -> ScanReport:
        """Return a user's report on a mail."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A disk on which we keep something; what we keep there is `used_bytes` of it."""

    name: str
    used_bytes: int
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting in force as TOML has it; `origin` is its file or variable, or "default"."""

    key: str
    value: str
    origin: str


class Site(Protocol):
    """What this worker knows of the machine and of itself; nothing here asks the database."""

    async def checks(self) -> Sequence[Check]:
        """Return what mail needs, and whether it is there."""
        ...

    def listeners(self) -> Sequence[str]:
        """Return the addresses at which we listen, each with its setting."""
        ...

    async def volumes(self) -> Sequence[Volume]:
        """Return the disks."""
        ...

    def settings(self) -> Sequence[SettingRow]:
        """Return the settings in force, secrets hidden."""
        ...

    def shows_people(self) -> bool:
        """Tell whether lists may name people (`log.privacy` is "full")."""
        ...


class Sessions(Protocol):
    """Who has logged in, for all workers."""

    async def open(self, session: StoredSession, *, ended: datetime, idle: datetime) -> None:
        """Add a session; remove those that were opened before `ended` or not used since `idle`."""
        ...

    async def find(self, digest: bytes) -> StoredSession | None:
        """Return a session."""
        ...

    async def seen(self, digest: bytes, time: datetime) -> None:
        """Note that a session was used."""
        ...

    async def close(self, digest: bytes | None) -> None:
        """Remove a session, or all of them."""
        ...
