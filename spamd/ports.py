"""What the use cases need of the outside world, in domain words.

The relay asks an `Inspector`, training works on a `UnitOfWork`, everything that happens is told to an
`Observer`, and time comes from a `Clock`. The real ones live in `scanning`, `storage` and `observe`;
tests use the in-memory twins of `tests/fakes.py`.
"""

from datetime import datetime
from typing import Protocol

from spamd.message.envelope import Envelope
from spamd.report import ScanReport
from spamd.sample import Label


class Clock(Protocol):
    """Time, so that no test waits for it."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never runs backwards."""
        ...


class Inspector(Protocol):
    """Who judges a message for the relay."""

    async def inspect(self, content: bytes, envelope: Envelope) -> ScanReport:
        """Return the report on a message (header and body as plain bytes, not dot-stuffed).

        Content never makes it fail.

        Raises:
            TemporaryError: the message can't be judged now; `relay.on_fault` says what follows.
        """
        ...

    def unscanned(self, reason: str, size_bytes: int) -> ScanReport:
        """Return the report on a message that goes on without having been judged."""
        ...


class ScanLog(Protocol):
    """Remembers what was said about a message until a person may disagree."""

    def record(self, report: ScanReport) -> None:
        """Keep the report for some days; never blocks, never fails."""
        ...


class Observer(Protocol):
    """Whom we tell what happened: log lines and metrics."""

    def scanned(self, report: ScanReport, *, reply: bytes, recipients: int) -> None:
        """Tell of one message: what was found, and the final reply the client got."""
        ...

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        """Tell of one lesson: outcome, and the probability of spam before and after it."""
        ...

    def happened(self, event: str, **details: str | float) -> None:
        """Tell of an event (`noun.past_participle`) worth a line at info."""
        ...

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Tell of a fault that someone should look at; the traceback goes to the log, never to a peer."""
        ...
