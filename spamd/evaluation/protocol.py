"""The protocols: in which order a filter judges and learns, and what comes of it.

    online    judge a message, then learn its label, one after the other (TREC's immediate feedback)
    delayed   the label of a message arrives only after `delay` further messages
    cross     k-fold: judge each fold after learning all others
    moves     some labels are told, then people move what is wrong (`people`); only what comes then
              is judged

Each goes the product's own way: `bayes.Model.weigh` → `bayes.decision.decide` → `bayes.learning`,
in memory, over the samples of `message.features.extract`. A classifier's own verdict: what the
decision makes of its score taken for log-odds.

    result = evaluate(read_index(path), EvaluationOptions(), BayesOptions(), TokenizerOptions())
    print(json.dumps(result.to_json()))

Several orders or settings share one `prepare`; see `run`, `compare`, `transfer`.

Source: G. Cormack and T. Lynam, "TREC 2005 Spam Track Overview"; accuracy.md §5.1.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from spamd.bayes.counts import TAUGHT_TOKENS
from spamd.bayes.learning import Given, learn
from spamd.bayes.model import BayesOptions
from spamd.evaluation.index import LabelledMail, order
from spamd.evaluation.material import Material, Progress, prepare, silent
from spamd.evaluation.people import PeopleOptions, live
from spamd.evaluation.results import EvaluationResult
from spamd.evaluation.trial import Record, empty_model, teach
from spamd.message.tokens.tokenizer import TokenizerOptions
from spamd.sample import Label


class Protocol(StrEnum):
    """When a label is learned."""

    ONLINE = "online"
    DELAYED = "delayed"
    CROSS = "cross"
    MOVES = "moves"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """How an evaluation is run.

    protocol       "online", "delayed", "cross" or "moves"
    seed           shuffles the order; none keeps that of the index
    delay          messages between a message and its label, with "delayed"; with "moves" at most
    people         what people do, with "moves"
    folds          parts, with "cross"
    route          whether fields about date, route, list and reply are left in the mail
    wrong_labels   share of lessons that are learned with the wrong label; judged by the right one
    taught_tokens  most tokens of one message that are learned: the defence against poisoned lessons
    jobs           processes that read mail
    """

    protocol: Protocol = Protocol.ONLINE
    seed: int | None = None
    delay: int = 100
    people: PeopleOptions = field(default_factory=PeopleOptions)
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
    name = "index" if options.seed is None else f"seed {options.seed}"
    if options.protocol is Protocol.MOVES:
        return _moves(arranged, name, options, bayes, progress)
    taught = mislabelled(arranged.labels, options.wrong_labels, options.seed or 0)
    match options.protocol:
        case Protocol.ONLINE:
            record = _delayed(arranged, taught, 0, options, bayes, progress)
        case Protocol.DELAYED:
            record = _delayed(arranged, taught, options.delay, options, bayes, progress)
        case _:
            record = _cross(arranged, taught, options, bayes, progress)
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


def mislabelled(labels: Sequence[Label], share: float, seed: int) -> tuple[Label, ...]:
    """Return the labels with this share of them, drawn at random, turned round."""
    wrong = np.random.default_rng([seed, 0x6C6162]).random(len(labels)) < share
    other = {Label.HAM: Label.SPAM, Label.SPAM: Label.HAM}
    return tuple(
        other[label] if turned else label for label, turned in zip(labels, wrong, strict=True)
    )


def _moves(
    material: Material,
    name: str,
    options: EvaluationOptions,
    bayes: BayesOptions,
    progress: Progress,
) -> EvaluationResult:
    """Run the protocol over mail whose labels are told for a while."""
    people = options.people
    person = live(
        material,
        people,
        bayes,
        delay=options.delay,
        taught_tokens=options.taught_tokens,
        seed=options.seed,
        progress=progress,
    )
    return person.record.result(
        options.protocol, name, material, lessons=person.lessons(), start=people.taught
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
