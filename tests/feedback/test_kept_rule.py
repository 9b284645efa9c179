"""The rule of what is read and kept, case by case."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import NOTHING_OPENED, MessageSummary, Opened
from spamd.feedback.ports import KeptMessage, KeptState, Known
from spamd.feedback.watching.kept_rule import (
    is_part_of_run,
    is_run,
    reads_like_a_program,
    scan_that_may_teach,
    stays,
)
from spamd.message.features import extract
from spamd.sample import Label

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
FEATURES = extract(b"From: Ann <ann@shop.example>\r\n\r\nwords\r\n")


def opened(read: int, others: int | None = 0, *, singly: bool = True) -> Opened:
    keys = frozenset(map(str, range(read)))
    return Opened(read=keys, acted=frozenset(), others=others, singly=singly)


@pytest.mark.parametrize(
    ("found", "run"),
    [
        (NOTHING_OPENED, False),
        (opened(0, 50, singly=False), False),  # none of ours
        (opened(1), False),
        (opened(1, singly=False), False),  # the only one, whoever told how
        (opened(1, None), True),  # nobody knows what else was marked
        (opened(1, 1), False),
        (opened(1, 1, singly=False), True),
        (opened(2, singly=False), True),
        (opened(3), False),
        (opened(1, 2), False),
        (opened(4), True),
        (opened(1, 3), True),
    ],
)
def test_few_mails_each_marked_by_its_own_change_were_read(found: Opened, *, run: bool) -> None:
    assert is_run(found) is run


@pytest.mark.parametrize(("seconds", "part"), [(0, True), (119, True), (120, False), (150, False)])
def test_what_is_marked_shortly_before_or_after_a_run_is_part_of_it(
    seconds: int, *, part: bool
) -> None:
    span = timedelta(seconds=seconds)
    assert is_part_of_run(NOW - span, NOW) is part
    assert is_part_of_run(NOW + span, NOW) is part


def waited(*minutes: float, state: KeptState = KeptState.READ) -> Sequence[KeptMessage]:
    """Return mails that were read so long after they came."""
    return [
        KeptMessage(
            folder="INBOX",
            key=str(number),
            mail=b"a" * 16,
            state=state,
            came=NOW - timedelta(hours=5),
            since=NOW - timedelta(hours=5) + timedelta(minutes=lain),
        )
        for number, lain in enumerate(minutes)
    ]


@pytest.mark.parametrize(
    ("messages", "program"),
    [
        (waited(*[1] * 9), False),  # of so few nobody knows
        (waited(*[1] * 10), True),
        (waited(*[1] * 9, 10), False),
        (waited(*[1] * 9, 9.9), True),
        (waited(*[1] * 19, 10), False),
        (waited(*[1] * 20, 10), True),  # one of 21 may be a pause of the program
        ([*waited(*[1] * 9), *waited(0, state=KeptState.UNREAD)], False),  # five hours and unread
    ],
)
def test_a_program_reads_nearly_all_within_minutes(
    messages: Sequence[KeptMessage], *, program: bool
) -> None:
    assert reads_like_a_program(messages, NOW) is program


def message(*flags: str, trace: bytes = b"a" * 16) -> MessageSummary:
    return MessageSummary(
        key="0",
        fields={},
        trace=trace,
        id="id",
        flags=frozenset(flags),
        delivered=NOW,
        baseline=False,
    )


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (message("\\Seen"), True),
        (message("\\seen", "\\Answered", "$NotJunk"), True),
        (message(), False),
        (message("\\Seen", "\\Deleted"), False),
        (message("\\Seen", "\\Draft"), False),
        (message("\\Seen", "$Junk"), False),
        (message("\\Seen", trace=b"b" * 16), False),
    ],
)
def test_a_kept_mail_is_that_mail_and_marked_as_read_and_as_nothing_else(
    one: MessageSummary, *, kept: bool
) -> None:
    assert stays(one, waited(1)[0]) is kept


def known(
    verdict: Verdict | None = Verdict.HAM,
    probability: float | None = 0.1,
    label: Label | None = None,
) -> Known:
    return Known(digest=FEATURES.digest, verdict=verdict, probability=probability, label=label)


@pytest.mark.parametrize(
    "about",
    [
        None,
        known(None, None),
        known(Verdict.SPAM),
        known(Verdict.UNSCANNED, None),
        known(label=Label.HAM),
        known(label=Label.SPAM),
    ],
)
def test_what_did_not_pass_or_was_taught_teaches_nothing_by_lying_there(
    about: Known | None,
) -> None:
    assert scan_that_may_teach(about, FEATURES) is None


@pytest.mark.parametrize("verdict", [Verdict.HAM, Verdict.UNSURE])
def test_what_passed_may_teach_if_its_scan_is_known_still(verdict: Verdict) -> None:
    said = scan_that_may_teach(known(verdict), FEATURES)
    assert said is not None
    assert (said.verdict, said.probability, said.sender) == (verdict, 0.1, "shop.example")
    assert scan_that_may_teach(known(verdict), None) is None
