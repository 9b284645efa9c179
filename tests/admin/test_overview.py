"""Whether mail flows, what is learned, what is wrong, and what is next."""

from pathlib import Path

import pytest

from spamd.admin.measured import note
from spamd.admin.overview import Step
from spamd.bayes.decision import Verdict
from spamd.clock import WallClock
from spamd.observe.error_rates import error_rates
from spamd.sample import Label
from spamd.storage.outcomes import Judged, Outcomes
from tests.admin.office import HAM_WORDS, SPAM_WORDS, mail, office


async def test_a_first_run_says_what_is_missing_and_the_next_step(tmp_path: Path) -> None:
    async with office(tmp_path, learned=0) as here:
        found = await here.found.overview.show(24, guarded=False)
        assert (found.mails, found.last, found.measured) == (0, None, None)
        assert (found.learned.ham_missing, found.learned.spam_missing) == (10, 10)
        assert found.next_step is Step.MAIL
        await here.scanned(mail(1, HAM_WORDS))
        assert (await here.found.overview.show(24, guarded=False)).next_step is Step.PASSWORD
        assert (await here.found.overview.show(24, guarded=True)).next_step is Step.HAM
        await here.taught(Label.HAM, [mail(n, HAM_WORDS) for n in range(10)])
        found = await here.found.overview.show(24, guarded=True)
        assert (found.next_step, found.learned.votes) == (Step.SPAM, False)


async def test_all_is_counted_once_it_runs(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        for number in range(3):
            await here.scanned(mail(200 + number, SPAM_WORDS))
        await here.scanned(mail(300, HAM_WORDS))
        found = await here.found.overview.show(24, guarded=True)
    assert found.verdicts == {Verdict.SPAM: 3, Verdict.HAM: 1}
    assert found.mails == sum(each.mails for each in found.hours) == 4
    assert found.learned.votes
    assert {(each.source, each.label, each.lessons) for each in found.lessons} == {
        ("imap", Label.SPAM, 12),
        ("imap", Label.HAM, 12),
    }
    assert found.last is not None
    assert (found.last.label, found.last.actor) == (Label.HAM, "")
    assert found.next_step is None
    assert [check.name for check in found.checks] == ["model"]
    (volume,) = found.volumes
    assert 0 < volume.used_bytes < volume.total_bytes
    assert found.thresholds["tag"] == pytest.approx(0.9677, abs=1e-4)


async def test_little_of_one_label_is_told(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        await here.taught(Label.SPAM, [mail(500 + n, SPAM_WORDS) for n in range(60)])
        found = await here.found.overview.show(24, guarded=True)
    assert found.learned.lopsided is Label.HAM


async def test_with_full_privacy_off_nobody_is_named_and_with_it_on_he_is(tmp_path: Path) -> None:
    async with office(tmp_path, full=True) as here:
        found = await here.found.overview.show(24, guarded=True)
    assert found.last is not None
    assert found.last.actor == "bob"


async def test_measured_error_rates_come_from_the_worker_that_counts(tmp_path: Path) -> None:
    now = WallClock().now()
    counted = Outcomes(
        since=now,
        until=now,
        ham=Judged(scanned=100, spam=3, kept=40),
        unsure=Judged(scanned=7, spam=1),
        spam=Judged(scanned=50, ham=1),
    )
    rates = error_rates(counted)
    async with office(tmp_path, learned=0) as here:
        await note(here.found.records, now, rates.to_json())
        found = (await here.found.overview.show(24, guarded=True)).measured
        assert found is not None
        assert (found.corrected, found.unsure, found.settled) == (4, 7, 1)
        assert found.spam_passed.percent == rates.spam_passed.rate
        assert (found.ham_lost.low, found.ham_lost.high) == (
            rates.ham_lost.interval.low,
            rates.ham_lost.interval.high,
        )
        await note(here.found.records, now, {"since": 1})
        assert (await here.found.overview.show(24, guarded=True)).measured is None
