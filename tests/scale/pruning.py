"""A large database is pruned to half while mail flows: how long it takes, and what mail feels."""

import asyncio
import smtplib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from spamd.bayes import counts
from spamd.bayes.counts import Totals
from spamd.bayes.learning import Effect
from spamd.message.features import Texts
from spamd.pruning import prune_apart
from spamd.storage.corpus import corpus_tables, journal, token_table
from spamd.storage.corpus.codec import token_ids
from spamd.storage.engine import Database
from spamd.storage.maintenance.prune_tokens import Pruned
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions, PruneOptions
from spamd.training.ports import Lesson
from tests.cli.conftest import made_up
from tests.e2e.relay_daemon import Spamd
from tests.storage.mails import SPAM, wide

WORDS = 200
"""Words of a lesson that no other has: all of them."""

BATCH = 500
"""Lessons in a transaction."""

A_SECOND = 10
"""Mails sent while measuring: as many as two cores carry with room to spare."""


async def filled(url: str, tokens: int) -> None:
    """Make a database of so many tokens, each in one lesson; half of those are half a year old."""
    database = await Database.open(DatabaseOptions(url=url))
    await upgrade(database)
    now = datetime.now(UTC)
    effect = Effect(
        scores=np.zeros(0), probability_before=0.5, probability_after=0.9, step=3, gram_step=0
    )
    number, plain = tokens // WORDS, wide("plain", WORDS)
    places, none = np.arange(WORDS, dtype=np.int32), np.full(WORDS, -1, np.int32)
    for start in range(0, number, BATCH):
        some = []
        for each in range(start, min(number, start + BATCH)):
            texts = Texts(tuple(f"m{each}x{word}" for word in range(WORDS)), places, none)
            ids = token_ids(texts)
            order = np.argsort(ids)
            sample = replace(plain.sample, ids=ids[order])
            age = timedelta(days=400 if each < number // 2 else 10)
            some.append(
                Lesson(
                    digest=each.to_bytes(16, "big"), label=SPAM, source="cli", actor="",
                    sender_domain="", time=now - age, effect=effect, sample=sample,
                    texts=Texts(texts.words, places[order], none),
                )
            )  # fmt: skip
        ids = np.sort(np.concatenate([each.sample.ids for each in some]))
        cells = np.zeros((len(ids), counts.WEIGHT + 1), np.int32)
        cells[:, (counts.SPAM, counts.SPAM_OCCURRENCES)] = 1
        cells[:, counts.WEIGHT] = effect.step
        async with database.writing() as connection:
            await journal.add(connection, some)
            await token_table.change(connection, ids, cells)
    made = Totals(
        spam=number, ham=number, spam_occurrences=tokens, ham_occurrences=0, vocabulary=tokens
    )
    async with database.writing() as connection:
        version = await corpus_tables.version(connection, lock=True)
        await corpus_tables.add_totals(connection, version.totals, made)
    await database.close()


class Mail:
    """Mail sent to a daemon at an even rate, and how long each took."""

    def __init__(self, daemon: Spamd) -> None:
        self._daemon = daemon
        self._number = 0

    def seconds(self, until: Callable[[], bool]) -> Sequence[float]:
        """Send mail until something is done; return the times, the shortest first."""
        took = []
        with smtplib.SMTP("127.0.0.1", self._daemon.port, timeout=60) as client:
            due = time.monotonic()
            while not until():
                time.sleep(max(0.0, due - time.monotonic()))
                self._number += 1
                client.sendmail("a@x.test", ["you@x.test"], made_up("spam", self._number))
                took.append(time.monotonic() - due)  # a late turn counts as its wait
                due += 1 / A_SECOND
        return sorted(took)


def pruned(daemon: Spamd, url: str, quiet_s: float) -> tuple[Pruned, float, Sequence[float]]:
    """Prune while mail flows; return what went, how long it took, and the times of the mails."""
    mail = Mail(daemon)
    print(f"quiet: {shown(mail.seconds(_after(quiet_s)))}", flush=True)
    result: list[Pruned] = []
    options = PruneOptions(unseen_days=180, seen_in=1, floor=0)
    work = threading.Thread(
        target=lambda: result.append(asyncio.run(prune_apart(DatabaseOptions(url=url), options)))
    )
    began = time.monotonic()
    work.start()
    times = mail.seconds(lambda: not work.is_alive())
    return result[0], time.monotonic() - began, times


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def shown(times: Sequence[float]) -> str:
    """Return the number of mails, the median, the 99th of a hundred and the slowest."""
    middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
    return (
        f"{len(times):,} mails, median {middle * 1e3:.0f} ms, p99 {late * 1e3:.0f} ms,"
        f" slowest {times[-1] * 1e3:.0f} ms"
    )
