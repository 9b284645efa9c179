"""Counts of other programs: added once, shown by their words, taken back exactly."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from spamd.message.facts import SCHEMA
from spamd.message.tokens.hashing import token_id
from spamd.storage.maintenance.export import export_file, import_file, take_back_file
from spamd.storage.maintenance.foreign_exports import FormatError, read
from spamd.storage.maintenance.prune_tokens import prune
from spamd.storage.maintenance.reset import reset
from spamd.storage.maintenance.verify import verify
from spamd.storage.options import PruneOptions
from tests.storage.mails import HAM, SPAM, FixedClock, TeachingProcess, counts, mail

BOGOFILTER = """\
.ENCODING 2 0 20261128
.MSG_COUNT 30 20 20261128
.WORDLIST_VERSION 20040500 0 20261128
pills 12 0 20261128
subj:pills 9 0 20261128
rcvd:host 30 20 20261128
lunch 0 7 20261128
seldom 99 0 20261128
never 0 0 20261128
Straße 1 1 20261128
not a line of counts
"""

SPAMBAYES = """\
20,30
pills,0,12
subject:pills,0,9
"a,b",1,2
skip:x 10,4,4
odd,x,3
"""


async def rows(teaching: TeachingProcess) -> dict[int, tuple[int, ...]]:
    found = (await counts(teaching.database))["token"]
    return {int(str(row[0])): tuple(int(str(each)) for each in row[1:5]) for row in found}


def test_a_dump_of_bogofilter_gives_its_words_with_our_marks(clock: FixedClock) -> None:
    tally = read(BOGOFILTER.encode(), clock.now())
    assert (tally.source, tally.spam, tally.ham) == ("bogofilter", 30, 20)
    assert dict(zip(tally.words, map(tuple, tally.counts.tolist()), strict=True)) == {
        "pills": (12, 0),
        "subject=pills": (9, 0),
        "lunch": (0, 7),
        "seldom": (30, 0),  # never in more mails than there were
        "Straße": (1, 1),
    }


def test_a_csv_of_spambayes_gives_its_words(clock: FixedClock) -> None:
    tally = read(SPAMBAYES.encode(), clock.now())
    assert (tally.source, tally.spam, tally.ham) == ("spambayes", 30, 20)
    assert tally.words == ("pills", "subject=pills", "a,b")
    assert tally.counts.tolist() == [[12, 0], [9, 0], [2, 1]]


def test_d28_words_in_an_old_charset_are_read(clock: FixedClock) -> None:
    dump = b".MSG_COUNT 2 2 20261128\nstra\xdfe 1 0 20261128\n"
    assert read(dump, clock.now()).words == ("straße",)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("v\t3\tdb_version # this must be the first line!!!\n", "sa-learn's backup holds hashes"),
        ("learns_spam 5\n", "rspamd's dump holds hashes"),
        ("REDIS0011\x00\n", "rspamd's dump holds hashes"),
        ('"BAYES_SPAM_keys": ["RS"]\n"RS_12": {"S":"1"}\n', "rspamd's dump holds hashes"),
        ('{"pattern": "RS", "meta": {}, "elts": {\n', "rspamd's dump holds hashes"),
        ("Dear diary\n", "no export of spamd, bogofilter"),
        ("", "no export of spamd, bogofilter"),
        ("1,2,3\n", "no export of spamd, bogofilter"),
    ],
)
def test_what_holds_no_words_is_refused_plainly(
    clock: FixedClock, content: str, sentence: str
) -> None:
    with pytest.raises(FormatError, match=sentence):
        read(content.encode(), clock.now())


@pytest.mark.skipif(not shutil.which("bogoutil"), reason="bogofilter is not here")
def test_what_bogofilter_really_writes_is_read(tmp_path: Path, clock: FixedClock) -> None:
    for label, text in (("-s", b"Subject: cheap\n\nbuy pills\n"), ("-n", b"Subject: a\n\nlunch\n")):
        subprocess.run(["bogofilter", "-C", "-d", str(tmp_path), label], input=text, check=True)
    dump = subprocess.run(
        ["bogoutil", "-d", str(tmp_path / "wordlist.db")], capture_output=True, check=True
    )
    tally = read(dump.stdout, clock.now())
    assert (tally.spam, tally.ham) == (1, 1)
    assert {"buy", "pills", "lunch", "subject=cheap"} <= set(tally.words)


@pytest.mark.parametrize("number", [10**9, 10**10, 10**20])
def test_a_number_of_mails_that_nobody_ever_got_is_refused(number: int) -> None:
    dump = f".MSG_COUNT {number} 5 20200101\nhello {number} 1 20200101\n"
    with pytest.raises(FormatError, match="which can't be true"):
        read(dump.encode(), datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of bogofilter."""
    path = tmp_path / "dump.txt"
    path.write_text(BOGOFILTER)
    return path


async def test_d28_counts_are_added_to_what_is_there_and_once_only(
    teaching: TeachingProcess, dump: Path, clock: FixedClock
) -> None:
    await teaching.train(SPAM, mail("pills", "pills"))
    before = (await rows(teaching))[token_id("pills")]
    done = await import_file(teaching.work, dump, clock)
    assert (done.learned, done.known, done.programs) == (50, 0, ("bogofilter",))
    after = await rows(teaching)
    assert np.subtract(after[token_id("pills")], before).tolist() == [12, 0, 12, 0]
    assert after[token_id("lunch")] == (0, 7, 0, 7)
    again = await import_file(teaching.work, dump, clock)
    assert (again.learned, again.known) == (0, 50)
    assert await rows(teaching) == after
    findings = await verify(teaching.database, SCHEMA)
    assert findings.faults == ()
    assert (await counts(teaching.database))["corpus"][0][1:3] == (31, 20)


async def test_counts_can_be_taken_back_exactly_while_lessons_stay(
    teaching: TeachingProcess, dump: Path, clock: FixedClock
) -> None:
    taught = mail("pills", "pills lunch")
    await teaching.train(HAM, taught)
    before = await counts(teaching.database, weights=True)
    await import_file(teaching.work, dump, clock)
    assert (await take_back_file(teaching.work, dump, clock)).programs == ("bogofilter",)
    assert (await take_back_file(teaching.work, dump, clock)).programs == ()
    assert await counts(teaching.database, weights=True) == before


async def test_scans_see_imported_counts(
    teaching: TeachingProcess, dump: Path, clock: FixedClock
) -> None:
    await teaching.probability(mail("pills"))
    await import_file(teaching.work, dump, clock)
    await teaching.probability(mail("pills"))
    table = teaching.cache.snapshot.model.tokens
    found = table.counts(table.find(np.array([token_id("pills"), token_id("lunch")])))
    assert (found.spam.tolist(), found.ham.tolist()) == ([12, 0], [0, 7])


async def test_tallies_are_exported_imported_pruned_and_reset_with_the_lessons(
    teaching: TeachingProcess, dump: Path, clock: FixedClock, tmp_path: Path
) -> None:
    await import_file(teaching.work, dump, clock)
    clock.advance(days=200)
    await teaching.train(SPAM, mail("pills", "pills"))
    full = await counts(teaching.database, weights=True)
    await export_file(teaching.database, tmp_path / "all.gz")
    await reset(teaching.database, clock, tmp_path)
    assert (await counts(teaching.database))["token"] == []
    done = await import_file(teaching.work, tmp_path / "all.gz", clock)
    assert (done.learned, done.programs, done.complete) == (1, ("bogofilter",), True)
    assert await counts(teaching.database, weights=True) == full
    options = PruneOptions(unseen_days=180, seen_in=2, floor=0)
    assert (await prune(teaching.database, clock, options, dry_run=False)).removed == 1
    assert token_id("Straße") not in await rows(teaching)
    assert (await verify(teaching.database, SCHEMA)).faults == ()


async def test_a_dump_of_rspamd_as_json_is_refused_plainly(
    teaching: TeachingProcess, tmp_path: Path
) -> None:
    path = tmp_path / "dump.json"
    path.write_text('{"pattern": "RS", "meta": {"learns_spam": "3"}, "elts": {\n}}\n')
    with pytest.raises(FormatError, match="rspamd's dump holds hashes instead of words"):
        await import_file(teaching.work, path, teaching.clock)
