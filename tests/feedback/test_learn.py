"""From what people say to lessons: each mail once, bursts held back."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from spamd.admin.teaching import Source
from spamd.bayes.decision import Verdict
from spamd.errors import StorageUnavailable
from spamd.feedback.options import AccountOptions, FeedbackOptions
from spamd.feedback.ports import Known
from spamd.feedback.run_summary import RunSummary
from spamd.feedback.teacher import Candidate, Teacher, release
from spamd.message.features import extract
from spamd.sample import Label
from tests.fakes import FakeClock, FakeObserver
from tests.feedback.fakes import FakeHeld, FakeJournal
from tests.feedback.world import mail

OPTIONS = FeedbackOptions(hold_after=3, hold_window_s=60)
ACCOUNT = AccountOptions(host="127.0.0.1", user="alice", password="x")


class Bench:
    """A teacher with everything around."""

    def __init__(self, options: FeedbackOptions = OPTIONS) -> None:
        self.clock = FakeClock()
        self.journal = FakeJournal(self.clock)
        self.held = FakeHeld(self.journal)
        self.observer = FakeObserver()
        self.teacher = Teacher(self.journal, self.held, self.clock, options, self.observer)

    async def teach(
        self, *candidates: Candidate, actor: str = "alice", source: str = "imap"
    ) -> RunSummary:
        for one in candidates:
            if one.known is not None:
                self.journal.ids[one.known.digest.hex()] = one.known
        return await self.teacher.teach(candidates, source, actor)


def candidate(
    subject: str,
    label: Label,
    verdict: Verdict | None = Verdict.UNSURE,
    before: Label | None = None,
) -> Candidate:
    features = extract(mail(subject))
    known = Known(digest=features.digest, verdict=verdict, probability=0.01, label=before)
    return Candidate(features=features, label=label, known=known)


def many(number: int, label: Label, verdict: Verdict, start: int = 0) -> Sequence[Candidate]:
    return [candidate(f"mail {start + n}", label, verdict) for n in range(number)]


async def test_d9_of_two_words_on_one_mail_the_last_counts() -> None:
    bench = Bench()
    await bench.teach(candidate("one", Label.SPAM), candidate("one", Label.HAM))
    assert [lesson[0] for lesson in bench.journal.lessons.values()] == [Label.HAM]


async def test_j11_a_lesson_that_is_held_is_told_of() -> None:
    bench = Bench()
    await bench.teach(*many(4, Label.SPAM, Verdict.HAM))
    [told] = bench.observer.holdings
    assert (told.label, told.verdict, told.actor) == (Label.SPAM, Verdict.HAM, "alice")


async def test_d12_a_burst_that_contradicts_clear_verdicts_is_held() -> None:
    bench = Bench()
    summary = await bench.teach(*many(5, Label.SPAM, Verdict.HAM))
    assert (summary.learned[Label.SPAM], summary.held) == (3, 2)
    assert [(row.label, row.actor) for row in await bench.held.held()] == [
        (Label.SPAM, "alice"),
        (Label.SPAM, "alice"),
    ]


async def test_a_burst_is_held_though_its_mail_was_taught_as_kept() -> None:
    """A kept mail had no person's label yet: this is no second thought."""
    bench = Bench()
    kept = Known(digest=b"", verdict=Verdict.HAM, label=Label.HAM, source="kept")
    mails = many(5, Label.SPAM, Verdict.HAM)
    mails = [replace(one, known=replace(kept, digest=one.features.digest)) for one in mails]
    summary = await bench.teach(*mails)
    assert (summary.learned[Label.SPAM], summary.held) == (3, 2)


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        (Label.SPAM, Verdict.UNSURE),
        (Label.HAM, Verdict.UNSURE),
        (Label.SPAM, Verdict.SPAM),
        (Label.HAM, Verdict.HAM),
        (Label.SPAM, Verdict.UNSCANNED),
    ],
)
async def test_many_lessons_that_contradict_nothing_are_learned(
    label: Label, verdict: Verdict
) -> None:
    bench = Bench()
    assert (await bench.teach(*many(20, label, verdict))).held == 0


async def test_second_thoughts_are_never_held() -> None:
    bench = Bench()
    corrections = [
        candidate(f"mail {n}", Label.SPAM, Verdict.HAM, before=Label.HAM) for n in range(20)
    ]
    assert (await bench.teach(*corrections)).held == 0


async def test_the_burst_of_one_person_does_not_hold_back_another() -> None:
    bench = Bench()
    await bench.teach(*many(5, Label.SPAM, Verdict.HAM), actor="alice")
    summary = await bench.teach(*many(3, Label.SPAM, Verdict.HAM, start=10), actor="bob")
    assert summary.held == 0


async def test_a_burst_is_over_when_its_time_is() -> None:
    bench = Bench()
    await bench.teach(*many(5, Label.SPAM, Verdict.HAM))
    bench.clock.seconds += 61
    assert (await bench.teach(candidate("later", Label.SPAM, Verdict.HAM))).held == 0


async def test_h7_the_burst_is_counted_over_all_processes() -> None:
    bench = Bench()
    await bench.teach(*many(2, Label.SPAM, Verdict.HAM))
    other = Teacher(bench.journal, bench.held, bench.clock, OPTIONS, FakeObserver())
    found = many(3, Label.SPAM, Verdict.HAM, start=10)
    summary = await other.teach(found, "address", "alice")
    assert (summary.learned[Label.SPAM], summary.held) == (1, 2)


async def test_h7_nobody_is_forgotten_within_the_time_however_many_others_come() -> None:
    bench = Bench()
    await bench.teach(*many(3, Label.SPAM, Verdict.HAM))
    for number in range(200):
        await bench.teach(candidate(f"of {number}", Label.SPAM, Verdict.HAM), actor=f"{number}")
    assert (await bench.teach(candidate("again", Label.SPAM, Verdict.HAM))).held == 1


async def test_h7_reports_that_come_at_once_do_not_get_past_the_guard() -> None:
    bench = Bench()
    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            one = candidate(f"mail {number}", Label.SPAM, Verdict.HAM)
            tasks.create_task(bench.teach(one))
    assert (bench.journal.taught(Label.SPAM), len(bench.held.rows)) == (3, 17)


async def test_lessons_tried_again_while_the_database_is_away_make_no_burst() -> None:
    bench = Bench()
    lessons = many(3, Label.SPAM, Verdict.HAM)
    bench.journal.down = True
    for _ in range(3):
        with pytest.raises(StorageUnavailable):
            await bench.teach(*lessons)
    bench.journal.down = False
    assert (await bench.teach(*lessons)).held == 0


async def test_the_guard_can_be_switched_off() -> None:
    bench = Bench(FeedbackOptions(hold_after=0))
    assert (await bench.teach(*many(500, Label.SPAM, Verdict.HAM))).held == 0


async def test_held_lessons_are_learned_when_they_are_released() -> None:
    bench = Bench()
    await bench.teach(*many(5, Label.SPAM, Verdict.HAM))
    numbers = [row.number for row in await bench.held.held()]
    some = await release(bench.held, bench.journal, numbers[:1])
    rest = await release(bench.held, bench.journal)
    assert (some.learned[Label.SPAM], rest.learned[Label.SPAM]) == (1, 1)
    assert await bench.held.held() == []
    assert bench.journal.taught(Label.SPAM) == 5


def test_f6_a_summary_says_what_became_of_every_mail() -> None:
    summary = RunSummary(examined=7, already=1, held=1, parked=1)
    summary.learned[Label.SPAM] += 2
    summary.skipped["teach nothing"] += 2
    other = RunSummary(faults=["folder X can't be read"])
    other.add(summary)
    assert str(other) == (
        "7 examined, 2 learned (2 spam, 0 ham), 1 already known, 1 held, 1 parked,"
        " 2 skipped (2 teach nothing)"
    )
    assert other.faults == ["folder X can't be read"]


async def test_after_what_people_say_some_old_lessons_are_learned_again() -> None:
    bench = Bench()
    await bench.teach(candidate("one", Label.SPAM), candidate("two", Label.SPAM))
    assert bench.journal.refreshed == [(2, False)]
    await bench.teach(candidate("one", Label.SPAM, before=Label.SPAM))  # known already
    assert bench.journal.refreshed == [(2, False)]


@pytest.mark.parametrize("source", ["imap", "maildir", "kept", "address"])
@pytest.mark.parametrize(
    ("accounts", "kept_days", "first"),
    [((ACCOUNT,), 3.0, True), ((ACCOUNT,), 0.0, False), ((), 3.0, False)],
)
async def test_where_only_corrections_teach_old_lessons_are_judged_by_what_is_known_now(
    source: str, accounts: tuple[AccountOptions, ...], kept_days: float, first: object
) -> None:
    bench = Bench(replace(OPTIONS, accounts=accounts, kept_days=kept_days))
    await bench.teach(candidate("one", Label.SPAM), source=source)
    assert bench.journal.refreshed == [(1, first)]


@pytest.mark.parametrize("source", [*Source, "http", "spamc"])
async def test_one_lesson_by_page_or_program_changes_nothing_but_what_it_taught(
    source: str,
) -> None:
    bench = Bench()
    await bench.teach(candidate("one", Label.SPAM), source=source)
    assert bench.journal.refreshed == []


async def test_what_people_say_is_learned_though_nothing_old_is_learned_again() -> None:
    bench = Bench()
    bench.journal.refresh_fails = True
    summary = await bench.teach(candidate("one", Label.SPAM))
    assert summary.learned[Label.SPAM] == 1
    assert len(bench.journal.lessons) == 1
