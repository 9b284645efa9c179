"""What one wants to know first: does mail flow, is it learning, what is wrong, what is next."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from spamd.admin.mail import nameless
from spamd.admin.measured import Measured, measured
from spamd.admin.ports import (
    HourCount,
    Knowledge,
    LessonRow,
    Records,
    ScanFilter,
    Site,
    SourceCount,
    Volume,
)
from spamd.bayes.counts import Totals
from spamd.bayes.decision import DecisionOptions, Verdict, thresholds
from spamd.feedback.ports import Accounts, AccountState, WatchedAccount
from spamd.ports import Check, Clock
from spamd.sample import Label
from spamd.training.ports import Selection

LOPSIDED = 5
"""A larger class more than this many times the smaller one is worth a word."""

LOST = 20
"""Lost accounts named: with more it is the server, not the accounts."""


class Step(StrEnum):
    """What somebody does first, in this order."""

    MAIL = "mail"  # let mail come in
    PASSWORD = "password"  # noqa: S105 - set one, or a proxy
    HAM = "ham"  # teach ham until verdicts are given
    SPAM = "spam"  # likewise
    FEEDBACK = "feedback"  # have accounts watched, or lessons reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Messages that were taught, and how many more it takes until verdicts are given.

    lopsided   the label of which there is little beside the other, None: none
    """

    ham: int
    spam: int
    ham_missing: int
    spam_missing: int
    lopsided: Label | None

    @property
    def votes(self) -> bool:
        """Whether verdicts are given."""
        return not (self.ham_missing or self.spam_missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNow:
    """A step of a first run, and whether it is done."""

    step: Step
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All of it, as of `time`.

    since        from when on mail is counted
    hours        mails by hour, listener, verdict and action
    verdicts     mails by verdict
    thresholds   the probability from which each choice is taken
    lessons      in force, by source and label, most first
    last         the lesson that was given last
    held         lessons that wait for a review
    measured     how often verdicts were wrong; None: not counted yet
    checks       what mail needs
    accounts     how many are in which state; `lost` names those that can't be watched
    steps        of a first run; the first that is not done is next
    """

    time: datetime
    since: datetime
    hours: tuple[HourCount, ...]
    verdicts: Mapping[Verdict, int]
    learned: Learned
    thresholds: Mapping[str, float]
    lessons: tuple[SourceCount, ...]
    last: LessonRow | None
    held: int
    measured: Measured | None
    checks: tuple[Check, ...]
    accounts: Mapping[AccountState, int]
    lost: tuple[WatchedAccount, ...]
    listeners: tuple[str, ...]
    volumes: tuple[Volume, ...]
    steps: tuple[StepNow, ...]

    @property
    def mails(self) -> int:
        """Mails that were counted."""
        return sum(self.verdicts.values())

    @property
    def next_step(self) -> Step | None:
        """The step that is next, None once all are done."""
        return next((each.step for each in self.steps if not each.done), None)


class Overviews:
    """Tells how all is.

    Args:
        records: the store as rows.
        knowledge: what was learned.
        accounts: how watched accounts fare.
        site: this machine and worker.
        clock: the time.
        decision: what verdicts need.
    """

    def __init__(
        self,
        *,
        records: Records,
        knowledge: Knowledge,
        accounts: Accounts,
        site: Site,
        clock: Clock,
        decision: DecisionOptions,
    ) -> None:
        self._records = records
        self._knowledge = knowledge
        self._accounts = accounts
        self._site = site
        self._clock = clock
        self._decision = decision

    async def show(self, hours: int, step: int = 1, *, guarded: bool) -> Overview:
        """Return it, with the mail of so many hours, by so many of them.

        guarded  there is a password, or a proxy says who comes

        Raises:
            StorageUnavailable: the database does not answer.
        """
        now = self._clock.now()
        since = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours - 1)
        counts = await self._records.hours(since, step)
        verdicts: Counter[Verdict] = Counter()
        for each in counts:
            verdicts[each.verdict] += each.mails
        learned = _learned(await self._knowledge.totals(), self._decision)
        newest = await self._records.lessons(Selection(), None, 1)
        last = newest[0] if newest else None
        accounts = await self._accounts.accounts()
        lessons = tuple(await self._records.sources())
        mail = bool(counts) or bool(await self._records.scans(ScanFilter(), None, 1))
        lost = [one for one in accounts if one.state is AccountState.LOST]
        return Overview(
            time=now,
            since=since,
            hours=tuple(counts),
            verdicts=dict(verdicts),
            learned=learned,
            thresholds=thresholds(self._decision),
            lessons=lessons,
            last=last if last is None or self._site.shows_people() else nameless(last),
            held=await self._records.count_held(),
            measured=await measured(self._records),
            checks=tuple(await self._site.checks()),
            accounts=dict(Counter(one.state for one in accounts)),
            lost=tuple(lost[:LOST]),
            listeners=tuple(self._site.listeners()),
            volumes=tuple(await self._site.volumes()),
            steps=_steps(learned, lessons, mail=mail, guarded=guarded, accounts=bool(accounts)),
        )

    async def totals(self) -> Totals:
        """Return how much was taught.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        return await self._knowledge.totals()


def _learned(totals: Totals, decision: DecisionOptions) -> Learned:
    ham_missing = max(0, decision.minimum_ham - totals.ham)
    spam_missing = max(0, decision.minimum_spam - totals.spam)
    lopsided = None
    if not (ham_missing or spam_missing):
        if totals.spam > LOPSIDED * max(1, totals.ham):
            lopsided = Label.HAM
        elif totals.ham > LOPSIDED * max(1, totals.spam):
            lopsided = Label.SPAM
    return Learned(
        ham=totals.ham,
        spam=totals.spam,
        ham_missing=ham_missing,
        spam_missing=spam_missing,
        lopsided=lopsided,
    )


def _steps(
    learned: Learned,
    lessons: Sequence[SourceCount],
    *,
    mail: bool,
    guarded: bool,
    accounts: bool,
) -> tuple[StepNow, ...]:
    told = any(each.source not in {"cli", "import"} for each in lessons)
    done = {
        Step.MAIL: mail,
        Step.PASSWORD: guarded,
        Step.HAM: not learned.ham_missing,
        Step.SPAM: not learned.spam_missing,
        Step.FEEDBACK: accounts or told,
    }
    return tuple(StepNow(step=step, done=yes) for step, yes in done.items())
