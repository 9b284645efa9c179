"""The token table: read into arrays, changed by differences.

Reading: a row as Python objects costs more than all the rest (1 million rows: 2.7 s as tuples,
1.1 s this way, on the same machine). So the server joins each column to one text
(`aggregate_strings`) and numpy reads the numbers in it.

Writing: thousands of rows per statement, sorted by id; one statement for each row costs twice the
time, and each one lets other threads of the process in between. Counts change in SQL
(`spam = token.spam + excluded.spam`). An upsert checks the CHECK constraints on the row it would
insert, so differences below zero go by UPDATE … FROM.
"""

import asyncio
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Text,
    bindparam,
    cast,
    delete,
    func,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenCounts, TokenTable
from spamd.storage.tables import token

COLUMNS = (
    token.c.spam,
    token.c.ham,
    token.c.spam_occurrences,
    token.c.ham_occurrences,
    token.c.weight,
)
NAMES = tuple(name.name for name in COLUMNS)

SLICE_ROWS = 100_000
"""Rows read at a time: texts of about 4 MB."""

INLINE_BYTES = 200_000
"""Up to this much text is read on the event loop, in about 3 ms; more in a thread."""

CHUNK_ROWS = 5_000
"""Rows of six values per statement on SQLite, which takes 32,766 variables at most."""

# No text from outside stands in these statements, only names of columns.
SUM = ", ".join(f"{name} = token.{name} + change.{name}" for name in NAMES)
ON_CONFLICT = f" ON CONFLICT (id) DO UPDATE SET {SUM.replace('change.', 'excluded.')}"
ALL = f"(id, {', '.join(NAMES)})"
UNNEST = f"unnest($1::bigint[], {', '.join(f'${n}::integer[]' for n in range(2, 7))})"
MATCH = " WHERE token.id = change.id"
RISE_SQLITE = f"INSERT INTO token {ALL} VALUES ROWS {ON_CONFLICT}"  # noqa: S608
GIVEN_SQLITE = f"WITH change {ALL} AS (VALUES ROWS)"
FALL_SQLITE = f"{GIVEN_SQLITE} UPDATE token SET {SUM} FROM change {MATCH}"  # noqa: S608
RISE_POSTGRESQL = f"INSERT INTO token {ALL} SELECT * FROM {UNNEST} {ON_CONFLICT}"  # noqa: S608
FALL_POSTGRESQL = f"UPDATE token SET {SUM} FROM {UNNEST} AS change {ALL} {MATCH}"  # noqa: S608


def is_one_of(ids: NDArray[np.int64], dialect: str) -> ColumnElement[bool]:
    """Return the condition that a token is one of these, in one bind variable however many."""
    numbers = ids.tolist()
    if dialect == "sqlite":
        each = func.json_each(json.dumps(numbers)).table_valued("value")
        return token.c.id.in_(select(each.c.value))
    given = bindparam("ids", numbers, type_=ARRAY(BigInteger))
    return token.c.id == func.any(given, type_=BigInteger)


async def load(connection: AsyncConnection, ids: NDArray[np.int64] | None = None) -> TokenTable:
    """Return the rows of these tokens (those that are there), or of all."""
    if ids is not None:
        condition = is_one_of(ids, connection.dialect.name)
        found, cells = await _numbers(await _slice(connection, condition))
        return TokenTable(found, TokenCounts.of_cells(cells))
    rows = (await connection.execute(select(func.count()).select_from(token))).scalar_one()
    bounds = _bounds(max(1, -(-rows // SLICE_ROWS)))
    pieces = []
    for start, end in zip(bounds[:-1], (bound - 1 for bound in bounds[1:]), strict=True):
        texts = await _slice(connection, token.c.id.between(start, end))
        pieces.append(await _numbers(texts))
    ids, cells = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return await asyncio.to_thread(TokenTable, ids, TokenCounts.of_cells(cells))


def _bounds(parts: int) -> list[int]:
    """Return where to cut the 64-bit ids, which are spread evenly, into `parts` equal slices."""
    return [-(1 << 63) + (1 << 64) * part // parts for part in range(parts + 1)]


async def _slice(connection: AsyncConnection, condition: ColumnElement[bool]) -> Sequence[str]:
    """Return the columns of the rows that meet a condition, each as one text of numbers."""
    columns = (cast(each, Text) for each in (token.c.id, *COLUMNS))
    wanted = select(*(func.aggregate_strings(each, ",") for each in columns)).where(condition)
    return [each or "" for each in (await connection.execute(wanted)).one()]


async def _numbers(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the ids and the counts (int32[n, 5]) that the texts of the columns hold."""
    if len(texts[0]) < INLINE_BYTES:
        return _parsed(texts)
    return await asyncio.to_thread(_parsed, texts)


def _parsed(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    ids, *counts = (np.fromstring(text, np.int64, sep=",") for text in texts)
    return ids, np.stack(counts, axis=1).astype(np.int32)


async def change(
    connection: AsyncConnection, ids: NDArray[np.int64], differences: NDArray[np.int32]
) -> None:
    """Add differences (int32[n, 5], as `TokenCounts.cells`) to the rows of `ids`.

    Rows that aren't there are made; `ids` ascend.
    """
    falling = (differences[:, : len(COLUMNS) - 1] < 0).any(axis=1)
    for rows, falls in ((~falling, False), (falling, True)):
        if rows.any():
            numbers = np.column_stack((ids[rows], differences[rows])).astype(np.int64)
            if connection.dialect.name == "sqlite":
                await _change_sqlite(connection, numbers, falls=falls)
            else:
                await _change_postgresql(connection, numbers, falls=falls)


async def _change_sqlite(
    connection: AsyncConnection, numbers: NDArray[np.int64], *, falls: bool
) -> None:
    statement = FALL_SQLITE if falls else RISE_SQLITE
    for start in range(0, len(numbers), CHUNK_ROWS):
        chunk = numbers[start : start + CHUNK_ROWS]
        rows = ",".join(["(?,?,?,?,?,?)"] * len(chunk))
        await connection.exec_driver_sql(
            statement.replace("ROWS", rows), tuple(chunk.ravel().tolist())
        )


async def _change_postgresql(
    connection: AsyncConnection, numbers: NDArray[np.int64], *, falls: bool
) -> None:
    statement = FALL_POSTGRESQL if falls else RISE_POSTGRESQL
    await connection.exec_driver_sql(statement, tuple(numbers.T.tolist()))


async def remove(connection: AsyncConnection, ids: NDArray[np.int64]) -> None:
    """Delete the rows of these tokens."""
    if len(ids):
        await connection.execute(delete(token).where(is_one_of(ids, connection.dialect.name)))
