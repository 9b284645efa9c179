"""Users' lessons in an export, and from an import: row for row, so the votes are the same again.

What the site learned by them stands in the export as the site's lessons.
"""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.sample import Label
from spamd.storage.corpus.codec import decode_sample
from spamd.storage.engine import Database, chunks, put, retried, upsert
from spamd.storage.layers.tables import origin_users, user_layer, user_lesson, user_sample
from spamd.storage.layers.user_lessons import LAYERS
from spamd.storage.layers.votes import tallied
from spamd.storage.senders.entries import count_removal


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRow:
    """A row of `user_lesson` without its number."""

    user: str
    digest: bytes
    label: str
    source: str
    origin: int
    time: int
    sketch: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """A row of `user_sample`."""

    digest: bytes
    sender_domain: str
    content: bytes


async def walk(connection: AsyncConnection) -> AsyncIterator[dict[str, object]]:
    """Yield the rows of an export: what the mails hold, then the lessons in their order."""
    samples = await connection.stream(select(user_sample).order_by(user_sample.c.digest))
    async for row in samples:
        found = SampleRow(digest=row.digest, sender_domain=row.sender_domain, content=row.content)
        yield {"user_sample": _to_json(asdict(found))}
    columns = [user_lesson.c[each.name] for each in fields(LessonRow)]
    lessons = await connection.stream(select(*columns).order_by(user_lesson.c.id))
    async for told in lessons.mappings():
        yield {"user_lesson": _to_json(told)}


def row_of(line: Mapping[str, Any]) -> LessonRow | SampleRow:
    """Return the row that a line of an export holds.

    Raises:
        KeyError, TypeError, ValueError: it holds none.
    """
    if (held := line.get("user_sample")) is not None:
        content = base64.b64decode(held["content"], validate=True)
        decode_sample(content)
        return SampleRow(
            digest=bytes.fromhex(held["digest"]),
            sender_domain=str(held["sender_domain"]),
            content=content,
        )
    told = line["user_lesson"]
    if not isinstance(told["user"], str) or not told["user"]:
        raise ValueError("a lesson of a user names the user")
    return LessonRow(
        user=told["user"],
        digest=bytes.fromhex(told["digest"]),
        label=Label(told["label"]).value,
        source=str(told["source"]),
        origin=int(np.int64(told["origin"])),
        time=int(np.int64(told["time"])),
        sketch=_whole(base64.b64decode(told["sketch"], validate=True)),
    )


def _whole(sketch: bytes) -> bytes:
    np.frombuffer(sketch, "<i8")
    return sketch


def _to_json(row: Mapping[Any, Any]) -> dict[str, object]:
    values: dict[str, object] = dict(row)
    values["digest"] = row["digest"].hex()
    for name in ("content", "sketch"):
        if name in row:
            values[name] = base64.b64encode(row[name]).decode()
    return values


@retried
async def add_missing(database: Database, rows: Sequence[LessonRow | SampleRow]) -> int:
    """Keep lessons of users that an import brings with their mail; return how many are new."""
    held = {row.digest: row for row in rows if isinstance(row, SampleRow)}
    async with database.writing() as connection:
        there = {
            (row.user, row.digest)
            for row in await connection.execute(select(user_lesson.c.user, user_lesson.c.digest))
        }
        fresh = {
            (row.user, row.digest): asdict(row)
            for row in rows
            if isinstance(row, LessonRow)
            and row.digest in held
            and (row.user, row.digest) not in there
        }
        if not fresh:
            return 0
        samples = [asdict(held[digest]) for digest in sorted({digest for _, digest in fresh})]
        missing = upsert(connection)(user_sample).on_conflict_do_nothing()
        for part in chunks(samples):
            await connection.execute(missing, part)
        for part in chunks(list(fresh.values())):
            await connection.execute(insert(user_lesson), part)
        await _settle(connection)
    return len(fresh)


async def _settle(connection: AsyncConnection) -> None:
    """Write anew what follows from the lessons; the site's own came with the import."""
    await connection.execute(delete(origin_users))
    counted = [
        {"origin": origin, "ham": ham, "spam": spam}
        for origin, (ham, spam) in (await tallied(connection)).items()
    ]
    for part in chunks(counted):
        await connection.execute(insert(origin_users), part)
    users = (await connection.execute(select(user_lesson.c.user).distinct())).scalars()
    revised = [
        {"user": user, "revision": number} for number, user in enumerate(sorted(users), start=1)
    ]
    await connection.execute(delete(user_layer))
    await put(connection, user_layer, revised)
    await count_removal(connection, LAYERS)
