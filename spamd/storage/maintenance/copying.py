"""`spamd database copy`: every row of one database in another, SQLite and PostgreSQL alike.

    copied = await copy(source, target, told)

All tables of `storage.tables` are copied as they are at one moment of the source, also sessions and
leases, and the numbers that were given out last, so that none is given out again. Nothing is copied
in part: until the last row is there, the target has no corpus row, without which no process uses
it, and a table of its own, `unfinished_copy`, that says whose copy this is. A copy that was ended
is begun again the same way: both databases are read in the order of their keys, rows that the
source has not (it may have changed) go, and those that are missing come.

A target that holds anything else is refused, and so is one of another schema.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncResult
from sqlalchemy.types import String, TypeDecorator

from spamd.errors import SpamdError
from spamd.storage import tables
from spamd.storage.engine import Database
from spamd.storage.layers.tables import user_lesson  # noqa: F401 - of the same metadata
from spamd.storage.migrate import check_schema, upgrade

ROWS = 1_000
"""Rows read, and written in one transaction."""

KEYS = 300
"""Rows deleted by one statement: SQLite takes 1,000 levels of an expression at most."""

MARK = Table("unfinished_copy", MetaData(), Column("source", Text, nullable=False))
"""It is there from the beginning of a copy to its end; one row, which tells the source."""

Told = Callable[[str, int, int], None]
"""Is told of a table how many rows are done, and how many there are."""

AnyRow = Row[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy did.

    rows      rows of each table, now the same in both
    resumed   an earlier copy had been ended, and this one went on with it
    written   rows that were not there yet
    """

    rows: dict[str, int]
    resumed: bool
    written: int


def silent(table: str, done: int, total: int) -> None:
    """Tell nobody."""


async def copy(source: Database, target: Database, told: Told = silent) -> Copied:
    """Copy all rows of `source` to `target`, or go on with a copy that was ended.

    Raises:
        ConfigError: one of them has not this version's schema.
        SpamdError: the target holds something else.
    """
    await check_schema(source)
    async with source.reading() as reader:
        resumed = await _begun(target, await _fingerprint(reader))
        rows: dict[str, int] = {}
        written = 0
        for table in tables.metadata.sorted_tables:
            if table is tables.corpus:
                continue
            work = _Table(table, reader, target, told)
            if resumed:
                await work.clean()
            rows[table.name] = await work.fill(resumed=resumed)
            written += work.written
        rows[tables.corpus.name] = 1
        await _end(reader, target, rows)
    return Copied(rows=rows, resumed=resumed, written=written + 1)


async def _fingerprint(reader: AsyncConnection) -> str:
    """Return what is the same of a database as long as it lives, without telling its secret."""
    secret = (await reader.execute(select(tables.corpus.c.secret))).scalar()
    if secret is None:
        raise SpamdError("the database to copy from is empty, or itself a copy that was ended")
    return hashlib.sha256(b"copy" + secret).hexdigest()


async def _begun(target: Database, fingerprint: str) -> bool:
    """Make the target ready, and unusable until the end; return whether it holds a part already.

    Raises:
        SpamdError: it holds something else.
    """
    async with target.reading() as connection:
        there = await connection.run_sync(lambda plain: set(inspect(plain).get_table_names()))
    if not there:
        await upgrade(target)
    await check_schema(target)
    if MARK.name in there:
        async with target.reading() as connection:
            if (await connection.execute(select(MARK.c.source))).scalar() == fingerprint:
                return True
        raise SpamdError(
            f"{target.shown} holds a part of a copy of another database: give an empty one"
        )
    async with target.writing() as connection:
        if full := await _first_with_rows(connection):
            raise SpamdError(
                f"{target.shown} is not empty (there are rows in the table {full}): give an empty"
                " database, or one that does not exist yet"
            )
        await connection.run_sync(MARK.create)
        await connection.execute(insert(MARK).values(source=fingerprint))
        await connection.execute(delete(tables.corpus))
    return False


async def _first_with_rows(connection: AsyncConnection) -> str | None:
    for table in tables.metadata.sorted_tables:
        rows = select(*table.primary_key.columns).limit(1)
        if table is tables.corpus:  # which an upgrade has made
            rows = rows.where(tables.corpus.c.revision != 0)
        if (await connection.execute(rows)).first() is not None:
            return table.name
    return None


async def _end(reader: AsyncConnection, target: Database, rows: dict[str, int]) -> None:
    """Make the target whole, and fit for use.

    Raises:
        SpamdError: somebody else has written to it.
    """
    corpus = (await reader.execute(select(tables.corpus))).one()
    async with target.writing() as connection:
        for table in tables.metadata.sorted_tables:
            if table is tables.corpus:
                continue
            found = await _count(connection, table)
            if found != rows[table.name]:
                raise SpamdError(
                    f"{target.shown} has {found:,} rows in the table {table.name}, not"
                    f" {rows[table.name]:,}: another process has written to it; copy again"
                )
            if (column := table.autoincrement_column) is not None:
                await _give_out_after(connection, column, await _last_given_out(reader, column))
        await connection.execute(insert(tables.corpus), [dict(corpus._mapping)])  # noqa: SLF001 - SQLAlchemy's public name
        await connection.run_sync(MARK.drop)


class _Table:
    """The copy of one table."""

    def __init__(self, table: Table, reader: AsyncConnection, target: Database, told: Told) -> None:
        self._table = table
        self._reader = reader
        self._target = target
        self._told = told
        self._keys = list(table.primary_key.columns)
        self.written = 0

    async def clean(self) -> None:
        """Delete the rows of the target that the source has not, or has otherwise."""
        gone: list[tuple[Any, ...]] = []
        async with self._both() as (mine, theirs):
            while (row := await theirs.head()) is not None:
                other = await mine.head()
                if other is not None and mine.key(other) < theirs.key(row):
                    mine.next()
                    continue
                if other is None or tuple(other) != tuple(row):
                    gone.append(tuple(row._mapping[key] for key in self._keys))  # noqa: SLF001 - likewise
                theirs.next()
        for start in range(0, len(gone), KEYS):
            these = tuple_(*self._keys).in_(gone[start : start + KEYS])
            async with self._target.writing() as connection:
                await connection.execute(delete(self._table).where(these))

    async def fill(self, *, resumed: bool) -> int:
        """Insert the rows that the target has not; return how many the source has."""
        total = await _count(self._reader, self._table)
        done = 0
        if not resumed:
            async with aclosing(_parts(self._reader, self._table, ordered=False)) as parts:
                async for rows in parts:
                    await self._write(rows)
                    done += len(rows)
                    self._told(self._table.name, done, total)
            return done
        missing: list[AnyRow] = []
        async with self._both() as (mine, theirs):
            while (row := await mine.head()) is not None:
                other = await theirs.head()
                if other is None or theirs.key(other) != mine.key(row):
                    missing.append(row)
                else:
                    theirs.next()
                mine.next()
                done += 1
                if done % ROWS == 0 or len(missing) == ROWS:
                    await self._write(missing)
                    missing = []
                    self._told(self._table.name, done, total)
        await self._write(missing)
        self._told(self._table.name, done, total)
        return done

    async def _write(self, rows: Sequence[AnyRow]) -> None:
        if rows:
            async with self._target.writing() as connection:
                await connection.execute(insert(self._table), [dict(row._mapping) for row in rows])  # noqa: SLF001 - likewise
            self.written += len(rows)

    @asynccontextmanager
    async def _both(self) -> AsyncGenerator[tuple["_Ordered", "_Ordered"]]:
        """Give the rows of both databases in the order of their keys."""
        async with (
            self._target.reading() as there,
            aclosing(_parts(self._reader, self._table, ordered=True)) as mine,
            aclosing(_parts(there, self._table, ordered=True)) as theirs,
        ):
            yield _Ordered(mine, self._keys), _Ordered(theirs, self._keys)


class _Ordered:
    """Rows in the order of their keys, one after the other."""

    def __init__(
        self, parts: AsyncGenerator[Sequence[AnyRow]], keys: Sequence[Column[Any]]
    ) -> None:
        self._parts = parts
        self._keys = keys
        self._rows: Sequence[AnyRow] = ()
        self._place = 0

    async def head(self) -> AnyRow | None:
        """Return the row that is next, None at the end."""
        if self._place == len(self._rows):
            try:
                self._rows, self._place = await anext(self._parts), 0
            except StopAsyncIteration:
                return None
        return self._rows[self._place]

    def next(self) -> None:
        """Go on to the next row."""
        self._place += 1

    def key(self, row: AnyRow) -> tuple[Any, ...]:
        """Return the key of a row, so that keys compare as both databases sort them."""
        values = (row._mapping[key] for key in self._keys)  # noqa: SLF001 - likewise
        return tuple(each.encode() if isinstance(each, str) else each for each in values)


async def _parts(
    connection: AsyncConnection, table: Table, *, ordered: bool
) -> AsyncGenerator[Sequence[AnyRow]]:
    """Give all rows of a table, some at a time."""
    statement: Select[*tuple[Any, ...]] = select(table)
    if ordered:
        statement = statement.order_by(*(_bytewise(connection, key) for key in table.primary_key))
    options = {"yield_per": ROWS}
    result: AsyncResult[*tuple[Any, ...]] = await connection.stream(
        statement, execution_options=options
    )
    try:
        async for rows in result.partitions():
            yield rows
    finally:
        await result.close()


def _bytewise(connection: AsyncConnection, column: Column[Any]) -> Any:
    """Return a key to sort by: text byte by byte, as SQLite does."""
    kind = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
    if connection.dialect.name == "postgresql" and isinstance(kind, String):
        return column.collate("C")
    return column


async def _count(connection: AsyncConnection, table: Table) -> int:
    rows = select(func.count()).select_from(table)
    return (await connection.execute(rows)).scalar_one()


def _counts_up(connection: AsyncConnection, column: Column[Any]) -> bool:
    """Return whether the database remembers the number that it gave out last."""
    if connection.dialect.name == "postgresql":
        return True
    return bool(column.table.dialect_options["sqlite"]["autoincrement"])


async def _last_given_out(connection: AsyncConnection, column: Column[Any]) -> int:
    """Return the largest number that a table has given a row, however long that is gone."""
    table = column.table
    largest: int = (
        await connection.execute(select(func.coalesce(func.max(column), 0)))
    ).scalar_one()
    if not _counts_up(connection, column):
        return largest
    if connection.dialect.name == "sqlite":
        said = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return max(largest, (await connection.execute(said, {"name": table.name})).scalar() or 0)
    sequence = await _sequence(connection, column)
    given = text(f"SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}")  # noqa: S608 - the server's own name
    last: int = (await connection.execute(given)).scalar_one()
    return max(largest, last)


async def _give_out_after(connection: AsyncConnection, column: Column[Any], last: int) -> None:
    """Have the next row's number be above `last`."""
    if not _counts_up(connection, column):
        return
    if connection.dialect.name == "sqlite":
        name = {"name": column.table.name, "last": last}
        await connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), name)
        await connection.execute(text("INSERT INTO sqlite_sequence VALUES (:name, :last)"), name)
        return
    sequence = await _sequence(connection, column)
    await connection.execute(select(func.setval(sequence, max(last, 1), last > 0)))


async def _sequence(connection: AsyncConnection, column: Column[Any]) -> str:
    named = select(func.pg_get_serial_sequence(column.table.name, column.name))
    name: str = (await connection.execute(named)).scalar_one()
    return name
