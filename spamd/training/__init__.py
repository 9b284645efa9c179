"""Teaching: what can become of a mail that is offered or asked back, and the settings.

The use case is `trainer.Trainer`, in a module of its own because a command that only scans needs
the settings and nothing else.
"""

from dataclasses import dataclass
from enum import StrEnum

from spamd.bayes.selection import REFRESHED
from spamd.sample import Label


class Result(StrEnum):
    """What became of one mail that was offered or asked back."""

    LEARNED = "learned"
    KNOWN = "known"  # the same lesson is in force already
    RELABELLED = "relabelled"
    FORGOTTEN = "forgotten"
    UNKNOWN = "unknown"  # asked back, but never taught


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one mail.

    label    the lesson in force now, or that was in force until it was forgotten; None of an
             unknown mail
    before   probability of spam before the lesson was learned, after: and after it
    """

    digest: bytes
    result: Result
    label: Label | None
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """How lessons are written.

    batch      messages per transaction in long runs: larger ones are faster, but others wait for
               them and a kill costs that many messages' work
    rehearse   lessons learned again when one label was taught after the other: as many as the
               fusion looks back on (`fusion.window`); 0: never
    refresh    old lessons learned again, half of each label, after those that people give by
               moves, reports to an address and what they keep: corrections are nearly all spam,
               and would pull the filter to one side (E-039); 0: never
    attempts   how often a transaction is tried while another writer is in the way
    pause_s    seconds before the second attempt; doubled before each later one
    """

    batch: int = 500
    rehearse: int = 3000
    refresh: int = REFRESHED
    attempts: int = 4
    pause_s: float = 0.05

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 1 <= self.batch <= 5000:
            raise ValueError("training.batch must lie between 1 and 5000 messages")
        if not 0 <= self.rehearse <= 100_000:
            raise ValueError("training.rehearse must lie between 0 and 100000 lessons")
        if not 0 <= self.refresh <= 1000:
            raise ValueError("training.refresh must lie between 0 and 1000 lessons")
        if not 1 <= self.attempts <= 20:
            raise ValueError("training.attempts must lie between 1 and 20")
        if not 0 <= self.pause_s <= 60:
            raise ValueError("training.pause_s must lie between 0 and 60 seconds")
