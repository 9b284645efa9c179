"""The facts as they were counted at several moments: before and after each lesson of a batch.

noted.append(note(counts, sample.discrete))             # at each moment, the message to weigh
moments = FactMoments(counts, noted)
mixed.score(moments, discrete, continuous, options)     # float64[m], a message for each moment
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.factcounts import FactCounts

Note = tuple[NDArray[np.int64], ...]
"""Copies of `messages`, `singles`, `sums` and `products`, and the message's own `pairs`."""


def note(counts: FactCounts, discrete: NDArray[np.uint8]) -> Note:
    """Return what a message with these values will be weighed by, as of now."""
    return (
        counts.messages.copy(),
        counts.singles.copy(),
        counts.sums.copy(),
        counts.products.copy(),
        counts.pairs(discrete),
    )


class FactMoments:
    """Counts of m moments (the first axis), as the classifiers read them (`factcounts.Facts`)."""

    def __init__(self, counts: FactCounts, noted: Sequence[Note]) -> None:
        """Take what was noted of `counts` at each moment."""
        self.schema, self.classes, self.unit = counts.schema, counts.classes, counts.unit
        self.sizes, self.spread, self.offsets = counts.sizes, counts.spread, counts.offsets
        self.memo: object = None
        self.messages, self.singles, self.sums, self.products, self._pairs = (
            np.stack(arrays) for arrays in zip(*noted, strict=True)
        )

    def own(self, values: NDArray[np.float64], discrete: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return what float64[m, K, V] holds for each message's own values, float64[m, K, d]."""
        cells = self.offsets + discrete
        return np.take_along_axis(values, cells[:, np.newaxis, :], axis=2)

    def pairs(self, discrete: NDArray[np.uint8]) -> NDArray[np.int64]:  # noqa: ARG002 - noted
        """Return how many messages of each class held both of two values, int64[m, K, d, d]."""
        return self._pairs
