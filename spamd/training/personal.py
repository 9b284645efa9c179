"""Teach for whoever is behind the name that a lesson comes with; for the site, where nobody is.

What is forgotten here is forgotten for all: a mail's lesson of the site, and what users have said.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from spamd.errors import StorageUnavailable
from spamd.message.features import Features
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Outcome, TrainingOptions
from spamd.training.ports import TrainingObserver
from spamd.training.trainer import Trainer
from spamd.training.user_ports import UserUnitOfWork
from spamd.training.user_trainer import UserTrainer

UserOf = Callable[[str], Awaitable[str | None]]


class PersonalTrainer(Trainer):
    """A `Trainer` whose lessons of users count for them, and for the site as far as they agree.

    Args:
        unit_of_work: makes a new transaction.
        clock: gives the time that a lesson is stamped with.
        options: batches and retries.
        observer: is told of each lesson once it is committed.
        user_of: the user behind the actor of a lesson, "" for none, None when nobody answers;
            without it all is taught for the site.
    """

    def __init__(
        self,
        *,
        unit_of_work: Callable[[], UserUnitOfWork],
        clock: Clock,
        options: TrainingOptions,
        observer: TrainingObserver | None,
        user_of: UserOf | None = None,
    ) -> None:
        super().__init__(unit_of_work=unit_of_work, clock=clock, options=options, observer=observer)
        self._users = UserTrainer(unit_of_work=unit_of_work, clock=clock, options=options)
        self._user_of = user_of

    async def train(
        self,
        batch: Sequence[Features],
        label: Label,
        *,
        source: str,
        actor: str,
        given: datetime | None = None,
    ) -> list[Outcome]:
        """Teach as `Trainer.train`, for the user behind the actor.

        Raises:
            StorageUnavailable: nothing was learned, or nobody could say who the actor is.
        """
        user = await self._user_of(actor) if self._user_of else ""
        if user is None:
            raise StorageUnavailable("who gave a lesson could not be asked")
        if not user:
            return await super().train(batch, label, source=source, actor=actor, given=given)
        outcomes = await self._users.train(user, batch, label, source=source, given=given)
        self._tell(source, outcomes)
        return outcomes

    async def _forget(
        self, digests: Sequence[bytes], given_before: datetime | None
    ) -> list[Outcome]:
        return await self._users.forget_mails(digests, given_before=given_before)
