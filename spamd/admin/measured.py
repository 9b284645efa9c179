"""How often mail was judged wrong, as one worker counts it each hour and all of them show it.

Counting a million scans takes seconds, so nobody waits for it: it is kept in the database.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spamd.admin.ports import Records, Trial

NAME = "error rates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of verdicts that were wrong, in percent, with the bounds that hold it with 95 %.

    scanned   mails of the verdict; of these people said of `wrong` that they are, and read and
              kept `right`
    least     it is the least it can be: all that nobody touched counts as right
    """

    scanned: int
    wrong: int
    right: int
    percent: float
    low: float
    high: float
    least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How often mail that was judged from `since` until `until` was judged wrong.

    time        when that was counted
    corrected   messages that people said were judged wrong, unsure ones not counted
    unsure      messages that were unsure; people settled `settled` of them
    """

    time: datetime
    since: datetime
    until: datetime
    corrected: int
    unsure: int
    settled: int
    spam_passed: Rate
    ham_lost: Rate


async def measured(records: Records) -> Measured | None:
    """Return what was counted last, None for nothing yet.

    Raises:
        StorageUnavailable: the database does not answer.
    """
    trial = await records.trial(NAME)
    if trial is None:
        return None
    try:
        return _read(json.loads(trial.content), trial.time)
    except (KeyError, TypeError, ValueError):  # another version wrote it; within the hour ours does
        return None


async def note(records: Records, time: datetime, content: Mapping[str, object]) -> None:
    """Keep what was counted; `content` has the fields of `Measured`, as JSON has them.

    Raises:
        StorageUnavailable: the database does not answer.
    """
    await records.write_trial(NAME, Trial(time=time, content=json.dumps(content)))


def _read(found: Mapping[str, Any], time: datetime) -> Measured:
    return Measured(
        time=time,
        since=datetime.fromisoformat(found["since"]),
        until=datetime.fromisoformat(found["until"]),
        corrected=found["corrected"],
        unsure=found["unsure"],
        settled=found["settled"],
        spam_passed=Rate(**found["spam_passed"]),
        ham_lost=Rate(**found["ham_lost"]),
    )
