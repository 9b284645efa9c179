"""A user's layer as the database has it: their lessons, and which of them only repeat the site.

Layers change with what the site learns of their mails, too: whoever writes that calls `renew`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.fusion import CLASSIFIERS, FusionWeights
from spamd.bayes.own import MOST_LESSONS, Layer, OwnLesson
from spamd.sample import Label
from spamd.storage.corpus.codec import decode_floats
from spamd.storage.engine import chunks
from spamd.storage.layers.tables import user_layer, user_lesson
from spamd.storage.tables import lesson
from spamd.training.ports import Lesson

LESSON = user_lesson.c

NOTHING_NEW: Mapping[bytes, Lesson | None] = {}


async def revised_layer(
    connection: AsyncConnection, user: str, site: Mapping[bytes, Lesson | None] = NOTHING_NEW
) -> tuple[int, Layer | None]:
    """Return a user's layer, None for who has taught nothing, with its revision.

    It is one statement, since a mail waits for it.
    """
    wanted = (
        select(
            LESSON.id, LESSON.digest, LESSON.label, LESSON.origin, LESSON.sketch,
            user_layer.c.revision, lesson.c.label.label("site"), lesson.c.scores,
        )
        .join(user_layer, user_layer.c.user == LESSON.user)
        .outerjoin(lesson, lesson.c.digest == LESSON.digest)
        .where(LESSON.user == user)
        .order_by(LESSON.id.desc())
        .limit(MOST_LESSONS)
    )  # fmt: skip
    rows = (await connection.execute(wanted)).all()
    repeated = _repeated(rows, site)
    lessons = [
        OwnLesson(
            number=row.id,
            spam=row.label == Label.SPAM,
            origin=row.origin,
            sketch=np.frombuffer(row.sketch, "<i8"),
            repeats=row.digest in repeated,
        )
        for row in rows
    ]
    return (rows[0].revision, Layer(lessons)) if rows else (0, None)


def _repeated(rows: Iterable[Any], site: Mapping[bytes, Lesson | None]) -> set[bytes]:
    """Return the mails of which the site has learned the same, and had said so before.

    What it had said is told by the scores before its lesson and the first weights of the fusion:
    those of today change with every lesson of anybody.
    """
    same, scores = [], []
    for row in rows:
        label, before = row.site, row.scores
        if row.digest in site:
            told = site[row.digest]
            label, before = ("", b"") if told is None else (told.label, told.effect.scores)
        elif before is not None:
            before = decode_floats(before)
        if label == row.label and len(before) == len(CLASSIFIERS):
            same.append(row)
            scores.append(before)
    if not same:
        return set()
    signs = FusionWeights.default().signs(np.stack(scores)).tolist()
    sides = {1.0: Label.SPAM, -1.0: Label.HAM}
    return {
        row.digest for row, sign in zip(same, signs, strict=True) if sides.get(sign) == row.label
    }


async def renew(connection: AsyncConnection, digests: Collection[bytes]) -> None:
    """Tell who follows that other layers come of these mails: the site has learned them anew."""
    users: set[str] = set()
    for part in chunks(sorted(digests)):
        taught = select(LESSON.user).where(LESSON.digest.in_(part)).distinct()
        users.update((await connection.execute(taught)).scalars())
    if users:
        revision = await next_revision(connection)
        for names in chunks(sorted(users)):
            change = user_layer.update().where(user_layer.c.user.in_(names))
            await connection.execute(change.values(revision=revision))


async def next_revision(connection: AsyncConnection) -> int:
    """Return the revision of the next change."""
    newest = select(func.coalesce(func.max(user_layer.c.revision), 0))
    return int((await connection.execute(newest)).scalar_one()) + 1
