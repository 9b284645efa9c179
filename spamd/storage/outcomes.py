"""What became of judged mail: corrected by people, read and kept, or left untouched."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, select
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
class Outcomes:
    """The messages that were judged from `since` until `until` (UTC), by verdict."""

    since: datetime
    until: datetime
    ham: Judged
    unsure: Judged
    spam: Judged


async def outcomes(connection: AsyncConnection, since: datetime, until: datetime) -> Outcomes:
    """Return what became of the messages that were judged in a time; command lines aside."""
    judged = (scan.c.time >= to_number(since), scan.c.time < to_number(until))
    by_hand = lesson.c.source.not_in((*AT_ONCE, KEPT))
    same = lesson.c.digest == scan.c.digest
    number = func.count(func.distinct(scan.c.digest))  # one that was scanned twice counts once
    scanned = select(scan.c.verdict, number).where(*judged).group_by(scan.c.verdict)
    told = (
        select(scan.c.verdict, lesson.c.label, number)
        .join_from(lesson, scan, same)
        .where(*judged, by_hand)
        .group_by(scan.c.verdict, lesson.c.label)
    )
    stayed = (
        select(scan.c.verdict, number)
        .join_from(kept, scan, kept.c.digest == scan.c.digest)
        .where(*judged, kept.c.state.in_(DONE_STATES))
        .where(~exists().where(same, by_hand).correlate(scan))
        .group_by(scan.c.verdict)
    )
    all_of = {row[0]: row[1] for row in await connection.execute(scanned)}
    labels = {(row[0], row[1]): row[2] for row in await connection.execute(told)}
    quiet = {row[0]: row[1] for row in await connection.execute(stayed)}

    def of(verdict: Verdict) -> Judged:
        name = verdict.value
        return Judged(
            scanned=all_of.get(name, 0),
            spam=labels.get((name, Label.SPAM.value), 0),
            ham=labels.get((name, Label.HAM.value), 0),
            kept=quiet.get(name, 0),
        )

    return Outcomes(
        since=since,
        until=until,
        ham=of(Verdict.HAM),
        unsure=of(Verdict.UNSURE),
        spam=of(Verdict.SPAM),
    )
