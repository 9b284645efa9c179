"""verify, prune, reset, export and import."""

import gzip
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select, text

from spamd.message.facts import SCHEMA
from spamd.message.features import Features
from spamd.storage.engine import Database
from spamd.storage.maintenance.export import export_file, import_file
from spamd.storage.maintenance.foreign_exports import FormatError
from spamd.storage.maintenance.prune_tokens import prune
from spamd.storage.maintenance.reset import reset
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import DatabaseOptions, PruneOptions
from spamd.storage.tables import sample
from spamd.training import Result
from tests.storage.mails import (
    HAM,
    SPAM,
    FixedClock,
    TeachingProcess,
    counts,
    journal_rows,
    mail,
    weights,
)

WORDS = [f"word{number}" for number in range(60)]


def mails(number: int, start: int = 0) -> list[Features]:
    return [
        mail(f"mail {n}", " ".join(WORDS[(n * 7 + k * k) % 60] for k in range(12)))
        for n in range(start, start + number)
    ]


async def do(database: Database, statement: str) -> None:
    async with database.writing() as connection:
        await connection.execute(text(statement))


async def test_verify_agrees_after_lessons_corrections_and_forgetting(
    teaching: TeachingProcess,
) -> None:
    await teaching.train(SPAM, *mails(5))
    await teaching.train(HAM, *mails(9, 2))
    await teaching.forget(*mails(2, 4))
    findings = await verify(teaching.database, SCHEMA)
    assert findings.faults == ()
    assert findings.lessons == 9
    assert findings.tokens > 60


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (
            "UPDATE token SET spam = spam + 1, spam_occurrences = spam_occurrences + 1",
            "other counts",
        ),
        ("DELETE FROM token", "tokens of lessons are missing"),
        (
            "INSERT INTO token VALUES (5, 1, 0, 1, 0, 0)",
            "1 tokens are stored that are in no lesson",
        ),
        ("UPDATE corpus SET spam = spam + 1", "the totals are"),
        ("UPDATE fact SET ham = ham + 1", "counts of the facts"),
        ("UPDATE lesson SET gram_step = gram_step + 1", "weights of the character grams"),
        ("UPDATE sample SET content = '\\x00'", "can't be read"),
        ("DELETE FROM lesson", "are in no lesson"),
    ],
)
async def test_verify_names_what_does_not_agree(
    teaching: TeachingProcess, damage: str, fault: str
) -> None:
    await teaching.train(SPAM, *mails(3))
    await do(teaching.database, damage)
    findings = await verify(teaching.database, SCHEMA)
    assert any(fault in found for found in findings.faults), findings.faults


async def test_prune_lets_old_rare_words_go_and_verify_still_agrees(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    old = mail("once", "zyzzyva quux common")
    await teaching.train(SPAM, old, mail("twice", "common"))
    clock.advance(days=200)
    young = mail("young", "fresh common")
    await teaching.train(HAM, young)
    options = PruneOptions(unseen_days=180, seen_in=1, floor=0)
    before = await counts(teaching.database)
    planned = await prune(teaching.database, clock, options, dry_run=True)
    assert await counts(teaching.database) == before
    done = await prune(teaching.database, clock, options, dry_run=False)
    assert (planned.examined, planned.removed, planned.lessons) == (
        done.examined,
        done.removed,
        done.lessons,
    )
    assert done.removed > 2
    assert (await verify(teaching.database, SCHEMA)).faults == ()
    # What was pruned is gone from the lesson too, so it can still be taken back exactly.
    await teaching.forget(old, mail("twice", "common"), young)
    assert (await counts(teaching.database))["token"] == []


async def test_d24_the_journal_shrinks_when_it_is_pruned_and_still_knows_each_mail(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    async def size_bytes() -> int:
        async with teaching.database.reading() as connection:
            contents = await connection.execute(select(sample.c.content))
            return sum(len(content) for content in contents.scalars())

    old = [mail(f"old {n}", " ".join(f"rare{n}x{k}" for k in range(200))) for n in range(20)]
    await teaching.train(SPAM, *old)
    clock.advance(days=200)
    await teaching.train(HAM, *mails(3))
    full = await size_bytes()
    await prune(teaching.database, clock, PruneOptions(floor=0), dry_run=False)
    assert await size_bytes() < 0.85 * full  # most of the rest is the 4-grams, kept for taking back
    assert await teaching.train(SPAM, *old) == [Result.KNOWN] * 20
    assert [outcome.result for outcome in await teaching.forget(*old)] == [Result.FORGOTTEN] * 20
    assert (await verify(teaching.database, SCHEMA)).faults == ()


async def test_d21_prune_keeps_a_floor_and_the_words_seen_last(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    for number, day in enumerate((0, 1, 2)):
        clock.advance(days=day)
        await teaching.train(SPAM, mail(f"m{number}", f"only{number}"))
    clock.advance(days=300)
    await teaching.train(SPAM, mail("newest", "here"))
    everything = len((await counts(teaching.database))["token"])
    options = PruneOptions(unseen_days=180, seen_in=1, floor=everything - 1)
    done = await prune(teaching.database, clock, options, dry_run=False)
    assert done.removed == 1
    assert done.spared > 0
    assert len((await counts(teaching.database))["token"]) == everything - 1


async def test_d21_a_clock_that_jumped_a_year_expires_nothing(
    teaching: TeachingProcess, clock: FixedClock
) -> None:
    await teaching.train(SPAM, *mails(3))
    clock.advance(days=366)
    options = PruneOptions(unseen_days=180, seen_in=100, floor=0)
    assert (await prune(teaching.database, clock, options, dry_run=False)).removed == 0


async def test_d22_prune_reports_what_it_examined(database: Database, clock: FixedClock) -> None:
    nothing = await prune(database, clock, PruneOptions(), dry_run=False)
    assert (nothing.examined, nothing.removed) == (0, 0)


async def test_d10_after_a_reset_everything_can_be_taught_again(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    taught = mails(4)
    await teaching.train(SPAM, *taught)
    full = await counts(teaching.database)
    copy = await reset(teaching.database, clock, tmp_path)
    assert copy.exists()
    empty = await counts(teaching.database)
    assert (empty["token"], empty["fact"], empty["lesson"]) == ([], [], [])
    assert await teaching.probability(taught[0]) == pytest.approx(0.5, abs=0.2)
    assert await teaching.train(SPAM, *taught) == [Result.LEARNED] * 4
    assert await counts(teaching.database) == full


async def test_the_copy_made_before_a_reset_holds_what_was_taught(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(4))
    full = await counts(teaching.database, weights=True)
    copy = await reset(teaching.database, clock, tmp_path)
    if teaching.database.is_sqlite:
        restored = await Database.open(DatabaseOptions(url=f"sqlite:///{copy}"))
        assert await counts(restored, weights=True) == full
        await restored.close()
    else:
        await import_file(teaching.work, copy, teaching.clock)
        assert await counts(teaching.database, weights=True) == full


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
async def test_d28_export_and_import_round_trip_exactly(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path, name: str
) -> None:
    await teaching.train(
        SPAM, *mails(5), mail("Größe \0", "Straße \u4f60\u597d\u4e16\u754c e\u0301 \U0001f600")
    )
    await teaching.train(HAM, *mails(5, 3), source="imap", actor="anna@example.org")
    full = await counts(teaching.database, weights=True)
    journal = await journal_rows(teaching.database)
    assert await export_file(teaching.database, tmp_path / name) == 9
    await reset(teaching.database, clock, tmp_path)
    done = await import_file(teaching.work, tmp_path / name, teaching.clock)
    assert (done.learned, done.known, done.skipped, done.complete) == (9, 0, 0, True)
    assert await counts(teaching.database, weights=True) == full
    assert await journal_rows(teaching.database) == journal
    assert (await verify(teaching.database, SCHEMA)).faults == ()


async def test_d28_after_an_import_every_verdict_is_what_it_was(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(40))
    await teaching.train(HAM, *mails(40, 40))
    await teaching.forget(*mails(3, 10))
    assert await teaching.trainer.rehearse() > 0
    judged = [await teaching.probability(each) for each in mails(100)]
    assert max(judged) - min(judged) > 0.5
    await export_file(teaching.database, tmp_path / "all")
    await reset(teaching.database, clock, tmp_path)
    restored = TeachingProcess(teaching.database, clock)
    await import_file(restored.work, tmp_path / "all", clock)
    assert [await restored.probability(each) for each in mails(100)] == pytest.approx(judged)
    stored, told = await weights(teaching.database)
    assert stored == pytest.approx(told)


async def test_d28_an_import_into_a_full_database_adds_what_is_missing(
    teaching: TeachingProcess, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(6))
    await export_file(teaching.database, tmp_path / "six")
    await teaching.forget(*mails(3))
    await teaching.train(HAM, mail("mail 5", "not the same"), *mails(2, 10))
    done = await import_file(teaching.work, tmp_path / "six", teaching.clock)
    assert (done.learned, done.known) == (3, 3)
    assert (await verify(teaching.database, SCHEMA)).faults == ()
    again = await import_file(teaching.work, tmp_path / "six", teaching.clock)
    assert (again.learned, again.known) == (0, 6)


async def test_d25_a_line_that_cant_be_read_is_skipped_counted_and_named(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(4))
    whole = tmp_path / "whole"
    await export_file(teaching.database, whole)
    lines = whole.read_text().splitlines(keepends=True)
    broken = json.loads(lines[2])
    broken["tokens"].append(broken["tokens"][0])
    foreign = json.loads(lines[3])
    foreign["facts"] = [0]
    lines[1:4] = ["{nonsense\n", json.dumps(broken) + "\n", json.dumps(foreign) + "\n"]
    (tmp_path / "broken").write_text("".join(lines))
    await reset(teaching.database, clock, tmp_path)
    done = await import_file(teaching.work, tmp_path / "broken", teaching.clock)
    assert (done.learned, done.skipped, done.complete) == (1, 3, True)
    assert [fault.split(":")[0] for fault in done.faults] == ["line 2", "line 3", "line 4"]


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": [["word", 0, 1]]},
        {"tokens": [["word", 256, 1]]},
        {"scores": [float("nan")]},
        {"before": float("inf")},
        {"step": 2**31},
        {"gram_step": -(2**40)},
        {"digest": "aa"},
    ],
)
async def test_a_lesson_with_numbers_that_no_lesson_has_is_skipped(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path, change: dict[str, object]
) -> None:
    await teaching.train(SPAM, *mails(1))
    await export_file(teaching.database, tmp_path / "whole")
    head, lesson, end = (tmp_path / "whole").read_text().splitlines()
    lines = [head, json.dumps(json.loads(lesson) | change), end]
    (tmp_path / "broken").write_text("\n".join(lines))
    await reset(teaching.database, clock, tmp_path)
    done = await import_file(teaching.work, tmp_path / "broken", teaching.clock)
    assert (done.learned, done.skipped, done.complete) == (0, 1, True)


async def test_an_import_of_half_a_file_says_so(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(4))
    await export_file(teaching.database, tmp_path / "whole")
    half = (tmp_path / "whole").read_text().splitlines(keepends=True)[:3]
    (tmp_path / "half").write_text("".join(half))
    await reset(teaching.database, clock, tmp_path)
    done = await import_file(teaching.work, tmp_path / "half", teaching.clock)
    assert (done.learned, done.complete) == (2, False)


async def test_of_a_compressed_export_that_was_cut_off_all_whole_lines_are_imported(
    teaching: TeachingProcess, clock: FixedClock, tmp_path: Path
) -> None:
    await teaching.train(SPAM, *mails(40))
    await export_file(teaching.database, tmp_path / "whole.gz")
    whole = (tmp_path / "whole.gz").read_bytes()
    (tmp_path / "half.gz").write_bytes(whole[: len(whole) // 2])
    await reset(teaching.database, clock, tmp_path)
    done = await import_file(teaching.work, tmp_path / "half.gz", teaching.clock)
    assert (done.learned > 5, done.skipped <= 1, done.complete) == (True, True, False)


@pytest.mark.parametrize(
    "content", ["", "Dear diary\n", '{"spamd": "journal", "version": 9}\n', "{nonsense"]
)
async def test_another_programs_file_is_refused(
    teaching: TeachingProcess, tmp_path: Path, content: str
) -> None:
    (tmp_path / "other.gz").write_bytes(gzip.compress(content.encode()))
    with pytest.raises(FormatError, match="this is no export of spamd"):
        await import_file(teaching.work, tmp_path / "other.gz", teaching.clock)


@contextmanager
def disk_full_after(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond that size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
async def test_i9_an_export_that_finds_the_disk_full_says_so_and_leaves_no_half_file(
    teaching: TeachingProcess, tmp_path: Path, name: str
) -> None:
    await teaching.train(SPAM, *mails(9))
    there = os.listdir(tmp_path)  # noqa: PTH208 - the names are all
    with disk_full_after(1_000), pytest.raises(OSError, match="File too large"):
        await export_file(teaching.database, tmp_path / name)
    assert set(os.listdir(tmp_path)) <= set(there)  # noqa: PTH208


async def test_an_export_never_replaces_a_file(teaching: TeachingProcess, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("precious")
    with pytest.raises(FileExistsError):
        await export_file(teaching.database, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "precious"
