"""What came of an evaluation: outcomes in the order of the trial, and the sources of lessons."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spamd.evaluation.rates import (
    Interval,
    Outcomes,
    Rates,
    binomial_interval,
    misclassified,
    rates,
    roca_interval,
)
from spamd.evaluation.thresholds import suggest

WINDOWS: tuple[tuple[str, slice], ...] = (
    ("first 50", slice(0, 50)),
    ("first 200", slice(0, 200)),
    ("first 1000", slice(0, 1000)),
    ("after 1000", slice(1000, None)),
)
"""Parts of a run that show the cold start and what comes after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonCount:
    """How many lessons of one source there were; `wrong` of them had the wrong label."""

    ham: int = 0
    spam: int = 0
    wrong: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the object that `evaluate --json` prints."""
        return {"ham": self.ham, "spam": self.spam, "wrong": self.wrong}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationResult:
    """What came of a run; outcomes are in the order of the trial.

    order        "index", or "seed N"
    fused        outcomes of the product
    classifiers  outcomes of each classifier that was on
    lessons      with "moves": those in force at the end, by source ("told", "move", "kept")
    """

    protocol: str
    order: str
    fused: Outcomes
    classifiers: Mapping[str, Outcomes]
    lessons: Mapping[str, LessonCount] = field(default_factory=dict)

    @property
    def rates(self) -> Rates:
        """The rates of the product."""
        return rates(self.fused)

    def classifier_rates(self) -> dict[str, Rates]:
        """Return the rates of each classifier."""
        return {name: rates(outcomes) for name, outcomes in self.classifiers.items()}

    def windows(self) -> dict[str, Rates]:
        """Return the product's rates in each part of the run that isn't all or nothing of it."""
        parts = ((name, self.fused.part(part)) for name, part in WINDOWS)
        return {name: rates(part) for name, part in parts if 0 < len(part) < len(self.fused)}

    def intervals(self, confidence: float = 0.95) -> dict[str, Interval]:
        """Return the bounds that hold the true rate with this confidence."""
        ham_lost, spam_passed = misclassified(self.fused)
        spam = int(self.fused.spam.sum())
        return {
            "roca": roca_interval(self.fused.spam, self.fused.log_odds, confidence=confidence),
            "ham_misclassified": binomial_interval(ham_lost, len(self.fused) - spam, confidence),
            "spam_misclassified": binomial_interval(spam_passed, spam, confidence),
        }

    def to_json(self) -> dict[str, object]:
        """Return the object that `evaluate --json` prints."""
        spam = int(self.fused.spam.sum())
        return {
            "messages": len(self.fused),
            "ham": len(self.fused) - spam,
            "spam": spam,
            "protocol": self.protocol,
            "order": self.order,
            "fused": self.rates.to_json(),
            "classifiers": {
                name: found.to_json() for name, found in self.classifier_rates().items()
            },
            "windows": {name: found.to_json() for name, found in self.windows().items()},
            "intervals": {name: found.to_json() for name, found in self.intervals().items()},
            "thresholds": [found.to_json() for found in suggest(self.fused)],
        } | self._lessons_json()

    def _lessons_json(self) -> dict[str, object]:
        if not self.lessons:
            return {}
        return {"lessons": {source: count.to_json() for source, count in self.lessons.items()}}
