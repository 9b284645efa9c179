"""What users say of a mail together, and how many say what of an origin's mails."""

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.message.tokens.origin import NO_ORIGIN
from spamd.sample import Label
from spamd.storage.engine import chunks
from spamd.storage.layers.tables import user_lesson
from spamd.training.user_ports import Agreed

LESSON = user_lesson.c


class Votes:
    """Who has said what of one mail."""

    def __init__(self) -> None:
        self.origin = NO_ORIGIN
        self._users: dict[str, int] = defaultdict(int)
        self._said: dict[str, int] = defaultdict(int)

    def count(self, label: str, *, users: int, said: int) -> None:
        """Count users who call it so; `said` of them by hand."""
        self._users[label] += users
        self._said[label] += said

    def agreed(self, ham_users: int, spam_users: int) -> Agreed:
        """Return what they say together, given who else of the origin's users says what."""
        sides = {Label.HAM: ham_users, Label.SPAM: spam_users}
        strength = {label: (self._users[label], sides[label]) for label in Label}
        label, other = sorted(Label, key=lambda each: strength[each], reverse=True)
        stands = self._users[label] and max(strength[label]) > max(strength[other])
        return Agreed(label=label if stands else None, kept=not self._said[label])


async def tallied(
    connection: AsyncConnection, origins: Collection[int] | None = None
) -> dict[int, tuple[int, int]]:
    """Return how many users call an origin's mails ham, and spam, as the journal says.

    Of all origins, or of these.
    """
    if origins is not None:
        found: dict[int, tuple[int, int]] = {}
        for part in chunks(sorted(origins)):
            found |= await _tallied(connection, LESSON.origin.in_(part))
        return found
    return await _tallied(connection, LESSON.origin != NO_ORIGIN)


async def _tallied(
    connection: AsyncConnection, these: ColumnElement[bool]
) -> dict[int, tuple[int, int]]:
    one = (
        select(LESSON.origin, func.min(LESSON.label).label("label"))
        .where(these)
        .group_by(LESSON.origin, LESSON.user)
        .having(func.min(LESSON.label) == func.max(LESSON.label))
    ).subquery()
    counts = (
        func.count().filter(one.c.label == Label.HAM.value),
        func.count().filter(one.c.label == Label.SPAM.value),
    )
    rows = await connection.execute(select(one.c.origin, *counts).group_by(one.c.origin))
    return {origin: (ham, spam) for origin, ham, spam in rows}
