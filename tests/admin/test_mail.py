"""One mail: its verdicts then and now, its words for who may teach, and what a lesson changes."""

from dataclasses import asdict
from pathlib import Path

import pytest

from spamd.admin.history import history, place_of
from spamd.admin.ports import ScanFilter
from spamd.admin.teaching import Source
from spamd.bayes.decision import Verdict
from spamd.ports import Taught
from spamd.sample import Label
from tests.admin.office import HAM_WORDS, SPAM_WORDS, mail, office

SPAM = mail(900, SPAM_WORDS)
FRESH = mail(901, "fresh words that nobody taught before")


async def test_a_mail_says_what_was_said_of_it_and_why(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        name = await here.scanned(SPAM)
        found = await here.found.mails.show(name, words=True, people=True)
    assert found is not None
    assert found.now.verdict is found.scan.verdict is Verdict.SPAM
    assert found.now.probability == pytest.approx(found.scan.probability)
    assert len(found.sentences) == 3
    assert {"cheap", "pills"} & {word.token for word in found.words}
    assert found.sight.read[-7:] == (*SPAM_WORDS.split()[1:], "number900")
    total = found.bias + found.prior + sum(each.effect for each in found.classifiers)
    assert total == pytest.approx(found.log_odds)
    assert (found.trained_spam, found.trained_ham) == (12, 12)
    assert "anna@example.org" in found.sender


async def test_who_may_only_read_sees_no_word_and_nobody_s_name(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        name = await here.scanned(mail(0, SPAM_WORDS))  # which is taught, by ann
        found = await here.found.mails.show(name, words=False, people=False)
    assert found is not None
    assert found.lesson is not None
    text = str(asdict(found))
    told = [*SPAM_WORDS.split(), "ann", "anna@example.org", "example.org"]
    assert [word for word in told if f"'{word}'" in text or f" {word} " in text] == []
    assert len(found.classifiers) == 8
    assert len(found.sentences) == 1


async def test_a_mail_is_found_by_its_identity_too_and_an_unknown_one_is_not(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as here:
        await here.scanned(SPAM)
        digest = here.features(SPAM).digest.hex()
        found = await here.found.mails.show(digest, words=True, people=False)
        assert found is not None
        assert found.scan.mail == digest
        for name in ("", "nobody", "00" * 16, digest[:-2], "\0", "é", "\ud800"):
            assert await here.found.mails.show(name, words=True, people=False) is None


async def test_a_lesson_shows_before_and_after_and_forgetting_restores_exactly(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as here:
        name = await here.scanned(FRESH)
        teaching = here.found.teaching
        taught = await teaching.teach(name, Label.SPAM, Source.PAGE, "ann")
        assert taught is not None
        assert (taught.outcome, taught.label) == (Taught.LEARNED, Label.SPAM)
        assert taught.before.probability < taught.after.probability
        await here.store.refresh()
        next_one = here.scanner.judge(here.features(FRESH), 0.0)
        assert next_one.probability == pytest.approx(taught.after.probability)
        again = await teaching.teach(name, Label.SPAM, Source.PAGE, "ann")
        assert again is not None
        assert (again.outcome, again.before) == (Taught.KNOWN, taught.after)
        forgotten = await teaching.forget(name)
        assert forgotten is not None
        assert (forgotten.outcome, forgotten.label) == (Taught.FORGOTTEN, None)
        assert (forgotten.before, forgotten.after) == (taught.after, taught.before)
        nothing = await teaching.forget(name)
        assert nothing is not None
        assert nothing.outcome is Taught.UNKNOWN
        assert await teaching.teach("nobody", Label.HAM, Source.API, "ann") is None
        assert await teaching.forget("nobody") is None


async def test_a_lesson_names_its_source_and_who_gave_it(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        name = await here.scanned(FRESH)
        await here.found.teaching.teach(name, Label.HAM, Source.API, "robot")
        (row,) = await here.store.latest(1)
    assert (row.source, row.actor, row.label) == ("api", "robot", Label.HAM)


async def test_strong_words_name_the_lessons_they_rest_on(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        name = await here.scanned(SPAM)
        shown = await here.found.mails.basis(name, people=False)
        assert shown
        for each in shown:
            labels = {one.lesson.label for one in each.lessons.found}
            assert labels == {Label.SPAM if each.word.effect > 0 else Label.HAM}
            assert {one.lesson.actor for one in each.lessons.found} == {""}
        named = await here.found.mails.basis(name, people=True)
        assert {one.lesson.actor for each in named for one in each.lessons.found} <= {"ann", "bob"}
        assert await here.found.mails.basis("nobody", people=True) == []


async def test_the_history_is_walked_through_by_the_parts_beside_each_part(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        names = [await here.scanned(mail(n, HAM_WORDS), f"Q{n}") for n in range(7)][::-1]
        records = here.found.records
        first = await history(records, ScanFilter(), None, 3)
        assert ([row.id for row in first.rows], first.newer, first.found) == (names[:3], None, 7)
        assert first.older is not None
        second = await history(records, ScanFilter(), place_of(first.older), 3)
        assert [row.id for row in second.rows] == names[3:6]
        assert second.older is not None
        third = await history(records, ScanFilter(), place_of(second.older), 3)
        assert ([row.id for row in third.rows], third.older) == (names[6:], None)
        assert third.newer is not None
        back = await history(records, ScanFilter(), place_of(third.newer), 3)
        assert [row.id for row in back.rows] == names[3:6]
        assert back.newer is not None
        front = await history(records, ScanFilter(), place_of(back.newer), 3)
        assert (front.rows, front.newer) == (first.rows, None)
        one = await history(records, ScanFilter(queue_id="Q3"))
        assert [row.id for row in one.rows] == [names[3]]
        none = await history(records, ScanFilter(queue_id="Q9"))
        assert (none.rows, none.newer, none.older, none.found) == ((), None, None, 0)


@pytest.mark.parametrize("text", ["", "1.x", "-x.y", "-1", "*1.x", f"-{'1' * 19}.x", "-1.\n" * 99])
def test_what_names_no_part_of_a_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no part of the list"):
        place_of(text)
