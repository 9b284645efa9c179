"""SPODE and AODE against a computation that counts messages one by one."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spamd.bayes.classifiers.dependence import DependenceOptions, log_joint, score
from spamd.bayes.classifiers.mixed import FactsOptions
from spamd.bayes.classifiers.mixed import log_joint as naive_log_joint
from spamd.bayes.factcounts import FactCounts
from spamd.sample import FactSchema

SCHEMA = FactSchema(
    discrete=(("a", ("0", "1", "2")), ("b", ("0", "1")), ("c", ("0", "1", "2", "3"))),
    continuous=(),
)
NOTHING = np.array([], dtype=np.int64)
Row = tuple[int, tuple[int, ...]]
rows = st.tuples(
    st.integers(0, 2), st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3))
)


def taught(lessons: list[Row], classes: tuple[str, ...] = ("ham", "spam", "list")) -> FactCounts:
    counts = FactCounts(SCHEMA, classes=classes)
    for label, values in lessons:
        counts.add(classes[label], np.array(values, dtype=np.uint8), NOTHING)
    return counts


def brute_parent(lessons: list[Row], k: int, x: tuple[int, ...], i: int, smoothing: float) -> float:
    """P(c, x_i)·∏_{j≠i} P(x_j | c, x_i), by looking at every lesson."""
    same = [values for label, values in lessons if label == k and values[i] == x[i]]
    result = (len(same) + smoothing) / (len(lessons) + 3 * SCHEMA.sizes[i] * smoothing)
    for j, size in enumerate(SCHEMA.sizes):
        if j != i:
            both = sum(values[j] == x[j] for values in same)
            result *= (both + smoothing) / (len(same) + size * smoothing)
    return result


@given(st.lists(rows, max_size=15), rows, st.sampled_from([0.1, 1.0, 2.5]))
def test_spode_equals_counting_by_hand(lessons: list[Row], row: Row, smoothing: float) -> None:
    counts, x = taught(lessons), row[1]
    for i, name in enumerate("abc"):
        joint = log_joint(
            counts,
            np.array(x, dtype=np.uint8),
            DependenceOptions(parent=name, smoothing=smoothing),
        )
        by_hand = [math.log(brute_parent(lessons, k, x, i, smoothing)) for k in range(3)]
        assert joint == pytest.approx(by_hand, abs=1e-9)


@given(
    st.lists(rows, min_size=1, max_size=15), rows, st.sampled_from([0.1, 1.0]), st.integers(0, 3)
)
def test_aode_sums_the_parents_that_are_frequent_enough(
    lessons: list[Row], row: Row, smoothing: float, least: int
) -> None:
    counts, x = taught(lessons), row[1]
    discrete = np.array(x, dtype=np.uint8)
    joint = log_joint(counts, discrete, DependenceOptions(smoothing=smoothing, least=least))
    parents = [i for i in range(3) if sum(v[i] == x[i] for _, v in lessons) >= least]
    if parents:
        by_hand = [
            math.log(sum(brute_parent(lessons, k, x, i, smoothing) for i in parents))
            for k in range(3)
        ]
    else:
        naive = FactsOptions(smoothing=smoothing, prior_smoothing=smoothing)
        by_hand = list(naive_log_joint(counts, discrete, NOTHING, naive))
    assert joint == pytest.approx(by_hand, abs=1e-9)


def test_maximum_likelihood_gives_the_shares_themselves() -> None:
    lessons: list[Row] = [(0, (0, 0, 0)), (0, (0, 1, 0)), (1, (1, 1, 3)), (2, (0, 1, 0))]
    joint = log_joint(
        taught(lessons),
        np.array((0, 1, 0), dtype=np.uint8),
        DependenceOptions(parent="a", smoothing=0.0),
    )
    assert joint[0] == pytest.approx(math.log(2 / 4 * 1 / 2 * 2 / 2))
    assert joint[2] == pytest.approx(math.log(1 / 4))
    assert joint[1] < math.log(1e-11)


@given(st.lists(rows, max_size=6), rows, st.sampled_from([0.0, 1.0]), st.sampled_from(["", "b"]))
def test_every_score_is_finite(lessons: list[Row], row: Row, smoothing: float, parent: str) -> None:
    counts = taught([(k % 2, x) for k, x in lessons], classes=("ham", "spam"))
    options = DependenceOptions(smoothing=smoothing, parent=parent)
    assert math.isfinite(score(counts, np.array(row[1], dtype=np.uint8), options))


def test_aode_sees_a_dependence_that_naive_bayes_cannot() -> None:
    """Spam is exactly the mail whose facts a and b differ: each fact alone says nothing."""
    once: list[Row] = [(int(a != b), (a, b, 0)) for a, b in product((0, 1), (0, 1))]
    counts = taught(once * 20, classes=("ham", "spam"))
    differing = np.array((0, 1, 0), dtype=np.uint8)
    naive = naive_log_joint(counts, differing, NOTHING, FactsOptions())
    assert naive[1] - naive[0] == pytest.approx(0.0)
    assert score(counts, differing, DependenceOptions()) > 1.0


@pytest.mark.parametrize("options", [{"smoothing": -1.0}, {"smoothing": math.nan}, {"least": -1}])
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        DependenceOptions(**options)  # type: ignore[arg-type]  # the fields under test are numbers
