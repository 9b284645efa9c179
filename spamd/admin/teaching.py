"""Teaching and forgetting a mail that was scanned, with what that changes: before → after.

Both are judged anew, by what was learned right before and right after: what a list or another
lesson has changed meanwhile is in both.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from spamd.admin.mail import Judgement, Mails
from spamd.admin.ports import Records
from spamd.feedback.run_summary import RunSummary
from spamd.message.features import Features
from spamd.ports import Taught
from spamd.sample import Label


class Teaches(Protocol):
    """Who learns and forgets mails that were read already (`feedback.DurableTeacher`)."""

    @property
    def personal(self) -> bool:
        """Whether people have filters of their own."""
        ...

    async def teach(
        self, mails: list[Features], label: Label, source: str, actor: str, user: str = ""
    ) -> RunSummary:
        """Learn mails, for a user or the site."""
        ...

    async def forget(self, mail: Features, user: str = "") -> Taught:
        """Take back what a mail taught, for all or only by a user."""
        ...


class NoFilter(ValueError):
    """Nobody has a filter of their own here; the text says why."""


class Source(StrEnum):
    """Where a lesson came from, as the journal keeps it."""

    PAGE = "page"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of a mail that somebody taught or took back.

    outcome   learned, known (it was taught so before), held for a review, waiting for the
              database, forgotten, unknown (it was never taught)
    label     the site's lesson in force now
    user      for whom it was, and what they have read before and after; "" the site
    """

    outcome: Taught
    label: Label | None
    before: Judgement
    after: Judgement
    user: str = ""


class Teaching:
    """Teaches what somebody says on the page or by the API, for the site or for a user.

    Args:
        mails: knows what was scanned, and judges it.
        records: the store as rows.
        teacher: learns and forgets.
        extract: reads a mail.
    """

    def __init__(
        self,
        mails: Mails,
        records: Records,
        teacher: Teaches,
        extract: Callable[[bytes], Features],
    ) -> None:
        self._mails = mails
        self._records = records
        self._teacher = teacher
        self._extract = extract

    async def teach(
        self, name: str, label: Label, source: Source, actor: str, user: str = ""
    ) -> Change | None:
        """Learn a mail by our id or its identity; None for one that is not known any more.

        Raises:
            NoFilter: it is for a user, and users have none of their own.
            TemporaryError: nothing was learned.
        """
        found = await self._mails.features(name)
        return None if found is None else await self._teach(found[1], label, source, actor, user)

    async def teach_mail(
        self, content: bytes, label: Label, source: Source, actor: str, user: str = ""
    ) -> Change:
        """Learn a mail, scanned or not.

        Raises:
            NoFilter, TemporaryError: as `teach`.
        """
        features = await asyncio.to_thread(self._extract, content)
        return await self._teach(features, label, source, actor, user)

    async def forget(self, name: str, user: str = "") -> Change | None:
        """Take back what a mail taught; None for one that is not known any more.

        Raises:
            NoFilter, TemporaryError: nothing was taken back, as `teach`.
        """
        found = await self._mails.features(name)
        return None if found is None else await self._forget(found[1], user)

    async def forget_mail(self, content: bytes, user: str = "") -> Change:
        """Take back what a mail taught, scanned or not.

        Raises:
            NoFilter, TemporaryError: nothing was taken back, as `teach`.
        """
        return await self._forget(await asyncio.to_thread(self._extract, content), user)

    async def _teach(
        self, features: Features, label: Label, source: Source, actor: str, user: str
    ) -> Change:
        before = await self._before(features, user)
        done = await self._teacher.teach([features], label, source.value, actor, user)
        return await self._change(features, before, _taught(done), user)

    async def _forget(self, features: Features, user: str) -> Change:
        before = await self._before(features, user)
        forgotten = await self._teacher.forget(features, user)
        return await self._change(features, before, forgotten, user)

    async def _before(self, features: Features, user: str) -> Judgement:
        if user and not self._teacher.personal:
            raise NoFilter("users.enabled is off: nobody has a filter of their own")
        return await self._mails.judged(features, user)

    async def _change(
        self, features: Features, before: Judgement, outcome: Taught, user: str
    ) -> Change:
        lesson = await self._records.lesson(features.digest)
        return Change(
            outcome=outcome,
            label=None if lesson is None else lesson.label,
            before=before,
            after=await self._mails.judged(features, user),
            user=user,
        )


def _taught(done: RunSummary) -> Taught:
    if done.waiting:
        return Taught.WAITING
    if done.held:
        return Taught.HELD
    return Taught.KNOWN if done.already else Taught.LEARNED
