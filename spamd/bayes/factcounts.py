"""What lessons leave behind of the facts: additive integers, so that a lesson is undone exactly.

`mixed` and `dependence` read these counts and store nothing else: `Facts` is
what they read. K classes: the first axis of every array is the class, in the order of
`FactCounts.classes` (ham, spam). `factmoments` has them as they were at several moments.

The arrays change by `add` and `remove` only.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spamd.sample import FIXED_POINT, FactSchema, Label

TWO_CLASSES: tuple[str, ...] = (Label.HAM, Label.SPAM)
"""The product's classes in the order of the first axis."""

HAM, SPAM = 0, 1


class Facts(Protocol):
    """Counts as classifiers read them: those of `FactCounts`, of one moment or of several (…)."""

    memo: object

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, K."""

    @property
    def schema(self) -> FactSchema:
        """The names of facts and values."""

    @property
    def unit(self) -> int:
        """Steps of a continuous fact in one."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[d], S_j."""

    @property
    def spread(self) -> NDArray[np.int64]:
        """int64[V], S_j of the fact that each value belongs to."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64[d], the number of each fact's first value."""

    @property
    def messages(self) -> NDArray[np.int64]:
        """int64[…, K], n_k."""

    @property
    def singles(self) -> NDArray[np.int64]:
        """int64[…, K, V], messages that hold a value."""

    @property
    def sums(self) -> NDArray[np.int64]:
        """int64[…, K, c]."""

    @property
    def products(self) -> NDArray[np.int64]:
        """int64[…, K, c, c]."""

    def own(self, values: NDArray[np.float64], discrete: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return what float64[…, K, V] holds for a message's own values, float64[…, K, d]."""

    def pairs(self, discrete: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return how many messages of each class hold both of two values, int64[…, K, d, d]."""


class FactCounts:
    """Additive integer statistics of the facts, for each class (first axis).

    messages   int64[K], n_k
    together   int64[K, V, V], messages that hold both values; V = ΣS_j numbers all values of all
               discrete facts one after the other; the diagonal holds the single counts
    spread     int64[V], S_j of the fact that each value belongs to
    sums       int64[K, c], Σx over the continuous facts, in units of 1/`unit`
    products   int64[K, c, c], Σ x·xᵀ, in units of 1/`unit`²
    memo       what was derived from the counts (`mixed.estimates`), forgotten at each change
    """

    __slots__ = (
        "classes",
        "memo",
        "messages",
        "offsets",
        "products",
        "schema",
        "singles",
        "sizes",
        "spread",
        "sums",
        "together",
        "unit",
    )

    def __init__(
        self,
        schema: FactSchema,
        classes: tuple[str, ...] = TWO_CLASSES,
        unit: int = FIXED_POINT,
    ) -> None:
        self.schema = schema
        self.classes = classes
        self.unit = unit
        self.sizes = np.array(schema.sizes, dtype=np.int64)
        self.spread = np.repeat(self.sizes, self.sizes)
        self.offsets = np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)
        values, facts, number = int(self.sizes.sum()), len(schema.continuous), len(classes)
        self.messages = np.zeros(number, dtype=np.int64)
        self.sums = np.zeros((number, facts), dtype=np.int64)
        self.products = np.zeros((number, facts, facts), dtype=np.int64)
        self._hold(np.zeros((number, values, values), dtype=np.int64))

    def _hold(self, together: NDArray[np.int64]) -> None:
        self.memo: object = None
        self.together = together
        self.singles = np.diagonal(together, axis1=1, axis2=2)  # a live view: int64[K, V]

    def cells(self, discrete: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the number of each value among all values (V) of all discrete facts."""
        return self.offsets + discrete

    def own(self, values: NDArray[np.float64], discrete: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return what float64[K, V] holds for a message's own values, float64[K, d]."""
        return values.take(self.cells(discrete), axis=1)

    def pairs(self, discrete: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return how many messages of each class hold both of two values, int64[K, d, d]."""
        cells, (number, values, _) = self.cells(discrete), self.together.shape
        places = cells[:, None] * values + cells
        flat = self.together.reshape(number, values * values)
        found: NDArray[np.int64] = flat.take(places, axis=1)
        return found

    def add(
        self,
        label: str,
        discrete: NDArray[np.uint8],
        continuous: NDArray[np.int64],
        sign: int = 1,
    ) -> None:
        """Count a message of this class; `sign` −1 takes the same message back exactly.

        Raises:
            ValueError: a value outside the schema, or a message taken back that was never added.
        """
        if not (discrete < self.sizes).all():
            raise ValueError("a discrete fact has a value outside its schema")
        row, cells = self.classes.index(label), self.cells(discrete)
        if sign < 0 and not (self.messages[row] > 0 and (self.singles[row, cells] > 0).all()):
            raise ValueError("a message can't be taken back that was not added")
        self.memo = None
        self.messages[row] += sign
        self.together[row, cells[:, None], cells] += sign
        self.sums[row] += sign * continuous
        self.products[row] += sign * np.outer(continuous, continuous)

    def remove(
        self, label: str, discrete: NDArray[np.uint8], continuous: NDArray[np.int64]
    ) -> None:
        """Take a message of this class back: the exact inverse of `add`."""
        self.add(label, discrete, continuous, sign=-1)

    def copy(self) -> "FactCounts":
        """Return counts of the same content that change independently."""
        twin = FactCounts(self.schema, self.classes, self.unit)
        twin.messages, twin.sums = self.messages.copy(), self.sums.copy()
        twin.products = self.products.copy()
        twin._hold(self.together.copy())
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FactCounts):
            return NotImplemented
        return (self.schema, self.classes, self.unit) == (
            other.schema,
            other.classes,
            other.unit,
        ) and np.array_equal(self._flat(), other._flat())

    __hash__ = None  # type: ignore[assignment]  # mutable

    def _flat(self) -> NDArray[np.int64]:
        """Return all counts as int64[K, keys], in the order of `_keys`."""
        number = len(self.classes)
        upper = np.triu_indices(self.together.shape[1])
        squares = np.triu_indices(self.sums.shape[1])
        return np.hstack(
            (
                self.messages.reshape(number, 1),
                self.together[:, upper[0], upper[1]],
                self.sums,
                self.products[:, squares[0], squares[1]],
            )
        )

    def to_rows(self) -> list[tuple[str, int, int]]:
        """Return (key, spam, ham) of every count that isn't zero in both classes.

        Keys are readable: "n", "charset=utf-8", "charset=utf-8&html=only", "size", "size*size".
        """
        flat, keys = self._flat(), _keys(self.schema)
        present = np.flatnonzero(flat.any(axis=0))
        return [(keys[i], int(flat[SPAM, i]), int(flat[HAM, i])) for i in present]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, int, int]], schema: FactSchema) -> Self:
        """Return the counts that `to_rows` gave; keys that the schema doesn't know are left out."""
        counts, places = cls(schema), _places(schema)
        flat = np.zeros((len(TWO_CLASSES), len(places)), dtype=np.int64)
        for key, spam, ham in rows:
            place = places.get(key)
            if place is not None:
                flat[SPAM, place], flat[HAM, place] = spam, ham
        values, facts = counts.together.shape[1], counts.sums.shape[1]
        upper, squares = np.triu_indices(values), np.triu_indices(facts)
        ends = np.cumsum((1, len(upper[0]), facts))
        messages, together, counts.sums, products = np.split(flat, ends, axis=1)
        counts.messages = messages[:, 0].copy()
        for target, (row, column), source in (
            (counts.together, upper, together),
            (counts.products, squares, products),
        ):
            target[:, row, column] = source
            target[:, column, row] = source
        return counts


@lru_cache(maxsize=8)
def _keys(schema: FactSchema) -> tuple[str, ...]:
    """Return the readable name of every count, in the order of `FactCounts._flat`."""
    values = [f"{fact}={value}" for fact, names in schema.discrete for value in names]
    facts = schema.continuous
    keys = (
        "n",
        *(
            first if first == second else f"{first}&{second}"
            for i, first in enumerate(values)
            for second in values[i:]
        ),
        *facts,
        *(f"{first}*{second}" for i, first in enumerate(facts) for second in facts[i:]),
    )
    if len(set(keys)) != len(keys):
        raise ValueError("two counts of the fact schema would share one key")
    return keys


@lru_cache(maxsize=8)
def _places(schema: FactSchema) -> dict[str, int]:
    return {key: i for i, key in enumerate(_keys(schema))}
