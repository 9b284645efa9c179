"""All that has been learned, in memory: scans, lessons, untraining and evaluation go through here.

    model = Model(tokens=…, totals=…, facts=…, grams=…, history=…, fusion=…, options=…)
    evidence = model.weigh(sample)          # scores of the heads, one probability
    effect = model.learn(sample, label)     # keep it: untraining needs its steps
    model.unlearn(sample, label, effect)    # the exact inverse

Every token of a sample must have its row in `tokens` before it is learned
(`model.tokens.merge(ids, TokenCounts.zeros(len(ids)))`). Learning and unlearning in any order leave
counts, totals, facts and weights as if only the lessons that remain had added their counts and
steps. A step, though, was measured against the weights of its time: a database retrained from the
start may hold other logistic weights, never other counts. A model isn't safe for use by two threads
at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spamd.bayes import confidence, dependence, fisher, graham, logistic, mixed, multinomial
from spamd.bayes.confidence import ConfidenceOptions
from spamd.bayes.counts import TAUGHT_TOKENS, TokenCounts, TokenTable, Totals, taught
from spamd.bayes.decision import DecisionOptions
from spamd.bayes.dependence import DependenceOptions
from spamd.bayes.fisher import FisherOptions
from spamd.bayes.fusion import HEADS, FusionOptions, FusionWeights, ScoreHistory, fit
from spamd.bayes.graham import GrahamOptions
from spamd.bayes.logistic import GRAM_SLOTS, GramsOptions, LogisticOptions
from spamd.bayes.mixed import FactCounts, FactsOptions
from spamd.bayes.multinomial import MultinomialOptions
from spamd.sample import FactSchema, Label, Sample

__all__ = ["HEADS", "BayesOptions", "Effect", "Evidence", "Model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesOptions:
    """The settings of every head, of the fusion, and of the decision."""

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

    scores        float64[heads], log-odds of spam by head, all finite; 0 of a head that is off
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
class Effect:
    """What a lesson did; it is stored with the lesson so that it can be taken back.

    scores               float64[heads], before the lesson was learned
    probability_before   P(spam) of the sample before
    probability_after    P(spam) of the sample after
    step                 integer in units of 2⁻¹⁶, added to the weight of each token taught
    gram_step            the same for each gram
    """

    scores: NDArray[np.float64]
    probability_before: float
    probability_after: float
    step: int
    gram_step: int


class Model:
    """Counts, weights and options together."""

    __slots__ = (
        "_heads",
        "facts",
        "fusion",
        "grams",
        "history",
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
        self._heads: dict[str, Callable[[Sample, TokenCounts], float]] = {
            "graham": self._graham,
            "multinomial": self._multinomial,
            "fisher": self._fisher,
            "confidence": self._confidence,
            "logistic": lambda _, counts: logistic.score(counts.weight),
            "grams": lambda sample, _: logistic.score(self.gram_weights(sample)),
            "facts": self._facts,
            "dependence": self._dependence,
        }

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
        scores = self.scores(sample, counts)
        log_odds = self.fusion.log_odds(scores)
        return Evidence(
            scores=scores,
            log_odds=log_odds,
            probability=logistic.sigmoid(log_odds),
            known=int(np.count_nonzero(counts.spam + counts.ham)),
            rows=rows,
        )

    def learn(
        self,
        sample: Sample,
        label: Label,
        key: bytes = b"",
        *,
        before: Evidence | None = None,
        proof: bool = True,
    ) -> Effect:
        """Learn one lesson; `key` (its digest) names its entry in the history.

        `before` spares the weighing where nothing was learned since that evidence was found.
        Without `proof` the sample isn't weighed again, and the probability after is that from
        before.

        Raises:
            KeyError: a token of the sample has no row.
        """
        before = before or self.weigh(sample)
        scores = dict(zip(HEADS, before.scores, strict=True))
        step = gram_step = 0
        lessons = self.totals.messages
        if "logistic" in self.options.fusion.heads:
            step = logistic.step(
                scores["logistic"], len(sample.ids), label, lessons, self.options.logistic
            )
        if "grams" in self.options.fusion.heads:
            gram_step = logistic.step(
                scores["grams"], len(sample.grams), label, lessons, self.options.grams
            )
        self._change(sample, before.rows, label, sign=1, step=step, gram_step=gram_step)
        self.history.append(key, label, before.scores)
        if self.totals.messages % self.options.fusion.refit_every == 0:
            self.refit()
        after = self.weigh(sample) if proof else before
        return Effect(
            scores=before.scores,
            probability_before=before.probability,
            probability_after=after.probability,
            step=step,
            gram_step=gram_step,
        )

    def unlearn(self, sample: Sample, label: Label, effect: Effect, key: bytes = b"") -> None:
        """Take one lesson back exactly; the fusion forgets it at its next fit.

        Raises:
            KeyError: a token of the sample has no row.
            ValueError: the sample was never learned with this label.
        """
        rows = self.tokens.find(sample.ids)
        self._change(sample, rows, label, sign=-1, step=-effect.step, gram_step=-effect.gram_step)
        self.history.remove(key, label, effect.scores)

    def restore(self, sample: Sample, label: Label, effect: Effect, key: bytes = b"") -> None:
        """Add a lesson of a journal as it was learned then: the inverse of `unlearn`.

        Raises:
            KeyError: a token of the sample has no row.
        """
        rows = self.tokens.find(sample.ids)
        self._change(sample, rows, label, sign=1, step=effect.step, gram_step=effect.gram_step)
        self.history.append(key, label, effect.scores)

    def refit(self) -> None:
        """Fit the fusion to the history."""
        self.fusion = fit(self.history, self.options.fusion)

    def scores(self, sample: Sample, counts: TokenCounts) -> NDArray[np.float64]:
        """Return the score of each head for a sample whose tokens have these counts."""
        wanted = self.options.fusion.heads
        return np.array(
            [self._heads[head](sample, counts) if head in wanted else 0.0 for head in HEADS]
        )

    def gram_weights(self, sample: Sample) -> NDArray[np.int32]:
        """Return the weight of each gram of the sample."""
        return self.grams.take(logistic.slots(sample.grams, len(self.grams)))

    def _change(
        self,
        sample: Sample,
        rows: NDArray[np.intp],
        label: Label,
        *,
        sign: int,
        step: int,
        gram_step: int,
    ) -> None:
        occurrences = sample.occurrences
        if (chosen := taught(sample, self.taught_tokens)) is not None:
            rows, occurrences = rows[chosen], occurrences[chosen]
        vocabulary = self.tokens.add(rows, occurrences, label, sign, step)
        self.totals = self.totals.changed(
            label,
            occurrences=int(occurrences.sum(dtype=np.int64)),
            vocabulary=vocabulary,
            sign=sign,
        )
        self.facts.add(label, sample.discrete, sample.continuous, sign)
        if gram_step:
            self.grams[logistic.slots(sample.grams, len(self.grams))] += np.int32(gram_step)

    def _graham(self, sample: Sample, counts: TokenCounts) -> float:
        return graham.score(counts, sample.kinds, self.totals, self.options.graham)

    def _multinomial(self, sample: Sample, counts: TokenCounts) -> float:
        return multinomial.score(
            counts, sample.occurrences, sample.kinds, self.totals, self.options.multinomial
        )

    def _fisher(self, sample: Sample, counts: TokenCounts) -> float:
        return fisher.score(counts, sample.kinds, self.totals, self.options.fisher)

    def _confidence(self, sample: Sample, counts: TokenCounts) -> float:
        return confidence.score(counts, sample.kinds, self.totals, self.options.confidence)

    def _facts(self, sample: Sample, _: TokenCounts) -> float:
        return mixed.score(self.facts, sample.discrete, sample.continuous, self.options.facts)

    def _dependence(self, sample: Sample, _: TokenCounts) -> float:
        return dependence.score(self.facts, sample.discrete, self.options.dependence)
