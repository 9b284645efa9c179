"""The unit of work that also teaches for a user (the port `UserUnitOfWork`)."""

from collections.abc import Mapping, Sequence

import numpy as np

from spamd.storage.corpus.unit_of_work import SqlUnitOfWork
from spamd.storage.layers import forgetting
from spamd.storage.layers.reading import renew
from spamd.storage.layers.user_lessons import SqlUserLessons
from spamd.training.ports import Lesson
from spamd.training.user_ports import Traces


class SqlUserUnitOfWork(SqlUnitOfWork):
    """One transaction on what users have taught, and the site by them."""

    @property
    def users(self) -> SqlUserLessons:
        """The lessons of users in this transaction."""
        return SqlUserLessons(self._connection)

    async def commit(self, learned: Sequence[Lesson], taken_back: Sequence[Lesson]) -> None:
        """Commit; those who have taught these mails may have another layer by it."""
        old = {each.digest: each for each in taken_back}
        new = {each.digest: each for each in learned}
        changed = [each for each in {*old, *new} if not _same(old.get(each), new.get(each))]
        await renew(self._connection, changed)
        await super().commit(learned, taken_back)

    async def forget_rest(self, user: str, traces: Traces) -> Mapping[str, int]:
        """Remove what is known of a user but their lessons; return how much it was, by kind."""
        return await forgetting.forget_rest(self._connection, user, traces)

    async def keep(self) -> None:
        """Commit what was written beside the corpus, which stays as it was."""
        await self._connection.commit()


def _same(old: Lesson | None, new: Lesson | None) -> bool:
    """Tell whether a lesson that was learned again says of the site before it what it did."""
    if old is None or new is None:
        return False
    return old.label is new.label and np.array_equal(old.effect.scores, new.effect.scores)
