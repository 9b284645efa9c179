"""The documents show the error rates as `spamd status` prints it."""

from datetime import UTC, datetime

import pytest

from spamd.cli.commands.status import error_rate_lines
from spamd.observe.error_rates import error_rates
from spamd.storage.outcomes import Judged, Outcomes
from tests.docs.blocks import block

ERROR_RATES = block("docs/training.md", "error rates  9 verdicts")

COUNTS = Outcomes(
    since=datetime(2026, 1, 2, 12, tzinfo=UTC),
    until=datetime(2026, 1, 13, 12, tzinfo=UTC),
    ham=Judged(scanned=1630, spam=7, kept=973),
    unsure=Judged(scanned=40, spam=20, ham=1, kept=10),
    spam=Judged(scanned=421, ham=2),
)


def test_the_error_rates_is_shown_as_the_document_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n".join(error_rate_lines(error_rates(COUNTS))) == ERROR_RATES.strip()
