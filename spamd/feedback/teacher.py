"""From "this mail is spam, says alice" to a lesson in the journal, with one guard.

The guard: lessons that contradict a clear verdict (we said ham, a person says spam, or the other
way round) are normal one by one. Very many of them within an hour are more likely a slip of the
mouse, a wrong folder setting or a broken client than a change of mind: from `feedback.hold_after`
on they are held for a review (`spamd lessons held`) instead of being learned. They are counted in
the database, over all processes and restarts.

A person's lesson replaces whatever was taught before; learning itself is `training.Trainer`'s
business, exact and once for each mail. Nothing is ever learned without a person.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from spamd.bayes.decision import Verdict
from spamd.errors import StorageUnavailable
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import FeedbackObserver, Held, HeldLessons, Known
from spamd.feedback.run_summary import RunSummary
from spamd.message.features import Features
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training.ports import KEPT
from spamd.training.trainer import Trainer

Extract = Callable[[bytes], Features]
"""How the bytes of a mail become features: the same way as at a scan."""

CONTRADICTED = {Label.SPAM: Verdict.HAM, Label.HAM: Verdict.SPAM}
"""The verdict that a label says was wrong; unsure contradicts nothing."""


OF_PEOPLE = frozenset({"imap", "maildir", "address", KEPT})
"""Sources of lessons after which old ones are learned again: what people did with their mail. Who
teaches one mail by page, API or program is shown what it does, and takes back exactly that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A mail that somebody taught; `known` is what we knew of it before, None for nothing."""

    features: Features
    label: Label
    known: Known | None


class Teacher:
    """Trainer what people said, and holds bursts back."""

    def __init__(
        self,
        trainer: Trainer,
        held: HeldLessons,
        clock: Clock,
        options: FeedbackOptions,
        observer: FeedbackObserver,
    ) -> None:
        self._trainer = trainer
        self._held = held
        self._clock = clock
        self._options = options
        self._observer = observer
        self._window = timedelta(seconds=options.hold_window_s)
        self._turn = asyncio.Lock()  # nobody learns between our count and our lessons

    async def teach(
        self,
        candidates: Sequence[Candidate],
        source: str,
        actor: str,
        given: datetime | None = None,
    ) -> RunSummary:
        """Learn mails in their order, each once: the last word on a mail counts.

        Args:
            candidates: the mails with their labels.
            source: the way the lessons came.
            actor: who gave them.
            given: when, if that is not now; mails that were taught since are known already.

        Raises:
            TemporaryError: the database is out of reach; nothing of the rest was learned.
        """
        async with self._turn:
            summary = await self._teach(candidates, source, actor, given)
            if source in OF_PEOPLE and summary.learned.total():
                with suppress(StorageUnavailable):  # what they said is learned all the same
                    await self._trainer.refresh(first_scores=self._options.teaches_kept)
            return summary

    async def _teach(
        self, candidates: Sequence[Candidate], source: str, actor: str, given: datetime | None
    ) -> RunSummary:
        summary = RunSummary()
        last = {candidate.features.digest: candidate for candidate in candidates}
        contradicting = [one for one in last.values() if self._contradicts(one)]
        burst = contradicting[await self._room(actor) :] if contradicting else []
        chosen = []
        for candidate in last.values():
            if any(candidate is one for one in burst):
                await self._hold(candidate, source, actor)
                summary.held += 1
            else:
                chosen.append(candidate)
        for label in Label:
            batch = [c.features for c in chosen if c.label is label]
            if not batch:
                continue
            outcomes = await self._trainer.train(
                batch, label, source=source, actor=actor, given=given
            )
            summary.count(outcomes, label)
        summary.already += len(candidates) - len(last)
        return summary

    def _contradicts(self, candidate: Candidate) -> bool:
        known = candidate.known
        if known is None or not self._options.hold_after:
            return False
        if known.label is not None and known.source != KEPT:
            return False  # a second thought on a mail corrects a person, not the model
        return known.verdict is CONTRADICTED[candidate.label]

    async def _room(self, actor: str) -> int:
        """Return how many more lessons of a person may contradict the verdicts of spamd."""
        since = self._clock.now() - self._window
        return max(0, self._options.hold_after - await self._held.contradictions(actor, since))

    async def _hold(self, candidate: Candidate, source: str, actor: str) -> None:
        known = candidate.known
        probability = known.probability if known and known.probability is not None else 0.5
        held = Held(
            number=0,
            features=candidate.features,
            label=candidate.label,
            source=source,
            actor=actor,
            probability=probability,
            reason=(
                f"more than {self._options.hold_after} lessons of {actor} within"
                f" {self._options.hold_window_s:g} s contradict the verdicts of spamd"
            ),
            time=self._clock.now(),
        )
        await self._held.hold([held])
        self._observer.held(held)


async def release(
    held: HeldLessons, trainer: Trainer, numbers: Sequence[int] | None = None
) -> RunSummary:
    """Learn held lessons (all, or those with the given numbers) and remove them from the list."""
    summary = RunSummary()
    for one in await held.held():
        if numbers is not None and one.number not in numbers:
            continue
        summary.examined += 1
        outcomes = await trainer.train(
            [one.features], one.label, source=one.source, actor=one.actor
        )
        summary.count(outcomes, one.label)
        await held.drop([one.number])
    return summary
