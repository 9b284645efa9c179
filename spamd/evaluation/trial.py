"""A filter on trial: a model taught in memory, and a record of what it said."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from spamd.bayes.classifiers.logistic import sigmoid
from spamd.bayes.counts import TokenCounts
from spamd.bayes.decision import decide
from spamd.bayes.learning import Given, learn
from spamd.bayes.model import CLASSIFIERS, BayesOptions, Model
from spamd.evaluation.material import Material, Progress, silent, vocabulary
from spamd.evaluation.rates import CALLED, Outcomes
from spamd.evaluation.results import EvaluationResult, LessonCount
from spamd.sample import FactSchema, Label, Sample


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

    def result(
        self,
        protocol: str,
        order_name: str,
        material: Material,
        *,
        lessons: Mapping[str, LessonCount] | None = None,
        start: int = 0,
    ) -> EvaluationResult:
        """Return everything recorded from message `start` on."""
        spam = material.spam[start:]
        fused, *classifiers = (
            Outcomes(spam=spam, log_odds=self.log_odds[start:, i], called=self.called[start:, i])
            for i in range(self.log_odds.shape[1])
        )
        names = [CLASSIFIERS[i] for i in self._classifiers]
        return EvaluationResult(
            protocol=protocol,
            order=order_name,
            fused=fused,
            classifiers=dict(zip(names, classifiers, strict=True)),
            lessons=lessons or {},
        )
