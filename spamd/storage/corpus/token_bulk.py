"""Reading the token table in bulk: the database joins many rows to one value, numpy takes it apart.

A row as Python objects costs more than all the rest (1 million rows: 2.7 s as tuples, 0.6 s this
way, on the same machine). PostgreSQL joins the bytes of whole rows. SQLite can't show a number's
bytes, so it joins each column to one text; what is counted in spam and in ham goes as one number,
as each number more costs 70 ns to write and 30 ns to read:

    id    spam + 2³¹ ham    spam_occurrences + 2³¹ ham_occurrences    weight
"""

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("spam", "ham", "spam_occurrences", "ham_occurrences", "weight")
"""The columns of a token's row besides its id, in the order of `TokenCounts.cells`."""

RECORD = np.dtype([("id", ">i8"), ("cells", ">i4", len(COLUMNS))])
"""A row as PostgreSQL sends its numbers."""

HAM_UNIT = 1 << 31
"""Counts are below it, as they have 32 bits and no sign."""

SLICE_ROWS = 100_000
"""Rows read at a time: texts of about 4 MB."""

Piece = tuple[NDArray[np.int64], NDArray[np.int32]]
"""The ids and counts (int32[n, 5]) of some rows."""


def slices(rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of each slice: the ids, 64 bits, are spread evenly."""
    parts = max(1, -(-rows // SLICE_ROWS))
    bounds = [-(1 << 63) + (1 << 64) * part // parts for part in range(parts + 1)]
    for part in range(parts):
        yield bounds[part], bounds[part + 1] - 1


def parsed(texts: Sequence[str | None]) -> Piece:
    """Return the rows that these four texts hold; each is None when there are none."""
    ids, messages, occurrences, weights = (
        np.fromstring(text or "", np.int64, sep=",") for text in texts
    )
    cells = np.empty((len(ids), len(COLUMNS)), np.int32)
    for column, pairs in ((0, messages), (2, occurrences)):
        cells[:, column], cells[:, column + 1] = pairs % HAM_UNIT, pairs // HAM_UNIT
    cells[:, 4] = weights
    return ids, cells


def unpacked(rows: bytes | None) -> Piece:
    """Return the rows that these bytes hold; None when there are none."""
    records = np.frombuffer(rows or b"", RECORD)
    return records["id"].astype(np.int64), records["cells"].astype(np.int32)


def joined(pieces: Sequence[Piece]) -> Piece:
    """Return the rows of all pieces."""
    ids, cells = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return ids, cells


def give_memory_back() -> None:
    """Return freed memory to the system: the C library keeps it, 120 MiB after a million rows."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl has not
    if trim is not None:
        trim(0)
