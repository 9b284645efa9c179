"""The worked program of note 002 (Pima diabetes data) through the facts classifier, row by row.

Columns 1–6 are Gaussian, 0 and 7 categorical with the class's own number of values, Laplace prior
and likelihood. The independent computation is the note's own algorithm, written anew.
"""

import csv
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from spamd.bayes.classifiers.mixed import FactsOptions, log_posterior
from spamd.bayes.factcounts import FactCounts
from spamd.sample import FactSchema
from tests.servers.base import CORPORA, require

DATA = CORPORA.parent / "data" / "pima.csv"
TRAIN = 538
CATEGORICAL, GAUSSIAN = (0, 7), (1, 2, 3, 4, 5, 6)
UNIT = 1000
"""The data has at most three decimals, so thousandths are exact."""

AS_THE_NOTE = FactsOptions(smoothing=1.0, own_values=True, pooled=0.0, variance_floor=1e-9)

Rows = list[list[Decimal]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    require("corpora")
    with DATA.open(newline="") as lines:
        return [[Decimal(cell) for cell in row] for row in list(csv.reader(lines))[1:]]


def values_of(rows: Rows, column: int) -> list[Decimal]:
    return sorted({row[column] for row in rows})


def as_facts(
    row: list[Decimal], values: dict[int, list[Decimal]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    discrete = np.array([values[c].index(row[c]) for c in CATEGORICAL], dtype=np.uint8)
    return discrete, np.array([int(row[c] * UNIT) for c in GAUSSIAN])


def judged_by_the_facts_classifier(rows: Rows) -> list[NDArray[np.float64]]:
    values = {column: values_of(rows, column) for column in CATEGORICAL}
    schema = FactSchema(
        discrete=tuple((str(c), tuple(map(str, values[c]))) for c in CATEGORICAL),
        continuous=tuple(map(str, GAUSSIAN)),
    )
    counts = FactCounts(schema, classes=("0", "1"), unit=UNIT)
    for row in rows[:TRAIN]:
        counts.add(str(row[-1]), *as_facts(row, values))
    return [log_posterior(counts, *as_facts(row, values), AS_THE_NOTE) for row in rows[TRAIN:]]


def judged_by_the_note(rows: Rows) -> list[list[float]]:
    """The posteriors of note 002's program, the arithmetic written out once more."""
    classes = [[row for row in rows[:TRAIN] if row[-1] == k] for k in (0, 1)]
    result = []
    for row in rows[TRAIN:]:
        joint = []
        for members in classes:
            p = (len(members) + 1) / (TRAIN + 2)
            for c in GAUSSIAN:
                column = [float(m[c]) for m in members]
                mean = sum(column) / len(column)
                variance = sum((x - mean) ** 2 for x in column) / len(column)
                away = (float(row[c]) - mean) ** 2
                p *= math.exp(-away / (2 * variance)) / math.sqrt(2 * math.pi * variance)
            for c in CATEGORICAL:
                seen = Counter(m[c] for m in members)
                p *= (seen[row[c]] + 1) / (len(members) + len(seen))
            joint.append(p)
        result.append([p / sum(joint) for p in joint])
    return result


def test_179_of_230_rows_are_right(rows: Rows) -> None:
    decisions = [int(posterior.argmax()) for posterior in judged_by_the_facts_classifier(rows)]
    right = sum(decision == row[-1] for decision, row in zip(decisions, rows[TRAIN:], strict=True))
    assert (right, len(decisions)) == (179, 230)


def test_every_row_gets_the_probabilities_of_an_independent_computation(rows: Rows) -> None:
    ours = np.exp(judged_by_the_facts_classifier(rows))
    theirs = np.array(judged_by_the_note(rows))
    assert ours == pytest.approx(theirs, rel=1e-9, abs=0.0)
    assert ours.argmax(axis=1).tolist() == theirs.argmax(axis=1).tolist()
