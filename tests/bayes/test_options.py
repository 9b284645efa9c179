"""The edges of every option: the last value that is taken and the first that is refused."""

from math import inf, nan
from typing import Any

import pytest

from spamd.bayes.classifiers.confidence import ConfidenceOptions
from spamd.bayes.classifiers.dependence import DependenceOptions
from spamd.bayes.classifiers.fisher import FisherOptions
from spamd.bayes.classifiers.graham import Counting, GrahamOptions, GrahamRule
from spamd.bayes.classifiers.logistic import GramsOptions, LogisticOptions
from spamd.bayes.classifiers.mixed import FactsOptions
from spamd.bayes.classifiers.multinomial import Length, MultinomialOptions, TermWeight
from spamd.bayes.decision import Action, DecisionOptions, Rule, Verdict
from spamd.bayes.fusion import FusionOptions

TINY = 5e-324

EDGES: list[tuple[type[Any], str, list[Any], list[Any]]] = [
    (GrahamOptions, "words", [1], [0]),
    (GrahamOptions, "low", [TINY, 0.4999], [0.0, 0.5, -0.1]),
    (GrahamOptions, "high", [0.5001, 0.9999], [0.5, 1.0, 1.5]),
    (GrahamOptions, "ham_bias", [TINY, 0.5], [0.0, -1.0]),
    (GrahamOptions, "minimum_count", [0.0, 0.5], [-0.1]),
    (GrahamOptions, "strength", [0.0, 0.5], [-0.1]),
    (GrahamOptions, "unknown", [TINY, 0.9999], [0.0, 1.0, 1.5]),
    (GrahamOptions, "prior", [TINY, 0.9999], [0.0, 1.0, 1.5]),
    (GrahamOptions, "word_prior", [TINY, 0.9999], [0.0, 1.0, 1.5]),
    (FisherOptions, "strength", [TINY, 0.5], [0.0, -1.0]),
    (FisherOptions, "unknown", [TINY, 0.9999], [0.0, 1.0, 1.5]),
    (FisherOptions, "minimum_deviation", [0.0, 0.4999], [0.5, -0.1, 0.7]),
    (ConfidenceOptions, "spread", [0.0, 0.5], [-0.1]),
    (ConfidenceOptions, "rarity", [0.0, 0.5], [-0.1]),
    (ConfidenceOptions, "limit", [TINY, 0.5], [0.0, -1.0]),
    (ConfidenceOptions, "exponent", [TINY, 100.0], [0.0, 100.5, 150.0]),
    (MultinomialOptions, "smoothing", [0.0, 0.5], [-0.1, inf, nan]),
    (LogisticOptions, "steady", [TINY, 16.0], [0.0, 16.5]),
    (LogisticOptions, "rate", [4.0, 1000.0], [3.9, 1000.5]),
    (LogisticOptions, "settle", [1], [0]),
    (LogisticOptions, "margin", [0.0, 0.5], [-0.1]),
    (GramsOptions, "settle", [1], [0]),
    (FactsOptions, "smoothing", [0.0, 0.5], [-0.1, inf]),
    (FactsOptions, "prior_smoothing", [0.0, 0.5], [-0.1, inf]),
    (FactsOptions, "pooled", [0.0, 0.5], [-0.1, inf]),
    (FactsOptions, "variance_floor", [TINY, 0.5], [0.0, -1.0, inf]),
    (DependenceOptions, "smoothing", [0.0, 0.5], [-0.1, inf]),
    (DependenceOptions, "least", [0, 30], [-1]),
    (FusionOptions, "refit_every", [1], [0]),
    (FusionOptions, "window", [1], [0]),
    (FusionOptions, "regularisation", [TINY, 0.5], [0.0, -1.0]),
    (FusionOptions, "wrong_labels", [0.0, 0.2], [-0.1, 0.21]),
    (DecisionOptions, "ham_cutoff", [0.0, 0.9], [-0.1, 0.91]),
    (DecisionOptions, "spam_cutoff", [0.2, 0.999], [0.19, 0.9991]),
    (DecisionOptions, "reject_cutoff", [0.9, 1.0], [0.89, 1.01]),
    (DecisionOptions, "minimum_ham", [0, 1], [-1]),
    (DecisionOptions, "minimum_spam", [0, 1], [-1]),
    (DecisionOptions, "prior_spam", [0.0, 0.999], [1.0, 1.5, -0.1]),
    (DecisionOptions, "accept_losses", [(0.0, 1.0), (0.3, 0.3)], [(-0.1, 1.0), (0.0, inf)]),
    (DecisionOptions, "unsure_losses", [(0.0, 1.0), (9.0, 0.01)], [(9.1, 0.3), (0.3, 1.1)]),
    (DecisionOptions, "reject_losses", [(9.0, 0.01), (99.0, 0.0)], [(8.9, 0.0), (30.0, 0.02)]),
]


@pytest.mark.parametrize(("options", "name", "taken", "refused"), EDGES)
def test_each_option_is_taken_up_to_its_edge_and_refused_beyond(
    options: type[Any], name: str, taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        assert getattr(options(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ValueError, match=r".+"):
            options(**{name: value})


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (GrahamRule, ["2002", "2003"]),
        (Counting, ["presence", "occurrences"]),
        (TermWeight, ["raw", "log", "binary"]),
        (Length, ["none", "sqrt", "n"]),
        (Rule, ["losses", "cutoffs"]),
        (Verdict, ["ham", "unsure", "spam", "unscanned"]),
        (Action, ["accept", "tag", "reject", "quarantine", "defer"]),
    ],
)
def test_a_choice_is_written_in_these_words(choices: type[Any], words: list[str]) -> None:
    assert [str(choice) for choice in choices] == words
