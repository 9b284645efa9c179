"""`spamd database reset`: forget everything that was taught, after a copy was made.

Lessons and counts go together, so everything can be taught again. Scans stay (they are facts, not
lessons), and so does what feedback remembers of folders, and the secret behind our message ids.
"""

import secrets
from pathlib import Path

from sqlalchemy import delete, update

from spamd.ports import Clock
from spamd.storage.corpus import corpus_tables
from spamd.storage.corpus.news import announce
from spamd.storage.engine import Database
from spamd.storage.layers.tables import origin_users, user_layer, user_lesson, user_sample
from spamd.storage.layers.user_lessons import LAYERS
from spamd.storage.maintenance.export import export_file
from spamd.storage.senders.entries import count_removal
from spamd.storage.tables import change, corpus, fact, fusion, grams, lesson, sample, tally, token

TAUGHT = (sample, lesson, tally, token, fact, change, grams, fusion)

OF_USERS = (user_lesson, user_sample, user_layer, origin_users)


async def reset(database: Database, clock: Clock, folder: Path) -> Path:
    """Forget all lessons; return the copy that was made before.

    The copy of a SQLite database lies beside it and can simply be put in its place; of PostgreSQL
    an export is written to `folder`, for `spamd database import`.

    Raises:
        OSError: the copy can't be written; nothing was forgotten.
    """
    mark = clock.now().strftime("before-reset-%Y%m%dT%H%M%S")
    if database.path:
        from spamd.storage.migrate import copy_file  # noqa: PLC0415 - alembic is large

        copy = await copy_file(database, database.path, mark)
    else:
        copy = folder / f"spamd-{mark}.jsonl.gz"
        await export_file(database, copy)
    async with database.writing() as connection:
        await corpus_tables.version(connection, lock=True)
        for table in (*TAUGHT, *OF_USERS):
            await connection.execute(delete(table))
        await connection.execute(
            update(corpus).values(
                spam=0,
                ham=0,
                spam_occurrences=0,
                ham_occurrences=0,
                vocabulary=0,
                revision=corpus.c.revision + 1,
                generation=secrets.randbits(62),
            )
        )
        await count_removal(connection, LAYERS)
        await announce(connection)
    return copy
