"""The rule: which mail has a person read, and left where it was?

It is the counterpart of `lesson_rule`: people correct what is wrong and leave the rest alone, so
corrections alone pull the filter to one side. What was read and left says that it was right; but a
mark is no reader. A program that fetches mail marks it, a click marks a whole folder. So a mail was
read only if

    it came to the inbox unread, after we had begun to look, and a poll saw it unread
    the next poll saw it read, later after its delivery than a rule of a mail program works
    few mails were marked meanwhile, and none by the same command
    not nearly all mail of the account is read within minutes, day and night

and it was kept if it lies in the inbox still after `feedback.kept_days`, or sooner if its owner has
answered, flagged or filed it since. What we called spam teaches nothing by lying there, nor does
what a person taught already. When in doubt nothing is kept.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import MessageSummary, Opened
from spamd.feedback.ports import KeptMessage, KeptScan, KeptState, Known
from spamd.message.features import Features

MARKED_AT_ONCE = 3
"""With more mails marked between two polls, nobody has read them: that is one in ten seconds."""

RUN = timedelta(minutes=2)
"""A program that marks one mail after the other may be at it when we poll: what was marked so long
before and after many were marked doesn't count either."""

UNREAD = timedelta(minutes=10)
"""So long no program lets mail lie: those that fetch mail come every few minutes."""

UNREAD_SHARE = 0.05
"""People are away or asleep for a part of the day; mail that comes then lies there."""

PROGRAM_LEAST = 10
"""Of fewer mails nobody can tell whether a program reads them."""

EXCLUDING_FLAGS = {"\\deleted", "\\draft", "$junk"}
"""What somebody wants to be rid of, or has written himself."""


def is_run(opened: Opened) -> bool:
    """Return whether mails were marked by a command on many or by a program, not read."""
    if not opened.read:
        return False
    if opened.others is None:
        return True
    marked = len(opened.read) + opened.others
    return marked > MARKED_AT_ONCE or (marked > 1 and not opened.singly)


def is_part_of_run(read: datetime, run: datetime) -> bool:
    """Return whether a mail that was read at one time was marked by who marked many at another."""
    return abs(read - run) < RUN


def reads_like_a_program(messages: Collection[KeptMessage], now: datetime) -> bool:
    """Return whether nearly all mail of an account is read within minutes."""
    lain = sum(
        (one.since if one.state is KeptState.READ else now) - one.came >= UNREAD for one in messages
    )
    return len(messages) >= PROGRAM_LEAST and lain < UNREAD_SHARE * len(messages)


def stays(message: MessageSummary, kept: KeptMessage) -> bool:
    """Return whether it is still that mail, and nobody has marked it otherwise since."""
    flags = {flag.lower() for flag in message.flags}
    return message.trace == kept.mail and "\\seen" in flags and not flags & EXCLUDING_FLAGS


def scan_that_may_teach(known: Known | None, features: Features | None) -> KeptScan | None:
    """Return what we said of a kept mail if that may be a lesson: it passed, and nobody taught it.

    Tagged spam lies in many an inbox because nobody took the trouble.
    """
    if known is None or features is None or known.probability is None or known.label is not None:
        return None
    if known.verdict not in {Verdict.HAM, Verdict.UNSURE}:
        return None
    return KeptScan(
        digest=known.digest,
        verdict=known.verdict,
        probability=known.probability,
        sender=features.sender_domain,
    )
