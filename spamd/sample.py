"""What a message is to the mathematics: the one language that `message` and `bayes` share.

`message` turns bytes into a `Sample`; `bayes` turns a `Sample` and the counts into a verdict.
Neither knows the other. A `Sample` holds arrays only: the words themselves stay with
`message.features.Features`.
"""

from dataclasses import dataclass
from enum import IntFlag, StrEnum

import numpy as np
from numpy.typing import NDArray

FIXED_POINT = 1024
"""Continuous facts are integers in units of 1/1024: sums of them can be taken back exactly."""


class Label(StrEnum):
    """What a human says a message is."""

    HAM = "ham"
    SPAM = "spam"


class Kind(IntFlag):
    """Where a token comes from; one token may be of several kinds. Classifiers pick kinds."""

    WORD = 1  # a word of visible text, or a character bigram of a script without spaces
    PAIR = 2  # two adjacent words, "first second"
    FIELD = 4  # a word of a header field behind the name of the field: "subject=offer"
    TWIN = 8  # the same header word alone, where the visible text does not hold it too
    LINK = 16  # hosts, domains and path pieces of URLs, addresses
    SHAPE = 32  # MIME structure, charsets, file-name endings, defects
    TRICK = 64  # signs of an attempt to fool a filter
    HIDDEN = 128  # words the reader is not shown, under their own prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSchema:
    """Names of the structured attributes: discrete ones with their values, continuous ones."""

    discrete: tuple[tuple[str, tuple[str, ...]], ...]
    continuous: tuple[str, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """S_j, the number of values of each discrete fact."""
        return tuple(len(values) for _, values in self.discrete)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One message as arrays.

    ids          int64[n], ascending, distinct: the tokens' hashes (`message.tokens.token_id`)
    occurrences  uint8[n], 1 … `Limits.occurrences`: how often the message holds the token
    kinds        uint8[n], flags of `Kind`
    discrete     uint8[d], the index of the value of each discrete fact of the schema
    continuous   int64[c], each continuous fact in units of 1/`FIXED_POINT`
    grams        uint32[g], sorted, distinct: hashed character 4-grams of the start of the message
    """

    ids: NDArray[np.int64]
    occurrences: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    discrete: NDArray[np.uint8]
    continuous: NDArray[np.int64]
    grams: NDArray[np.uint32]
