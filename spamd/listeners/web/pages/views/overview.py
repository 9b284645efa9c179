"""`/`: does mail flow, is it learning, what went wrong; and for the first time: what is next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.overview import Overview, Step
from spamd.admin.ports import HourCount, Volume
from spamd.admin.roles import Visitor, Way
from spamd.bayes.decision import Action, Verdict
from spamd.feedback.ports import AccountState
from spamd.listeners.web.pages import charts
from spamd.listeners.web.pages.charts import Slot
from spamd.listeners.web.pages.frame import Frame, route
from spamd.training.ports import Selection

LAST = 5
"""Lessons shown: enough to see whether the last ones did what they should."""

FIRST = (Step.MAIL, Step.HAM, Step.SPAM)
"""Until these are done, the steps stand above all else."""

LITTLE_FREE = 0.05
"""A disk of which less than that share is free is a fault."""

LABELS = 5
"""Times named below the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How far back one looks, and the hours of a bar.

    named   bars from one time that may be named to the next: a round one
    """

    name: str
    hours: int
    step: int
    unit: str
    part: str
    named: int


SPANS = (
    Span(name="day", hours=24, step=1, unit="hour", part="hour", named=6),
    Span(name="week", hours=7 * 24, step=6, unit="six", part="day", named=4),
    Span(name="month", hours=30 * 24, step=24, unit="day", part="day", named=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShown:
    """A step as it is shown."""

    name: str
    done: bool
    next: bool
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShown:
    """Lessons of a source."""

    name: str
    ham: int
    spam: int


class OverviewPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [route("/", self._frame.reading(self.show))]

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show it."""
        asked = request.query_params.get("span", "")
        span = next((each for each in SPANS if each.name == asked), SPANS[0])
        here = self._frame.administration()
        guarded = self._frame.guard.takes_passwords or visitor.way is Way.PROXY
        found = await here.overview.show(span.hours + span.step - 1, span.step, guarded=guarded)
        people = here.site.shows_people()
        last = await here.lessons.journal(Selection(), None, LAST, people=people)
        slots = slots_of(found, span)
        return await self._frame.page(
            visitor,
            "overview",
            "overview",
            found=found,
            last=last.rows,
            span=span,
            spans=SPANS,
            slots=slots,
            columns=charts.columns(slots),
            labels=charts.named(slots, LABELS, span.named),
            totals=totals(slots),
            refused=_refused(found, slots[0].begins),
            sources=list(_sources(found)),
            steps=list(_steps(found)),
            first=found.next_step in FIRST,
            watching=found.accounts.get(AccountState.WATCHING, 0),
            accounts=sum(found.accounts.values()),
            is_full=_is_full,
        )


def slots_of(found: Overview, span: Span) -> Sequence[Slot]:
    """Return the mails of each bar, the oldest first; bars begin at round hours (UTC)."""
    step = timedelta(hours=span.step)
    last = _floor(found.time, span.step)
    begins = [last - step * back for back in range(span.hours // span.step - 1, -1, -1)]
    counts: dict[datetime, Counter[Verdict]] = {begin: Counter() for begin in begins}
    for each in found.hours:
        _count(counts, each, span.step)
    return [
        Slot(
            begins=begin,
            ends=begin + step,
            ham=counts[begin][Verdict.HAM],
            unsure=counts[begin][Verdict.UNSURE],
            spam=counts[begin][Verdict.SPAM],
            unscanned=counts[begin][Verdict.UNSCANNED],
        )
        for begin in begins
    ]


def totals(slots: Sequence[Slot]) -> Mapping[str, int]:
    """Return the mails of all bars by verdict."""
    return {
        "ham": sum(slot.ham for slot in slots),
        "unsure": sum(slot.unsure for slot in slots),
        "spam": sum(slot.spam for slot in slots),
        "unscanned": sum(slot.unscanned for slot in slots),
    }


def _count(counts: Mapping[datetime, Counter[Verdict]], each: HourCount, step: int) -> None:
    if (bar := counts.get(_floor(each.hour, step))) is not None:
        bar[each.verdict] += each.mails


def _floor(time: datetime, step: int) -> datetime:
    """Return the round hour at which the bar of a time begins."""
    return time.replace(hour=time.hour - time.hour % step, minute=0, second=0, microsecond=0)


def _sources(found: Overview) -> Iterator[SourceShown]:
    counts: dict[str, Counter[str]] = {}
    for each in found.lessons:
        counts.setdefault(each.source, Counter())[each.label.value] += each.lessons
    for name, of in counts.items():
        yield SourceShown(name=name, ham=of["ham"], spam=of["spam"])


def _steps(found: Overview) -> Iterator[StepShown]:
    learned = found.learned
    have = {
        Step.HAM: (learned.ham, learned.ham_missing),
        Step.SPAM: (learned.spam, learned.spam_missing),
    }
    for each in found.steps:
        there, missing = have.get(each.step, (0, 0))
        yield StepShown(
            name=each.step.value,
            done=each.done,
            next=each.step is found.next_step,
            values={"have": there, "wanted": there + missing},
        )


def _refused(found: Overview, since: datetime) -> int:
    """Return how many mails were refused."""
    refused = (hour for hour in found.hours if hour.action is Action.REJECT and hour.hour >= since)
    return sum(hour.mails for hour in refused)


def _is_full(volume: Volume) -> bool:
    return volume.free_bytes < LITTLE_FREE * volume.total_bytes
