"""What a log line holds and what it never holds; counters and their endpoint."""

import io
import json
import logging
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spamd.bayes.decision import Action, Verdict
from spamd.errors import NextHopRefused, StorageUnavailable
from spamd.feedback.ports import Held
from spamd.message.features import extract
from spamd.observe.error_rates import error_rates
from spamd.observe.log import LogObserver, queue_id
from spamd.observe.metrics import CorpusNow, Metrics
from spamd.observe.options import LogOptions
from spamd.report import ScanReport
from spamd.sample import Label
from spamd.storage.outcomes import Judged, Outcomes
from spamd.wording import printable
from tests.fakes import FakeClock

MAIL = b"From: Ann <ann@secret.example>\nTo: bob@secret.example\nSubject: Topsecret\n\nGoldfinger\n"


class Noon:
    """A clock that stands at noon."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 12, 0, 0, 5000, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


class Watch:
    """An observer whose lines can be read."""

    def __init__(self, options: LogOptions | None = None) -> None:
        self.stream = io.StringIO()
        self.metrics = Metrics()
        options = options or LogOptions(format="json")
        self.observer = LogObserver(options, self.metrics, Noon(), self.stream, {"worker": 0})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
def report() -> ScanReport:
    return ScanReport(
        id="abc123",
        verdict=Verdict.SPAM,
        action=Action.TAG,
        reason="probability 0.9912, tag from 0.9789",
        probability=0.9912,
        required=0.9789,
        scores={"graham": 4.5},
        size_bytes=len(MAIL),
        tokens=20,
        known=12,
        duration_s=0.0021,
        features=extract(MAIL),
    )


def test_a_message_is_one_line_with_all_that_joins_and_explains_it(report: ScanReport) -> None:
    watch = Watch()

    watch.observer.scanned(
        report, listener="smtp", reply=b"250 2.0.0 Ok: queued as 4XYZ\r\n", recipients=2
    )

    assert watch.lines == [
        {
            "time": "2026-01-02T12:00:00.005Z",
            "worker": 0,
            "event": "message.scanned",
            "level": "info",
            "id": "abc123",
            "listener": "smtp",
            "verdict": "spam",
            "probability": 0.9912,
            "action": "tag",
            "reason": "probability 0.9912, tag from 0.9789",
            "listed": "",
            "known_sender": "",
            "scores": {"graham": 4.5},
            "size_bytes": len(MAIL),
            "tokens": 20,
            "known": 12,
            "recipients": 2,
            "reply": "250",
            "queue_id": "4XYZ",
            "duration_s": 0.0021,
            "defects": 0,
        }
    ]


def test_a_message_is_counted_by_verdict_and_action(report: ScanReport) -> None:
    watch = Watch()

    watch.observer.scanned(report, listener="smtp", reply=b"250 ok", recipients=1)

    assert watch.sample("spamd_messages_total", verdict="spam", action="tag") == 1
    assert watch.sample("spamd_scan_seconds_count") == 1
    assert watch.sample("spamd_message_bytes_total") == len(MAIL)


def test_an_unscanned_message_is_counted_and_not_timed(report: ScanReport) -> None:
    watch = Watch()
    unscanned = replace(
        report,
        verdict=Verdict.UNSCANNED,
        action=Action.ACCEPT,
        probability=None,
        features=None,
    )

    watch.observer.scanned(unscanned, listener="smtp", reply=b"250 ok", recipients=1)

    assert watch.sample("spamd_messages_total", verdict="unscanned", action="accept") == 1
    assert watch.sample("spamd_scan_seconds_count") == 0
    assert watch.lines[0]["probability"] is None


def test_a_lesson_shows_the_probability_before_and_after() -> None:
    watch = Watch()

    watch.observer.learned(Label.HAM, "imap", "learned", 0.93, 0.21)

    line = watch.lines[0]
    assert (line["event"], line["label"], line["source"]) == ("lesson.learned", "ham", "imap")
    assert (line["probability_before"], line["probability_after"]) == (0.93, 0.21)
    lessons = watch.sample("spamd_lessons_total", label="ham", source="imap", outcome="learned")
    assert lessons == 1
    assert watch.sample("spamd_corrections_total", label="ham") == 1


def test_j10_the_log_follows_other_settings() -> None:
    watch = Watch()

    watch.observer.follow(LogOptions(format="json", level="warning"))
    watch.observer.happened("feedback.started", accounts=1)
    watch.observer.follow(LogOptions(format="json", privacy="full"))
    watch.observer.happened("folder.seen", folder="Junk")

    assert [line["event"] for line in watch.lines] == ["folder.seen"]
    assert watch.lines[0]["folder"] == "Junk"


def test_j11_a_held_lesson_is_a_warning_and_counted() -> None:
    watch = Watch()
    held = Held(
        number=0,
        features=extract(b"From: a@shop.example\n\nhello\n"),
        label=Label.SPAM,
        source="imap",
        actor="alice",
        probability=0.02,
        reason="a burst",
        time=FakeClock().now(),
    )

    watch.observer.held(held)

    line = watch.lines[0]
    assert (line["event"], line["level"]) == ("lesson.held", "warning")
    assert (line["id"], line["verdict"]) == (held.features.digest.hex(), "ham")
    assert "alice" not in str(line)
    assert "shop.example" not in str(line)
    assert watch.sample("spamd_lessons_total", label="spam", source="imap", outcome="held") == 1


def test_a_lesson_that_agrees_or_was_known_is_no_correction() -> None:
    watch = Watch()

    watch.observer.learned(Label.SPAM, "imap", "learned", 0.93, 0.99)
    watch.observer.learned(Label.HAM, "imap", "known", 0.93, 0.93)

    assert watch.sample("spamd_corrections_total", label="ham") == 0
    assert watch.sample("spamd_corrections_total", label="spam") == 0


def test_nothing_personal_is_logged_by_default(report: ScanReport) -> None:
    watch = Watch()

    watch.observer.scanned(
        report, listener="smtp", reply=b"550 5.1.1 <bob@secret.example> unknown", recipients=1
    )
    watch.observer.happened("folder.seen", actor="ann@secret.example", folders=3)
    watch.observer.failed("message.failed", ValueError("Goldfinger"), sender="ann@secret.example")
    watch.observer.failed("message.refused", NextHopRefused(b"550 <bob@secret.example> unknown"))

    text = watch.stream.getvalue()
    for personal in ("secret.example", "Topsecret", "Goldfinger", "Ann"):
        assert personal not in text
    assert watch.lines[1]["folders"] == 3
    assert watch.lines[3]["cause"] == "550"


def test_full_privacy_setting_shows_what_an_inquiry_needs(report: ScanReport) -> None:
    watch = Watch(LogOptions(format="json", privacy="full"))

    watch.observer.scanned(report, listener="smtp", reply=b"250 ok", recipients=1)
    watch.observer.failed("message.failed", ValueError("Goldfinger"), sender="ann@secret.example")

    assert watch.lines[0]["sender_domain"] == "secret.example"
    assert watch.lines[1]["cause"] == "Goldfinger"
    assert watch.lines[1]["sender"] == "ann@secret.example"


def test_a_traceback_has_places_but_no_variables() -> None:
    watch = Watch()
    try:
        body = "Goldfinger"
        int(body)
    except ValueError as error:
        watch.observer.failed("message.failed", error)

    assert "Goldfinger" not in watch.stream.getvalue()
    assert "test_a_traceback_has_places_but_no_variables" in watch.lines[0]["frames"][0]
    assert watch.lines[0]["level"] == "error"


def test_a_fault_of_our_own_is_a_warning_with_its_text_and_its_cause() -> None:
    watch = Watch()
    error = StorageUnavailable("the database does not answer")
    error.__cause__ = TimeoutError()

    watch.observer.failed("snapshot.stale", error, age_s=4.5)

    line = watch.lines[0]
    assert (line["level"], line["error"]) == ("warning", "StorageUnavailable")
    assert (line["cause"], line["because"]) == ("the database does not answer", "TimeoutError")
    assert watch.sample("spamd_faults_total", event="snapshot.stale") == 1


@pytest.mark.parametrize("style", ["json", "console"])
def test_no_value_can_forge_a_line_or_steer_the_terminal(style: str, report: ScanReport) -> None:
    options = LogOptions(format="console" if style == "console" else "json", privacy="full")
    watch = Watch(options)

    watch.observer.happened("mail.seen", subject="a\r\n\x1b[2J%s\u2028{x}\u202e")

    text = watch.stream.getvalue()
    assert text.count("\n") == 1
    assert not set(text) & set("\r\x1b\u2028\u202e")
    assert "%s" in text


def test_a_number_that_json_does_not_know_becomes_null() -> None:
    watch = Watch()

    watch.observer.learned(Label.HAM, "cli", "learned", float("nan"), 0.5)

    assert watch.lines[0]["probability_before"] is None


def test_a_full_disk_costs_lines_of_the_log_and_nothing_else(report: ScanReport) -> None:
    metrics = Metrics()
    with suppress(OSError), Path("/dev/full").open("w", encoding="utf-8") as full:
        observer = LogObserver(LogOptions(), metrics, Noon(), full)

        observer.happened("worker.started")
        observer.failed("job.failed", ZeroDivisionError())
        observer.scanned(report, listener="smtp", reply=b"250 ok", recipients=1)
        # Closing the file finds the disk full again.

    assert metrics.registry.get_sample_value("spamd_faults_total", {"event": "log.lost"}) == 3


@pytest.mark.parametrize("event", ["worker.lost", "worker.kept", "storage.unsafe"])
def test_an_event_that_someone_should_look_at_is_a_warning(event: str) -> None:
    watch = Watch(LogOptions(format="json", level="warning"))

    watch.observer.happened("worker.started")
    watch.observer.happened(event)

    assert [(line["event"], line["level"]) for line in watch.lines] == [(event, "warning")]


def test_lines_below_the_level_are_not_written(report: ScanReport) -> None:
    watch = Watch(LogOptions(format="json", level="warning"))

    watch.observer.scanned(report, listener="smtp", reply=b"250 ok", recipients=1)

    assert watch.lines == []
    assert watch.sample("spamd_messages_total", verdict="spam", action="tag") == 1


def test_warnings_of_libraries_come_as_lines_without_their_text() -> None:
    watch = Watch()
    root = logging.getLogger()
    before = root.handlers[:]
    try:
        watch.observer.capture_libraries()
        logging.getLogger("some.library").warning("AUTH PLAIN %s", "AGFubgBodW50ZXIy")
    finally:
        root.handlers[:] = before

    assert watch.lines[0]["library"] == "some.library"
    assert "AGFubg" not in watch.stream.getvalue()


@pytest.mark.parametrize(
    ("reply", "queue"),
    [
        (b"250 2.0.0 Ok: queued as 4Cz8yK3v0Bz9s\r\n", "4Cz8yK3v0Bz9s"),
        (b"250 OK id=1rGxyz-0001aB-2C\r\n", "1rGxyz-0001aB-2C"),
        (b"250 2.0.0 <bob@example.org> aBcD+eF Saved\r\n", "aBcD+eF"),
        (b"250 thank you\r\n", None),
        (b"", None),
    ],
)
def test_the_next_hop_s_name_for_a_message_is_found_in_its_reply(
    reply: bytes, queue: str | None
) -> None:
    assert queue_id(reply) == queue


NOW = CorpusNow(messages={Label.HAM: 7.0, Label.SPAM: 3.0}, tokens=99.0, behind_s=0.5)


def test_the_metrics_show_what_was_scanned_and_what_is_known(report: ScanReport) -> None:
    metrics = Metrics()
    metrics.scanned(report)
    metrics.follow_corpus(lambda: NOW)
    text = metrics.text().decode()
    assert 'spamd_messages_total{action="tag",verdict="spam"} 1.0' in text
    assert 'spamd_corpus_messages{label="ham"} 7.0' in text
    assert "spamd_corpus_tokens 99.0" in text
    assert "spamd_corpus_behind_seconds 0.5" in text


def test_printable_text_is_left_alone_and_long_text_is_cut() -> None:
    assert printable("Grüße, 世界") == "Grüße, 世界"
    assert printable("x" * 20, limit=10) == "x" * 10 + "…"
    assert printable("\udcff\x00") == "\\udcff\\x00"


def test_the_metrics_show_how_often_verdicts_were_wrong() -> None:
    metrics = Metrics()
    now = datetime(2026, 3, 1, tzinfo=UTC)
    counts = Outcomes(
        since=now,
        until=now,
        ham=Judged(scanned=1000, spam=5, kept=195),
        unsure=Judged(),
        spam=Judged(scanned=400, ham=2),
    )

    metrics.error_rates(error_rates(counts))

    def shown(error: str, value: str) -> float | None:
        labels = {"error": error, "value": value}
        return metrics.registry.get_sample_value("spamd_wrong_ratio", labels)

    assert shown("spam_passed", "estimate") == pytest.approx(0.025)
    assert shown("spam_passed", "low") == pytest.approx(0.0082, abs=1e-4)
    assert shown("spam_passed", "high") == pytest.approx(0.0574, abs=1e-4)
    assert shown("ham_lost", "estimate") == pytest.approx(0.005)


def test_the_log_loads_nothing_that_paints_tracebacks() -> None:
    code = "import spamd.observe.log, sys; print('rich' in sys.modules); import rich.console"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
