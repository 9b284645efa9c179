"""What teaching for one user needs of storage: their lessons, and what all of them say together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from spamd.bayes.own import Layer
from spamd.message.features import Texts
from spamd.sample import Label, Sample
from spamd.training.ports import Lesson, UnitOfWork

AGREED = "users"
"""The source of lessons of the site that users have given together; they name none of them."""


BY_COMMAND = "cli"
"""The source of lessons that somebody gave for the site at a command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Where something of a user lies besides under their name.

    actors     names under which they have taught
    accounts   names of their watched accounts
    scans      ids of scans of mail that bears their address
    """

    actors: Collection[str] = ()
    accounts: Collection[str] = ()
    scans: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLesson:
    """What one user says of one mail.

    origin  list or address that it came from (`message.tokens.origin`)
    """

    digest: bytes
    label: Label
    source: str
    sender_domain: str
    origin: int
    time: datetime
    sample: Sample
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLessonSummary:
    """One lesson without what it taught."""

    digest: bytes
    label: Label
    source: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What users say of a mail together.

    label  None: they do not agree, or one contradicts what others say of such mail
    kept   nobody has said it by hand
    """

    label: Label | None
    kept: bool


class UserLessons(Protocol):
    """The lessons of users, within one transaction (`training.ports.UnitOfWork`)."""

    async def listed(
        self, user: str, digests: Sequence[bytes]
    ) -> Mapping[bytes, UserLessonSummary]:
        """Return those of these mails that a user has taught."""
        ...

    async def lessons(self, user: str) -> Sequence[UserLesson]:
        """Return all that a user has taught, in the order of the lessons."""
        ...

    async def digests(self, user: str) -> Sequence[bytes]:
        """Return all mails that a user has taught, in the order of the lessons."""
        ...

    async def add(self, user: str, lessons: Sequence[UserLesson]) -> Collection[bytes]:
        """Write lessons in place of older ones; return of which mails the site hears anew."""
        ...

    async def remove(self, user: str, digests: Sequence[bytes]) -> Collection[bytes]:
        """Delete lessons; return of which mails the site hears anew."""
        ...

    async def remove_all(
        self, digests: Sequence[bytes], given_before: datetime | None
    ) -> tuple[Mapping[bytes, Label], Collection[bytes]]:
        """Delete what all users have taught of these mails, with a time only what is older.

        Return which mails those were, each with a label that it had, and of which the site hears
        anew.
        """
        ...

    async def agreed(self, digests: Collection[bytes]) -> Mapping[bytes, Agreed]:
        """Return what users say together of each of these mails."""
        ...

    async def taught(self, digests: Sequence[bytes]) -> Mapping[bytes, UserLesson]:
        """Return what these mails hold, as who first said so taught it, else who kept it."""
        ...

    async def layer(self, user: str, site: Mapping[bytes, Lesson | None] = ...) -> Layer | None:
        """Return a user's layer; `site` is what the site has by mails of late, None: no lesson."""
        ...


class UserUnitOfWork(UnitOfWork, Protocol):
    """A transaction that teaches for a user, and the site as far as users agree."""

    @property
    def users(self) -> UserLessons:
        """The lessons of users in it."""
        ...

    async def forget_rest(self, user: str, traces: Traces) -> Mapping[str, int]:
        """Remove what is known of a user but their lessons; return how much it was, by kind."""
        ...

    async def keep(self) -> None:
        """Commit what was written beside the corpus, which stays as it was."""
        ...
