"""Counters for Prometheus, in a registry of our own, and the endpoint that shows them.

No label has unbounded values. Each process counts for itself; see `MetricsOptions.listen`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spamd.bayes.decision import Action, Verdict
from spamd.feedback.ports import AccountState
from spamd.observe.error_rates import ErrorRates
from spamd.observe.options import MetricsOptions, host_and_port
from spamd.report import ScanReport
from spamd.sample import Label

SCAN_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Half a millisecond is a small mail, 8 ms the worst of a hundred, seconds a fault."""

LAG_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""A millisecond is what a sleeping process needs to wake up; 50 ms are the most we allow."""

ACCOUNT_STATES = (AccountState.NOT_YET, AccountState.WATCHING, AccountState.LOST)

HEADER_BYTES = 8192
"""Longest request accepted: Prometheus sends about 300 bytes."""

PATIENCE_S = 5.0
"""How long a request may take: it comes from a neighbour."""


class Metrics:
    """All that spamd counts.

    Args:
        options: the address to listen on.
    """

    def __init__(self, options: MetricsOptions) -> None:
        self._options = options
        self.registry = CollectorRegistry(auto_describe=True)
        self._messages = Counter(
            "spamd_messages",
            'Messages by verdict and by what was done; alert on a rise of verdict="unscanned".',
            ("verdict", "action"),
            registry=self.registry,
        )
        self._scan = Histogram(
            "spamd_scan_seconds",
            "Time from the bytes of a message to its verdict.",
            buckets=SCAN_BUCKETS_S,
            registry=self.registry,
        )
        self._lag = Histogram(
            "spamd_loop_lag_seconds",
            "Delay of the event loop, measured ten times a second: what every message waited."
            " Above 0.05 something delays all mail: please report it. A machine without free"
            " processors shows here too.",
            buckets=LAG_BUCKETS_S,
            registry=self.registry,
        )
        self._bytes = Counter(
            "spamd_message_bytes", "Sizes of all messages added up.", registry=self.registry
        )
        self._lessons = Counter(
            "spamd_lessons",
            'Lessons by label, by where they came from and by what came of them; outcome="held"'
            " waits for a review (spamd lessons held).",
            ("label", "source", "outcome"),
            registry=self.registry,
        )
        self._corrections = Counter(
            "spamd_corrections",
            "New lessons that contradicted the filter: its measured errors, by the true label.",
            ("label",),
            registry=self.registry,
        )
        self._faults = Counter(
            "spamd_faults",
            "Faults by log event; alert on any rise.",
            ("event",),
            registry=self.registry,
        )
        self._wrong = Gauge(
            "spamd_wrong_ratio",
            "Estimated share of verdicts that were wrong, from what people corrected and kept, of"
            ' the days that scans are kept: error="spam_passed" or "ham_lost", each with the bounds'
            ' that hold it with 95 % (value="low", "estimate", "high"). Worker 0 tells it, each'
            " hour; nothing until then.",
            ("error", "value"),
            registry=self.registry,
        )
        self._corpus = Gauge(
            "spamd_corpus_messages",
            "Messages learned; alert when one label has more than five times the other.",
            ("label",),
            registry=self.registry,
        )
        self._tokens = Gauge("spamd_corpus_tokens", "Tokens known.", registry=self.registry)
        self._behind = Gauge(
            "spamd_corpus_behind_seconds",
            "Age of what this worker knows of the corpus: a lesson older than this is in its"
            " verdicts. Alert above 10: the database is away or overloaded.",
            registry=self.registry,
        )
        self._accounts = Gauge(
            "spamd_accounts",
            'Accounts that this worker is to watch: "watching", "lost" or "not yet". One worker'
            ' watches all; alert when "lost" stays above 0.',
            ("state",),
            registry=self.registry,
        )
        self.watched({})
        for verdict in Verdict:
            self._messages.labels(verdict, Action.ACCEPT)
        for label in Label:
            self._corrections.labels(label)

    def scanned(self, report: ScanReport) -> None:
        """Count a message."""
        self._messages.labels(report.verdict, report.action).inc()
        self._bytes.inc(report.size_bytes)
        if report.probability is not None:
            self._scan.observe(report.duration_s)

    def late(self, seconds: float) -> None:
        """Count one measurement of the event loop."""
        self._lag.observe(seconds)

    def learned(self, label: Label, source: str, outcome: str, before: float) -> None:
        """Count a lesson, and a correction when the filter had leant to the other side."""
        self._lessons.labels(label, source, outcome).inc()
        if outcome != "known" and (before > 0.5) != (label is Label.SPAM):
            self._corrections.labels(label).inc()

    def held(self, label: Label, source: str) -> None:
        """Count a lesson that waits for a review."""
        self._lessons.labels(label, source, "held").inc()

    def watched(self, accounts: Mapping[AccountState, int]) -> None:
        """Show how many accounts are in which state."""
        for state in ACCOUNT_STATES:
            self._accounts.labels(state).set(accounts.get(state, 0))

    def failed(self, event: str) -> None:
        """Count a fault."""
        self._faults.labels(event).inc()

    def error_rates(self, found: ErrorRates) -> None:
        """Show how often verdicts were wrong."""
        for name, one in found.estimates:
            percents = {
                "low": one.interval.low,
                "estimate": one.rate,
                "high": one.interval.high,
            }
            for value, share in percents.items():
                self._wrong.labels(name, value).set(share / 100)

    def follow_corpus(
        self,
        messages: Callable[[Label], float],
        tokens: Callable[[], float],
        behind_s: Callable[[], float],
    ) -> None:
        """Show size and age of the corpus, asked for at each reading of the endpoint."""
        for label in Label:
            self._corpus.labels(label).set_function(partial(messages, label))
        self._tokens.set_function(tokens)
        self._behind.set_function(behind_s)

    @asynccontextmanager
    async def served(self, worker: int = 0) -> AsyncIterator[int | None]:
        """Answer `GET /metrics` and `GET /health` while the context lasts; yield the port.

        Yields None when the endpoint is off.

        Raises:
            OSError: the address is taken or not ours.
        """
        if not self._options.listen:
            yield None
            return
        host, port = host_and_port(self._options.listen)
        # A worker that replaces another listens before that one leaves.
        server = await asyncio.start_server(
            self._answer, host, port + worker if port else 0, limit=HEADER_BYTES, reuse_port=True
        )
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                header = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(header.split(b"\r\n", 1)[0]))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the reader went away or made no sense; the next one is served
        finally:
            writer.close()

    def _response(self, request: bytes) -> bytes:
        match request.split(b" "):
            case [b"GET", b"/metrics", _]:
                return _http("200 OK", CONTENT_TYPE_LATEST, generate_latest(self.registry))
            case [b"GET", b"/health", _]:
                return _http("200 OK", "text/plain", b"ok\n")
            case [b"GET", _, _]:
                return _http("404 Not Found", "text/plain", b"/metrics or /health\n")
            case _:
                return _http("400 Bad Request", "text/plain", b"GET only\n")


def _http(status: str, kind: str, body: bytes) -> bytes:
    header = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return f"{header}\r\nConnection: close\r\n\r\n".encode("ascii") + body
