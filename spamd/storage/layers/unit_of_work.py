"""The unit of work that also teaches for a user (the port `UserUnitOfWork`)."""

from collections.abc import Mapping

from spamd.storage.corpus.unit_of_work import SqlUnitOfWork
from spamd.storage.layers import forgetting
from spamd.storage.layers.user_lessons import SqlUserLessons
from spamd.training.user_ports import Traces


class SqlUserUnitOfWork(SqlUnitOfWork):
    """One transaction on what users have taught, and the site by them."""

    @property
    def users(self) -> SqlUserLessons:
        """The lessons of users in this transaction."""
        return SqlUserLessons(self._connection)

    async def forget_rest(self, user: str, traces: Traces) -> Mapping[str, int]:
        """Remove what is known of a user but their lessons; return how much it was, by kind."""
        return await forgetting.forget_rest(self._connection, user, traces)

    async def keep(self) -> None:
        """Commit what was written beside the corpus, which stays as it was."""
        await self._connection.commit()
