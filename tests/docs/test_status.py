"""The documents show the loop as `spamd status` prints it."""

from datetime import UTC, datetime

import pytest

from spamd.cli.commands.status import loop_lines
from spamd.observe.loop import loop
from spamd.storage.loop_counts import Judged, LoopCounts
from tests.docs.blocks import block

LOOP = block("docs/training.md", "loop         9 verdicts")

COUNTS = LoopCounts(
    since=datetime(2026, 1, 2, 12, tzinfo=UTC),
    until=datetime(2026, 1, 13, 12, tzinfo=UTC),
    ham=Judged(scanned=1630, spam=7, kept=973),
    unsure=Judged(scanned=40, spam=20, ham=1, kept=10),
    spam=Judged(scanned=421, ham=2),
)


def test_the_loop_is_shown_as_the_document_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n".join(loop_lines(loop(COUNTS))) == LOOP.strip()
