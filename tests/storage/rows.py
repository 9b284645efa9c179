"""Rows for every table that there is, made by its columns: a new table can't be forgotten."""

import random
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    UniqueConstraint,
    delete,
    insert,
    select,
)
from sqlalchemy.types import String, TypeDecorator

from spamd.storage import tables
from spamd.storage.engine import Database

ROWS = 7
"""Rows of a table."""

ONE = {"corpus", "grams", "fusion"}
"""Tables of one row, by a CHECK constraint."""

TEXTS = (
    "",
    "Straße",
    "STRASSE",
    "é",
    "e",
    "z",
    "Z",
    "_",
    " trailing ",
    "你好",
    "\U0001f600",
    "a\nb",
)
"""Texts that collations sort otherwise than byte by byte, or take for one."""

GIVEN: dict[tuple[str, str], Callable[[random.Random, int], Any]] = {
    ("*", "label"): lambda chance, _: chance.choice(["ham", "spam"]),
    ("list_entry", "effect"): lambda chance, _: chance.choice(["allow", "deny"]),
    ("token", "spam"): lambda _, number: number,
    ("token", "ham"): lambda _, number: number,
    ("sample", "lesson"): lambda _, number: number,
    ("lesson", "id"): lambda _, number: number,
    ("*", "account"): lambda _, number: f"account {number}",
    ("account", "name"): lambda _, number: f"account {number}",
}
"""Values that constraints ask for."""


def made(column: Column[Any], number: int, chance: random.Random) -> Any:
    """Return a value for a column of the row of this number; of a key or id another each time."""
    for table in (column.table.name, "*"):
        if (table, column.name) in GIVEN:
            return GIVEN[table, column.name](chance, number)
    if column.nullable and chance.random() < 0.3:
        return None
    own = column.primary_key or column.unique or _is_in_unique_constraint(column)
    kind = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
    match kind:
        case Boolean():
            return chance.random() < 0.5
        case BigInteger():
            return number if own else chance.choice([number, 2**62 + number])
        case Integer():
            return number if own else 1_000 + number
        case Double():
            return chance.choice([0.1, 1e-300, 1.0, chance.random()])
        case LargeBinary():
            longest = 3_000 if column.name == "content" else 30  # others may stand in an index
            return number.to_bytes(2, "big") + chance.randbytes(chance.choice([0, 30, longest]))
        case String():
            return f"{chance.choice(TEXTS)}{number if own else ''}"
        case _:
            raise AssertionError(f"no value for {column}")


def _is_in_unique_constraint(column: Column[Any]) -> bool:
    return any(
        isinstance(each, UniqueConstraint) and column.name in each.columns
        for each in column.table.constraints
    )


async def fill(database: Database, seed: int = 1, rows: int = ROWS) -> None:
    """Give every table of a database rows, of 1970 or of far ahead; the corpus row gets others."""
    chance = random.Random(seed)
    async with database.writing() as connection:
        for table in tables.metadata.sorted_tables:
            wanted = 1 if table.name in ONE else rows
            made_up = [
                {column.name: made(column, number, chance) for column in table.columns}
                for number in range(1, wanted + 1)
            ]
            if table is tables.corpus:
                await connection.execute(delete(table))
            await connection.execute(insert(table), made_up)


async def content(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, in an order that both databases agree on."""
    async with database.reading() as connection:
        return {
            table.name: sorted(map(tuple, await connection.execute(select(table))), key=repr)
            for table in tables.metadata.sorted_tables
        }
