"""Lessons that are never lost: learned, or written down on this machine until they can be.

    teacher = DurableTeacher(Knowledge(…), waiting, clock)
    summary = await teacher.teach(mails, label, source, actor)   # learned, or `summary.waiting`
    await teacher.learn_waiting(observer)                        # again and again, in the daemon

While the database is away, and until all that waits is learned, lessons are written to a journal
on the disk of this machine (`WaitingLessons`); whoever gave them hears of it when they lie on the
disk. Each carries the time it was given, which is its time in the database too: so a lesson that
was learned already, or that a newer one has overtaken elsewhere, is passed over, and learning all
that waits twice is the same as once.

A lesson may be for a user: whoever is behind the name that came with it when it is learned. Where
that is nobody, it is for the site.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from spamd.errors import StorageUnavailable
from spamd.feedback.ports import History
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.teacher import Candidate, Teacher
from spamd.lists.ports import UserOf
from spamd.message.features import Features
from spamd.ports import Clock, Observer, Taught
from spamd.sample import Label
from spamd.training import Result
from spamd.training.ports import WaitingLesson, WaitingLessons
from spamd.training.trainer import Trainer
from spamd.training.user_trainer import UserTrainer

WITHIN_S = 8.0
"""A database that has not answered by then is away: clients wait ten seconds and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What teaching needs of the database.

    history            what we said about mails
    teacher, trainer   for the site
    own                teaches for the user that is named as the actor
    users              takes back for users
    """

    history: History
    teacher: Teacher
    trainer: Trainer
    own: Teacher
    users: UserTrainer


class DurableTeacher:
    """Teaches and forgets mails that somebody names.

    Args:
        knowledge: what teaches; None while the database has not answered since the start.
        waiting: where lessons wait; None: nothing waits, who gives one hears that it failed.
        clock: the time a lesson is given.
        user_of: the user behind a name, "" for none, None when nobody answers; without it all
            is taught for the site.
    """

    def __init__(
        self,
        knowledge: Knowledge | None,
        waiting: WaitingLessons | None,
        clock: Clock,
        user_of: UserOf | None = None,
    ) -> None:
        self._knowledge = knowledge
        self._waiting = waiting
        self._clock = clock
        self._user_of = user_of

    @property
    def personal(self) -> bool:
        """Whether people have filters of their own."""
        return self._user_of is not None

    async def user(self, name: str) -> str:
        """Return for whom a lesson is that comes with this name, "" for the site.

        Raises:
            StorageUnavailable: that could not be asked.
        """
        found = await self._user_of(name) if self._user_of and name else ""
        if found is None:
            raise StorageUnavailable("whom a lesson is for could not be asked")
        return found

    @property
    def waiting_bytes(self) -> int:
        """Return how much waits on the disk."""
        return 0 if self._waiting is None else self._waiting.size_bytes

    async def teach(
        self, mails: Sequence[Features], label: Label, source: str, actor: str, user: str = ""
    ) -> RunSummary:
        """Learn mails; on return the lessons are in the database or on the disk.

        They are for whoever is behind the name `user`, else for the site.

        Raises:
            TemporaryError: they are neither; the client may come again.
        """
        given = self._clock.now()
        name = user if self.personal else ""
        lessons = [
            WaitingLesson(
                features=each, label=label, source=source, actor=actor, given=given, user=name
            )
            for each in mails
        ]
        done = await self._done_or_kept(lessons)
        return RunSummary(waiting=len(lessons)) if done is None else done

    async def forget(self, mail: Features, user: str = "") -> Taught:
        """Take back what a mail taught, for all or only by one user, or have that wait.

        Raises:
            TemporaryError: nothing has changed; the client may come again.
        """
        given = self._clock.now()
        name = user if self.personal else ""
        lesson = WaitingLesson(
            features=mail, label=None, source="", actor="", given=given, user=name
        )
        done = await self._done_or_kept([lesson])
        if done is None:
            return Taught.WAITING
        return Taught.FORGOTTEN if done.examined else Taught.UNKNOWN

    async def learn_waiting(self, observer: Observer) -> None:
        """Learn what waits, in order.

        Raises:
            StorageUnavailable: the rest goes on waiting.
        """
        if self._waiting is None or not self._waiting.any:
            return

        async def learn(lesson: WaitingLesson) -> None:
            try:
                await self._do([lesson])
            except StorageUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - the border around one lesson
                observer.failed("lesson.failed", error, source=lesson.source)

        done, lost = await self._waiting.take(learn)
        if done or lost:
            observer.happened("lessons.caught_up", lessons=done, unreadable=lost)

    async def _done_or_kept(self, lessons: Sequence[WaitingLesson]) -> RunSummary | None:
        """Return what became of lessons, None when they wait."""
        if self._waiting is None:
            return await self._do(lessons)
        if not self._waiting.any:
            try:
                async with asyncio.timeout(WITHIN_S):
                    return await self._do(lessons)
            except (StorageUnavailable, TimeoutError):
                pass  # whether it came through or not: the same lesson counts once
        await self._waiting.keep(lessons)
        return None

    async def _do(self, lessons: Sequence[WaitingLesson]) -> RunSummary:
        """Learn lessons that were given at one time, or forget one: then `examined` counts it."""
        knowledge = self._knowledge
        if knowledge is None:
            raise StorageUnavailable("the database has not answered since the start")
        first = lessons[0]
        user = await self.user(first.user)
        candidates = [
            await candidate_of(each.features, first.label or Label.HAM, knowledge.history)
            for each in lessons
        ]
        if first.label is not None:
            teacher, actor = (knowledge.own, user) if user else (knowledge.teacher, first.actor)
            return await teacher.teach(candidates, first.source, actor, first.given)
        digests = [each.features.digest for each in candidates]
        if user:
            outcomes = await knowledge.users.forget(user, digests, given_before=first.given)
        else:
            outcomes = await knowledge.trainer.forget(digests, given_before=first.given)
        return RunSummary(examined=sum(each.result is Result.FORGOTTEN for each in outcomes))


async def candidate_of(mail: Features, label: Label, history: History) -> Candidate:
    """Return a mail that is to be taught, as it was scanned if that is known."""
    known = None
    if mail.id:
        known = (await history.by_id([mail.id])).get(mail.id)
    if known is None:
        known = (await history.by_digest([mail.digest])).get(mail.digest)
    kept = await history.kept(known.digest) if known else None
    return Candidate(features=kept or mail, label=label, known=known)
