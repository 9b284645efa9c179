"""Mails, and a process at work on a database: what the storage tests are written with."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from spamd.bayes.fusion import FusionOptions, fit
from spamd.bayes.model import BayesOptions
from spamd.message.facts import SCHEMA
from spamd.message.features import Features, Texts, extract
from spamd.sample import Label
from spamd.storage import tables
from spamd.storage.corpus import corpus_tables, journal
from spamd.storage.corpus.codec import texts_of, token_ids
from spamd.storage.corpus.unit_of_work import ModelCache, SqlUnitOfWork
from spamd.storage.engine import Database
from spamd.training import Outcome, Result, TrainingOptions
from spamd.training.trainer import Trainer

HAM, SPAM = Label.HAM, Label.SPAM

MOST = 2**31 - 1
EXTREMES = [
    dict(zip(tables.token.c.keys(), row, strict=True))
    for row in (
        (-(2**63), MOST, MOST, MOST, MOST, -MOST - 1),
        (2**63 - 1, 0, 1, 0, MOST, MOST),
    )
]
"""Rows of the token table with the largest and the smallest numbers that it may hold."""

Rows = dict[str, list[tuple[object, ...]]]
"""The rows of each table."""


class FixedClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def advance(self, **span: float) -> None:
        self.time += timedelta(**span)


def mail(subject: str, body: str = "", sender: str = "anna@example.org") -> Features:
    """Return the features of a small mail; another subject is another mail."""
    head = f"From: {sender}\r\nSubject: {subject}\r\nContent-Type: text/plain; charset=utf-8"
    return extract(f"{head}\r\n\r\n{body}\r\n".encode())


def wide(subject: str, words: int) -> Features:
    """Return the features of a mail with so many distinct words, whatever the tokeniser keeps."""
    plain = mail(subject)
    texts = texts_of([f"{subject}{number}" for number in range(words)])
    ids = token_ids(texts)
    order = np.argsort(ids)
    sample = replace(
        plain.sample,
        ids=ids[order],
        occurrences=np.ones(words, np.uint8),
        kinds=np.ones(words, np.uint8),
    )
    return replace(
        plain, sample=sample, texts=Texts(texts.words, texts.first[order], texts.second[order])
    )


class TeachingProcess:
    """One process that teaches: its own memory, the shared database."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.database = database
        self.clock = clock
        self.cache = ModelCache(SCHEMA, BayesOptions())
        self.trainer = Trainer(
            unit_of_work=self.work, clock=clock, options=TrainingOptions(pause_s=0)
        )

    def work(self) -> SqlUnitOfWork:
        return SqlUnitOfWork(self.database, self.cache, self.clock)

    async def train(
        self, label: Label, *mails: Features, source: str = "cli", actor: str = "root"
    ) -> list[Result]:
        outcomes = await self.trainer.train(mails, label, source=source, actor=actor)
        return [outcome.result for outcome in outcomes]

    async def forget(self, *mails: Features) -> list[Outcome]:
        return await self.trainer.forget([each.digest for each in mails])

    async def probability(self, mail: Features) -> float:
        snapshot = self.cache.snapshot
        await snapshot.refresh(self.database)
        return snapshot.model.weigh(mail.sample).probability


async def counts(
    database: Database, *, weights: bool = False
) -> dict[str, list[tuple[object, ...]]]:
    """Return all counts; weights follow from the order of lessons, so only on demand."""
    content: Rows = {}
    async with database.reading() as connection:
        for table in (tables.token, tables.fact, tables.corpus):
            columns = [
                column
                for column in table.columns
                if column.name not in ("revision", "generation", "secret")
                and (weights or column.name != "weight")
            ]
            rows = await connection.execute(select(*columns).order_by(table.primary_key.columns[0]))
            content[table.name] = [tuple(row) for row in rows]
        taught = select(tables.lesson.c.digest, tables.lesson.c.label).order_by(
            tables.lesson.c.digest
        )
        content["lesson"] = [tuple(row) for row in await connection.execute(taught)]
    return content


async def weight_sum(database: Database) -> dict[int, int]:
    """Return the weight of each token as the journal tells: the sum of its lessons' steps."""
    weights: dict[int, int] = {}
    async with database.reading() as connection:
        async for lessons in journal.walk(connection):
            for lesson in lessons:
                for token in lesson.sample.ids.tolist():
                    weights[token] = weights.get(token, 0) + lesson.effect.step
    return weights


def same_sample(first: Features, second: Features) -> bool:
    """Return whether two features hold the same arrays and texts."""
    names = ("ids", "occurrences", "kinds", "discrete", "continuous", "grams")
    for name in names:
        one, other = getattr(first.sample, name), getattr(second.sample, name)
        if one.dtype != other.dtype or not np.array_equal(one, other):
            return False
    return list(first.texts) == list(second.texts)


async def weights(database: Database) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the fusion's weights as they are stored, and as the journal alone makes them."""
    async with database.reading() as connection:
        stored = await corpus_tables.fusion(connection)
        history, _ = await journal.history(connection, 3000)
        told = fit(history, FusionOptions())
    return stored.values, told.values


async def journal_rows(database: Database) -> list[tuple[object, ...]]:
    """Return the whole journal, samples included, in the order of learning."""
    rows: list[tuple[object, ...]] = []
    async with database.reading() as connection:
        async for lessons in journal.walk(connection):
            for lesson in lessons:
                sample, effect = lesson.sample, lesson.effect
                rows.append(
                    (
                        lesson.digest,
                        lesson.label,
                        lesson.source,
                        lesson.actor,
                        lesson.sender_domain,
                        lesson.time,
                        effect.scores.tolist(),
                        (effect.probability_before, effect.probability_after),
                        (effect.step, effect.gram_step),
                        list(lesson.texts),
                        sample.occurrences.tolist(),
                        sample.kinds.tolist(),
                        (sample.discrete.tolist(), sample.continuous.tolist()),
                        sample.grams.tolist(),
                    )
                )
    return rows
