"""Random histories of an account, and what the people in them have taught.

A history is a list of steps: mail comes, rules file it, people and their programs move, copy, mark
and remove it, somebody imports old mail, folders get new UIDs, and now and then we poll, are cut
off in the middle, or start again. `play` makes it happen and returns what was taught beside what
people meant to teach; `shrunk` makes a failing history small.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Place
from spamd.sample import Label

FOLDERS = ("INBOX", "Work", "Privat", "Junk", "Afval")
"""The last is the Trash, under a name that spamd does not know."""

PLACES = {"INBOX": Place.INBOX, "Work": Place.OTHER, "Privat": Place.OTHER, "Junk": Place.JUNK}
VERDICTS = (None, Verdict.HAM, Verdict.UNSURE, Verdict.SPAM)
VIEWS = ("Toate", "All Mail", "Unread", "Starred", "Recent spam")


@dataclass(frozen=True)
class Step:
    """One thing that happens; what can't happen, as the mail is not there, does not.

    act     what, see `Player`
    mail    number of the mail it happens to
    a, b    folders
    n       a number: a verdict, seconds, a flag
    inside  during a poll: after how many calls, and what happens then
    """

    act: str
    mail: int = 0
    a: str = ""
    b: str = ""
    n: int = 0
    inside: tuple[tuple[int, "Step"], ...] = ()


@dataclass(frozen=True)
class Plan:
    """The server's habits and views, and the steps; nothing else decides what happens.

    told  the server tells by SPECIAL-USE which folder is the Trash
    """

    seed: int
    views: tuple[str, ...]
    keyless: frozenset[str]
    restless: frozenset[str]
    next_uid: bool
    modseq: bool
    forgets: int
    step: int
    steps: tuple[Step, ...]
    told: bool = True


@dataclass(eq=False)
class Act:
    """A lesson that a person meant to give.

    doubts  why it may be lost, as far as is known; empty: it must be learned
    """

    mail: int
    label: Label
    doubts: set[str]
    polls: int = 0


@dataclass
class Result:
    """What came of a history."""

    polls: int = 0
    expected: int = 0
    given: int = 0
    kept: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        self.polls += other.polls
        self.expected += other.expected
        self.given += other.given
        self.kept += other.kept
        self.wrong += other.wrong
        self.lost.update(other.lost)
        self.unexplained += other.unexplained

    @property
    def fails(self) -> bool:
        return bool(self.wrong or self.unexplained)


ACTS: Sequence[tuple[str, int]] = (
    ("deliver", 14), ("filed", 5), ("both", 2), ("twin", 1), ("move", 16), ("mutt", 2),
    ("expunge", 2), ("upload", 2), ("copy", 2), ("remove", 3), ("trash", 3), ("flag", 5),
    ("mark", 4), ("unmark", 1), ("read", 16), ("answer", 3), ("readall", 2), ("readrun", 1),
    ("programread", 2), ("program", 4), ("programmark", 1), ("append", 2), ("wave", 1),
    ("resync", 1), ("wait", 12), ("poll", 24), ("restart", 2), ("settle", 4), ("rename", 1),
)  # fmt: skip


def plan(seed: int, *, length: int = 50, faults: bool = True) -> Plan:
    """Return the history of a seed."""
    dice = random.Random(seed)
    odd = faults and dice.random() < 0.3
    chosen = dice.sample(VIEWS, dice.choice([0, 0, 1, 1, 2])) if faults else []
    steps: list[Step] = []
    writer = Writer(dice, faults=faults)
    while len(steps) < length:
        steps += writer.step()
    return Plan(
        seed=seed,
        views=tuple(chosen),
        keyless=frozenset(dice.sample(FOLDERS[:4], dice.choice([0, 1, 4])) if odd else ()),
        restless=frozenset(dice.sample(FOLDERS[:4], dice.choice([0, 1])) if odd else ()),
        next_uid=not (odd and dice.random() < 0.3),
        modseq=dice.random() < 0.7,
        forgets=dice.choice([0, 0, 0, 3, 7]) if faults else 0,
        step=dice.choice([1, 1, 10, 100]) if faults else 1,
        steps=tuple(steps),
        told=not faults or dice.random() < 0.8,
    )


class Writer:
    """Writes steps that mostly can happen: it keeps in mind where mail probably lies."""

    def __init__(self, dice: random.Random, *, faults: bool) -> None:
        self._dice = dice
        self._where: dict[int, str] = {}
        self._acts = [act for act, _ in ACTS]
        self._weights = [weight for _, weight in ACTS]
        self._faults = faults

    def step(self) -> list[Step]:
        """Return the next step, or some that belong together."""
        act = self._dice.choices(self._acts, self._weights)[0]
        if act in {"deliver", "filed", "both", "wave"}:
            return [self._delivery(act)]
        if act == "poll":
            return [self._poll()]
        if act in {"wait", "settle"}:
            return [Step(act, n=self._dice.choice([1, 5, 60, 4000]))]
        if act in {"restart", "rename"}:
            return [Step(act, a=self._dice.choice(["Work", "Privat", "Junk"]))]
        if act in {"readall", "readrun"}:
            return [Step(act, a="INBOX" if self._dice.random() < 0.7 else "Work")]
        if act in {"resync", "expunge"}:
            return [Step(act, a=self._dice.choice(FOLDERS))]
        return [self._touch(act)] if self._where else []

    def _delivery(self, act: str) -> Step:
        number = len(self._where) + 1
        folder = "INBOX" if self._dice.random() < 0.8 else "Work"
        if act == "filed" or (act == "wave" and self._dice.random() < 0.7):
            folder = "Junk"
        self._where[number] = folder
        return Step(act, number, a=folder, b="Junk", n=self._dice.randrange(4))

    def _touch(self, act: str) -> Step:
        recent = sorted(self._where)[-6:]
        number = self._dice.choice(recent)
        target = self._dice.choices(FOLDERS, [4, 2, 1, 7, 1])[0]
        flag = self._dice.randrange(4)
        step = Step(act, number, a=self._where[number], b=target, n=flag)
        if act in {"move", "mutt", "upload", "program"}:
            self._where[number] = target
        return step

    def _poll(self) -> Step:
        inside: list[tuple[int, Step]] = []
        if self._faults and self._dice.random() < 0.3:
            for _ in range(self._dice.choice([1, 1, 2])):
                inner = self.step()
                if inner and inner[0].act not in {"poll", "restart", "settle", "wait"}:
                    inside.append((self._dice.randrange(1, 40), inner[0]))
        cut = self._dice.randrange(1, 40) if self._faults and self._dice.random() < 0.07 else 0
        return Step("poll", n=cut, inside=tuple(inside))


Play = Callable[[Plan], Result]


def shrunk(history: Plan, play: Play) -> Plan:
    """Return a small history that still fails."""
    steps, size = list(history.steps), max(1, len(history.steps) // 2)
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size :]
            if play(replace(history, steps=tuple(fewer))).fails:
                steps = fewer
            else:
                start += size
        size //= 2
    small = replace(history, steps=tuple(steps))
    for simpler in _simpler(small):
        if play(simpler).fails:
            small = simpler
    return small


def _simpler(history: Plan) -> Iterable[Plan]:
    yield replace(history, views=())
    yield replace(history, forgets=0)
    yield replace(history, step=1)
    yield replace(history, told=True)
    yield replace(history, keyless=frozenset(), restless=frozenset())


def shown(history: Plan) -> str:
    """Return a history to read."""
    lines = [f"seed {history.seed}, views {history.views}, keyless {set(history.keyless)},"]
    lines += [f"restless {set(history.restless)}, next_uid {history.next_uid}, modseq"]
    lines += [f"{history.modseq}, forgets {history.forgets}, step {history.step}"]
    lines += [f"told {history.told}"]
    return "\n".join([*lines, *map(str, history.steps)])
