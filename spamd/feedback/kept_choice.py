"""Which of the mail that people read and kept is taught: chosen over all accounts together.

The corpus is shared, so the balance of its labels is; how a person treats spam is his own. What is
chosen waits for the next poll of its account, which sees whether it lies there still. What is not
chosen is asked about again, with the model as it is by then.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from spamd.bayes.selection import Habit, Kept, habit_of, most_telling, worth
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.ports import History, KeptMessage, KeptMessages, KeptScan
from spamd.message.features import Features
from spamd.ports import Clock
from spamd.report import log_odds

EVERY = timedelta(seconds=60)
"""Between two choices: nobody waits for one."""

CANDIDATES = 200
"""Mails among which is chosen, the least sure ones. They are judged anew when there are new
lessons, which takes half a second of CPU."""

DAY = timedelta(days=1)

Judge = Callable[[Features], float | None]
"""Returns the probability of spam as the model is now, None while there is no model."""


class Choice(Protocol):
    """Says which kept mail of an account is to be taught."""

    async def chosen(self, account: str, actor: str) -> list[KeptMessage]:
        """Return each mail that was chosen once; `actor` is the person whose account it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A kept mail and whose it is."""

    account: str
    message: KeptMessage


class KeptChoice:
    """The choice for all accounts of one process."""

    def __init__(
        self,
        kept: KeptMessages,
        history: History,
        judge: Judge,
        clock: Clock,
        options: FeedbackOptions,
    ) -> None:
        self._kept = kept
        self._history = history
        self._judge = judge
        self._clock = clock
        self._options = options
        self._window = timedelta(days=options.kept_window_days)
        self._next = clock.now()
        self._turn = asyncio.Lock()
        self._actors: dict[str, str] = {}
        self._chosen: dict[str, list[KeptMessage]] = {}
        self._log_odds: dict[bytes, float] = {}
        self._lessons = (0, 0)

    async def chosen(self, account: str, actor: str) -> list[KeptMessage]:
        """Return each mail that was chosen once; a choice is made every minute."""
        self._actors[account] = actor
        async with self._turn:
            now = self._clock.now()
            if now >= self._next or now < self._next - EVERY:
                self._next = now + EVERY
                self._chosen = await self._choose()
        return self._chosen.pop(account, [])

    async def _choose(self) -> dict[str, list[KeptMessage]]:
        now, options = self._clock.now(), self._options.kept
        standing = await self._kept.standing(now - self._window, now - DAY)
        if not standing.room(options):
            return {}
        if (lessons := (standing.spam, standing.ham)) != self._lessons:
            self._log_odds, self._lessons = {}, lessons  # the model is another one now
        candidates = [
            Kept(
                key=Candidate(account=account, message=message),
                log_odds=await self._now(message.scan),
                kind=message.scan.sender,
                deliberate=message.deliberate,
            )
            for account, message in await self._kept.teachable(CANDIDATES)
            if account in self._actors and message.scan is not None
        ]
        telling = [one for one in candidates if worth(one, standing, options) > 0]
        habits = {
            account: await self._habit(account, now - self._window)
            for account in sorted({one.key.account for one in telling})
        }
        safe = [one for one in telling if habits[one.key.account].doubt(one) <= options.kept_doubt]
        chosen: dict[str, list[KeptMessage]] = {}
        for one in most_telling(safe, standing, options):
            chosen.setdefault(one.key.account, []).append(one.key.message)
        return chosen

    async def _habit(self, account: str, since: datetime) -> Habit:
        moved, stayed = await self._kept.unsure(account, self._actors[account], since)
        return habit_of(
            [log_odds(each) for each in moved],
            [log_odds(each) for each in stayed],
            self._options.kept,
        )

    async def _now(self, said: KeptScan) -> float:
        """Return what the model says of a mail now, or said when it came."""
        if said.digest not in self._log_odds:
            await asyncio.sleep(0)  # mail that waits gets a turn
            features = await self._history.kept(said.digest)
            now = self._judge(features) if features is not None else None
            self._log_odds[said.digest] = log_odds(said.probability if now is None else now)
        return self._log_odds[said.digest]
