"""What one run of feedback did, in numbers: a poll, a bootstrap, a release of held lessons."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from spamd.sample import Label
from spamd.training import Outcome, Result


@dataclass(slots=True, kw_only=True)
class RunSummary:
    """What one run did, for people: every mail looked at ends in exactly one of the counts.

    examined  mails looked at
    learned   lessons learned, corrections included, by label
    already   mails that were taught like that before
    held      lessons that wait for a review
    waiting   lessons that wait on the disk for the database
    parked    mails that could not be read or learned
    skipped   mails that teach nothing, by reason
    faults    folders and accounts that could not be read, one sentence each
    """

    examined: int = 0
    learned: Counter[Label] = field(default_factory=Counter)
    already: int = 0
    held: int = 0
    waiting: int = 0
    parked: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def counted(self) -> int:
        """Return how many mails stand in one of the counts so far."""
        done = self.learned.total() + self.already + self.held + self.parked
        return done + self.skipped.total()

    def count(self, outcomes: Sequence[Outcome], label: Label) -> None:
        """Count what became of mails that were taught as `label`."""
        for outcome in outcomes:
            if outcome.result is Result.KNOWN:
                self.already += 1
            else:
                self.learned[label] += 1

    def add(self, other: "RunSummary") -> None:
        """Add the counts of another run."""
        self.examined += other.examined
        self.learned.update(other.learned)
        self.already += other.already
        self.held += other.held
        self.waiting += other.waiting
        self.parked += other.parked
        self.skipped.update(other.skipped)
        self.faults += other.faults

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {why}" for why, count in sorted(self.skipped.items()))
        return (
            f"{self.examined} examined, {self.learned.total()} learned"
            f" ({self.learned[Label.SPAM]} spam, {self.learned[Label.HAM]} ham),"
            f" {self.already} already known, {self.held} held, {self.parked} parked,"
            f" {self.skipped.total()} skipped" + (f" ({reasons})" if reasons else "")
        )
