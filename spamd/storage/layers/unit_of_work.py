"""The unit of work that also teaches for a user (the port `UserUnitOfWork`)."""

from spamd.storage.corpus.unit_of_work import SqlUnitOfWork
from spamd.storage.layers.user_lessons import SqlUserLessons


class SqlUserUnitOfWork(SqlUnitOfWork):
    """One transaction on what users have taught, and the site by them."""

    @property
    def users(self) -> SqlUserLessons:
        """The lessons of users in this transaction."""
        return SqlUserLessons(self._connection)

    async def keep(self) -> None:
        """Commit what was written beside the corpus, which stays as it was."""
        await self._connection.commit()
