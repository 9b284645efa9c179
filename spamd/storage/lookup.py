"""The words of a few mails, looked up in a SQLite file by the standard library alone.

    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    if lookup is None: …                     # `store.Store` must do it
    model = lookup.load_model(ids)           # as Store.load_model

A command that scans one mail would spend half of its time on loading SQLAlchemy. What is read here
is the same as there (a test compares); nothing is written, no schema is touched. Whatever is not
plainly a database of this version is left to the store, which says what is wrong with it.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.counts import TokenCounts, TokenTable, Totals
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.bayes.logistic import GRAM_SLOTS
from spamd.bayes.model import BayesOptions, Model
from spamd.errors import StorageUnavailable
from spamd.sample import FactSchema
from spamd.storage.blobs import add_gram_changes, decode_floats
from spamd.storage.options import SCHEMA, DatabaseOptions

TOKENS = (
    "SELECT id, spam, ham, spam_occurrences, ham_occurrences, weight FROM token"
    " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
)
TOTALS = "SELECT spam, ham, spam_occurrences, ham_occurrences, vocabulary FROM corpus"


class Lookup:
    """A SQLite database of this version, read only."""

    def __init__(self, path: Path, schema: FactSchema, bayes: BayesOptions, wait_s: float) -> None:
        self._path = path
        self._schema = schema
        self._bayes = bayes
        self._wait_s = wait_s

    @classmethod
    def of(cls, options: DatabaseOptions, schema: FactSchema, bayes: BayesOptions) -> Self | None:
        """Return the look-up in this database, None when only the store can open it."""
        if options.path is None or not options.path.is_file():
            return None
        lookup = cls(options.path, schema, bayes, options.busy_timeout_s)
        try:
            with lookup._reading() as connection:
                row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except StorageUnavailable:
            return None
        return lookup if row == (SCHEMA,) else None

    def secret(self) -> bytes:
        """Return the installation's secret, the key of our message ids' check."""
        with self._reading() as connection:
            found: bytes = connection.execute("SELECT secret FROM corpus").fetchone()[0]
            return found

    def load_model(self, ids: NDArray[np.int64]) -> Model:
        """Return a model that knows these tokens (distinct, ascending) only; its history is empty.

        Raises:
            StorageUnavailable: the file can't be read now.
        """
        with self._reading() as connection:
            totals = connection.execute(TOTALS).fetchone()
            return Model(
                tokens=_tokens(connection, ids),
                totals=Totals(
                    spam=totals[0],
                    ham=totals[1],
                    spam_occurrences=totals[2],
                    ham_occurrences=totals[3],
                    vocabulary=totals[4],
                ),
                facts=FactCounts.from_rows(
                    connection.execute("SELECT key, spam, ham FROM fact").fetchall(), self._schema
                ),
                grams=_grams(connection),
                history=ScoreHistory(self._bayes.fusion.window),
                fusion=_fusion(connection),
                options=self._bayes,
            )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose statements all see the database of one moment."""
        place = f"{self._path.absolute().as_uri()}?mode=rw"  # ro can't read a log left behind
        try:
            with closing(sqlite3.connect(place, timeout=self._wait_s, uri=True)) as connection:
                connection.execute("BEGIN")
                yield connection
        except sqlite3.Error as error:
            raise StorageUnavailable(f"the database refused: {error}") from error


def _tokens(connection: sqlite3.Connection, ids: NDArray[np.int64]) -> TokenTable:
    rows = connection.execute(TOKENS, (json.dumps(ids.tolist()),)).fetchall()
    numbers = np.array(rows, dtype=np.int64).reshape(-1, 6)
    known = TokenTable(numbers[:, 0], TokenCounts.of_cells(numbers[:, 1:].astype(np.int32)))
    return TokenTable(ids, known.counts(known.find(ids)))


def _fusion(connection: sqlite3.Connection) -> FusionWeights:
    row = connection.execute("SELECT weights, lessons FROM fusion").fetchone()
    if row is None:
        return FusionWeights.default()
    return FusionWeights.of(decode_floats(row[0]).tolist(), row[1])


def _grams(connection: sqlite3.Connection) -> NDArray[np.int32]:
    row = connection.execute("SELECT content, revision FROM grams").fetchone()
    if row is None:
        table, revision = np.zeros(GRAM_SLOTS, dtype=np.int32), 0
    else:
        table, revision = np.frombuffer(row[0], "<i4").astype(np.int32), row[1]
    newer = "SELECT grams FROM change WHERE revision > ? ORDER BY revision"
    for (blob,) in connection.execute(newer, (revision,)):
        add_gram_changes(table, blob)
    return table
