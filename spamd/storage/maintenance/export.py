"""Export and import of everything that was taught, as text; an import gives back the same rows.

One JSON object a line, in UTF-8; the name may end in .gz:

    {"spamd": "journal", "version": 1}
    {"digest": "…", "label": "spam", "source": "imap", …, "tokens": [["word", 2, 1], …]}   a lesson
    {"tally": {"source": "bogofilter", …, "words": [["word", 3, 0], …]}}         counts of others
    {"entry": {"effect": "allow", …}}                      what people have said: `people_rows`
    {"lessons": 6046}                                                                     the end

A token is its text, its occurrences and its kinds (`sample.Kind`). Lessons stand in the order of
learning with their steps and scores, so an import adds exactly what they added then; nothing is
scored again. Into a database that holds lessons already an import adds: a mail that is known there
keeps its lesson. A line that can't be read is skipped, counted and named; a file that ends early is
imported as far as it goes, and said to be incomplete.

Exports of other programs are recognised and added as `ImportedCounts` (`foreign_exports`).
"""

import base64
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np

from spamd.bayes.counts import distinct
from spamd.bayes.learning import Effect
from spamd.message.facts import SCHEMA
from spamd.message.features import Texts
from spamd.message.identity import DIGEST_BYTES
from spamd.ports import Clock
from spamd.sample import Label, Sample
from spamd.storage.corpus import imported_counts, journal
from spamd.storage.corpus.codec import texts_of, token_ids
from spamd.storage.corpus.imported_counts import ImportedCounts
from spamd.storage.corpus.unit_of_work import SqlUnitOfWork
from spamd.storage.engine import Database
from spamd.storage.files import new_file
from spamd.storage.maintenance import foreign_exports, people_rows
from spamd.storage.maintenance.foreign_exports import FormatError
from spamd.storage.maintenance.people_rows import Row
from spamd.storage.maintenance.verify import replay
from spamd.training.ports import Lesson, Selection

HEADER = {"spamd": "journal", "version": 1}

BATCH = 500
"""Lessons per transaction of an import."""

NAMED = 20
"""Lines that can't be read are named up to this many, and counted beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    faults     one sentence for each line that was skipped, the first few
    complete   whether the end of the file was there
    programs   programs whose counts were added, or taken back
    rows       of people, for whoever keeps them (`people_rows.add_missing`)
    """

    learned: int
    known: int
    skipped: int
    faults: tuple[str, ...]
    complete: bool
    programs: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


async def export(database: Database, out: TextIO) -> int:
    """Write all lessons; return how many.

    Raises:
        OSError: they can't be written.
    """
    number = 0
    # Written out here, not between the two ends of a transaction: a full disk is no fault of the
    # database.
    async with aclosing(_exported(database)) as batches:
        async for lines, lessons in batches:
            out.writelines(lines)
            number += lessons
    out.write(json.dumps({"lessons": number}) + "\n")
    return number


async def _exported(database: Database) -> AsyncGenerator[tuple[list[str], int]]:
    """Yield the lines of an export but the last, some at a time, and the lessons they hold."""
    yield [json.dumps(HEADER) + "\n"], 0
    async with database.reading() as connection:
        async for lessons in journal.walk(connection):
            yield [_line(_to_json(lesson)) for lesson in lessons], len(lessons)
        async for counts in imported_counts.walk(connection):
            yield [_line({"tally": _counts_to_json(counts)})], 0
        async for row in people_rows.walk(connection):
            yield [_line(row)], 0


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


async def export_file(database: Database, path: Path) -> int:
    """Write all lessons to a new file, readable for its owner only; it appears once it is whole.

    Raises:
        OSError: it exists already, or there is no room for it.
    """
    compressed = path.suffix == ".gz"
    with new_file(path) as unfinished, _created(unfinished, compressed=compressed) as out:
        return await export(database, out)


async def import_file(
    unit_of_work: Callable[[], SqlUnitOfWork], path: Path, clock: Clock
) -> Imported:
    """Add the lessons of a file of ours, or the counts that another program exported.

    Raises:
        FormatError: no program that we know wrote it, or it holds no words.
    """
    with _binary(path) as binary:
        start = binary.read(len(foreign_exports.RSPAMD_JSON))
    if start.startswith(b"{") and start != foreign_exports.RSPAMD_JSON:
        with _opened(path) as lines:
            return await import_lines(unit_of_work, lines)
    mine = _foreign(path, clock)
    async with unit_of_work() as work:
        added = await work.add_imported_counts(mine)
    mails = mine.spam + mine.ham
    return Imported(
        learned=mails if added else 0,
        known=0 if added else mails,
        skipped=0,
        faults=(),
        complete=True,
        programs=(mine.source,) if added else (),
    )


async def take_back_file(
    unit_of_work: Callable[[], SqlUnitOfWork], path: Path, clock: Clock
) -> Imported:
    """Take the counts back that this file of another program brought, if it did.

    Raises:
        FormatError: no program that we know wrote it, or it holds no words.
    """
    mine = _foreign(path, clock)
    async with unit_of_work() as work:
        done = await work.take_back_imported_counts(mine.digest)
    programs = (mine.source,) if done else ()
    return Imported(learned=0, known=0, skipped=0, faults=(), complete=True, programs=programs)


def _foreign(path: Path, clock: Clock) -> ImportedCounts:
    with _binary(path) as binary:
        return foreign_exports.read(binary.read(), clock.now())


async def import_lines(unit_of_work: Callable[[], SqlUnitOfWork], lines: TextIO) -> Imported:
    """Add the lessons of a text, some hundreds in each transaction.

    Raises:
        FormatError: it is no export of ours.
    """
    reader = _Reader(lines)
    learned = known = 0
    for batch in reader.batches():
        fresh = await _add(unit_of_work, batch)
        learned += fresh
        known += len(batch) - fresh
    added = []
    for counts in reader.imported:
        async with unit_of_work() as work:
            if await work.add_imported_counts(counts):
                added.append(counts.source)
    return Imported(
        learned=learned,
        known=known,
        skipped=reader.skipped,
        faults=tuple(reader.faults),
        complete=reader.complete,
        programs=tuple(added),
        rows=tuple(reader.rows),
    )


async def _add(unit_of_work: Callable[[], SqlUnitOfWork], batch: list[Lesson]) -> int:
    """Add lessons of mails that are not known yet; return how many."""
    lessons = {lesson.digest: lesson for lesson in batch}
    async with unit_of_work() as work:
        known = await work.listed(Selection(digests=tuple(lessons)))
        for summary in known:
            del lessons[summary.digest]
        fresh = list(lessons.values())
        if fresh:
            model = await work.model(distinct(lesson.sample.ids for lesson in fresh))
            replay(model, fresh)
            await work.commit(fresh, [])
    return len(fresh)


class _Reader:
    """Reads lessons from lines, past those that can't be read."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self.skipped = 0
        self.faults: list[str] = []
        self.complete = False
        self.imported: list[ImportedCounts] = []
        self.rows: list[Row] = []

    def batches(self) -> Iterator[list[Lesson]]:
        """Give the lessons, some hundreds at a time."""
        batch: list[Lesson] = []
        for lesson in self._lessons():
            batch.append(lesson)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _lessons(self) -> Iterator[Lesson]:
        try:
            header = json.loads(self._lines.readline())
        except ValueError as error:
            raise FormatError("this is no export of spamd: its first line is no JSON") from error
        if header != HEADER:
            raise FormatError(f"this is no export of spamd that this version knows: {header}")
        number = 0
        for line_number, line in enumerate(_up_to_the_end(self._lines), start=2):
            try:
                row = json.loads(line)
                if row.keys() == {"lessons"}:
                    self.complete = row["lessons"] == number + self.skipped
                    return
                if row.keys() == {"tally"}:
                    self.imported.append(_counts_from_json(row["tally"]))
                    continue
                if (of_people := people_rows.row_of(row)) is not None:
                    self.rows.append(of_people)
                    continue
                lesson = _from_json(row)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
                self.skipped += 1
                if len(self.faults) < NAMED:
                    self.faults.append(f"line {line_number}: {error}")
                continue
            number += 1
            yield lesson


def _up_to_the_end(lines: TextIO) -> Iterator[str]:
    """Give the lines of a file, of a compressed one as far as it can be unpacked."""
    with suppress(EOFError, zlib.error):
        yield from lines


def _to_json(lesson: Lesson) -> dict[str, object]:
    sample = lesson.sample
    return {
        "digest": lesson.digest.hex(),
        "label": lesson.label.value,
        "source": lesson.source,
        "actor": lesson.actor,
        "sender_domain": lesson.sender_domain,
        "time": lesson.time.isoformat(),
        "before": lesson.effect.probability_before,
        "after": lesson.effect.probability_after,
        "step": lesson.effect.step,
        "gram_step": lesson.effect.gram_step,
        "scores": lesson.effect.scores.tolist(),
        "facts": sample.discrete.tolist(),
        "numbers": sample.continuous.tolist(),
        "grams": base64.b64encode(sample.grams.astype("<u4").tobytes()).decode(),
        "tokens": [
            [text, occurrences, kinds]
            for text, occurrences, kinds in zip(
                lesson.texts, sample.occurrences.tolist(), sample.kinds.tolist(), strict=True
            )
        ],
    }


def _from_json(row: dict[str, Any]) -> Lesson:
    texts = texts_of([text for text, _, _ in row["tokens"]])
    ids = token_ids(texts)
    order = np.argsort(ids)
    if len(ids) and not (np.diff(ids[order]) > 0).all():
        raise FormatError("a token is listed twice")
    occurrences = np.array([occurrences for _, occurrences, _ in row["tokens"]], dtype=np.uint8)
    kinds = np.array([kinds for _, _, kinds in row["tokens"]], dtype=np.uint8)
    if not occurrences.all():
        raise FormatError("a token has no occurrences")
    time = datetime.fromisoformat(row["time"])
    if time.tzinfo is None:
        raise FormatError("the time has no time zone")
    digest = bytes.fromhex(row["digest"])
    if len(digest) != DIGEST_BYTES:
        raise FormatError("the digest has the wrong length")
    discrete = np.array(row["facts"], dtype=np.uint8)
    if len(discrete) != len(SCHEMA.sizes) or not (discrete < np.array(SCHEMA.sizes)).all():
        raise FormatError("the facts are not those that this version knows")
    continuous = np.array(row["numbers"], dtype=np.int64)
    if len(continuous) != len(SCHEMA.continuous):
        raise FormatError("the numbers are not those that this version knows")
    return Lesson(
        digest=digest,
        label=Label(row["label"]),
        source=str(row["source"]),
        actor=str(row["actor"]),
        sender_domain=str(row["sender_domain"]),
        time=time,
        effect=_effect_from_json(row),
        sample=Sample(
            ids=ids[order],
            occurrences=occurrences[order],
            kinds=kinds[order],
            discrete=discrete,
            continuous=continuous,
            grams=np.frombuffer(base64.b64decode(row["grams"]), "<u4").astype(np.uint32),
        ),
        texts=Texts(texts.words, texts.first[order], texts.second[order]),
    )


def _effect_from_json(row: dict[str, Any]) -> Effect:
    effect = Effect(
        scores=np.array(row["scores"], dtype=np.float64),
        probability_before=float(row["before"]),
        probability_after=float(row["after"]),
        step=int(np.int32(row["step"])),
        gram_step=int(np.int32(row["gram_step"])),
    )
    if not np.isfinite([*effect.scores, effect.probability_before, effect.probability_after]).all():
        raise FormatError("a score or a probability is no number")
    return effect


def _counts_to_json(counts: ImportedCounts) -> dict[str, object]:
    return {
        "digest": counts.digest.hex(),
        "source": counts.source,
        "time": counts.time.isoformat(),
        "spam": counts.spam,
        "ham": counts.ham,
        "words": [
            [word, spam, ham]
            for word, (spam, ham) in zip(counts.words, counts.counts.tolist(), strict=True)
        ],
    }


def _counts_from_json(row: dict[str, Any]) -> ImportedCounts:
    words = tuple(str(word) for word, _, _ in row["words"])
    counts = np.array([[spam, ham] for _, spam, ham in row["words"]], np.int32).reshape(-1, 2)
    if len(set(words)) != len(words) or (counts < 0).any():
        raise FormatError("a word is listed twice, or has a count below zero")
    return ImportedCounts(
        digest=bytes.fromhex(row["digest"]),
        source=str(row["source"]),
        time=datetime.fromisoformat(row["time"]),
        spam=int(row["spam"]),
        ham=int(row["ham"]),
        words=words,
        counts=counts,
    )


def _binary(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _created(path: Path, *, compressed: bool) -> TextIO:
    if compressed:
        return cast("TextIO", gzip.open(path, "wt", encoding="utf-8", newline="\n"))
    return path.open("w", encoding="utf-8", newline="\n")


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8", newline="\n"))
    return path.open(encoding="utf-8", newline="\n")
