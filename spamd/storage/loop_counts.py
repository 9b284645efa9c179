"""What became of judged mail: corrected by people, read and kept, or left untouched."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.decision import Verdict
from spamd.sample import Label
from spamd.storage.kept_messages import AT_ONCE, DONE_STATES
from spamd.storage.tables import kept, lesson, scan
from spamd.storage.times import to_number
from spamd.training.ports import KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Messages of one verdict, each counted once.

    scanned  how many were judged so
    spam     of these, people said of so many that they are spam
    ham      likewise that they are ham
    kept     people read so many and kept them, and said nothing else
    """

    scanned: int = 0
    spam: int = 0
    ham: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCounts:
    """The messages that were judged from `since` until `until` (UTC), by verdict."""

    since: datetime
    until: datetime
    ham: Judged
    unsure: Judged
    spam: Judged


async def loop_counts(connection: AsyncConnection, since: datetime, until: datetime) -> LoopCounts:
    """Return what became of the messages that were judged in a time; command lines aside."""
    judged = (scan.c.time >= to_number(since), scan.c.time < to_number(until))
    told = (lesson.c.digest == scan.c.digest, lesson.c.source.not_in((*AT_ONCE, KEPT)))
    labels = {
        label: exists().where(*told, lesson.c.label == label.value).correlate(scan)
        for label in Label
    }
    stayed = exists().where(kept.c.digest == scan.c.digest, kept.c.state.in_(DONE_STATES))
    scanned = await _by_verdict(connection, *judged)
    spam = await _by_verdict(connection, *judged, labels[Label.SPAM])
    ham = await _by_verdict(connection, *judged, labels[Label.HAM])
    quiet = await _by_verdict(connection, *judged, stayed, ~exists().where(*told).correlate(scan))

    def of(verdict: Verdict) -> Judged:
        name = verdict.value
        return Judged(
            scanned=scanned.get(name, 0),
            spam=spam.get(name, 0),
            ham=ham.get(name, 0),
            kept=quiet.get(name, 0),
        )

    return LoopCounts(
        since=since,
        until=until,
        ham=of(Verdict.HAM),
        unsure=of(Verdict.UNSURE),
        spam=of(Verdict.SPAM),
    )


async def _by_verdict(
    connection: AsyncConnection, *conditions: ColumnElement[bool]
) -> dict[str, int]:
    """Return how many messages fit, by verdict; the same message scanned twice counts once."""
    number: ColumnElement[Any] = func.count(func.distinct(scan.c.digest))
    rows = await connection.execute(
        select(scan.c.verdict, number).where(*conditions).group_by(scan.c.verdict)
    )
    return {row[0]: row[1] for row in rows}
