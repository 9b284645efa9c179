"""A person with a mailbox on a real Dovecot: what is taught is what he moved, or read and kept."""

import asyncio
from pathlib import Path

from spamd.evaluation.people import PeopleOptions
from spamd.evaluation.rates import rates
from spamd.feedback.options import FeedbackOptions
from spamd.sample import Label
from tests.e2e.person import lived
from tests.evaluation.mails import mailbox
from tests.servers.base import require

SIZE = 120


def test_a_person_on_a_dovecot_teaches_by_moves_and_by_what_he_keeps(tmp_path: Path) -> None:
    """Rules, a view and a program that marks all mail are there as well, and teach nothing."""
    require("dovecot")
    require("sieve")
    index = mailbox(tmp_path, SIZE, mixed=0.3)
    people = PeopleOptions(taught=30, reads=0.8, slips=0.0, files=0.3)
    options = FeedbackOptions(kept_sure=0.0001, kept_doubt=0.2)

    found = asyncio.run(lived(index, people, options))

    assert found.refused == []
    assert found.lessons["cli", Label.SPAM] == found.lessons["cli", Label.HAM] == 15
    assert found.lessons["imap", Label.SPAM] > 0
    assert found.lessons["kept", Label.HAM] > 3
    assert set(found.lessons) <= {
        ("cli", Label.SPAM), ("cli", Label.HAM), ("imap", Label.SPAM), ("imap", Label.HAM),
        ("kept", Label.HAM),
    }  # fmt: skip
    assert found.wrong["imap"] == 0
    assert min(found.untaught["ruled"], found.untaught["marked"]) > 0
    assert rates(found.outcomes).roca < 5
