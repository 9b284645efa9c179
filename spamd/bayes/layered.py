"""Counts in two layers: a table that never changes, and what has changed since.

The lower one may be a file that all processes of a machine share (`storage.mapped`); the upper one
belongs to a process and is small. A token of the upper layer covers its row of the lower one; one
that vanished stands in the upper layer with zeros.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import HAM, SPAM, TokenCounts, TokenTable

PIECE_ROWS = 100_000
"""Rows that are put together at a time: 3 MB."""


class LayeredTable(TokenTable):
    """A `TokenTable` over another one; rows of the upper layer follow those of the lower one.

    Lessons are learned in tables of their own words, never here: `add` is not for it.
    """

    __slots__ = ("_base", "_changes", "_length")

    def __init__(self, base: TokenTable) -> None:
        """Begin without changes."""
        self._base = base
        self._changes = TokenTable()
        self._length = len(base)

    @property
    def changed(self) -> int:
        """How many tokens stand in the upper layer."""
        return len(self._changes)

    def copied(self) -> "LayeredTable":
        """Return a table that may be changed while this one is read; the lower layer is shared."""
        twin = LayeredTable(self._base)
        twin._changes = self._changes.copied()
        twin._length = self._length
        return twin

    def __len__(self) -> int:
        return self._length

    @property
    def ids(self) -> NDArray[np.int64]:
        """All token ids, ascending. Their places are no rows of this table."""
        return np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in self.pieces())])

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the row of each id, −1 for one that is not in the table."""
        rows = self._base.find(ids)
        if len(self._changes):
            changed = self._changes.find(ids)
            covered = changed >= 0
            rows[covered] = changed[covered] + len(self._base)
            gone = covered.copy()
            gone[covered] = ~_alive(self._changes.cells(changed[covered]))
            rows[gone] = -1
        return rows

    def cells(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return a copy of the counts of `rows` as int32[n, 5]; row −1 has zeros."""
        upper = rows >= len(self._base)
        if not upper.any():
            return self._base.cells(rows)
        cells = self._base.cells(np.where(upper, -1, rows))
        cells[upper] = self._changes.cells(rows[upper] - len(self._base))
        return cells

    def merge(self, ids: NDArray[np.int64], counts: TokenCounts) -> None:
        """Insert distinct `ids` with their counts, replacing the counts of those known already."""
        before = np.count_nonzero(self.find(ids) >= 0)
        self._changes.merge(ids, counts)
        self._length += int(np.count_nonzero(self.find(ids) >= 0)) - int(before)

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Forget `ids`; those not in the table are passed over."""
        known = ids[self.find(ids) >= 0]
        self.merge(known, TokenCounts.zeros(len(known)))

    def stands(self, ids: NDArray[np.int64]) -> bool:
        """Return whether these tokens are in the upper layer: changing them moves nothing."""
        return bool((self._changes.find(ids) >= 0).all())

    def pieces(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """Yield the ids and counts (int32[n, 5]) of all tokens, by ascending ids."""
        base, changes = self._base, self._changes
        done = 0
        for start in range(0, max(1, len(base)), PIECE_ROWS):
            rows = np.arange(start, min(start + PIECE_ROWS, len(base)))
            ids = base.ids[rows]
            last = start + PIECE_ROWS >= len(base)
            end = len(changes) if last else int(np.searchsorted(changes.ids, ids[-1], "right"))
            upper = np.arange(done, end)
            done = end
            kept = changes.find(ids) < 0
            cells = np.concatenate([base.cells(rows[kept]), changes.cells(upper)])
            ids = np.concatenate([ids[kept], changes.ids[upper]])
            order = np.argsort(ids, kind="stable")
            order = order[_alive(cells[order])]
            yield ids[order], cells[order]


def _alive(cells: NDArray[np.int32]) -> NDArray[np.bool_]:
    return (cells[:, SPAM] > 0) | (cells[:, HAM] > 0)
