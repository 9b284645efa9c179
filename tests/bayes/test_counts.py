import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spamd.bayes.counts import (
    WEIGHT_UNIT,
    TokenCounts,
    TokenTable,
    Totals,
    distinct,
    taught,
)
from spamd.sample import Label
from tests.bayes.samples import ids_of, sample_of

int64s = st.integers(-(2**63), 2**63 - 1)


def ids(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@given(st.sets(int64s, max_size=200), st.lists(int64s, max_size=50))
def test_each_id_in_the_table_is_found_and_no_other(inside: set[int], asked: list[int]) -> None:
    table = TokenTable(ids(list(inside)))
    queries = ids(asked + sorted(inside))

    rows = table.find(queries)

    for query, row in zip(queries.tolist(), rows.tolist(), strict=True):
        assert (table.ids[row] == query) if query in inside else (row == -1)


@given(st.sets(st.integers(-50, 50), max_size=60), st.sets(st.integers(-50, 50), max_size=60))
def test_ids_close_together_are_found_too(first: set[int], second: set[int]) -> None:
    table = TokenTable(ids(list(first)))
    table.merge(ids(list(second)), TokenCounts.zeros(len(second)))
    table.remove(ids(list(first - second)))

    assert table.ids.tolist() == sorted(second)
    assert (table.find(ids(sorted(second))) == np.arange(len(second))).all()


def test_merging_replaces_known_rows_and_keeps_the_others() -> None:
    table = TokenTable(ids([5, -7, 9]), TokenCounts.of_cells(np.ones((3, 5), dtype=np.int32)))

    table.merge(ids([9, 6]), TokenCounts.of_cells(np.full((2, 5), 4, dtype=np.int32)))

    assert table.ids.tolist() == [-7, 5, 6, 9]
    assert table.counts(table.find(ids([-7, 5, 6, 9, 1]))).spam.tolist() == [1, 1, 4, 4, 0]


def test_counts_are_as_long_as_their_tokens() -> None:
    assert len(TokenCounts.zeros(3)) == 3


def test_a_token_was_seen_in_the_messages_of_both_labels() -> None:
    counts = TokenCounts.of_cells(np.array([[2, 3, 5, 7, 0], [0, 4, 0, 4, 9]], dtype=np.int32))

    assert counts.seen.tolist() == [5, 4]


def test_a_table_is_as_long_as_its_tokens_and_a_new_one_is_empty() -> None:
    assert len(TokenTable(ids([3, -8]))) == 2
    assert len(TokenTable()) == 0
    assert TokenTable().ids.tolist() == []
    assert TokenTable().find(ids([0])).tolist() == [-1]


def test_a_weight_of_65536_units_is_one() -> None:
    assert WEIGHT_UNIT * 65536 == 1.0


def test_an_unknown_token_has_zero_counts() -> None:
    table = TokenTable(ids([1]), TokenCounts.of_cells(np.ones((1, 5), dtype=np.int32)))

    assert table.counts(table.find(ids([2]))).cells.tolist() == [[0, 0, 0, 0, 0]]


def test_a_message_with_a_token_that_has_no_row_is_refused() -> None:
    table = TokenTable(ids([1]))

    with pytest.raises(KeyError):
        table.add(table.find(ids([1, 2])), np.ones(2, dtype=np.uint8), Label.HAM, 1, 0)


def test_a_message_never_counted_is_not_taken_back() -> None:
    table = TokenTable(ids([1]))
    rows, once = table.find(ids([1])), np.ones(1, dtype=np.uint8)
    table.add(rows, once, Label.HAM, 1, 0)

    with pytest.raises(ValueError, match="not learned"):
        table.add(rows, once, Label.SPAM, -1, 0)

    assert table.counts(rows).cells.tolist() == [[0, 1, 0, 1, 0]]


def test_counting_a_message_touches_the_columns_of_its_label() -> None:
    table = TokenTable(ids([1, 2, 3]))

    new = table.add(table.find(ids([1, 3])), np.array([2, 1], dtype=np.uint8), Label.SPAM, 1, 70)

    assert new == 2
    cells = table.counts(np.arange(3)).cells.tolist()
    assert cells == [[1, 0, 2, 0, 70], [0, 0, 0, 0, 0], [1, 0, 1, 0, 70]]


def test_totals_change_for_one_label_only() -> None:
    totals = Totals().changed(Label.HAM, occurrences=9, vocabulary=7, sign=1)

    assert totals == Totals(ham=1, ham_occurrences=9, vocabulary=7)
    assert totals.changed(Label.HAM, occurrences=9, vocabulary=-7, sign=-1) == Totals()

    both = totals.changed(Label.SPAM, occurrences=4, vocabulary=2, sign=1)
    assert both == Totals(spam=1, ham=1, spam_occurrences=4, ham_occurrences=9, vocabulary=9)
    assert both.messages == 2
    assert both.changed(Label.SPAM, occurrences=4, vocabulary=-2, sign=-1) == totals


def test_nothing_is_counted_before_the_first_lesson() -> None:
    nothing = Totals(spam=0, ham=0, spam_occurrences=0, ham_occurrences=0, vocabulary=0)

    assert Totals() == nothing


def test_a_long_message_teaches_the_same_drawn_tokens_each_time() -> None:
    sample = sample_of(*(f"word{number}" for number in range(500)))

    chosen = taught(sample, 100)

    assert chosen is not None
    assert len(chosen) == 100
    assert (np.diff(chosen) > 0).all()
    again = taught(sample, 100)
    assert again is not None
    assert chosen.tolist() == again.tolist()


def test_which_tokens_are_drawn_depends_on_the_whole_message() -> None:
    words = [f"word{number}" for number in range(500)]
    first = taught(sample_of(*words), 100)
    second = taught(sample_of(*words, "more"), 100)

    assert first is not None
    assert second is not None
    taught_first = set(sample_of(*words).ids[first].tolist())
    taught_second = set(sample_of(*words, "more").ids[second].tolist())
    assert 0 < len(taught_first & taught_second) < 60


def test_a_short_message_teaches_all_its_tokens() -> None:
    assert taught(sample_of("one", "two"), 2) is None


def test_a_lesson_teaches_no_more_than_4000_tokens() -> None:
    words = [f"word{number}" for number in range(4001)]
    drawn = taught(sample_of(*words))

    assert taught(sample_of(*words[:4000])) is None
    assert drawn is not None
    assert len(drawn) == 4000


def test_a_look_up_is_the_same_in_a_table_of_many_tokens() -> None:
    words = [f"word{number}" for number in range(20_000)]
    table = TokenTable(ids_of(*words[:10_000]))

    assert (table.ids[table.find(ids_of(*words[:10_000]))] == ids_of(*words[:10_000])).all()
    assert (table.find(ids_of(*words[10_000:])) == -1).all()


def test_distinct_ids_ascend() -> None:
    arrays = [np.array([5, -1, 5]), np.array([-1, 2**62]), np.array([], dtype=np.int64)]
    assert distinct(arrays).tolist() == [-1, 5, 2**62]
    assert distinct([]).tolist() == []


def test_which_tokens_a_long_message_teaches_never_changes() -> None:
    """Drawn in whole numbers, as a lesson of another version must be taken back exactly."""
    sample = sample_of(*(f"word{number}" for number in range(60)))
    ids = [int(value) % 2**64 for value in sample.ids]
    salt = 0
    for value in ids:
        salt ^= value

    def key(value: int) -> int:
        mixed = (value ^ salt) * 0xBF58476D1CE4E5B9 % 2**64
        return (mixed ^ (mixed >> 29)) * 0x94D049BB133111EB % 2**64

    drawn = sorted(sorted(range(len(ids)), key=lambda place: key(ids[place]))[:10])
    found = taught(sample, 10)
    assert found is not None
    assert found.tolist() == drawn


def test_a_message_taken_back_leaves_nothing_and_the_vocabulary_it_had() -> None:
    table = TokenTable(ids([1, 2]))
    both, first = table.find(ids([1, 2])), table.find(ids([1]))
    twice, once = np.array([2, 1], dtype=np.uint8), np.ones(1, dtype=np.uint8)

    assert table.add(both, twice, Label.HAM, 1, 5) == 2
    assert table.add(first, once, Label.SPAM, 1, -9) == 0
    assert table.counts(both).cells.tolist() == [[1, 1, 1, 2, -4], [0, 1, 0, 1, 5]]
    assert table.add(both, twice, Label.HAM, -1, -5) == -1
    assert table.counts(both).cells.tolist() == [[1, 0, 1, 0, -9], [0, 0, 0, 0, 0]]
    assert table.add(first, once, Label.SPAM, -1, 9) == -1
    assert not table.counts(both).cells.any()
    nothing = np.zeros(0, dtype=np.intp)
    assert table.add(nothing, np.zeros(0, dtype=np.uint8), Label.HAM, -1, 0) == 0
