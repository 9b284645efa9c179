"""What training needs of storage, as Protocols: lessons, and one transaction on what was taught.

`storage` implements them; the values are dataclasses, never rows.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.learning import Effect
from spamd.bayes.model import Model
from spamd.message.features import Features, Texts
from spamd.sample import Label, Sample

T = TypeVar("T")

KEPT = "kept"
"""The source of lessons that nobody gave by hand: a person has read a mail and left it where it
was. Such a lesson replaces no other, and any other replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonSummary:
    """One row of the journal without what it taught.

    source   where the label came from: "cli", "imap", "maildir", "address", "kept", "import", …
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
    oldest   of these, only so many that were learned, or rehearsed, longest ago
    """

    digests: tuple[bytes, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    source: str | None = None
    actor: str | None = None
    sender_domain: str | None = None
    label: Label | None = None
    newest: int | None = None
    oldest: int | None = None

    def __post_init__(self) -> None:
        """Check that one end is meant."""
        if self.newest is not None and self.oldest is not None:
            raise ValueError("newest and oldest are two ends of a list")

    def end_of(self, lessons: Sequence[T]) -> Sequence[T]:
        """Return those at the end that is meant, of lessons in the order of learning."""
        return lessons[: self.oldest] if self.oldest is not None else lessons[-(self.newest or 0) :]


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

    async def listed(self, selection: Selection) -> Sequence[LessonSummary]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLesson:
    """What somebody taught while the database was away.

    label   None: what the mail taught is to be taken back
    given   when (UTC)
    user    for whom, as they were named; "" for the site
    """

    features: Features
    label: Label | None
    source: str
    actor: str
    given: datetime
    user: str = ""


class WaitingLessons(Protocol):
    """Lessons on the disk of this machine that wait for the database; its processes share them."""

    @property
    def any(self) -> bool:
        """Whether lessons wait."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much waits."""
        ...

    async def keep(self, lessons: Sequence[WaitingLesson]) -> None:
        """Write lessons down, after those that wait; on return they outlive a loss of power.

        Raises:
            StorageUnavailable: they can't be written, or there is no more room.
        """
        ...

    async def take(self, learn: Callable[[WaitingLesson], Awaitable[None]]) -> tuple[int, int]:
        """Have all that waits learned in order, then forget it; another process may be at it.

        Return how many lessons that were, and how many could not be read. A process that ends
        meanwhile leaves all of them: learning one twice must be the same as once.
        """
        ...


class TrainingObserver(Protocol):
    """Whom training tells of each lesson."""

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        """Tell of one lesson: outcome, and the probability of spam before and after it."""
        ...
