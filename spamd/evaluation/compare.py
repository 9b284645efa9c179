"""Several settings side by side, each over the same orders of the same mail.

    settings = {"as shipped": BayesOptions(), "no pairs": replace(…)}
    for one in compare(material, settings, seeds=(None, 1, 2)):
        print(one.name, one.mean.roca)

Differences between orders are larger than most differences between settings, so the comparison is
paired: every setting goes through every order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spamd.bayes.model import BayesOptions
from spamd.evaluation.material import Material, Progress, silent
from spamd.evaluation.protocol import WINDOWS, EvaluationOptions, EvaluationResult, run
from spamd.evaluation.rates import Rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """One setting and what came of each order."""

    name: str
    results: tuple[EvaluationResult, ...]

    @property
    def mean(self) -> Rates:
        """The product's rates, averaged over the orders."""
        return mean([result.rates for result in self.results])

    def heads(self) -> dict[str, Rates]:
        """Return the rates of each head, averaged over the orders."""
        found = [result.head_rates() for result in self.results]
        return {name: mean([rates[name] for rates in found]) for name in found[0]}

    def windows(self) -> dict[str, Rates]:
        """Return the product's rates in each part of a run, averaged over the orders."""
        found = [result.windows() for result in self.results]
        names = [name for name, _ in WINDOWS if name in found[0]]
        return {name: mean([rates[name] for rates in found]) for name in names}

    def to_json(self) -> dict[str, object]:
        """Return the object that `evaluate --json` prints for several orders."""
        return {
            "name": self.name,
            "orders": [result.order for result in self.results],
            "fused": self.mean.to_json(),
            "heads": {name: rates.to_json() for name, rates in self.heads().items()},
            "windows": {name: rates.to_json() for name, rates in self.windows().items()},
            "each": [result.rates.to_json() for result in self.results],
        }


def compare(
    material: Material,
    settings: Mapping[str, BayesOptions],
    seeds: Sequence[int | None],
    options: EvaluationOptions,
    progress: Progress = silent,
) -> tuple[Comparison, ...]:
    """Run every setting over every order; a seed of None is the order of the index."""
    found = []
    for name, bayes in settings.items():
        results = [run(material, replace(options, seed=seed), bayes, progress) for seed in seeds]
        found.append(Comparison(name=name, results=tuple(results)))
    return tuple(found)


def mean(rates: Sequence[Rates]) -> Rates:
    """Return the average of each rate; errors are rounded to whole messages."""
    size = len(rates)
    return Rates(
        roca=sum(one.roca for one in rates) / size,
        ham_misclassified=sum(one.ham_misclassified for one in rates) / size,
        spam_misclassified=sum(one.spam_misclassified for one in rates) / size,
        unsure=sum(one.unsure for one in rates) / size,
        lam=sum(one.lam for one in rates) / size,
        spam_missed=sum(one.spam_missed for one in rates) / size,
        calibration_error=sum(one.calibration_error for one in rates) / size,
        errors=round(sum(one.errors for one in rates) / size),
    )
