"""The lessons of users within a transaction, and what follows from them (port `UserLessons`).

Whoever writes here holds the lock on the corpus (`unit_of_work`), so lessons have one order. The
counts of an origin's users are a function of the journal and are written with it; `faults` holds
them against it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, case, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.own import Layer, sketch
from spamd.message.tokens.origin import NO_ORIGIN
from spamd.sample import Label
from spamd.storage.corpus.codec import decode_sample
from spamd.storage.corpus.journal import encoded
from spamd.storage.corpus.news import announce
from spamd.storage.engine import chunks, put, upsert
from spamd.storage.layers.reading import NOTHING_NEW, next_revision, revised_layer
from spamd.storage.layers.tables import origin_users, user_layer, user_lesson, user_sample
from spamd.storage.layers.votes import Votes, tallied
from spamd.storage.senders.entries import count_removal
from spamd.storage.times import from_number, to_number
from spamd.training.ports import KEPT, Lesson
from spamd.training.user_ports import Agreed, UserLesson, UserLessonSummary

LAYERS = "user_layer"
"""The name under which removed layers are counted."""

MOST_KEPT = 5_000
"""Lessons of a user that are kept; beyond these the oldest go, and their word on the site's."""

LESSON = user_lesson.c

Sides = Mapping[int, frozenset[str]]
"""By origin, the labels that a user has given to its mails."""


class SqlUserLessons:
    """The lessons of users, on a connection that the caller commits."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def listed(
        self, user: str, digests: Sequence[bytes]
    ) -> Mapping[bytes, UserLessonSummary]:
        """Return those of these mails that a user has taught."""
        found = {}
        for part in chunks(digests):
            wanted = select(LESSON.digest, LESSON.label, LESSON.source, LESSON.time).where(
                LESSON.user == user, LESSON.digest.in_(part)
            )
            for row in await self._connection.execute(wanted):
                found[row.digest] = UserLessonSummary(
                    digest=row.digest,
                    label=Label(row.label),
                    source=row.source,
                    time=from_number(row.time),
                )
        return found

    async def lessons(self, user: str) -> Sequence[UserLesson]:
        """Return all that a user has taught, in the order of the lessons."""
        wanted = (
            select(user_lesson, user_sample.c.sender_domain, user_sample.c.content)
            .join(user_sample, user_sample.c.digest == LESSON.digest)
            .where(LESSON.user == user)
            .order_by(LESSON.id)
        )
        return [_lesson(row) for row in await self._connection.execute(wanted)]

    async def digests(self, user: str) -> Sequence[bytes]:
        """Return all mails that a user has taught, in the order of the lessons."""
        wanted = select(LESSON.digest).where(LESSON.user == user).order_by(LESSON.id)
        return list((await self._connection.execute(wanted)).scalars())

    async def add(self, user: str, lessons: Sequence[UserLesson]) -> Collection[bytes]:
        """Write lessons in place of older ones; return of which mails the site hears anew."""
        digests = [each.digest for each in lessons]
        gone = await self._oldest(user, digests)
        origins = {each.origin for each in lessons} - {NO_ORIGIN}
        before = await self._sides(user, origins | await self._origins(user, [*digests, *gone]))
        await self._delete(user, [*digests, *gone])
        await self._connection.execute(insert(user_lesson), [_row(user, each) for each in lessons])
        samples = [
            {
                "digest": each.digest,
                "sender_domain": each.sender_domain,
                "content": encoded(each.sample, each.texts),
            }
            for each in sorted(lessons, key=lambda each: each.digest)
        ]
        fresh = upsert(self._connection)(user_sample)
        await self._connection.execute(fresh.on_conflict_do_nothing(), samples)
        heard = await self._follow(user, [*digests, *gone], before)
        await self._tidy(gone)
        return heard

    async def remove(self, user: str, digests: Sequence[bytes]) -> Collection[bytes]:
        """Delete lessons; return of which mails the site hears anew."""
        before = await self._sides(user, await self._origins(user, digests))
        await self._delete(user, digests)
        heard = await self._follow(user, digests, before)
        await self._tidy(digests)
        return heard

    async def remove_all(
        self, digests: Sequence[bytes], given_before: datetime | None
    ) -> tuple[Mapping[bytes, Label], Collection[bytes]]:
        """Delete what all users have taught of these mails, with a time only what is older.

        Return which mails those were, each with a label that it had, and of which the site hears
        anew.
        """
        connection = self._connection
        gone: dict[bytes, Label] = {}
        origins, users = set(), set()
        for part in chunks(digests):
            these: list[ColumnElement[bool]] = [LESSON.digest.in_(part)]
            if given_before is not None:
                these.append(LESSON.time < to_number(given_before))
            wanted = select(LESSON.user, LESSON.digest, LESSON.label, LESSON.origin).where(*these)
            for row in await connection.execute(wanted):
                gone[row.digest] = Label(row.label)
                origins.add(row.origin)
                users.add(row.user)
            await connection.execute(delete(user_lesson).where(*these))
        changed = await self._count_anew(origins - {NO_ORIGIN})
        heard = await self._of_origins(changed)
        await self._tidy(list(gone))
        for user in sorted(users):
            await self._write_revision(user)
        if users:
            await announce(connection)
        return gone, heard.union(gone)

    async def agreed(self, digests: Collection[bytes]) -> Mapping[bytes, Agreed]:
        """Return what users say together of each of these mails.

        The label that more have given it, if more users stand for it than against it. For and
        against are those who taught this mail, or those who have said nothing but this, or nothing
        but the other, of its origin's mails, whichever are more.
        """
        votes: dict[bytes, Votes] = {digest: Votes() for digest in digests}
        for part in chunks(sorted(digests)):
            wanted = (
                select(
                    LESSON.digest,
                    LESSON.label,
                    func.count().label("users"),
                    func.count().filter(LESSON.source != KEPT).label("said"),
                    func.max(LESSON.origin).label("origin"),
                )
                .where(LESSON.digest.in_(part))
                .group_by(LESSON.digest, LESSON.label)
            )
            for row in await self._connection.execute(wanted):
                votes[row.digest].origin = row.origin
                votes[row.digest].count(row.label, users=row.users, said=row.said)
        sides = await self._tallies({each.origin for each in votes.values()})
        return {
            digest: each.agreed(*sides.get(each.origin, (0, 0))) for digest, each in votes.items()
        }

    async def taught(self, digests: Sequence[bytes]) -> Mapping[bytes, UserLesson]:
        """Return what these mails hold, as who first said so taught it, else who kept it."""
        found: dict[bytes, UserLesson] = {}
        by_hand = func.min(case((LESSON.source != KEPT, LESSON.id)))
        first = func.coalesce(by_hand, func.min(LESSON.id))
        for part in chunks(digests):
            wanted = (
                select(user_lesson, user_sample.c.sender_domain, user_sample.c.content)
                .join(user_sample, user_sample.c.digest == LESSON.digest)
                .where(LESSON.id.in_(
                    select(first).where(LESSON.digest.in_(part)).group_by(LESSON.digest)
                ))
            )  # fmt: skip
            for row in await self._connection.execute(wanted):
                found[row.digest] = _lesson(row)
        return found

    async def layer(
        self, user: str, site: Mapping[bytes, Lesson | None] = NOTHING_NEW
    ) -> Layer | None:
        """Return a user's layer; `site` is what the site has by mails of late, None: no lesson."""
        return (await revised_layer(self._connection, user, site))[1]

    async def _oldest(self, user: str, fresh: Sequence[bytes]) -> list[bytes]:
        """Return the lessons that have to go for new ones."""
        wanted = (
            select(LESSON.digest)
            .where(LESSON.user == user)
            .order_by(LESSON.id.desc())
            .offset(max(0, MOST_KEPT - len(fresh)))
        )
        return list((await self._connection.execute(wanted)).scalars())

    async def _tidy(self, digests: Sequence[bytes]) -> None:
        """Delete what mails hold that nobody teaches any more."""
        for part in chunks(digests):
            taught = select(LESSON.digest).where(LESSON.digest.in_(part))
            held = user_sample.c.digest
            gone = delete(user_sample).where(held.in_(part), held.not_in(taught))
            await self._connection.execute(gone)

    async def _delete(self, user: str, digests: Sequence[bytes]) -> None:
        for part in chunks(digests):
            await self._connection.execute(
                delete(user_lesson).where(LESSON.user == user, LESSON.digest.in_(part))
            )

    async def _follow(
        self, user: str, digests: Sequence[bytes], before: Sides
    ) -> Collection[bytes]:
        """Write what follows from a change; return of which mails the site hears anew."""
        after = await self._sides(user, before)
        changed = []
        for origin in sorted(before):
            old, new = before[origin], after[origin]
            step = {label: (new == {label}) - (old == {label}) for label in Label}
            if any(step.values()):
                changed.append(origin)
                await self._count(origin, step)
        await self._write_revision(user)
        await announce(self._connection)
        return (await self._of_origins(changed)).union(digests)

    async def _of_origins(self, origins: Sequence[int]) -> set[bytes]:
        """Return the mails of these origins that users have taught."""
        found: set[bytes] = set()
        for part in chunks(origins):
            same = select(LESSON.digest).where(LESSON.origin.in_(part)).distinct()
            found.update((await self._connection.execute(same)).scalars())
        return found

    async def _count_anew(self, origins: Collection[int]) -> list[int]:
        """Write how many users call these origins' mails what; return those that changed."""
        before = await self._tallies(origins)
        after = await tallied(self._connection, origins)
        changed = sorted(each for each in origins if before.get(each) != after.get(each))
        for part in chunks(changed):
            await self._connection.execute(delete(origin_users).where(
                origin_users.c.origin.in_(part)
            ))  # fmt: skip
        counted = [
            {"origin": each, "ham": after[each][0], "spam": after[each][1]}
            for each in changed
            if each in after
        ]
        for some in chunks(counted):
            await self._connection.execute(insert(origin_users), some)
        return changed

    async def _sides(self, user: str, origins: Iterable[int]) -> Sides:
        found: dict[int, set[str]] = {origin: set() for origin in origins}
        for part in chunks(sorted(found)):
            wanted = select(LESSON.origin, LESSON.label).where(
                LESSON.origin.in_(part), LESSON.user == user
            )
            for row in await self._connection.execute(wanted.distinct()):
                found[row.origin].add(row.label)
        return {origin: frozenset(labels) for origin, labels in found.items()}

    async def _origins(self, user: str, digests: Sequence[bytes]) -> set[int]:
        found: set[int] = set()
        for part in chunks(digests):
            wanted = select(LESSON.origin).where(LESSON.user == user, LESSON.digest.in_(part))
            found.update((await self._connection.execute(wanted.distinct())).scalars())
        return found - {NO_ORIGIN}

    async def _count(self, origin: int, step: Mapping[Label, int]) -> None:
        row = origin_users.c
        fresh = upsert(self._connection)(origin_users).values(origin=origin, ham=0, spam=0)
        await self._connection.execute(fresh.on_conflict_do_nothing())
        values = {"ham": row.ham + step[Label.HAM], "spam": row.spam + step[Label.SPAM]}
        change = origin_users.update().where(row.origin == origin).values(values)
        await self._connection.execute(change)
        empty = delete(origin_users).where(row.origin == origin, row.ham == 0, row.spam == 0)
        await self._connection.execute(empty)

    async def _tallies(self, origins: Collection[int]) -> Mapping[int, tuple[int, int]]:
        found = {}
        for part in chunks(sorted(origins)):
            wanted = select(origin_users).where(origin_users.c.origin.in_(part))
            for row in await self._connection.execute(wanted):
                found[row.origin] = (row.ham, row.spam)
        return found

    async def _write_revision(self, user: str) -> None:
        """Tell who follows that a user's lessons have changed."""
        connection, row = self._connection, user_layer.c
        left = select(LESSON.id).where(LESSON.user == user).limit(1)
        if (await connection.execute(left)).scalar() is None:
            await connection.execute(delete(user_layer).where(row.user == user))
            await count_removal(connection, LAYERS)
            return
        revision = await next_revision(connection)
        await put(connection, user_layer, [{"user": user, "revision": revision}])


async def faults(connection: AsyncConnection) -> list[str]:
    """Return how what follows from users' lessons differs from what they say."""
    stored = {
        row.origin: (row.ham, row.spam) for row in await connection.execute(select(origin_users))
    }
    found = []
    if stored != await tallied(connection):
        found.append("how many users call a sender's mails spam is not what their lessons say")
    known = set((await connection.execute(select(user_layer.c.user))).scalars())
    if known != set((await connection.execute(select(LESSON.user).distinct())).scalars()):
        found.append("the users who have lessons are not those of the journal")
    held = set((await connection.execute(select(user_sample.c.digest))).scalars())
    if held != set((await connection.execute(select(LESSON.digest).distinct())).scalars()):
        found.append("the mails kept for users' lessons are not those that were taught")
    return found


def _row(user: str, lesson: UserLesson) -> dict[str, object]:
    return {
        "user": user,
        "digest": lesson.digest,
        "label": lesson.label.value,
        "source": lesson.source,
        "origin": lesson.origin,
        "time": to_number(lesson.time),
        "sketch": sketch(lesson.sample).astype("<i8").tobytes(),
    }


def _lesson(row: Row[Any]) -> UserLesson:
    sample, texts = decode_sample(row.content)
    return UserLesson(
        digest=row.digest,
        label=Label(row.label),
        source=row.source,
        sender_domain=row.sender_domain,
        origin=row.origin,
        time=from_number(row.time),
        sample=sample,
        texts=texts,
    )
