"""An evaluation begun by a person, and what becomes of it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from spamd.admin.evaluation import MOST, Evaluations
from spamd.admin.ports import Trial
from spamd.bayes.model import BayesOptions
from spamd.sample import Label, Sample
from tests.evaluation.test_journal import given
from tests.fakes import FakeClock


class FakeTrials:
    """Lessons, and what was written of evaluations (part of `admin.ports.Records`)."""

    def __init__(self, each: int) -> None:
        found = given(each)
        self.lessons = [
            (s, label, "") for s, label in zip(found.samples, found.labels, strict=True)
        ]
        self.trials: dict[str, Trial] = {}
        self.ended = asyncio.Event()

    async def samples(self, newest: int) -> Sequence[tuple[Sample, Label, str]]:
        return self.lessons

    async def trial(self, name: str) -> Trial | None:
        return self.trials.get(name)

    async def write_trial(self, name: str, trial: Trial | None) -> None:
        if trial is None:
            self.trials.pop(name, None)
            self.ended.set()
        else:
            self.trials[name] = trial


async def evaluated(trials: FakeTrials, clock: FakeClock) -> Evaluations:
    """Return evaluations of which one was asked for and has ended."""
    found = Evaluations(lambda: trials, clock, BayesOptions())  # type: ignore[arg-type,return-value]  # what it uses
    assert await found.ask()
    job = asyncio.create_task(found.run())
    async with asyncio.timeout(120):
        await trials.ended.wait()
    job.cancel()
    with suppress(asyncio.CancelledError):
        await job
    return found


async def test_what_came_of_it_is_kept_for_all_workers() -> None:
    trials = FakeTrials(12)
    found = await (await evaluated(trials, FakeClock())).found()
    assert (found.running, found.fault) == (None, "")
    assert found.figures["messages"] == 24
    other = Evaluations(lambda: trials, FakeClock(), BayesOptions())  # type: ignore[arg-type,return-value]  # what it uses
    assert await other.found() == found


async def test_too_few_lessons_are_said_instead_of_figures() -> None:
    found = await (await evaluated(FakeTrials(3), FakeClock())).found()
    assert (found.fault, found.figures) == ("few", {})


async def test_one_runs_at_a_time_and_one_that_was_lost_does_not_stand_in_the_way() -> None:
    trials, clock = FakeTrials(3), FakeClock()
    found = Evaluations(lambda: trials, clock, BayesOptions())  # type: ignore[arg-type,return-value]  # what it uses
    assert await found.ask()
    assert not await found.ask()
    assert (await found.found()).running == clock.now()
    clock.seconds += (MOST + timedelta(seconds=1)).total_seconds()
    assert (await found.found()).running is None
    assert await found.ask()
