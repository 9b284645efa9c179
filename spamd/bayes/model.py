"""All that has been learned, in memory: scans, lessons, untraining and evaluation go through here.

    model = Model(tokens=…, totals=…, facts=…, grams=…, history=…, fusion=…, options=…)
    evidence = model.weigh(sample)          # scores of the classifiers, one probability

`learning` changes it. A model isn't safe for use by two threads at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from spamd.bayes.batch import Batch
from spamd.bayes.classifiers import (
    confidence,
    dependence,
    fisher,
    graham,
    logistic,
    mixed,
    multinomial,
)
from spamd.bayes.classifiers.confidence import ConfidenceOptions
from spamd.bayes.classifiers.dependence import DependenceOptions
from spamd.bayes.classifiers.fisher import FisherOptions
from spamd.bayes.classifiers.graham import GrahamOptions
from spamd.bayes.classifiers.logistic import GRAM_SLOTS, GramsOptions, LogisticOptions
from spamd.bayes.classifiers.mixed import FactCounts, FactsOptions
from spamd.bayes.classifiers.multinomial import MultinomialOptions
from spamd.bayes.counts import TAUGHT_TOKENS, TokenCounts, TokenTable, Totals
from spamd.bayes.decision import DecisionOptions
from spamd.bayes.factcounts import Facts
from spamd.bayes.fusion import CLASSIFIERS, FusionOptions, FusionWeights, ScoreHistory, fit
from spamd.sample import FactSchema, Sample

__all__ = ["CLASSIFIERS", "BayesOptions", "Evidence", "Messages", "Model"]


OF_TOKENS = ("graham", "multinomial", "fisher", "confidence", "logistic")
"""Classifiers whose score depends on the tokens; the others read facts and grams."""

TWO_SIDED = ("multinomial", "fisher", "confidence")
"""Heads that compare two labels, and say nothing while one of them was never trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesOptions:
    """The settings of every classifier, of the fusion, and of the decision."""

    graham: GrahamOptions = field(default_factory=GrahamOptions)
    multinomial: MultinomialOptions = field(default_factory=MultinomialOptions)
    fisher: FisherOptions = field(default_factory=FisherOptions)
    confidence: ConfidenceOptions = field(default_factory=ConfidenceOptions)
    logistic: LogisticOptions = field(default_factory=LogisticOptions)
    grams: GramsOptions = field(default_factory=GramsOptions)
    facts: FactsOptions = field(default_factory=FactsOptions)
    dependence: DependenceOptions = field(default_factory=DependenceOptions)
    fusion: FusionOptions = field(default_factory=FusionOptions)
    decision: DecisionOptions = field(default_factory=DecisionOptions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the model makes of one sample.

    scores        float64[classifiers], log-odds of spam, all finite; 0 of a classifier that is off
    log_odds      the fused log-odds
    probability   P(spam), calibrated
    known         tokens of the sample that were trained before
    rows          row of each token in the table, −1 unknown
    """

    scores: NDArray[np.float64]
    log_odds: float
    probability: float
    known: int
    rows: NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Messages:
    """Some messages as the classifiers read them: one that is scanned, or lessons of a batch.

    tokens       with their counts
    facts        the counts, and the values of the messages: [d] and [c], or with the messages as
    discrete     first axis
    continuous
    linear       the scores of the logistic classifiers, for each message
    """

    tokens: Batch
    facts: Facts
    discrete: NDArray[np.uint8]
    continuous: NDArray[np.int64]
    linear: Mapping[str, Sequence[float]]


class Model:
    """Counts, weights and options together."""

    __slots__ = (
        "facts",
        "fusion",
        "grams",
        "history",
        "learned",
        "options",
        "taught_tokens",
        "tokens",
        "totals",
    )

    def __init__(
        self,
        *,
        tokens: TokenTable,
        totals: Totals,
        facts: FactCounts,
        grams: NDArray[np.int32],
        history: ScoreHistory,
        fusion: FusionWeights,
        options: BayesOptions,
        taught_tokens: int = TAUGHT_TOKENS,
    ) -> None:
        """Take the parts as they are, without copying.

        `taught_tokens` differs from its default only where an evaluation shows what the cap does.
        """
        self.tokens = tokens
        self.totals = totals
        self.facts = facts
        self.grams = grams
        self.history = history
        self.fusion = fusion
        self.options = options
        self.taught_tokens = taught_tokens
        self.learned = 0  # lessons, in this process' life of the model

    @classmethod
    def empty(cls, schema: FactSchema, options: BayesOptions) -> "Model":
        """Return a model that was taught nothing."""
        return cls(
            tokens=TokenTable(),
            totals=Totals(),
            facts=FactCounts(schema),
            grams=np.zeros(GRAM_SLOTS, dtype=np.int32),
            history=ScoreHistory(options.fusion.window),
            fusion=FusionWeights.default(),
            options=options,
        )

    def weigh(self, sample: Sample) -> Evidence:
        """Return scores and probability of a sample."""
        rows = self.tokens.find(sample.ids)
        counts = self.tokens.counts(rows)
        (scores,) = self.scores(
            Messages(
                tokens=Batch.of_one(counts, sample.occurrences, sample.kinds, self.totals),
                facts=self.facts,
                discrete=sample.discrete,
                continuous=sample.continuous,
                linear={
                    "logistic": (logistic.token_score(counts, self.totals),),
                    "grams": (logistic.score(self.grams.take(self.slots(sample))),),
                },
            )
        )
        log_odds = self.fusion.log_odds(scores)
        return Evidence(
            scores=scores,
            log_odds=log_odds,
            probability=logistic.sigmoid(log_odds),
            known=int(np.count_nonzero(counts.seen)),
            rows=rows,
        )

    def weigh_parts(
        self, sample: Sample, whole: Evidence, parts: Sequence[NDArray[np.intp]]
    ) -> list[float]:
        """Return P(spam) of a sample reduced to some of its tokens, for each such choice.

        whole  the evidence of all of it: facts and grams stay as they are
        parts  the places of the tokens that are left
        """
        lengths = [len(part) for part in parts]
        ends = [0, *accumulate(lengths)]
        spans = [slice(start, end) for start, end in pairwise(ends)]
        places = np.concatenate(parts)
        counts = self.tokens.counts(whole.rows[places])
        cells = [TokenCounts.of_cells(counts.cells[span]) for span in spans]
        messages = Messages(
            tokens=Batch(
                counts=counts,
                occurrences=sample.occurrences[places],
                kinds=sample.kinds[places],
                spans=spans,
                moments=[self.totals] * len(parts),
                totals=self.totals,
            ),
            facts=self.facts,
            discrete=sample.discrete,
            continuous=sample.continuous,
            linear={"logistic": [logistic.token_score(each, self.totals) for each in cells]},
        )
        scores = np.tile(whole.scores, (len(parts), 1))
        for place, name in enumerate(CLASSIFIERS):
            if name in OF_TOKENS and name in self.options.fusion.classifiers:
                scores[:, place] = self._score(name, messages)
        return self.fusion.probabilities(scores)

    def scores(self, messages: Messages) -> NDArray[np.float64]:
        """Return the score of each classifier for each message, float64[m, classifiers]."""
        trained = messages.tokens.trained
        silent = [0.0] * len(trained)
        columns = [
            self._score(name, messages)
            if name in self.options.fusion.classifiers and (any(trained) or name not in TWO_SIDED)
            else silent
            for name in CLASSIFIERS
        ]
        scores = np.array(columns).T
        if not all(trained):
            untrained = np.flatnonzero(np.logical_not(trained))
            for name in TWO_SIDED:
                scores[untrained, CLASSIFIERS.index(name)] = 0.0
        return scores

    def _score(self, name: str, messages: Messages) -> Sequence[float]:
        options, tokens = self.options, messages.tokens
        match name:
            case "graham":
                return graham.scores(tokens, options.graham)
            case "multinomial":
                return multinomial.scores(tokens, options.multinomial)
            case "fisher":
                return fisher.scores(tokens, options.fisher)
            case "confidence":
                return confidence.scores(tokens, options.confidence)
            case "facts":
                odds = mixed.score(
                    messages.facts, messages.discrete, messages.continuous, options.facts
                )
                return odds.reshape(-1).tolist()
            case "dependence":
                odds = dependence.score(messages.facts, messages.discrete, options.dependence)
                return odds.reshape(-1).tolist()
            case _:
                return messages.linear[name]

    def slots(self, sample: Sample) -> NDArray[np.intp]:
        """Return the place of each gram of the sample in the gram table."""
        return logistic.slots(sample.grams, len(self.grams))

    def refit(self) -> None:
        """Fit the fusion to the history."""
        self.fusion = fit(self.history, self.options.fusion)
