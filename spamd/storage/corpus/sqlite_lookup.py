"""What was learned, read from a SQLite file by the standard library alone.

    lookup = Lookup.of(options, schema=SCHEMA, bayes=BayesOptions())
    if lookup is None: …                     # `store.Store` must do it
    model = lookup.load_model(ids)           # as Store.load_model
    preload = lookup.preload()                   # the whole model, read in a thread meanwhile

A command that scans one mail would spend half of its time on loading SQLAlchemy, and a daemon reads
its model while it loads SQLAlchemy and all the rest: SQLite works outside of the interpreter's
lock. What is read here is the same as there (a test compares); nothing is written, no schema is
touched. Whatever is not plainly a database of this version is left to the store, which says what
is wrong with it.
"""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers.logistic import GRAM_SLOTS
from spamd.bayes.counts import TokenCounts, TokenTable, Totals
from spamd.bayes.factcounts import FactCounts
from spamd.bayes.fusion import FusionWeights, ScoreHistory
from spamd.bayes.model import BayesOptions, Model
from spamd.errors import StorageUnavailable
from spamd.lists.known import KnownAddresses, KnownOptions
from spamd.lists.matching import Lists
from spamd.lists.senders import Senders
from spamd.message.authentication.proof import AuthOptions
from spamd.sample import FactSchema
from spamd.storage.corpus import token_bulk
from spamd.storage.corpus.codec import add_gram_changes, decode_floats
from spamd.storage.corpus.corpus_version import CorpusVersion
from spamd.storage.mapped.shared_tables import LEAST_TOKENS
from spamd.storage.options import SCHEMA, DatabaseOptions
from spamd.storage.senders.rows import entry_of
from spamd.storage.times import to_number

VERSION = "SELECT version_num FROM alembic_version WHERE EXISTS (SELECT 1 FROM corpus)"
TOKENS = (
    "SELECT id, spam, ham, spam_occurrences, ham_occurrences, weight FROM token"
    " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
)
SLICE = (
    "SELECT group_concat(id), group_concat(spam + ham * 2147483648),"
    " group_concat(spam_occurrences + ham_occurrences * 2147483648), group_concat(weight)"
    " FROM token WHERE id BETWEEN ? AND ?"
)
CORPUS_VERSION = (
    "SELECT revision, generation, (SELECT revision FROM grams), spam, ham, spam_occurrences,"
    " ham_occurrences, vocabulary FROM corpus"
)

ENTRIES_IN_FORCE = "SELECT * FROM list_entry WHERE expires IS NULL OR expires > ? ORDER BY id"

Preload = Future[tuple[CorpusVersion, Model]]
"""The whole model and where the corpus stood, while they are being read."""


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
        if options.path is None or not _is_file(options.path):
            return None
        lookup = cls(options.path, schema, bayes, options.busy_timeout_s)
        try:
            with lookup._reading() as connection:
                row = connection.execute(VERSION).fetchone()
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
            return self._model(connection, _tokens(connection, ids), _version(connection).totals)

    def load_all(self) -> tuple[CorpusVersion, Model]:
        """Return a model that knows all tokens, and where the corpus stood then.

        Raises:
            StorageUnavailable: the file can't be read now.
        """
        with self._reading() as connection:
            version = _version(connection)
            model = self._model(connection, _all_tokens(connection), version.totals)
        token_bulk.give_memory_back()
        return version, model

    def senders(self, auth: AuthOptions, known: KnownOptions) -> Senders:
        """Return what is known of senders (`storage.senders.memory` has the same for mail).

        Raises:
            StorageUnavailable: the file can't be read now.
        """
        lists = Lists(auth)
        with self._reading() as connection:
            (secret,) = connection.execute("SELECT secret FROM corpus").fetchone()
            found = connection.execute(ENTRIES_IN_FORCE, (to_number(datetime.now(UTC)),))
            names = [each[0] for each in found.description]
            for row in found:
                lists.add(entry_of(dict(zip(names, row, strict=True))))
            addresses = KnownAddresses(secret, known)
            if known.enabled:
                for pair in connection.execute("SELECT pair, address FROM known_address"):
                    addresses.add(pair)
        return Senders(lists=lists, known=addresses)

    def preload(self) -> Preload | None:
        """Begin `load_all` in a thread; not of a corpus whose table is shared."""
        with self._reading() as connection:
            if _version(connection).totals.vocabulary >= LEAST_TOKENS:
                return None
        thread = ThreadPoolExecutor(1, "preload")
        future = thread.submit(self.load_all)
        thread.shutdown(wait=False)
        return future

    def _model(self, connection: sqlite3.Connection, tokens: TokenTable, totals: Totals) -> Model:
        return Model(
            tokens=tokens,
            totals=totals,
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
            raise StorageUnavailable(
                f"the database sqlite:///{self._path} refused: {error}"
            ) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # the store says so
        return False


def _version(connection: sqlite3.Connection) -> CorpusVersion:
    revision, generation, grams_revision, *totals = connection.execute(CORPUS_VERSION).fetchone()
    names = ("spam", "ham", "spam_occurrences", "ham_occurrences", "vocabulary")
    return CorpusVersion(
        revision=revision,
        generation=generation,
        grams_revision=grams_revision or 0,
        totals=Totals(**dict(zip(names, totals, strict=True))),
    )


def _all_tokens(connection: sqlite3.Connection) -> TokenTable:
    (rows,) = connection.execute("SELECT count(*) FROM token").fetchone()
    ids, cells = token_bulk.joined(
        [
            token_bulk.parsed(connection.execute(SLICE, bounds).fetchone())
            for bounds in token_bulk.slices(rows)
        ]
    )
    return TokenTable(ids, TokenCounts.of_cells(cells))


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
