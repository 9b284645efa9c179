"""Counters for Prometheus, of all workers together, and how they are shown.

No label has unbounded values. Each worker counts in memory that all share (`cells.py`), so any of
them tells what all have counted, and nothing that was counted is lost when one dies.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from math import nan

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric

from spamd.bayes.decision import Action, Verdict
from spamd.feedback.ports import AccountState
from spamd.observe.cells import Board, Key
from spamd.observe.error_rates import ErrorRates
from spamd.observe.families import Counter, Current, Gauge, Histogram, found
from spamd.report import ScanReport
from spamd.sample import Label

SCAN_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Half a millisecond is a small mail, 8 ms the worst of a hundred, seconds a fault."""

LAG_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""A millisecond is what a sleeping process needs to wake up; 50 ms are the most we allow."""

ACCOUNT_STATES = (AccountState.NOT_YET, AccountState.WATCHING, AccountState.LOST)

CONTENT_TYPE = CONTENT_TYPE_LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusNow:
    """What a worker has in memory of what was learned; NaN while it has nothing.

    messages       learned, by label
    tokens         known
    behind_s       how old that is
    waiting_bytes  lessons that wait on the disk for the database
    """

    messages: Mapping[Label, float] = field(default_factory=dict)
    tokens: float = nan
    behind_s: float = nan
    waiting_bytes: float = 0


class Metrics:
    """All that spamd counts.

    Args:
        board: where all processes count.
        region: where this one does.
    """

    def __init__(self, board: Board | None = None, region: int = 0) -> None:
        self._board = board or Board()
        self._cells = cells = self._board.cells(region)
        self._messages = Counter(
            cells,
            "spamd_messages",
            'Messages by verdict and by what was done; alert on a rise of verdict="unscanned".',
            ("verdict", "action"),
        )
        self._listed = Counter(
            cells,
            "spamd_listed_messages",
            "Messages that an entry of a list let in or kept out.",
            ("effect",),
        )
        self._known_senders = Counter(
            cells,
            "spamd_known_senders_messages",
            "Messages from addresses to which people here have written, or that forge such one.",
            ("known",),
        )
        self._scan = Histogram(
            cells,
            "spamd_scan_seconds",
            "Time from the bytes of a message to its verdict.",
            buckets=SCAN_BUCKETS_S,
        )
        self._lag = Histogram(
            cells,
            "spamd_loop_lag_seconds",
            "Delay of the event loop, measured ten times a second: what every message waited."
            " Above 0.05 something delays all mail: please report it. A machine without free"
            " processors shows here too.",
            buckets=LAG_BUCKETS_S,
        )
        self._bytes = Counter(cells, "spamd_message_bytes", "Sizes of all messages added up.")
        self._lessons = Counter(
            cells,
            "spamd_lessons",
            'Lessons by label, by where they came from and by what came of them; outcome="held"'
            " waits for a review (spamd lessons held).",
            ("label", "source", "outcome"),
        )
        self._corrections = Counter(
            cells,
            "spamd_corrections",
            "New lessons that contradicted the filter: its measured errors, by the true label.",
            ("label",),
        )
        self._faults = Counter(
            cells, "spamd_faults", "Faults by log event; alert on any rise.", ("event",)
        )
        self._workers_lost = Counter(
            cells,
            "spamd_workers_lost",
            "Workers that ended by themselves, or were killed, and were replaced.",
        )
        self._wrong = Gauge(
            cells,
            "spamd_wrong_ratio",
            "Estimated share of verdicts that were wrong, from what people corrected and kept, of"
            ' the days that scans are kept: error="spam_passed" or "ham_lost", each with the bounds'
            ' that hold it with 95 % (value="low", "estimate", "high"). Told each hour; nothing'
            " until then.",
            ("error", "value"),
        )
        self._accounts = Gauge(
            cells,
            "spamd_accounts",
            'Accounts that are watched by their state: "watching", "lost" or "not yet"; alert when'
            ' "lost" stays above 0.',
            ("state",),
        )
        self._corpus = Current(
            "spamd_corpus_messages",
            "Messages learned; alert when one label has more than five times the other.",
            ("label",),
        )
        self._tokens = Current("spamd_corpus_tokens", "Tokens known.")
        self._behind = Current(
            "spamd_corpus_behind_seconds",
            "Age of what the worker that answers knows of the corpus: a lesson older than this is"
            " in its verdicts. Alert above 10: the database is away or overloaded.",
        )
        self._waiting = Current(
            "spamd_lessons_waiting_bytes",
            "Size of the lessons that wait on this machine's disk for the database. Alert when it"
            " stays above 0.",
        )
        self._workers = Current("spamd_workers", "Workers that live; relay.workers are wanted.")
        self._ready = Current(
            "spamd_ready",
            'Whether all is there that mail needs: 1 or 0 for check="model", "database" and'
            ' "next_hop", as /readyz tells with the reason; alert when one stays at 0.',
            ("check",),
        )
        self._counters = (
            *(self._messages, self._listed, self._known_senders, self._bytes, self._lessons),
            *(self._corrections, self._faults, self._workers_lost, self._scan, self._lag),
        )
        self._build = Current("spamd_build_info", "1; the version in a label.", ("version",))
        self._corpus_now: Callable[[], CorpusNow] = CorpusNow
        self._ready_now: Mapping[str, bool] = {}
        for verdict in Verdict:
            self._messages.inc(verdict, Action.ACCEPT, amount=0)
        for label in Label:
            self._corrections.inc(label, amount=0)
        self._workers_lost.inc(amount=0)
        self.watched({})
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._cells.begin()

    def scanned(self, report: ScanReport) -> None:
        """Count a message."""
        self._messages.inc(report.verdict, report.action)
        self._bytes.inc(amount=report.size_bytes)
        if report.standing.decides:
            self._listed.inc(report.standing.listed.effect)
        if known := report.standing.known.short:
            self._known_senders.inc(known)
        if report.probability is not None:
            self._scan.observe(report.duration_s)

    def late(self, seconds: float) -> None:
        """Count one measurement of the event loop."""
        self._lag.observe(seconds)
        self._cells.go_on()

    def learned(self, label: Label, source: str, outcome: str, before: float) -> None:
        """Count a lesson, and a correction when the filter had leant to the other side."""
        self._lessons.inc(label, source, outcome)
        if outcome != "known" and (before > 0.5) != (label is Label.SPAM):
            self._corrections.inc(label)

    def held(self, label: Label, source: str) -> None:
        """Count a lesson that waits for a review."""
        self._lessons.inc(label, source, "held")

    def watched(self, accounts: Mapping[AccountState, int]) -> None:
        """Show how many accounts are in which state."""
        for state in ACCOUNT_STATES:
            self._accounts.set(state, value=accounts.get(state, 0))

    def failed(self, event: str) -> None:
        """Count a fault."""
        self._faults.inc(event)

    def worker_lost(self) -> None:
        """Count a worker that ended by itself."""
        self._workers_lost.inc()

    def error_rates(self, found: ErrorRates) -> None:
        """Show how often verdicts were wrong."""
        for name, one in found.estimates:
            percents = {
                "low": one.interval.low,
                "estimate": one.rate,
                "high": one.interval.high,
            }
            for value, share in percents.items():
                self._wrong.set(name, value, value=share / 100)

    def follow_corpus(self, corpus: Callable[[], CorpusNow]) -> None:
        """Show size and age of the corpus, asked for at each reading."""
        self._corpus_now = corpus

    def ready(self, checks: Mapping[str, bool]) -> None:
        """Show what is ready."""
        self._ready_now = checks

    def text(self) -> bytes:
        """Return all for Prometheus, as `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all, summed over all workers (`prometheus_client.registry.Collector`)."""
        regions = self._board.regions()
        live = [region for region in regions if region.live]
        counted, now = found(regions), found(live)
        for each in self._counters:
            yield each.family(counted)
        for gauge in (self._wrong, self._accounts):
            yield gauge.family(now)
        corpus = self._corpus_now()
        messages: dict[Key, float] = {
            (str(label),): count for label, count in corpus.messages.items()
        }
        yield self._corpus.family(messages)
        yield self._tokens.family({(): corpus.tokens})
        yield self._behind.family({(): corpus.behind_s})
        yield self._waiting.family({(): corpus.waiting_bytes})
        yield self._workers.family({(): len(live) - self._board.supervised})
        yield self._ready.family({(name,): float(ok) for name, ok in self._ready_now.items()})
        yield self._build.family({(version("spamd"),): 1.0})
