"""One line for each message, lesson, start, stop and fault: `LogObserver`, our `Observer`.

Names are `noun.past_participle`, values are fields and never formatted into the text. Metrics are
counted from the same values. The log holds no personal data unless `log.privacy` is "full": of a
message our id, the next hop's queue id, sizes, counts, verdict, action and duration; of a watched
account its name, as the settings have it; of an error its kind and place. The text of foreign
exceptions may quote a mail, so it is personal; tracebacks are frames without local variables.
Control characters are escaped in every value.

Nothing here raises for what it is told, nor when a line can't be written (the disk is full, the
reader of the pipe is gone): that is counted as `log.lost`. Only `capture_libraries` changes
what the whole process shares: the root of the standard `logging`.
"""

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from math import isfinite
from typing import TextIO

from spamd.errors import AccountError, NextHopRefused, SpamdError
from spamd.feedback.ports import AccountState, Held
from spamd.loading import without
from spamd.observe.metrics import Metrics
from spamd.observe.options import LogOptions
from spamd.ports import Clock
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.wording import printable

with without("rich"):  # it colours tracebacks; ours are plain, and loading it is 6 % of a start
    import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

PERSONAL = frozenset(
    {"actor", "address", "client", "domain", "folder", "helo", "login", "message_id"}
    | {"path", "recipient", "sender", "sender_domain", "subject", "text", "token", "user"}
)
"""Names of details that may point at a person; written only with `log.privacy` = "full"."""

WARNINGS = frozenset(
    {"connections.limited", "login.failed", "next_hop.unsafe", "relay.unsafe", "storage.unsafe"}
    | {"worker.kept", "worker.lost"}
)
"""Events that someone should look at though no exception tells of them."""

QUEUE_ID = re.compile(rb"queued as ([\w.-]{1,64})|\bid=([\w.-]{1,64})|([\w./+=-]{1,64}) Saved")
"""How Postfix, Exim and Dovecot name the message in their final reply."""


class LogObserver:
    """Writes what happened as log lines and counts it.

    Args:
        options: level, format, privacy.
        metrics: what is counted.
        clock: the time of each line.
        stream: where lines go; standard output by default.
        fields: what every line carries besides, such as the number of the worker.
    """

    def __init__(
        self,
        options: LogOptions,
        metrics: Metrics,
        clock: Clock,
        stream: TextIO | None = None,
        fields: Mapping[str, str | int] | None = None,
    ) -> None:
        self._stream = stream or sys.stdout
        self._metrics = metrics
        self._clock = clock
        self._fields = fields or {}
        self.follow(options)

    def follow(self, options: LogOptions) -> None:
        """Write by other settings from now on."""
        self._full = options.privacy == "full"
        self._log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            _Lines(self._stream, self._metrics),
            processors=[
                _Moment(self._clock),
                structlog.processors.add_log_level,
                _escaped,
                _renderer(options, self._stream),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(LEVELS[options.level]),
            cache_logger_on_first_use=True,
        ).bind(**self._fields)

    def scanned(self, report: ScanReport, *, listener: str, reply: bytes, recipients: int) -> None:
        """Write `message.scanned` and count the message."""
        self._metrics.scanned(report)
        details: dict[str, object] = {
            "id": report.id,
            "listener": listener,
            "verdict": str(report.verdict),
            "probability": None if report.probability is None else round(report.probability, 6),
            "action": str(report.action),
            "reason": report.reason,
            "listed": report.standing.listed.short(),
            "known_sender": report.standing.known.short,
            "scores": {classifier: round(score, 3) for classifier, score in report.scores.items()},
            "size_bytes": report.size_bytes,
            "tokens": report.tokens,
            "known": report.known,
            "recipients": recipients,
            "reply": reply[:3].decode("ascii", "replace"),
            "queue_id": queue_id(reply),
            "duration_s": round(report.duration_s, 6),
        }
        if report.features is not None:
            details["defects"] = len(report.features.defects)
            if self._full:
                details["sender_domain"] = report.features.sender_domain
        if self._full and report.user:
            details["user"] = report.user
        self._log.info("message.scanned", **details)

    def learned(self, label: Label, source: str, outcome: str, before: float, after: float) -> None:
        """Write `lesson.learned` with the probability before and after, and count the lesson."""
        self._metrics.learned(label, source, outcome, before)
        self._log.info(
            "lesson.learned",
            label=str(label),
            source=source,
            outcome=outcome,
            probability_before=round(before, 6),
            probability_after=round(after, 6),
        )

    def held(self, lesson: Held) -> None:
        """Write `lesson.held`, a warning, and count the lesson."""
        self._metrics.held(lesson.label, lesson.source)
        about = {"actor": lesson.actor, "sender_domain": lesson.features.sender_domain}
        self._log.warning(
            "lesson.held",
            id=lesson.features.digest.hex(),
            label=str(lesson.label),
            source=lesson.source,
            verdict=str(lesson.verdict),
            probability=round(lesson.probability, 6),
            **self._allowed(about),
        )

    def watched(self, accounts: Mapping[AccountState, int]) -> None:
        """Show how many accounts are in which state; `account.lost` is told of each."""
        self._metrics.watched(accounts)

    def happened(self, event: str, **details: str | float) -> None:
        """Write an event: a warning when someone should look, else at info."""
        if event == "worker.lost":
            self._metrics.worker_lost()
        write = self._log.warning if event in WARNINGS else self._log.info
        write(event, **self._allowed(details))

    def failed(self, event: str, error: BaseException, **details: str | float) -> None:
        """Write a fault: a warning when we said it ourselves, an error with frames when not."""
        self._metrics.failed(event)
        facts: dict[str, object] = {**self._allowed(details), "error": type(error).__name__}
        text = self._text_of(error)
        if text:
            facts["cause"] = text
        if isinstance(error, (SpamdError, AccountError)):
            if error.__cause__ is not None:
                facts["because"] = type(error.__cause__).__name__
            self._log.warning(event, **facts)
        else:
            self._log.error(event, **facts, frames=frames(error))

    def capture_libraries(self) -> None:
        """Send warnings of libraries (asyncio, aiosmtpd, sqlalchemy) through this log.

        Their texts may quote commands, passwords and mail: only `log.privacy` = "full" shows them.
        """
        logging.basicConfig(handlers=[_Library(self._log, full=self._full)], level=30, force=True)

    def _allowed(self, details: Mapping[str, str | float]) -> dict[str, str | float]:
        if self._full:
            return dict(details)
        return {name: value for name, value in details.items() if name not in PERSONAL}

    def _text_of(self, error: BaseException) -> str:
        """Return the text of an error as far as it may be shown."""
        if self._full:
            return str(error)
        if isinstance(error, NextHopRefused):
            return error.reply[:3].decode("ascii", "replace")
        if isinstance(error, SpamdError) or (isinstance(error, AccountError) and error.shown):
            return str(error)
        return error.strerror or "" if isinstance(error, OSError) else ""


class _Lines(structlog.WriteLogger):
    """Writes lines to a stream; one that can't be written is lost and counted."""

    def __init__(self, stream: TextIO, metrics: Metrics) -> None:
        super().__init__(stream)
        self._metrics = metrics

    def msg(self, message: str) -> None:
        """Write a line."""
        try:
            super().msg(message)
        except OSError:
            self._metrics.failed("log.lost")

    info = warning = error = msg


class _Library(logging.Handler):
    """Passes records of the standard `logging` on, without their text unless privacy is full."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger, *, full: bool) -> None:
        super().__init__()
        self._log = log
        self._full = full

    def emit(self, record: logging.LogRecord) -> None:
        facts: dict[str, object] = {
            "library": record.name,
            "place": f"{record.filename}:{record.lineno}",
        }
        if record.exc_info and record.exc_info[1] is not None:
            facts["error"] = type(record.exc_info[1]).__name__
            facts["frames"] = frames(record.exc_info[1])
        if self._full:
            facts["text"] = record.getMessage()
        self._log.warning("library.warned", **facts)


def frames(error: BaseException) -> list[str]:
    """Return "file:line function" of each frame of a traceback: no source text, no variables."""
    stack = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack[-20:]]


def queue_id(reply: bytes) -> str | None:
    """Return the id under which the next hop's log knows the message, if its reply names one."""
    found = QUEUE_ID.search(reply)
    if found is None:
        return None
    return next(group for group in found.groups() if group is not None).decode("ascii")


def _renderer(options: LogOptions, stream: TextIO) -> structlog.typing.Processor:
    """Return what turns an event into a line: for people on a terminal, else JSON."""
    if options.format == "console" or (options.format == "auto" and stream.isatty()):
        return structlog.dev.ConsoleRenderer(
            colors=stream.isatty(),
            event_key="event",
            timestamp_key="time",
            exception_formatter=structlog.dev.plain_traceback,
        )
    return structlog.processors.JSONRenderer()


def _escaped(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Write control characters of every text as escapes, so that no value forges a line."""
    return {name: _fit(value) for name, value in event.items()}


def _fit(value: object) -> object:
    match value:
        case str():
            return printable(value)
        case dict():
            return {_fit(name): _fit(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_fit(inner) for inner in value]
        case float() if not isfinite(value):
            return None
        case _:
            return value


class _Moment:
    """Puts the time in UTC first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(
        self, _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        moment = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"time": moment, "event": event.pop("event"), **event}
