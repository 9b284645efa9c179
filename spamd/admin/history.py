"""What was scanned, newest first, in parts of some rows.

A part says where the next newer and the next older one begin, as a text that a link can carry.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spamd.admin.ports import Place, Records, ScanFilter, ScanRow

ROWS = 50
MOST_ROWS = 500
COUNTED = 10_000
"""Of a list its length is counted up to here: counting a million takes too long."""

_CURSOR = re.compile(r"([-+])(\d{1,18})\.(.{0,200})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPart:
    """A part of the history.

    newer, older   where the parts beside it begin, None where there are none
    found          how many scans fit in all, at most `COUNTED`
    """

    rows: tuple[ScanRow, ...]
    newer: str | None
    older: str | None
    found: int


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
    found = await records.scans(chosen, at, limit + 1)
    rows, beside = part(found, at, limit)
    return ScanPart(
        rows=tuple(rows),
        newer=beside.newer,
        older=beside.older,
        found=await records.count_scans(chosen, COUNTED),
    )


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
