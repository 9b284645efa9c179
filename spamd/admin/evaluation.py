"""The evaluation that the page shows: begun by a person, run beside the mail, kept for all.

    evaluations = Evaluations(records, clock, bayes)
    await evaluations.ask()       # writes down that it is wanted, and wakes `run`
    await evaluations.run()       # a job: it evaluates whenever somebody has asked here
    await evaluations.found()     # what came of the last one, whichever worker ran it

It judges the newest lessons by what the others taught (`evaluation.journal`), in a process of its
own at the lowest priority. One that did not end is taken for lost after `MOST`.
"""

import asyncio
import json
import pickle
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from spamd.admin.ports import Records, Trial
from spamd.bayes.model import BayesOptions
from spamd.evaluation.journal import Given
from spamd.ports import Clock
from spamd.sample import Label

NEWEST = 1000
"""Lessons of each label that are evaluated: it takes half a minute."""

FEWEST = 10
"""Lessons of each label without which figures say nothing."""

MOST = timedelta(minutes=15)
"""An evaluation that has not ended by then was lost, with its worker."""

DONE, RUNNING = "journal", "journal running"
"""Names under which what came of the last one is kept, and since when one runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What is known of evaluations.

    running   since when one runs; None: none does
    time      when the last one ended; None: there was none
    figures   of it, as `spamd evaluate --json` has them, with the points of its curves
    fault     why it came to nothing, "" if it did not
    """

    running: datetime | None
    time: datetime | None
    figures: Mapping[str, Any]
    fault: str


class Evaluations:
    """Evaluates what was taught.

    Args:
        records: returns the store as rows; it may raise `StorageUnavailable`.
        clock: the time.
        bayes: the options in force.
    """

    def __init__(self, records: Callable[[], Records], clock: Clock, bayes: BayesOptions) -> None:
        self._records = records
        self._clock = clock
        self._bayes = bayes
        self._wanted = asyncio.Event()

    async def found(self) -> Evaluated:
        """Return what is known.

        Raises:
            StorageUnavailable: nobody knows.
        """
        records = self._records()
        begun, done = await records.trial(RUNNING), await records.trial(DONE)
        running = None if begun is None else begun.time
        if running is not None and self._clock.now() - running > MOST:
            running = None
        content: Mapping[str, Any] = {} if done is None else json.loads(done.content)
        return Evaluated(
            running=running,
            time=None if done is None else done.time,
            figures={} if "fault" in content else content,
            fault=content.get("fault", ""),
        )

    async def ask(self) -> bool:
        """Have what was taught evaluated; tell whether that was new, for one may run.

        Raises:
            StorageUnavailable: it was not written down.
        """
        if (await self.found()).running is not None:
            return False
        await self._records().write_trial(RUNNING, Trial(time=self._clock.now(), content="{}"))
        self._wanted.set()
        return True

    async def run(self) -> None:
        """Evaluate whenever somebody has asked, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            content = await self._evaluated(self._records())
            trial = Trial(time=self._clock.now(), content=content)
            await self._records().write_trial(DONE, trial)
            await self._records().write_trial(RUNNING, None)

    async def _evaluated(self, records: Records) -> str:
        """Return what comes of an evaluation, as JSON."""
        found = await records.samples(NEWEST)
        labels = [label for _, label, _ in found]
        if min(labels.count(label) for label in Label) < FEWEST:
            return json.dumps({"fault": "few"})
        given = Given(samples=[each for each, _, _ in found], labels=labels, bayes=self._bayes)
        packed = await asyncio.to_thread(pickle.dumps, given)
        return await _in_a_process(packed)


async def _in_a_process(packed: bytes) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "spamd.evaluation.journal",
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(MOST.total_seconds()):
            output, _ = await process.communicate(packed)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return output.decode() if process.returncode == 0 else json.dumps({"fault": "failed"})
