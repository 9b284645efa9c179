"""The tokens of some messages, one message after the other, for the classifiers over counts.

A scan is a batch of one message. Lessons come in batches of many: numpy takes nearly as long for
the tokens of one message as for those of twenty. Each message has the counts and totals of its own
moment, so a lesson in a batch is weighed as if it had been learned alone.

A classifier's arithmetic goes over all tokens at once; what is summed or chosen goes span by span.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts, Totals
from spamd.sample import Sample

WHOLE = (slice(None),)
"""The span of a batch of one message."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TotalsEach:
    """`Totals` of different moments: int64[n], one of each for every token of a batch."""

    spam: NDArray[np.int64]
    ham: NDArray[np.int64]
    spam_occurrences: NDArray[np.int64]
    ham_occurrences: NDArray[np.int64]
    vocabulary: NDArray[np.int64]

    @classmethod
    def of(cls, moments: Sequence[Totals], lengths: Sequence[int]) -> "TotalsEach":
        """Return the totals at the moment of each message, once for each of its tokens."""
        names = [field.name for field in fields(cls)]
        columns = np.array([[getattr(each, name) for each in moments] for name in names], np.int64)
        repeated = np.repeat(columns, lengths, axis=1)
        return cls(**dict(zip(names, repeated, strict=True)))


AnyTotals = Totals | TotalsEach
"""The totals that the counts of tokens are divided by: those of one moment, or of each token."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Tokens with their counts.

    counts        of each token, at the moment of its message
    occurrences   uint8[n], in its message       kinds   uint8[n]
    spans         which tokens are those of each message
    moments       the totals at the moment of each message
    totals        the same, for arithmetic over tokens
    """

    counts: TokenCounts
    occurrences: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    spans: Sequence[slice]
    moments: Sequence[Totals]
    totals: AnyTotals

    @classmethod
    def of_one(
        cls,
        counts: TokenCounts,
        occurrences: NDArray[np.uint8],
        kinds: NDArray[np.uint8],
        totals: Totals,
    ) -> "Batch":
        """Return a batch of one message."""
        return cls(
            counts=counts,
            occurrences=occurrences,
            kinds=kinds,
            spans=WHOLE,
            moments=(totals,),
            totals=totals,
        )

    @classmethod
    def of(
        cls, counts: TokenCounts, samples: Sequence[Sample], moments: Sequence[Totals]
    ) -> "Batch":
        """Return the tokens of samples, with their counts at the moment of each."""
        lengths = [len(sample.ids) for sample in samples]
        ends = [0, *accumulate(lengths)]
        return cls(
            counts=counts,
            occurrences=np.concatenate([sample.occurrences for sample in samples]),
            kinds=np.concatenate([sample.kinds for sample in samples]),
            spans=[slice(start, end) for start, end in pairwise(ends)],
            moments=moments,
            totals=TotalsEach.of(moments, lengths),
        )

    @property
    def trained(self) -> list[bool]:
        """Whether both labels had been trained, at the moment of each message."""
        return [moment.spam > 0 and moment.ham > 0 for moment in self.moments]


def at_least_one(number: Any) -> Any:
    """Return a number, or an array of numbers, never below 1: counts as divisors."""
    return np.maximum(1, number) if isinstance(number, np.ndarray) else max(1, number)
