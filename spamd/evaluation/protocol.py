"""The protocols: in which order a filter judges and learns, and what comes of it.

    online    judge a message, then learn its label, one after the other (TREC's immediate feedback)
    delayed   the label of a message arrives only after `delay` further messages
    cross     k-fold: judge each fold after learning all others

Each goes the product's own way: `bayes.Model.weigh` → `bayes.decision.decide` → `bayes.learning`,
in memory, over the samples of `message.features.extract`. A classifier's own verdict: what the
decision makes of its score taken for log-odds.

    result = evaluate(read_index(path), EvaluationOptions(), BayesOptions(), TokenizerOptions())
    print(json.dumps(result.to_json()))

Several orders or settings share one `prepare`; see `run`, `compare`, `transfer`.

Source: G. Cormack and T. Lynam, "TREC 2005 Spam Track Overview"; accuracy.md §5.1.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.counts import TAUGHT_TOKENS, TokenCounts
from spamd.bayes.decision import decide
from spamd.bayes.learning import Given, learn
from spamd.bayes.model import CLASSIFIERS, BayesOptions, Model
from spamd.evaluation.index import LabelledMail, order
from spamd.evaluation.material import Material, Progress, prepare, silent, vocabulary
from spamd.evaluation.rates import (
    CALLED,
    Interval,
    Outcomes,
    Rates,
    binomial_interval,
    misclassified,
    rates,
    roca_interval,
)
from spamd.evaluation.thresholds import suggest
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import FactSchema, Label, Sample

Floats = NDArray[np.float64]

WINDOWS: tuple[tuple[str, slice], ...] = (
    ("first 50", slice(0, 50)),
    ("first 200", slice(0, 200)),
    ("first 1000", slice(0, 1000)),
    ("after 1000", slice(1000, None)),
)
"""Parts of a run that show the cold start and what comes after it."""


class Protocol(StrEnum):
    """When a label is learned."""

    ONLINE = "online"
    DELAYED = "delayed"
    CROSS = "cross"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """How an evaluation is run.

    protocol       "online", "delayed" or "cross"
    seed           shuffles the order; none keeps that of the index
    delay          messages between a message and its label, with "delayed"
    folds          parts, with "cross"
    route          whether fields about date, route, list and reply are left in the mail
    wrong_labels   share of lessons that are learned with the wrong label; judged by the right one
    taught_tokens  most tokens of one message that are learned: the defence against poisoned lessons
    jobs           processes that read mail
    """

    protocol: Protocol = Protocol.ONLINE
    seed: int | None = None
    delay: int = 100
    folds: int = 10
    route: bool = True
    wrong_labels: float = 0.0
    taught_tokens: int = TAUGHT_TOKENS
    jobs: int = 2

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.delay < 0:
            raise ValueError("delay must not be below 0 messages")
        if self.folds < 2:
            raise ValueError("folds must be at least 2")
        if not 0 <= self.wrong_labels <= 1:
            raise ValueError("wrong_labels must lie between 0 and 1")
        if self.jobs < 1 or self.taught_tokens < 1:
            raise ValueError("jobs and taught_tokens must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationResult:
    """What came of a run; outcomes are in the order of the trial.

    order        "index", or "seed N"
    fused        outcomes of the product
    classifiers  outcomes of each classifier that was on
    """

    protocol: str
    order: str
    fused: Outcomes
    classifiers: Mapping[str, Outcomes]

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
        }


def evaluate(
    index: Sequence[LabelledMail],
    options: EvaluationOptions,
    bayes: BayesOptions,
    tokenizer: TokenizerOptions,
    progress: Progress = silent,
) -> EvaluationResult:
    """Read the mail and run the protocol over it.

    Raises:
        ConfigError: a message can't be read.
    """
    material = prepare(index, tokenizer, route=options.route, jobs=options.jobs, progress=progress)
    return run(material, options, bayes, progress)


def run(
    material: Material,
    options: EvaluationOptions,
    bayes: BayesOptions,
    progress: Progress = silent,
) -> EvaluationResult:
    """Run the protocol over mail that was read already."""
    arranged = material.arranged(order(len(material), options.seed))
    taught = mislabelled(arranged.labels, options.wrong_labels, options.seed or 0)
    match options.protocol:
        case Protocol.ONLINE:
            record = _delayed(arranged, taught, 0, options, bayes, progress)
        case Protocol.DELAYED:
            record = _delayed(arranged, taught, options.delay, options, bayes, progress)
        case _:
            record = _cross(arranged, taught, options, bayes, progress)
    name = "index" if options.seed is None else f"seed {options.seed}"
    return record.result(options.protocol, name, arranged)


def transfer(
    learned: Material,
    unseen: Material,
    options: EvaluationOptions,
    bayes: BayesOptions,
    progress: Progress = silent,
) -> EvaluationResult:
    """Learn one collection of mail, then judge another without any feedback."""
    arranged = learned.arranged(order(len(learned), options.seed))
    model = empty_model(arranged.samples, arranged.schema, bayes, options.taught_tokens)
    teach(model, zip(arranged.samples, arranged.labels, strict=True), len(arranged), progress)
    record = Record(len(unseen), bayes)
    for place, sample in enumerate(unseen.samples):
        record.judge(place, model, sample)
    return record.result("transfer", "index", unseen)


def empty_model(
    samples: Sequence[Sample], schema: FactSchema, bayes: BayesOptions, taught_tokens: int
) -> Model:
    """Return an untaught model that has a row for every token of these samples."""
    model = Model.empty(schema, bayes)
    model.taught_tokens = taught_tokens
    ids = vocabulary(samples)
    model.tokens.merge(ids, TokenCounts.zeros(len(ids)))
    return model


def teach(
    model: Model,
    lessons: Iterable[tuple[Sample, Label]],
    total: int,
    progress: Progress = silent,
) -> None:
    """Teach the model these lessons in order, and let the fusion look at all of them."""
    for done, (sample, label) in enumerate(lessons, start=1):
        learn(model, [Given(sample=sample, label=label)], proof=False)
        progress("learning", done, total)
    model.refit()


def mislabelled(labels: Sequence[Label], share: float, seed: int) -> tuple[Label, ...]:
    """Return the labels with this share of them, drawn at random, turned round."""
    wrong = np.random.default_rng([seed, 0x6C6162]).random(len(labels)) < share
    other = {Label.HAM: Label.SPAM, Label.SPAM: Label.HAM}
    return tuple(
        other[label] if turned else label for label, turned in zip(labels, wrong, strict=True)
    )


class Record:
    """What the product (column 0) and each classifier said, message by message.

    log_odds  float64[messages, 1 + classifiers]
    called    int8[messages, 1 + classifiers], index into `CALLED`
    """

    def __init__(self, size: int, bayes: BayesOptions) -> None:
        self._classifiers = [
            i for i, name in enumerate(CLASSIFIERS) if name in bayes.fusion.classifiers
        ]
        self._decision = bayes.decision
        self.log_odds = np.zeros((size, 1 + len(self._classifiers)))
        self.called = np.zeros((size, 1 + len(self._classifiers)), dtype=np.int8)

    def judge(self, place: int, model: Model, sample: Sample) -> None:
        """Judge a message by what the model has learned so far."""
        evidence = model.weigh(sample)
        row = [evidence.log_odds, *evidence.scores[self._classifiers]]
        self.log_odds[place] = row
        for column, log_odds in enumerate(row):
            decision = decide(sigmoid(float(log_odds)), model.totals, self._decision)
            self.called[place, column] = CALLED.index(decision.verdict)

    def result(self, protocol: str, order_name: str, material: Material) -> EvaluationResult:
        """Return everything recorded."""
        spam = material.spam
        fused, *classifiers = (
            Outcomes(spam=spam, log_odds=self.log_odds[:, i], called=self.called[:, i])
            for i in range(self.log_odds.shape[1])
        )
        names = [CLASSIFIERS[i] for i in self._classifiers]
        return EvaluationResult(
            protocol=protocol,
            order=order_name,
            fused=fused,
            classifiers=dict(zip(names, classifiers, strict=True)),
        )


def _delayed(
    material: Material,
    taught: Sequence[Label],
    delay: int,
    options: EvaluationOptions,
    bayes: BayesOptions,
    progress: Progress,
) -> Record:
    model = empty_model(material.samples, material.schema, bayes, options.taught_tokens)
    record = Record(len(material), bayes)
    waiting: deque[Given] = deque()
    for place, (sample, label) in enumerate(zip(material.samples, taught, strict=True)):
        record.judge(place, model, sample)
        waiting.append(Given(sample=sample, label=label))
        if len(waiting) > delay:
            learn(model, [waiting.popleft()], proof=False)
        progress("judging", place + 1, len(material))
    return record


def _cross(
    material: Material,
    taught: Sequence[Label],
    options: EvaluationOptions,
    bayes: BayesOptions,
    progress: Progress,
) -> Record:
    record = Record(len(material), bayes)
    lessons = list(zip(material.samples, taught, strict=True))
    for fold in range(options.folds):
        model = empty_model(material.samples, material.schema, bayes, options.taught_tokens)
        others = [lesson for i, lesson in enumerate(lessons) if i % options.folds != fold]
        teach(model, others, len(others))
        for place in range(fold, len(lessons), options.folds):
            record.judge(place, model, lessons[place][0])
        progress("folds", fold + 1, options.folds)
    return record
