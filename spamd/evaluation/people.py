"""People as they are: they move what is wrong, now and then, and leave the rest alone.

The first messages are taught with their labels. Then each is judged, and what a person does about
it is drawn:

    read        a share of the mail is read; the rest teaches nothing
    error       spam called ham, ham called spam: a share of what was read is moved, some time later
    unsure      lies in the inbox: spam is moved to Junk (a share of it), ham is left
    slip        a share of the moves takes the message before it along, which had the right place
    kept        what was read and lies in the inbox when `delay` messages have come since. A share
                of the ham was answered, flagged or filed meanwhile. Once a day `bayes.selection`
                chooses which of it is taught as ham.

A move teaches at once, and replaces what was taught of the message before; after each move, and
after the kept mail of a day, some old lessons are learned again. The fusion is fitted at the end of
a day on which something was learned. Draws belong to a
message and a seed, so two settings meet the same person.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import zip_longest
from math import log

import numpy as np

from spamd.bayes.decision import Verdict
from spamd.bayes.learning import Effect, Given, learn, unlearn
from spamd.bayes.model import BayesOptions, Model
from spamd.bayes.selection import REFRESHED, Habit, Kept, KeptOptions, Standing, choose, habit_of
from spamd.evaluation.material import Material, Progress, silent
from spamd.evaluation.rates import CALLED
from spamd.evaluation.results import LessonCount
from spamd.evaluation.trial import Record, empty_model
from spamd.sample import Label

WINDOW_DAYS = 30
"""Days in which lessons are counted for balance, and in which a kept message may be taught."""

NEIGHBOURS = 50
"""A slip takes a message that came at most so many before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleOptions:
    """How people treat their mail; shares are of what they read.

    taught        messages whose labels are told before people are left alone
    reads         share of the mail that is read
    corrects      share of the errors that is moved
    unsure_moved  share of the unsure spam that is moved
    slips         share of the moves that takes a message along that lay right
    files         share of the ham that is answered, flagged or filed
    a_day         messages a day
    kept          whether mail that is read and kept teaches
    refresh       old lessons learned again after those that people give, half of each label
    selection     which of it
    """

    taught: int = 200
    reads: float = 0.9
    corrects: float = 0.7
    unsure_moved: float = 1.0
    slips: float = 0.01
    files: float = 0.1
    a_day: int = 20
    kept: bool = True
    refresh: int = REFRESHED
    selection: KeptOptions = field(default_factory=KeptOptions)

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.taught < 0 or self.a_day < 1:
            raise ValueError("taught must not be below 0 messages, and a_day not below 1")
        if self.refresh < 0:
            raise ValueError("refresh must not be below 0 lessons")
        for name in ("reads", "corrects", "unsure_moved", "slips", "files"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lesson:
    """What a message was taught as, and how to take it back."""

    label: Label
    source: str
    effect: Effect


class Person:
    """One person with a mailbox, and the filter that learns from it."""

    def __init__(
        self,
        material: Material,
        options: PeopleOptions,
        bayes: BayesOptions,
        *,
        delay: int,
        taught_tokens: int,
        seed: int | None,
    ) -> None:
        self.record = Record(len(material), bayes)
        self._material = material
        self._options = options
        self._delay = delay
        self._model: Model = empty_model(material.samples, material.schema, bayes, taught_tokens)
        self._draws = np.random.default_rng([seed or 0, 0x6D6F76]).random((len(material), 5))
        self._lessons: dict[int, _Lesson] = {}
        self._times: dict[int, int] = {}
        self._moves: list[tuple[int, int, Label]] = []
        self._lying: list[int] = []  # read, in the inbox
        self._unfitted = False
        self._decided: dict[Label, list[float]] = {label: [] for label in Label}

    def receive(self, place: int) -> None:
        """Get the next message, read it or not, and do what is due."""
        while self._moves and self._moves[0][0] <= place:
            _, moved, label = heappop(self._moves)
            self._move(moved, label, place)
        if place % self._options.a_day == 0:
            if self._options.kept:
                self._teach_kept(place)
            if self._unfitted:
                self._model.refit()
                self._unfitted = False
        self.record.judge(place, self._model, self._material.samples[place])
        label = self._material.labels[place]
        if place < self._options.taught:
            self._teach(place, label, "told", place)
        elif self._draws[place, 0] < self._options.reads:
            self._react(place, label)

    def lessons(self) -> Mapping[str, LessonCount]:
        """Return how many lessons in force came from where."""
        found: dict[str, Counter[str]] = {source: Counter() for source in ("told", "move", "kept")}
        for place, lesson in self._lessons.items():
            wrong = lesson.label is not self._material.labels[place]
            found[lesson.source].update({lesson.label: 1, "wrong": int(wrong)})
        return {source: LessonCount(**counts) for source, counts in found.items()}

    @property
    def messages(self) -> int:
        """How many messages the filter holds as taught."""
        return self._model.totals.messages

    def _verdict(self, place: int) -> Verdict:
        return CALLED[int(self.record.called[place, 0])]

    def _react(self, place: int, label: Label) -> None:
        """Decide about a message that was read."""
        verdict, options = self._verdict(place), self._options
        _, chance, later, slip, _ = self._draws[place]
        spam = label is Label.SPAM
        share = options.corrects
        if verdict is Verdict.UNSURE:
            share = options.unsure_moved if spam else 0.0
        elif spam is (verdict is Verdict.SPAM):
            share = 0.0
        if chance >= share:
            if verdict is not Verdict.SPAM:
                self._lying.append(place)
            return
        due = place + 1 + int(later * self._delay)
        heappush(self._moves, (due, place, label))
        neighbour = self._beside(place, label) if slip < options.slips else None
        if neighbour is not None:
            heappush(self._moves, (due, neighbour, label))

    def _beside(self, place: int, label: Label) -> int | None:
        """Return the message before, of the other label and in the same folder."""
        junk = self._verdict(place) is Verdict.SPAM
        for before in range(place - 1, max(self._options.taught, place - NEIGHBOURS) - 1, -1):
            beside = (self._verdict(before) is Verdict.SPAM) is junk
            right = self._material.labels[before] is not label and before not in self._lessons
            if beside and right:
                return before
        return None

    def _move(self, place: int, label: Label, now: int) -> None:
        if self._verdict(place) is Verdict.UNSURE and label is Label.SPAM:
            self._decided[label].append(float(self.record.log_odds[place, 0]))
        if place in self._lying:
            self._lying.remove(place)
        self._teach(place, label, "move", now)
        self._refresh()

    def _teach_kept(self, now: int) -> None:
        """Look at what was kept, as the watchers of a mailbox do."""
        oldest = now - self._delay - WINDOW_DAYS * self._options.a_day
        due = [place for place in self._lying if place <= now - self._delay]
        for place in due:
            if place > now - self._delay - self._options.a_day and (
                self._verdict(place) is Verdict.UNSURE
            ):
                self._decided[Label.HAM].append(float(self.record.log_odds[place, 0]))
        self._lying = [place for place in self._lying if place > oldest]
        selection = self._options.selection
        floor = log(selection.kept_sure)
        candidates = [
            self._candidate(place)
            for place in due
            if place > oldest and self.record.log_odds[place, 0] > floor
        ]
        if not candidates:
            return
        habit: Habit = habit_of(self._decided[Label.SPAM], self._decided[Label.HAM], selection)
        chosen = choose(candidates, self._standing(now), habit, selection)
        for kept in chosen:
            self._lying.remove(kept.key)
            self._teach(kept.key, Label.HAM, "kept", now)
        if chosen:
            self._refresh()

    def _candidate(self, place: int) -> Kept[int]:
        ham = self._material.labels[place] is Label.HAM
        return Kept(
            key=place,
            log_odds=self._model.weigh(self._material.samples[place]).log_odds,
            kind=self._material.senders[place],
            deliberate=bool(ham and self._draws[place, 4] < self._options.files),
        )

    def _standing(self, now: int) -> Standing:
        """Return what people taught lately."""
        window = now - WINDOW_DAYS * self._options.a_day
        recent = [
            (place, lesson)
            for place, lesson in self._lessons.items()
            if lesson.source != "told" and self._times[place] > window
        ]
        kept = [place for place, lesson in recent if lesson.source == "kept"]
        return Standing(
            spam=sum(lesson.label is Label.SPAM for _, lesson in recent),
            ham=sum(lesson.label is Label.HAM for _, lesson in recent),
            today=sum(self._times[place] > now - self._options.a_day for place in kept),
            kinds=Counter(self._material.senders[place] for place in kept),
        )

    def _teach(self, place: int, label: Label, source: str, now: int) -> None:
        """Teach one message, in place of what was taught of it before."""
        sample, key = self._material.samples[place], place.to_bytes(8, "big")
        old = self._lessons.pop(place, None)
        if old is not None:
            unlearn(self._model, sample, old.label, old.effect, key)
        (effect,) = learn(self._model, [Given(sample=sample, label=label, key=key)], proof=False)
        self._unfitted |= source != "told" or place + 1 == self._options.taught
        self._lessons[place] = _Lesson(label=label, source=source, effect=effect)
        self._times[place] = now

    def _refresh(self) -> None:
        """Learn those lessons of both labels again that were learned longest ago."""
        oldest: dict[Label, list[int]] = {label: [] for label in Label}
        for place, lesson in self._lessons.items():
            oldest[lesson.label].append(place)
        half = self._options.refresh // 2
        if not (half and all(oldest.values())):
            return
        pairs = zip_longest(*(places[:half] for places in oldest.values()))
        places = [place for pair in pairs for place in pair if place is not None]
        again = [self._given(place, self._lessons[place]) for place in places]
        for place, effect in zip(places, learn(self._model, again, proof=False), strict=True):
            self._lessons[place] = replace(self._lessons.pop(place), effect=effect)

    def _given(self, place: int, lesson: _Lesson) -> Given:
        return Given(
            sample=self._material.samples[place],
            label=lesson.label,
            key=place.to_bytes(8, "big"),
            again=lesson.effect,
            first_scores=self._options.kept,
        )


def live(
    material: Material,
    options: PeopleOptions,
    bayes: BayesOptions,
    *,
    delay: int,
    taught_tokens: int,
    seed: int | None,
    progress: Progress = silent,
) -> Person:
    """Return a person who received all of this mail."""
    person = Person(material, options, bayes, delay=delay, taught_tokens=taught_tokens, seed=seed)
    for place in range(len(material)):
        person.receive(place)
        progress("judging", place + 1, len(material))
    return person
