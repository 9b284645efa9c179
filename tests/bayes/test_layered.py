"""Two layers are as one table that was changed in place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts, TokenTable
from spamd.bayes.layered import LayeredTable

small = st.integers(-40, 40)
changes = st.lists(st.tuples(st.booleans(), st.dictionaries(small, st.integers(1, 9))), max_size=5)


def ids(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def counts(numbers: list[int]) -> TokenCounts:
    cells = np.zeros((len(numbers), 5), np.int32)
    cells[:, 0] = numbers
    return TokenCounts.of_cells(cells)


@given(st.dictionaries(small, st.integers(1, 9)), changes)
def test_it_holds_what_a_table_holds_that_is_changed_in_place(
    first: dict[int, int], changes: list[tuple[bool, dict[int, int]]]
) -> None:
    plain = TokenTable(ids(list(first)), counts(list(first.values())))
    layered = LayeredTable(TokenTable(ids(list(first)), counts(list(first.values()))))
    for removes, tokens in changes:
        before = layered.copied()
        for table in (plain, layered):
            if removes:
                table.remove(ids(list(tokens)))
            else:
                table.merge(ids(list(tokens)), counts(list(tokens.values())))
        assert removes or layered.stands(ids(list(tokens)))
        assert before.changed <= layered.changed
    asked = np.arange(-45, 45)

    assert len(layered) == len(plain)
    assert layered.ids.tolist() == plain.ids.tolist()
    assert ((layered.find(asked) >= 0) == (plain.find(asked) >= 0)).all()
    assert np.array_equal(layered.cells(layered.find(asked)), plain.cells(plain.find(asked)))
    pieces = list(layered.pieces())
    assert np.array_equal(
        np.concatenate([cells for _, cells in pieces]), plain.cells(np.arange(len(plain)))
    )


def test_a_copy_does_not_follow_its_original() -> None:
    table = LayeredTable(TokenTable(ids([1, 2]), counts([3, 4])))
    table.merge(ids([2]), counts([5]))
    copy = table.copied()
    table.merge(ids([2, 3]), counts([6, 7]))
    table.remove(ids([1]))

    assert copy.ids.tolist() == [1, 2]
    assert copy.cells(copy.find(ids([1, 2])))[:, 0].tolist() == [3, 5]
