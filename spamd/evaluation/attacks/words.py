"""The words that an attacker chooses from."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from spamd.sample import Label

PLAIN_WORD = re.compile(r"[A-Za-z]{3,20}")
"""Words that every filter takes for words."""


class Words:
    """Which words the lessons hold, as an attacker knows who has seen them all."""

    def __init__(self, lessons: Sequence[tuple[Sequence[str], Label]]) -> None:
        self.messages = Counter(label for _, label in lessons)
        self.counts: dict[Label, Counter[str]] = {label: Counter() for label in Label}
        for words, label in lessons:
            self.counts[label].update(word for word in words if PLAIN_WORD.fullmatch(word))

    def frequent(self) -> list[str]:
        """Return the words that stand in at least one of a hundred ham."""
        least = max(2, self.messages[Label.HAM] // 100)
        ham = self.counts[Label.HAM]
        return sorted(word for word, count in ham.items() if count >= least)

    def best(self, number: int, label: Label = Label.HAM) -> list[str]:
        """Return the words that speak most clearly for a label."""
        mine = self.counts[label]
        return sorted(mine, key=lambda word: (-self._clarity(word, label), word))[:number]

    def dictionary(self) -> list[str]:
        """Return every word of at least two ham."""
        return sorted(word for word, count in self.counts[Label.HAM].items() if count >= 2)

    def _clarity(self, word: str, label: Label) -> float:
        """Return how much more often the word stands in mail of this label, as a logarithm."""
        opposite = other(label)
        mine = (self.counts[label][word] + 0.5) / (self.messages[label] + 1)
        theirs = (self.counts[opposite][word] + 0.5) / (self.messages[opposite] + 1)
        return log(mine / theirs)


def other(label: Label) -> Label:
    """Return the label that a message does not have."""
    return Label.SPAM if label is Label.HAM else Label.HAM
