"""A database as large as after a busy year: some hundred real rows, repeated by itself.

Every copy of a lesson has an identity of its own; counts and totals are multiplied by as much, so
the model is what that many lessons make of it. Rare words are added, as real mail has them.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text

from spamd.feedback.ports import AccountState, Held, WatchedAccount
from spamd.message.features import extract
from spamd.sample import Label
from spamd.storage.engine import Database
from spamd.storage.maintenance.copying import copy
from spamd.storage.options import DatabaseOptions
from spamd.storage.times import to_number
from tests.admin.office import Office, office
from tests.scale.site import lesson

LESSONS, SCANS = 100, 500
"""Real rows, of each label and in all."""

DAYS = 14
ACCOUNTS, HELD = 400, 1_000

SQLITE = {
    "bytes": "randomblob(16)",
    "id": "lower(hex(randomblob(10))) || '-' || lower(hex(randomblob(8)))",
    "random": "(random() / 2)",
    "queue": "hex(randomblob(5))",
}
POSTGRESQL = {
    "bytes": "decode(md5(random()::text), 'hex')",
    "id": "substr(md5(random()::text), 1, 20) || '-' || substr(md5(random()::text), 1, 16)",
    "random": "((random() * 4e18)::bigint)",
    "queue": "substr(md5(random()::text), 1, 10)",
}

SCAN = """
INSERT INTO scan (id, digest, time, verdict, action, probability, content, listener, queue_id)
WITH RECURSIVE
  n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}),
  base AS (SELECT row_number() OVER (ORDER BY id) - 1 AS place, * FROM scan)
SELECT {id}, {bytes}, {now} - i * {step}, verdict, action, probability, content,
  CASE WHEN i % 7 = 0 THEN 'milter' ELSE 'smtp' END, {queue}
FROM n JOIN base ON base.place = n.i % (SELECT count(*) FROM base)
"""

LESSON = """
INSERT INTO lesson (id, digest, label, source, actor, sender_domain, time, probability_before,
  probability_after, step, gram_step, scores)
WITH RECURSIVE
  n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}),
  base AS (SELECT row_number() OVER (ORDER BY id) - 1 AS place, * FROM lesson),
  most AS (SELECT max(id) AS id FROM lesson)
SELECT most.id + 1 + i, {bytes}, label,
  CASE i % 6 WHEN 0 THEN 'cli' WHEN 1 THEN 'kept' WHEN 2 THEN 'address' ELSE 'imap' END,
  'user' || (i % 997) || '@office.example', sender_domain, {now} - ({rows} - i) * {step},
  probability_before, probability_after, step, gram_step, scores
FROM n CROSS JOIN most JOIN base ON base.place = n.i % (SELECT count(*) FROM base)
"""

SAMPLE = """
INSERT INTO sample (lesson, content)
WITH base AS (SELECT lesson.id, row_number() OVER (ORDER BY lesson.id) - 1 AS place, content
  FROM lesson JOIN sample ON sample.lesson = lesson.id)
SELECT copy.id, base.content FROM lesson AS copy
  JOIN base ON base.place = (copy.id - 1 - (SELECT max(id) FROM base)) % (SELECT count(*) FROM base)
WHERE copy.id > (SELECT max(id) FROM base)
"""

TOKEN = """
INSERT INTO token (id, spam, ham, spam_occurrences, ham_occurrences, weight)
WITH RECURSIVE
  n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})
SELECT {random}, 1, 0, 1, 0, 0 FROM n WHERE true ON CONFLICT DO NOTHING
"""

TIMES = ("spam", "ham", "spam_occurrences", "ham_occurrences")


async def grow(folder: Path, *, scans: int, lessons: int, words: int, url: str = "") -> None:
    """Make a database of so many rows in a folder, or at the URL of an empty one."""
    async with office(folder, learned=0) as here:
        await real(here, LESSONS, SCANS)
        await _around(here)
    options = DatabaseOptions(url=f"sqlite:///{folder}/spamd.db")
    database = await Database.open(options)
    if url:
        target = await Database.open(DatabaseOptions(url=url))
        await copy(database, target)
        await database.close()
        database = target
    try:
        await repeated(database, scans, lessons, words, times=1 + lessons // (2 * LESSONS))
    finally:
        await database.close()


async def real(here: Office, lessons: int, scans: int) -> None:
    """Teach so many lessons of each label and scan so many mails."""
    for label in Label:
        numbers = [n for n in range(4 * lessons) if lesson(n)[0] == label.value][:lessons]
        for start in range(0, lessons, 10):
            mails = [lesson(number)[1] for number in numbers[start : start + 10]]
            await here.taught(label, mails, f"user{start}@office.example")
    for number in range(10_000, 10_000 + scans):
        await here.scanned(lesson(number)[1])


async def _around(here: Office) -> None:
    """Add accounts, folders, mail that could not be learned, lessons that are held."""
    now = datetime.now(UTC)
    names = [f"user{number}@office.example" for number in range(ACCOUNTS)]
    states = (AccountState.WATCHING, AccountState.WATCHING, AccountState.LOST)
    watched = [
        WatchedAccount(name=name, state=states[place % 3], since=now, reason="", silent=False)
        for place, name in enumerate(names)
    ]
    await here.store.accounts.write(watched, now)
    held = []
    for number in range(HELD):
        label, content = lesson(20_000 + number)
        one = Held(
            number=0, features=extract(content), label=Label(label), source="imap",
            actor=names[number % ACCOUNTS], probability=0.5, reason="a burst", time=now,
        )  # fmt: skip
        held.append(one)
    await here.store.held.hold(held)


async def repeated(database: Database, scans: int, lessons: int, words: int, *, times: int) -> None:
    """Repeat the rows that are there, and add rare words; counts become so many times as large."""
    now = to_number(datetime.now(UTC))
    terms: Mapping[str, str] = SQLITE if database.is_sqlite else POSTGRESQL
    step = int(timedelta(days=DAYS).total_seconds() * 1e6) // max(1, scans)
    slow = int(timedelta(days=365).total_seconds() * 1e6) // max(1, lessons)
    grown = ", ".join(f"{name} = {name} * {times}" for name in TIMES)
    statements = [
        SCAN.format(rows=scans, now=now, step=step, **terms),
        LESSON.format(rows=lessons, now=now, step=slow, **terms),
        SAMPLE,
        f"UPDATE token SET {grown}",
        f"UPDATE fact SET spam = spam * {times}, ham = ham * {times}",
        TOKEN.format(rows=words, **terms),
        (
            f"UPDATE corpus SET {grown}, vocabulary = (SELECT count(*) FROM token),"
            f" revision = revision + {lessons}, generation = generation + 1"
        ),
        "UPDATE grams SET revision = (SELECT revision FROM corpus)",
        "DELETE FROM mail_hour",
        HOURS.format(now=now),
    ]
    for statement in statements:
        async with database.writing() as connection:
            await connection.execute(text(statement))
    if not database.is_sqlite:
        async with database.bare() as connection:  # as autovacuum does after so many rows
            await connection.execute(text("VACUUM ANALYZE"))


HOURS = """
INSERT INTO mail_hour (hour, listener, verdict, action, mails)
WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < 720)
SELECT ({now} / 3600000000 - i) * 3600000000, listener.name, verdict.name, verdict.action, i % 97
FROM n, (SELECT 'smtp' AS name UNION SELECT 'lmtp' UNION SELECT 'milter' UNION SELECT 'http') AS
  listener, (SELECT 'ham' AS name, 'accept' AS action UNION SELECT 'spam', 'tag' UNION
  SELECT 'unsure', 'accept' UNION SELECT 'spam', 'reject') AS verdict
"""
