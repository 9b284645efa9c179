"""A worker is killed under mail and lessons: nothing is lost or counts twice."""

from tests.scale.memory import empty
from tests.scale.soak import soak


def test_a_short_soak_loses_no_mail_and_no_lesson() -> None:
    with empty("sqlite") as (member, _):
        done = soak(member, rate=10, seconds=5, minute_s=6)
        ledger = done.ledger()
    assert done.faults == []
    assert done.killed >= 1
    assert len(done.sent) > 10
    assert (ledger["mails lost"], ledger["mails that nobody sent"]) == (0, 0)
    assert ledger["lessons there"] == len(done.learned) > 0
    assert ledger["faults by replay"] == []
