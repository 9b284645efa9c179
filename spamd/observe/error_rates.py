"""How often mail was judged wrong since, as far as people tell: for `spamd status` and the metrics.

People say only that something is wrong, and seldom all of it. What they read and kept says that it
was right, so of the mail that was called ham the share of the wrong is known:

    spam passed   moved to Junk / (moved to Junk + read and kept), of what was called ham; where
                  nothing is kept, of all that was called ham: the least it can be
    ham lost      taken out of Junk / all that was called spam, which again is the least it can be:
                  few people look through Junk

with the exact interval that holds the true rate with 95 %. What nobody touched is taken to be like
what somebody did; docs/training.md says what that leaves out. Mail counts once people have had
`feedback.kept_days` for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from spamd.evaluation.rates import Interval, binomial_interval, percent

if TYPE_CHECKING:
    from spamd.storage.outcomes import Judged, Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How much of the mail of one verdict was judged wrong.

    scanned  messages of this verdict
    wrong    those that people corrected
    right    those that they read and kept
    rate     share of the wrong, percent, with the interval that holds it with 95 %
    least    it is the least it can be: all that nobody touched counts as right
    """

    scanned: int
    wrong: int
    right: int
    rate: float
    interval: Interval
    least: bool

    def to_json(self) -> dict[str, object]:
        """Return the fields of `admin.measured.Rate`, as JSON has them."""
        return {
            "scanned": self.scanned,
            "wrong": self.wrong,
            "right": self.right,
            "percent": self.rate,
            "low": self.interval.low,
            "high": self.interval.high,
            "least": self.least,
        }

    @property
    def untouched(self) -> int:
        """Messages of which nobody said anything."""
        return max(0, self.scanned - self.wrong - self.right)

    @property
    def messages(self) -> tuple[float, float, float]:
        """How many of all messages of this verdict that is: the estimate, the least, the most."""
        low, high = self.interval.low, self.interval.high
        least = max(self.scanned * low / 100, self.wrong)
        return max(self.scanned * self.rate / 100, self.wrong), least, self.scanned * high / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """How often verdicts were wrong, as far as people told.

    corrected  messages that people said were judged wrong, unsure ones not counted
    unsure     messages that were unsure
    settled    of these, those that people moved, filed or kept
    """

    since: datetime
    until: datetime
    corrected: int
    unsure: int
    settled: int
    spam_passed: Estimate
    ham_lost: Estimate

    def to_json(self) -> dict[str, object]:
        """Return the fields of `admin.measured.Measured`, as JSON has them."""
        return {
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "corrected": self.corrected,
            "unsure": self.unsure,
            "settled": self.settled,
            **{name: one.to_json() for name, one in self.estimates},
        }

    @property
    def estimates(self) -> Iterator[tuple[str, Estimate]]:
        """Yield the estimates with their names."""
        yield "spam_passed", self.spam_passed
        yield "ham_lost", self.ham_lost


def span(now: datetime, *, scans_days: float, kept_days: float) -> tuple[datetime, datetime]:
    """Return from when until when mail was judged that is known still, and settled by now.

    The days are whole ones (UTC).
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=scans_days), today - timedelta(days=ceil(kept_days))


def error_rates(counts: "Outcomes") -> ErrorRates:
    """Return what the counts say."""
    ham, spam, unsure = counts.ham, counts.spam, counts.unsure
    return ErrorRates(
        since=counts.since,
        until=counts.until,
        corrected=ham.spam + spam.ham,
        unsure=unsure.scanned,
        settled=unsure.spam + unsure.ham + unsure.kept,
        spam_passed=_estimate(ham, ham.spam),
        ham_lost=_estimate(spam, spam.ham),
    )


def _estimate(judged: "Judged", wrong: int) -> Estimate:
    least = judged.kept == 0
    known = judged.scanned if least else wrong + judged.kept
    return Estimate(
        scanned=judged.scanned,
        wrong=wrong,
        right=judged.kept,
        rate=percent(wrong, known),
        interval=binomial_interval(wrong, known),
        least=least,
    )
