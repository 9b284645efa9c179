"""How good the verdicts are on what was taught: each lesson judged by what the others taught.

Cross-validation over the samples that the journal keeps, so it needs no mail. It runs in a process
of its own, at the lowest priority, so that no mail waits for it:

    python -m spamd.evaluation.journal      < pickled `Given`        > JSON

A sample holds at most `bayes.counts.TAUGHT_TOKENS` tokens of its mail, and people teach above all
what was judged wrong: on such mail verdicts are worse than on all that comes in.
"""

import json
import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from spamd.bayes.model import BayesOptions
from spamd.evaluation.material import Material
from spamd.evaluation.plots import roc_points
from spamd.evaluation.protocol import EvaluationOptions, Protocol, run
from spamd.evaluation.rates import binomial_interval, percent, reliability
from spamd.evaluation.results import EvaluationResult
from spamd.evaluation.thresholds import suggest
from spamd.message.facts import SCHEMA
from spamd.sample import Label, Sample

FOLDS = 5
"""Each model learns four fifths of the lessons; more folds cost more and say about the same."""

SEED = 1
"""Shuffles the lessons: the same ones give the same figures."""

WISHES = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Shares of ham lost for which a threshold is given."""

NICE = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is evaluated: the samples of lessons with their labels, and the options in force."""

    samples: Sequence[Sample]
    labels: Sequence[Label]
    bayes: BayesOptions


def assess(given: Given) -> dict[str, object]:
    """Return the figures of `spamd evaluate --json`, and the points of its plots."""
    material = Material(
        samples=tuple(given.samples),
        labels=tuple(given.labels),
        senders=("",) * len(given.samples),
        schema=SCHEMA,
    )
    options = EvaluationOptions(protocol=Protocol.CROSS, seed=SEED, folds=FOLDS)
    found = run(material, options, given.bayes)
    return found.to_json() | {
        "thresholds": [each.to_json() for each in suggest(found.fused, WISHES)],
        "roc": [[lost, missed] for lost, missed in roc_points(found.fused)],
        "reliability": _reliability(found),
    }


def _reliability(found: EvaluationResult) -> list[dict[str, float]]:
    """Return for each part of the scale what was promised, what came true, and its interval."""
    promised, share, number = reliability(found.fused.spam, found.fused.probabilities)
    parts = []
    for p, s, n in zip(promised.tolist(), share.tolist(), number.tolist(), strict=True):
        if n:
            spam = round(s * n)
            interval = binomial_interval(spam, n)
            parts.append(
                {
                    "promised": p,
                    "spam": percent(spam, n) / 100,
                    "low": interval.low / 100,
                    "high": interval.high / 100,
                    "messages": n,
                }
            )
    return parts


def main() -> None:
    """Evaluate what comes on standard input."""
    os.nice(NICE)
    given: Given = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - of the process that starts us
    json.dump(assess(given), sys.stdout)


if __name__ == "__main__":
    main()
