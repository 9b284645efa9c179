"""Mail that its owner may read and keep (the port `KeptMessages`)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, exists, func, select

from spamd.bayes.decision import Verdict
from spamd.bayes.selection import Standing
from spamd.feedback.ports import KeptMessage, KeptScan, KeptState
from spamd.sample import Label
from spamd.storage.engine import Database, put, retried
from spamd.storage.mailboxes import WAITING_STATES, key_of, remove, stored
from spamd.storage.tables import kept, lesson, scan, sighting
from spamd.storage.times import from_number, to_number
from spamd.training.ports import KEPT

AT_ONCE = ("cli", "bootstrap", "import")
"""The sources of lessons that come many at a time; all others come in by and by, as people handle
their mail."""

DONE_STATES = (KeptState.KEPT.value, KeptState.TAUGHT.value)
"""The states of mail that was read and kept."""


class SqlKeptMessages:
    """How far the owners of accounts have got with the mail of the last days."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(self, account: str) -> Sequence[KeptMessage]:
        wanted = select(kept).where(kept.c.account == account, kept.c.state.in_(WAITING_STATES))
        async with self._database.reading() as connection:
            return [_message(row) for row in await connection.execute(wanted)]

    @retried
    async def put(
        self, account: str, rows: Sequence[KeptMessage], gone: Sequence[tuple[str, str]] = ()
    ) -> None:
        if not rows and not gone:
            return
        async with self._database.writing() as connection:
            await remove(connection, kept, account, gone)
            await put(connection, kept, [_row(account, one) for one in rows])

    async def teachable(self, most: int) -> Sequence[tuple[str, KeptMessage]]:
        lies_there = exists().where(
            sighting.c.account == kept.c.account,
            sighting.c.folder == kept.c.folder,
            sighting.c.mail_key == kept.c.mail_key,
            sighting.c.mail == kept.c.mail,
        )
        taught = exists().where(lesson.c.digest == kept.c.digest)
        wanted = (
            select(kept)
            .where(kept.c.state == KeptState.KEPT.value, lies_there, ~taught)
            .order_by(kept.c.probability.desc(), kept.c.since, kept.c.account, kept.c.mail_key)
            .limit(most)
        )
        async with self._database.reading() as connection:
            return [(row.account, _message(row)) for row in await connection.execute(wanted)]

    async def standing(self, since: datetime, today: datetime) -> Standing:
        lately = lesson.c.time >= to_number(since)
        own = (lesson.c.source == KEPT, lesson.c.label == Label.HAM.value)
        by_label = _counted(lesson.c.label, lately, ~lesson.c.source.in_(AT_ONCE))
        by_sender = _counted(lesson.c.sender_domain, lately, *own)
        of_today = select(func.count()).where(lesson.c.time >= to_number(today), *own)
        async with self._database.reading() as connection:
            labels = {row[0]: row[1] for row in await connection.execute(by_label)}
            return Standing(
                spam=labels.get(Label.SPAM.value, 0),
                ham=labels.get(Label.HAM.value, 0),
                today=(await connection.execute(of_today)).scalar_one(),
                kinds={row[0]: row[1] for row in await connection.execute(by_sender)},
            )

    async def unsure(
        self, account: str, actor: str, since: datetime
    ) -> tuple[Sequence[float], Sequence[float]]:
        moved = (
            select(scan.c.probability)
            .join(lesson, lesson.c.digest == scan.c.digest)
            .where(
                lesson.c.time >= to_number(since),
                lesson.c.actor == actor,
                lesson.c.label == Label.SPAM.value,
                scan.c.verdict == Verdict.UNSURE.value,
            )
            .order_by(lesson.c.id)
        )
        stayed = (
            select(kept.c.probability)
            .where(kept.c.account == account, kept.c.verdict == Verdict.UNSURE.value)
            .where(kept.c.since >= to_number(since))
            .order_by(kept.c.since)
        )
        async with self._database.reading() as connection:
            both = [(await connection.execute(each)).scalars().all() for each in (moved, stayed)]
        return both[0], both[1]


def _counted(column: Any, *conditions: ColumnElement[bool]) -> Any:
    return select(column, func.count()).where(*conditions).group_by(column)


def _row(account: str, one: KeptMessage) -> dict[str, object]:
    return {
        "account": account,
        "folder": one.folder,
        "mail_key": stored(one.key),
        "mail": one.mail,
        "state": one.state.value,
        "came": to_number(one.came),
        "since": to_number(one.since),
        "deliberate": one.deliberate,
        "digest": one.scan.digest if one.scan else None,
        "verdict": one.scan.verdict.value if one.scan else None,
        "probability": one.scan.probability if one.scan else None,
        "sender": one.scan.sender if one.scan else None,
    }


def _message(row: Row[*tuple[Any, ...]]) -> KeptMessage:
    said = None
    if row.digest is not None:
        said = KeptScan(
            digest=row.digest,
            verdict=Verdict(row.verdict),
            probability=row.probability,
            sender=row.sender,
        )
    return KeptMessage(
        folder=row.folder,
        key=key_of(row.mail_key),
        mail=row.mail,
        state=KeptState(row.state),
        came=from_number(row.came),
        since=from_number(row.since),
        deliberate=row.deliberate,
        scan=said,
    )
