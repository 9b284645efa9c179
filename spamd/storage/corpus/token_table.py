"""The token table: read into arrays, changed by differences.

Reading: many rows as one value, see `token_bulk`.

Writing: thousands of rows per statement, sorted by id; one statement for each row costs twice the
time, and each one lets other threads of the process in between. Counts change in SQL
(`spam = token.spam + excluded.spam`). An upsert checks the CHECK constraints on the row it would
insert, so differences below zero go by UPDATE … FROM.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    LargeBinary,
    bindparam,
    delete,
    func,
    literal_column,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from spamd.bayes.counts import TokenCounts, TokenTable
from spamd.storage.corpus import token_bulk
from spamd.storage.corpus.token_bulk import COLUMNS
from spamd.storage.tables import token

INLINE_BYTES = 200_000
"""Up to this much text is read on the event loop, in about 3 ms; more in a thread."""

CHUNK_ROWS = 5_000
"""Rows of six values per statement on SQLite, which takes 32,766 variables at most."""

# No text from outside stands in these statements, only names of columns.
SUM = ", ".join(f"{name} = token.{name} + change.{name}" for name in COLUMNS)
ON_CONFLICT = f" ON CONFLICT (id) DO UPDATE SET {SUM.replace('change.', 'excluded.')}"
ALL = f"(id, {', '.join(COLUMNS)})"
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
        found, cells = await _rows(connection, condition)
        return TokenTable(found, TokenCounts.of_cells(cells))
    read = [piece async for piece in pieces(connection, await number(connection))]
    ids, cells = token_bulk.joined(read)
    return await asyncio.to_thread(TokenTable, ids, TokenCounts.of_cells(cells))


async def number(connection: AsyncConnection) -> int:
    """Return how many rows there are."""
    counted = select(func.count()).select_from(token)
    return int((await connection.execute(counted)).scalar_one())


async def pieces(connection: AsyncConnection, rows: int) -> AsyncIterator[token_bulk.Piece]:
    """Yield all rows, some at a time; the ids of each piece are above those before."""
    for bounds in token_bulk.slices(rows):
        yield await piece(connection, bounds)


async def piece(connection: AsyncConnection, bounds: tuple[int, int]) -> token_bulk.Piece:
    """Return the rows from one id to another (`token_bulk.slices`)."""
    return await _rows(connection, token.c.id.between(*bounds))


async def _rows(connection: AsyncConnection, condition: ColumnElement[bool]) -> token_bulk.Piece:
    """Return the rows that meet a condition."""
    if connection.dialect.name != "sqlite":
        wanted = select(func.string_agg(_record(), literal_column("''::bytea")))
        return token_bulk.unpacked((await connection.execute(wanted.where(condition))).scalar_one())
    row = token.c
    numbers = (
        row.id,
        row.spam + row.ham * token_bulk.HAM_UNIT,
        row.spam_occurrences + row.ham_occurrences * token_bulk.HAM_UNIT,
        row.weight,
    )
    wanted = select(*(func.group_concat(number) for number in numbers))
    texts = (await connection.execute(wanted.where(condition))).one()
    if len(texts[0] or "") < INLINE_BYTES:
        return token_bulk.parsed(texts)
    return await asyncio.to_thread(token_bulk.parsed, texts)


def _record() -> ColumnElement[bytes]:
    """Return a row as PostgreSQL sends its numbers, `token_bulk.RECORD`."""
    record: ColumnElement[bytes] = func.int8send(token.c.id, type_=LargeBinary)
    for name in COLUMNS:
        record = record.op("||")(func.int4send(token.c[name]))
    return record


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
