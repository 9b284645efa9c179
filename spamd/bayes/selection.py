"""Which mail that a person read and kept is worth a lesson, and safe enough for one.

Corrections are nearly all spam: each pulls the filter to one side, and nothing pulls back. Mail
that was read and left where it lay says "ham", though less surely: some people leave spam lying
too. So a few of them are taught, chosen by three questions.

    safe     P(spam | kept) = m·o/(1 + m·o) is at most `kept_doubt`, with o the odds that the filter
             gives it and m the share of spam that this person leaves lying. Where he answered,
             flagged, archived or filed it, m is a hundredth of that.
    telling  the filter is not sure of it already: its log-odds less `kept_crowd`·ln(1 + n) lie
             above those of `kept_sure`; n mails of its sender or list were taught lately
    room     the lessons of ham stay in balance with those of spam, and spread over days

The least sure come first; of one sender or list only one at a time, since the filter may know the
others once it has learned that one. What is not chosen may be asked about again: with other
lessons, another answer.

    habit = habit_of(moved=…, kept=…, options=options)     # log-odds of what a person did with
    for kept in choose(candidates, standing, habit, options): teach(kept.key, Label.HAM)

Pure: no clock, no I/O. What a window of days is, and who a person is, the caller knows.

Sources: C. Elkan and K. Noto, "Learning classifiers from only positive and unlabeled data" (KDD
2008), for m; D. Lewis and W. Gale, "A sequential algorithm for training text classifiers" (SIGIR
1994), for the least sure first; docs/experiments.md E-030.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, log1p
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key")
Floats = NDArray[np.float64]

DELIBERATE = 0.01
"""Spam that is answered, flagged, archived or filed, of the spam that is only left lying."""

MISSED = np.array(
    (0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
)
SHIFTS = np.arange(-4.0, 2.5, 0.5)
"""Shares of spam left lying, and errors of the log-odds, among which the likeliest are found."""

SHIFT_SPREAD = 1.5
"""Standard deviation of the error that log-odds are supposed to have before anything is seen."""

REFRESHED = 10
"""Old lessons that are learned again after those that people give, half of each label (E-039)."""

NEWEST = 300
"""As many decisions of a person are looked at: habits change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOptions:
    """Which mail that was read and kept teaches that it is ham.

    kept_sure     mail below this probability of spam teaches nothing: the filter knows it (E-030)
    kept_doubt    the most that a kept mail may be spam in truth, as a probability
    kept_missed   share of spam supposed to be left lying before anything is known of a person
    kept_crowd    how much less a mail is worth for each e-fold of its sender's lessons, in log-odds
    kept_ratio    lessons of ham for each of spam, at most
    kept_start    lessons of ham beyond that
    kept_a_day    lessons of kept mail in 24 hours, at most
    """

    kept_sure: float = 0.02
    kept_doubt: float = 0.05
    kept_missed: float = 0.3
    kept_crowd: float = 0.25
    kept_ratio: float = 2.0
    kept_start: int = 10
    kept_a_day: int = 50

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("kept_sure", "kept_doubt", "kept_missed"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1")
        for name in ("kept_crowd", "kept_ratio", "kept_start", "kept_a_day"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be below 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[Key]):
    """A message that was read and kept long enough.

    log_odds    of spam, as the filter says now; as it said when the message came will do
    kind        its list or the domain of its sender; "" for unknown
    deliberate  whether it was answered, flagged, archived or filed, not only left lying
    """

    key: Key
    log_odds: float
    kind: str = ""
    deliberate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was taught lately, in one window of days; lessons told by the command line aside.

    spam, ham   lessons by label: moves, reports, and for ham the kept ones too
    today       lessons of kept mail in the last 24 hours
    kinds       lessons of kept mail by `Kept.kind`
    """

    spam: int = 0
    ham: int = 0
    today: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)

    def room(self, options: KeptOptions) -> int:
        """Return how many lessons of kept mail may be added."""
        balance = int(options.kept_ratio * self.spam) + options.kept_start - self.ham
        return max(0, min(balance, options.kept_a_day - self.today))


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """How a person treats spam.

    missed  share of the spam that reaches the inbox and is read, but left lying
    shift   what is to be added to the filter's log-odds for them to be true
    """

    missed: float
    shift: float = 0.0

    def doubt(self, kept: Kept[Key]) -> float:
        """Return the probability that a kept message is spam after all."""
        share = self.missed * (DELIBERATE if kept.deliberate else 1.0)
        # Only downwards: where people move less than is promised, they miss more, not the filter.
        z = kept.log_odds + min(0.0, self.shift) + log(share)
        return 1 / (1 + exp(-z)) if z > -700 else 0.0


def habit_of(moved: Sequence[float], kept: Sequence[float], options: KeptOptions) -> Habit:
    """Return the likeliest habit of a person who moved some unsure mail to Junk and kept the rest.

        P(moved | z) = (1 − m)·σ(z + a)

    moved  log-odds of unsure messages that he moved to Junk, as said when they came, oldest first
    kept   of those that he read and kept; messages that were called ham or spam don't belong here
    """
    guess = options.kept_missed
    prior = guess * np.log(MISSED) + (1 - guess) * np.log1p(-MISSED)
    odds = [-SHIFTS * SHIFTS / (2 * SHIFT_SPREAD**2) + prior[:, np.newaxis]]
    for log_odds, is_moved in ((moved, True), (kept, False)):
        z = np.array(log_odds[-NEWEST:], dtype=np.float64)[:, np.newaxis]
        spam = 0.5 * (1 + np.tanh((z + SHIFTS) / 2))
        chance = (1 - MISSED)[:, np.newaxis, np.newaxis] * spam
        chance = np.clip(chance, 1e-12, 1 - 1e-12)
        odds.append((np.log(chance) if is_moved else np.log1p(-chance)).sum(axis=1))
    best = int(np.argmax(sum(odds)))
    missed, shift = divmod(best, len(SHIFTS))
    return Habit(missed=float(MISSED[missed]), shift=float(SHIFTS[shift]))


def choose(
    candidates: Iterable[Kept[Key]], standing: Standing, habit: Habit, options: KeptOptions
) -> list[Kept[Key]]:
    """Return the messages of one person to teach as ham now, the most telling first."""
    safe = [kept for kept in candidates if habit.doubt(kept) <= options.kept_doubt]
    return most_telling(safe, standing, options)


def worth(kept: Kept[Key], standing: Standing, options: KeptOptions) -> float:
    """Return what a message can tell the filter, in log-odds; nothing at 0 and below."""
    floor = log(options.kept_sure) - log1p(-options.kept_sure)
    return kept.log_odds - options.kept_crowd * log1p(standing.kinds.get(kept.kind, 0)) - floor


def most_telling(
    safe: Iterable[Kept[Key]], standing: Standing, options: KeptOptions
) -> list[Kept[Key]]:
    """Return those of some safe messages for which there is room, the most telling first."""
    values = {place: (worth(kept, standing, options), kept) for place, kept in enumerate(safe)}
    chosen: list[Kept[Key]] = []
    kinds: set[str] = set()
    room = standing.room(options)
    for _, (value, kept) in sorted(values.items(), key=lambda item: (-item[1][0], item[0])):
        if value <= 0 or len(chosen) == room:
            break
        if kept.kind and kept.kind in kinds:
            continue
        kinds.add(kept.kind)
        chosen.append(kept)
    return chosen
