"""Any bytes are mail: hostile and honest ones go every way there is, a share of them daily."""

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spamd.bayes.decision import DecisionOptions
from spamd.extraction.extractor import Extractor
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.scanning import Scanner, ScanningInspector
from spamd.storage.corpus import corpus_tables
from spamd.storage.engine import Database
from spamd.storage.migrate import upgrade
from spamd.storage.options import DatabaseOptions
from spamd.storage.scans import Scans
from spamd.training import Result
from tests.e2e.test_relay_corpus import meant, wire
from tests.fakes import FakeObserver
from tests.memory import peak_bytes, settled_bytes
from tests.relay.peers import ScriptedNextHop, Talk, relay
from tests.sizes import share, sized
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, journal_rows

if TYPE_CHECKING:
    from spamd.message.features import Features

CPU_S = 1.0
MIB = 2**20
SAMPLE = sized(20, 150)
"""Mails of each honest corpus, spread over all of it."""

GROUP = 11
"""Mails taught and forgotten together: an odd number, so that both labels come up."""

BASE = 60
"""Mails taught before, so that what comes has something to be judged by and to disturb."""

HEADER = re.compile(rb"[!-9;-~]+[ \t]*:|\n")
BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def files(folder: Path, one_of: int = 1) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "index")
    return share(found, one_of)


def spread(paths: Sequence[Path], number: int) -> list[Path]:
    return list(paths[:: max(1, len(paths) // number)])[:number]


@contextmanager
def bounded(what: str, *paths: Path) -> Iterator[None]:
    """Hold what is done with one mail, or a few together, to the time and memory of one."""
    rest = settled_bytes()
    started = time.process_time()
    yield
    seconds, grown = time.process_time() - started, peak_bytes() - rest
    assert seconds < CPU_S, f"{what} {paths}: {seconds:.2f} s"
    most = 20 * max(path.stat().st_size for path in paths) + 64 * MIB
    assert grown < most, f"{what} {paths}: {grown / MIB:.0f} MiB"


class World:
    """A taught filter: its database, its scanner."""

    def __init__(self, database: Database) -> None:
        self.report_handler = TeachingProcess(database, FixedClock())
        self.scans = Scans(database, self.report_handler.clock)
        self.scanner = Scanner(
            model=lambda: self.report_handler.cache.snapshot.model,
            decision=DecisionOptions(),
            tokenizer=TokenizerOptions(),
            clock=self.report_handler.clock,
            key=b"0123456789abcdef",
            random=os.urandom,
        )

    async def rows(self) -> list[object]:
        """Return all that was taught, and what follows from it."""
        database = self.report_handler.database
        async with database.reading() as connection:
            grams = await corpus_tables.grams(connection)
            fusion = await corpus_tables.fusion(connection)
        weighed = np.flatnonzero(grams)
        return [
            await counts(database, weights=True),
            await journal_rows(database),
            (weighed.tolist(), grams[weighed].tolist()),
            [round(float(value), 9) for value in fusion.values],
        ]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    database = await Database.open(DatabaseOptions(url=f"sqlite:///{tmp_path}/spamd.db"))
    await upgrade(database)
    yield World(database)
    await database.close()


def received(arrived: bytes) -> bytes:
    """Return a mail as its reader gets it, without our fields; the wire knows CRLF alone."""
    assert BARE.search(arrived) is None
    text = arrived.replace(b"\r\n", b"\n").replace(b"\n..", b"\n.")
    # An mbox line or indented lines on top are no part of the header and stay on top.
    above, _, rest = text.partition(
        b"Received: from client.test ([127.0.0.1])\n\tby mx.test (spamd)"
    )
    body = rest[rest.index(b"\n", rest.index(b"\nX-Spam-Id: ") + 1) + 1 :]
    # Indented lines in front of all fields would continue our last one: an empty field takes them.
    return above + (body.removeprefix(b"X-Front:\n") if body[9:10] in (b" ", b"\t") else body)


async def relayed(talk: Talk, hop: ScriptedNextHop, path: Path, raw: bytes) -> None:
    """Send a mail through the relay and look at what arrives."""
    recipient = b"<%s@y.test>" % digest_of(raw)
    with bounded("relay", path):
        answer = await talk.deliver(wire(raw), hello=b"", recipients=(recipient,))
    assert answer.startswith(b"250 "), (path, answer)
    assert hop.envelopes == [(b"FROM:<a@x.test>", [b"TO:" + recipient])]
    (arrived,) = hop.messages
    rest, told = received(arrived), meant(raw)
    # What has no header of its own would go on ours: a blank line keeps it apart.
    assert rest == told or (rest == b"\n" + told and not HEADER.match(told)), path
    hop.messages.clear()
    hop.envelopes.clear()


def digest_of(raw: bytes) -> bytes:
    return hashlib.sha256(raw).hexdigest()[:32].encode()


async def through(world: World, paths: Sequence[Path]) -> dict[bytes, Path]:
    """Take each mail all the ways; return the digests of what was taught."""
    taught: dict[bytes, Path] = {}
    waiting: list[Features] = []
    extractor = Extractor(TokenizerOptions(), wait_s=60, work_s=60)
    clock, observer = world.report_handler.clock, FakeObserver()
    inspector = ScanningInspector(world.scanner, extractor, clock, world.scans, observer)
    async with ScriptedNextHop() as hop, relay(hop.url, real_inspector=inspector) as running:
        talk = await running.talk()
        await talk.say(b"EHLO client.test")
        for number, path in enumerate(paths):
            raw = path.read_bytes()
            with bounded("scan", path):
                report = world.scanner.scan(raw)
            features = report.features
            assert features is not None
            assert report.probability is not None
            assert 0 <= report.probability <= 1, path
            if features.digest not in taught:  # some stand in the corpus twice
                taught[features.digest] = path
                waiting.append(features)
            if len(waiting) == GROUP or path == paths[-1]:
                with bounded("train", *(taught[each.digest] for each in waiting)):
                    done = await world.report_handler.train((HAM, SPAM)[number % 2], *waiting)
                assert set(done) <= {Result.LEARNED}
                waiting.clear()
            await relayed(talk, hop, path, raw)
        await world.scans.flush()
    await extractor.close()
    return taught


async def test_hostile_and_honest_mails_are_scanned_taught_relayed_and_forgotten(
    world: World, hostile_corpus: Path, spamassassin_corpus: Path, modern_corpus: Path
) -> None:
    honest = [spread(files(folder), SAMPLE) for folder in (spamassassin_corpus, modern_corpus)]
    for number, path in enumerate(spread(files(spamassassin_corpus)[1:], BASE)):
        await world.report_handler.train(
            (HAM, SPAM)[number % 2], world.scanner.extract(path.read_bytes())
        )
    before = await world.rows()
    taught = await through(world, [*files(hostile_corpus, one_of=8), *honest[0], *honest[1]])
    assert len(taught) > sized(170, 1_200)
    assert await world.rows() != before
    digests = list(taught)
    for start in range(0, len(digests), GROUP):
        group = digests[start : start + GROUP]
        with bounded("forget", *(taught[digest] for digest in group)):
            done = await world.report_handler.trainer.forget(group)
        assert {outcome.result for outcome in done} == {Result.FORGOTTEN}
    assert await world.rows() == before
