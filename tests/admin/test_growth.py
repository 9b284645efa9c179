"""What a view of the page reads of a large database does not grow with it.

Work is counted in steps of SQLite's own machine, so that no other load of the machine matters;
`make scale PART=pages` measures the time, at full size.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from spamd.admin import history
from spamd.admin.history import ScanPart, place_of
from spamd.admin.ports import Records, ScanFilter
from spamd.bayes.decision import Action, Verdict
from spamd.sample import Label
from spamd.training.ports import Selection
from tests.admin.office import Office, office
from tests.scale.large import real, repeated

Asked = Callable[[Records], Awaitable[object]]
EACH = 50
"""Rows looked through here for a list."""

LISTS: dict[str, Asked] = {
    "history": lambda records: history.history(records, ScanFilter()),
    "verdict": lambda records: history.history(records, ScanFilter(verdict=Verdict.SPAM)),
    "no such verdict": lambda records: history.history(
        records, ScanFilter(verdict=Verdict.UNSCANNED)
    ),
    "rare": lambda records: history.history(
        records, ScanFilter(listener="lmtp", action=Action.REJECT)
    ),
    "id": lambda records: history.history(records, ScanFilter(id="0123456")),
    "queue id": lambda records: history.history(records, ScanFilter(queue_id="none")),
    "lessons": lambda records: records.lessons(Selection(), None, 51),
    "label": lambda records: records.lessons(Selection(label=Label.HAM), None, 51),
    "source": lambda records: records.lessons(Selection(source="cli"), None, 51),
    "no such source": lambda records: records.lessons(Selection(source="x"), None, 51),
    "actor": lambda records: records.lessons(Selection(actor="x"), None, 51),
    "sender": lambda records: records.lessons(Selection(sender_domain="x"), None, 51),
    "held": lambda records: records.count_held(),
}
COUNTS: dict[str, Asked] = {
    "sources": lambda records: records.sources(),
    "all": lambda records: records.groups(Selection()),
    "label": lambda records: records.groups(Selection(label=Label.SPAM)),
    "source": lambda records: records.groups(Selection(source="imap")),
    "actor": lambda records: records.groups(Selection(actor="user5@office.example")),
}


async def statements(here: Office, asked: Asked) -> list[tuple[str, Any]]:
    """Return what is asked of the database."""
    found: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
        if statement.startswith("SELECT"):
            found.append((statement, parameters))

    engine = here.store.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        await asked(here.store.records)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert found
    return found


def steps(path: Path, asked: list[tuple[str, Any]]) -> int:
    """Return the steps that SQLite takes for it, in tens."""
    taken = 0

    def one() -> int:
        nonlocal taken
        taken += 1
        return 0

    with sqlite3.connect(path) as database:
        database.set_progress_handler(one, 10)
        for statement, parameters in asked:
            database.execute(statement, parameters).fetchall()
    return taken


async def test_no_list_reads_more_of_a_larger_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOOKED", EACH)
    monkeypatch.setattr(history, "COUNTED", EACH)
    async with office(tmp_path, learned=0) as here:
        path = tmp_path / "spamd.db"
        await real(here, 10, 20)
        took: list[dict[str, int]] = []
        for _ in range(2):
            await repeated(here.store.database, 1_500, 1_500, 10, times=1)
            took.append(
                {name: steps(path, await statements(here, asked)) for name, asked in LISTS.items()}
            )
        grown = {name: (steps, took[1][name]) for name, steps in took[0].items()}
        assert {name: few for name, few in grown.items() if few[1] > 1.3 * few[0] + 20} == {}
        plans = {name: await plan(here, path, asked) for name, asked in COUNTS.items()}
        scans = {name: plan for name, plan in plans.items() if "SCAN lesson" in plan}
        assert {name: plan for name, plan in scans.items() if "COVERING INDEX" not in plan} == {}
        assert "SEARCH lesson USING INDEX ix_lesson_actor" in plans["actor"]


async def plan(here: Office, path: Path, asked: Asked) -> str:
    """Return how SQLite goes about the first question of it."""
    statement, parameters = (await statements(here, asked))[0]
    with sqlite3.connect(path) as database:
        rows = database.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    return "; ".join(row[-1] for row in rows)


async def test_parts_that_end_early_still_hold_every_scan_once_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOOKED", 7)
    async with office(tmp_path, learned=12) as here:
        await real(here, 10, 20)
        rare = ScanFilter(verdict=Verdict.SPAM)
        wanted = [row.id for row in await here.store.records.scans(rare, None, 100)]
        assert 2 < len(wanted) < 20
        down, last = await walked(here, rare, None, lambda part: part.older)
        assert down == wanted
        assert last is not None
        up, _ = await walked(here, rare, last, lambda part: part.newer)
        assert up[::-1][: len(wanted)] == wanted[: len(up)]


async def walked(
    here: Office, chosen: ScanFilter, at: str | None, on: Callable[[ScanPart], str | None]
) -> tuple[list[str], str | None]:
    """Return the ids of all parts from a place on, and the place that leads back."""
    found: list[str] = []
    back: str | None = None
    while True:
        part = await history.history(
            here.store.records, chosen, None if at is None else place_of(at), 2
        )
        ids = [row.id for row in part.rows]
        found += ids if at is None or at.startswith("-") else ids[::-1]
        at = on(part)
        if at is None:
            return found, part.newer or back
