"""What was scanned, newest first, in parts of some rows.

A part says where the next newer and the next older one begin, as a text that a link can carry.
Where no index leads to the scans that fit, a part ends after `LOOKED` scans, however few fit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from spamd.admin.ports import Place, Records, ScanFilter, ScanRow

ROWS = 50
MOST_ROWS = 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

COUNTED = 10_000
"""Of a list its length is counted up to here: counting a million takes too long."""

LOOKED = 100_000
"""Scans looked through for a part of a list: some 50 ms."""

_CURSOR = re.compile(r"([-+])(\d{1,18})\.(.{0,200})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPart:
    """A part of the history.

    newer, older   where the parts beside it begin, None where there are none
    found          how many scans fit in all, at most `COUNTED`
    counted_from   only those since then were counted; None: all
    """

    rows: tuple[ScanRow, ...]
    newer: str | None
    older: str | None
    found: int
    counted_from: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The parts beside one: None where there are none."""

    newer: str | None
    older: str | None


async def history(
    records: Records, chosen: ScanFilter, at: Place | None = None, limit: int = ROWS
) -> ScanPart:
    """Return a part of the scans that fit.

    Raises:
        StorageUnavailable: the database does not answer.
    """
    end = await _end(records, chosen, at)
    found = await records.scans(_up_to(chosen, at, end), at, limit + 1)
    rows, around = part(found, at, limit)
    if end is not None and len(found) <= limit:
        around = _further(around, at, end)
    counted_from = end if at is None else await _end(records, chosen, None)
    counted = chosen if counted_from is None else replace(chosen, since=counted_from)
    return ScanPart(
        rows=tuple(rows),
        newer=around.newer,
        older=around.older,
        found=await records.count_scans(counted, COUNTED),
        counted_from=counted_from,
    )


async def _end(records: Records, chosen: ScanFilter, at: Place | None) -> datetime | None:
    """Return up to where is looked for scans that fit, None for all the way."""
    return await records.horizon(chosen, at, LOOKED) if chosen.looks_through else None


def _up_to(chosen: ScanFilter, at: Place | None, end: datetime | None) -> ScanFilter:
    if end is None:
        return chosen
    return replace(chosen, until=end) if at is not None and at.newer else replace(chosen, since=end)


def _further(around: "Beside", at: Place | None, end: datetime) -> "Beside":
    """Return what stands beside a part that ended where no more was looked through."""
    time = (end - EPOCH) // MICROSECOND
    if at is not None and at.newer:
        return Beside(newer=f"+{time - 1}.", older=around.older or f"-{at.time}.{at.key}")
    back = None if at is None else f"+{at.time}.{at.key}"
    return Beside(newer=around.newer or back, older=f"-{time}.")


def part(
    found: Sequence[ScanRow], at: Place | None, limit: int
) -> tuple[Sequence[ScanRow], Beside]:
    """Return the rows of a part, of one row more than it has, and what stands beside it."""
    more = len(found) > limit
    if at is not None and at.newer:
        rows = found[-limit:]
        newer, older = more, True
    else:
        rows = found[:limit]
        newer, older = at is not None, more
    return rows, beside(rows[0].place, rows[-1].place, newer, older) if rows else NOTHING


def beside(first: Place, last: Place, newer: bool, older: bool) -> Beside:  # noqa: FBT001 - two of one kind
    """Return where the parts begin that stand beside the rows from `first` to `last`."""
    return Beside(
        newer=f"+{first.time}.{first.key}" if newer else None,
        older=f"-{last.time}.{last.key}" if older else None,
    )


NOTHING = Beside(newer=None, older=None)


def place_of(cursor: str) -> Place:
    """Return the place that `newer` or `older` of a part names.

    Raises:
        ValueError: it is no such text.
    """
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("there is no part of the list that begins there")
    return Place(time=int(match[2]), key=match[3], newer=match[1] == "+")
