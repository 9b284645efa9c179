"""What has been counted: tokens and messages of each label, in memory.

A `TokenTable` holds one row per token: spam and ham messages with it, its occurrences in them, and
its logistic weight. The rows are sorted by token id; ids are uniformly distributed 64-bit hashes,
so their top bits say where to look, and a look-up of a whole message costs the same in a table of
ten thousand or of three million tokens. `Totals` holds the sums that the formulas divide by.

Everything here is integer arithmetic: taking a lesson back is the same addition with the other
sign, so it restores every number exactly. Nothing here reads or writes a database.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spamd.sample import Label, Sample

WEIGHT_UNIT = 1 / 65536
"""Logistic weights are integers in units of 2⁻¹⁶, so that a step can be subtracted exactly."""

LAST_ID = np.iinfo(np.int64).max
"""Stands behind the last id of a table."""

SPAM, HAM, SPAM_OCCURRENCES, HAM_OCCURRENCES, WEIGHT = range(5)
"""The columns of a token's row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Messages and token occurrences trained per label, and the number of distinct tokens known."""

    spam: int = 0
    ham: int = 0
    spam_occurrences: int = 0
    ham_occurrences: int = 0
    vocabulary: int = 0

    @property
    def messages(self) -> int:
        """All messages trained."""
        return self.spam + self.ham

    def changed(self, label: Label, *, occurrences: int, vocabulary: int, sign: int) -> "Totals":
        """Return the totals with one message of `label` more (sign 1) or less (sign −1)."""
        vocabulary += self.vocabulary
        if label is Label.SPAM:
            return replace(
                self,
                spam=self.spam + sign,
                spam_occurrences=self.spam_occurrences + sign * occurrences,
                vocabulary=vocabulary,
            )
        return replace(
            self,
            ham=self.ham + sign,
            ham_occurrences=self.ham_occurrences + sign * occurrences,
            vocabulary=vocabulary,
        )


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """The counts of some tokens, as arrays of one length; 0 for a token never seen."""

    spam: NDArray[np.int32]
    ham: NDArray[np.int32]
    spam_occurrences: NDArray[np.int32]
    ham_occurrences: NDArray[np.int32]
    weight: NDArray[np.int32]

    @classmethod
    def zeros(cls, size: int) -> "TokenCounts":
        """Return the counts of `size` tokens never seen."""
        return cls.of_cells(np.zeros((size, 5), dtype=np.int32))

    @classmethod
    def of_cells(cls, cells: NDArray[np.int32]) -> "TokenCounts":
        """Return the columns of int32[n, 5] as counts."""
        columns = np.ascontiguousarray(cells.T)
        return cls(
            spam=columns[SPAM],
            ham=columns[HAM],
            spam_occurrences=columns[SPAM_OCCURRENCES],
            ham_occurrences=columns[HAM_OCCURRENCES],
            weight=columns[WEIGHT],
        )

    @cached_property
    def seen(self) -> NDArray[np.int32]:
        """Messages that held each token, of whatever label."""
        return self.spam + self.ham

    @property
    def cells(self) -> NDArray[np.int32]:
        """The counts as int32[n, 5], one row per token."""
        columns: Iterable[NDArray[np.int32]] = (
            self.spam,
            self.ham,
            self.spam_occurrences,
            self.ham_occurrences,
            self.weight,
        )
        return np.stack([np.asarray(column, dtype=np.int32) for column in columns], axis=1)

    def __len__(self) -> int:
        return len(self.spam)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableParts:
    """What a `TokenTable` of n tokens consists of.

    padded   int64[n + 2 widest + 1]: the ids, ascending, then `LAST_ID`
    cells    int32[n + 1, 5]: the counts, then zeros
    starts   int32: where each bucket of ids begins (`BucketIndex`)
    """

    padded: NDArray[np.int64]
    cells: NDArray[np.int32]
    starts: NDArray[np.int32]


def bucket_numbers(size: int) -> tuple[np.int64, np.int64]:
    """Return by how much an id is shifted for its bucket, and what is added then."""
    bits = _bits(size)
    return np.int64(64 - bits), np.int64(1 << (bits - 1))


def _bits(size: int) -> int:
    return max(1, size.bit_length() - 1)  # between one and two tokens in a bucket


class BucketIndex:
    """Counts the ids in each bucket of a table; ids come in ascending order.

    size   how long the index will be
    """

    def __init__(self, size: int) -> None:
        self._shift, self._half = bucket_numbers(size)
        self.size = (1 << _bits(size)) + 1
        self._counts = np.zeros(self.size, dtype=np.int32)

    def add(self, ids: NDArray[np.int64]) -> None:
        """Count ids that follow those before."""
        if len(ids):
            buckets = (ids >> self._shift) + self._half
            first, last = int(buckets[0]), int(buckets[-1])
            self._counts[first + 1 : last + 2] += np.bincount(buckets - first).astype(np.int32)

    def starts(self) -> tuple[NDArray[np.int32], int]:
        """Return where each bucket begins, and how many ids are in the fullest one; once."""
        widest = int(self._counts.max())
        np.cumsum(self._counts, out=self._counts)
        return self._counts, widest


class TokenTable:
    """Counts by token id, in sorted arrays: 28 bytes a token and about 3 more for the index."""

    __slots__ = ("_cells", "_half", "_padded", "_shift", "_size", "_starts", "_steps")

    def __init__(
        self, ids: NDArray[np.int64] | None = None, counts: TokenCounts | None = None
    ) -> None:
        """Take distinct `ids` in any order with their `counts` (zeros without)."""
        given = np.zeros(0, dtype=np.int64) if ids is None else np.asarray(ids, dtype=np.int64)
        cells = np.zeros((len(given), 5), np.int32) if counts is None else counts.cells
        order = np.argsort(given, kind="stable")
        self._build(given[order], cells[order])

    @classmethod
    def of_parts(cls, parts: TableParts) -> "TokenTable":
        """Return a table over arrays that stand ready, without copying; they may be read only."""
        table = cls.__new__(cls)
        table.take(parts)
        return table

    def take(self, parts: TableParts) -> None:
        """Be a table over these arrays."""
        size = self._size = len(parts.cells) - 1
        self._shift, self._half = bucket_numbers(size)
        self._padded, self._cells, self._starts = parts.padded, parts.cells, parts.starts
        # A binary search over the widest bucket; probes may run past the end by that much.
        widest = (len(parts.padded) - size - 1) // 2
        self._steps = tuple(1 << bit for bit in reversed(range(widest.bit_length())))

    def _build(self, ids: NDArray[np.int64], cells: NDArray[np.int32]) -> None:
        size = len(ids)
        index = BucketIndex(size)
        index.add(ids)
        starts, widest = index.starts()
        padded = np.full(size + 2 * widest + 1, LAST_ID, dtype=np.int64)
        padded[:size] = ids
        # One row of zeros more: row −1, the row of a token that is not in the table.
        rows = np.zeros((size + 1, 5), dtype=np.int32)
        rows[:size] = cells
        self.take(TableParts(padded=padded, cells=rows, starts=starts))

    def copied(self) -> "TokenTable":
        """Return a table that may be changed while this one is read."""
        return TokenTable.of_parts(
            TableParts(padded=self._padded, cells=self._cells.copy(), starts=self._starts)
        )

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> NDArray[np.int64]:
        """All token ids, ascending; row i belongs to ids[i]."""
        return self._padded[: self._size]

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the row of each id, −1 for one that is not in the table."""
        at = self._starts.take((ids >> self._shift) + self._half).astype(np.intp)
        for step in self._steps:
            at += (self._padded.take(at + (step - 1)) < ids) * step
        at[(self._padded.take(at) != ids) | (at >= self._size)] = -1
        return at

    def counts(self, rows: NDArray[np.intp]) -> TokenCounts:
        """Return a copy of the counts of `rows`; row −1 has zeros."""
        return TokenCounts.of_cells(self.cells(rows))

    def cells(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the same as int32[n, 5]."""
        return self._cells.take(rows, axis=0, mode="wrap")

    def merge(self, ids: NDArray[np.int64], counts: TokenCounts) -> None:
        """Insert distinct `ids` with their counts, replacing the counts of those known already."""
        cells = counts.cells
        rows = self.find(ids)
        known = rows >= 0
        self._cells[rows[known]] = cells[known]
        if known.all():
            return
        order = np.argsort(ids[~known], kind="stable")
        fresh, fresh_cells = ids[~known][order], cells[~known][order]
        at = np.searchsorted(self.ids, fresh)
        self._build(
            np.insert(self.ids, at, fresh),
            np.insert(self._cells[: self._size], at, fresh_cells, axis=0),
        )

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Forget `ids`; those not in the table are passed over."""
        rows = self.find(ids)
        keep = np.ones(self._size, dtype=np.bool_)
        keep[rows[rows >= 0]] = False
        self._build(self.ids[keep], self._cells[: self._size][keep])

    def stands(self, ids: NDArray[np.int64]) -> bool:
        """Return whether these tokens have rows, so that giving them counts moves nothing."""
        return bool((self.find(ids) >= 0).all())

    def add(
        self,
        rows: NDArray[np.intp],
        occurrences: NDArray[np.uint8],
        label: Label,
        sign: int,
        step: int,
    ) -> int:
        """Count one message (sign 1) or take it back (sign −1); return the change in vocabulary.

        `step` is added to every weight as it is, so taking back passes it negated. The vocabulary
        is the number of tokens that some trained message holds.

        Raises:
            KeyError: a row is −1: its token must be merged first.
            ValueError: a count would fall below zero: this message was never counted.
        """
        if len(rows) and rows.min() < 0:
            raise KeyError("a token of this message is not in the table")
        mine = SPAM if label is Label.SPAM else HAM
        cells = self._cells.take(rows, axis=0)
        before = np.count_nonzero(cells[:, SPAM] + cells[:, HAM])
        cells[:, mine] += np.int32(sign)
        cells[:, mine + SPAM_OCCURRENCES] += np.int32(sign) * occurrences.astype(np.int32)
        cells[:, WEIGHT] += np.int32(step)
        if sign < 0 and len(rows) and cells[:, :WEIGHT].min() < 0:
            raise ValueError("a message can't be taken back that was not learned")
        self._cells[rows] = cells
        return int(np.count_nonzero(cells[:, SPAM] + cells[:, HAM])) - int(before)


TAUGHT_TOKENS = 4000
"""At most this many distinct tokens of a message are learned: one mail that holds a dictionary
can't move the counts of a whole language. As many as the tokeniser keeps by default: a lower cap
costs more on honest long mail than it saves (E-012). A constant, not a setting: a lesson taken back
under another cap would not be the inverse of what it taught."""


def taught(sample: Sample, limit: int = TAUGHT_TOKENS) -> NDArray[np.intp] | None:
    """Return which tokens of `sample` a lesson teaches, ascending; None means all of them.

    Over the limit they are drawn by a hash of the token and of the whole sample: always the same
    ones for the same sample, and none that a sender could aim for without knowing all the rest.
    """
    if len(sample.ids) <= limit:
        return None
    ids = sample.ids.view(np.uint64)
    # The steps of SplitMix64 over id and salt: each bit of both moves the high bits of the key.
    key = (ids ^ np.bitwise_xor.reduce(ids)) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return np.sort(np.argpartition(key, limit)[:limit])


def distinct(arrays: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct ids of several arrays, ascending.

    By sorting: numpy's `unique` hashes, which takes fifty times as long.
    """
    ids = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *arrays]))
    return ids[np.concatenate(([True], ids[1:] != ids[:-1]))] if len(ids) else ids
