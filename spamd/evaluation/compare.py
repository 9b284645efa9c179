"""Several settings side by side, each over the same orders of the same mail.

    settings = {"as shipped": BayesOptions(), "no pairs": replace(…)}
    for one in compare(material, settings, seeds=(None, 1, 2)):
        print(one.name, one.mean.roca)

Differences between orders are larger than most differences between settings, so the comparison is
paired: every setting goes through every order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, stdev

from spamd.bayes.model import BayesOptions
from spamd.evaluation.material import Material, Progress, silent
from spamd.evaluation.protocol import EvaluationOptions, run
from spamd.evaluation.rates import Rates
from spamd.evaluation.results import WINDOWS, EvaluationResult, LessonCount


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """One setting and what came of each order."""

    name: str
    results: tuple[EvaluationResult, ...]

    @property
    def mean(self) -> Rates:
        """The product's rates, averaged over the orders."""
        return mean([result.rates for result in self.results])

    @property
    def spread(self) -> Rates:
        """How far the product's rates differ between the orders, as standard deviations."""
        return deviation([result.rates for result in self.results])

    def better_than(self, other: "Comparison") -> int:
        """Return in how many orders the 1-ROCA of the product is below that of another setting."""
        pairs = zip(self.results, other.results, strict=True)
        return sum(mine.rates.roca < theirs.rates.roca for mine, theirs in pairs)

    def classifiers(self) -> dict[str, Rates]:
        """Return the rates of each classifier, averaged over the orders."""
        found = [result.classifier_rates() for result in self.results]
        return {name: mean([rates[name] for rates in found]) for name in found[0]}

    def windows(self) -> dict[str, Rates]:
        """Return the product's rates in each part of a run, averaged over the orders."""
        found = [result.windows() for result in self.results]
        names = [name for name, _ in WINDOWS if name in found[0]]
        return {name: mean([rates[name] for rates in found]) for name in names}

    def lessons(self) -> dict[str, LessonCount]:
        """Return the lessons of each source, averaged over the orders and rounded."""
        found = [result.lessons for result in self.results]
        return {
            source: LessonCount(
                ham=round(fmean(lessons[source].ham for lessons in found)),
                spam=round(fmean(lessons[source].spam for lessons in found)),
                wrong=round(fmean(lessons[source].wrong for lessons in found)),
            )
            for source in found[0]
        }

    def to_json(self) -> dict[str, object]:
        """Return the object that `evaluate --json` prints for several orders."""
        lessons = {source: count.to_json() for source, count in self.lessons().items()}
        found: dict[str, object] = {
            "name": self.name,
            "orders": [result.order for result in self.results],
            "fused": self.mean.to_json(),
            "spread": self.spread.to_json(),
            "classifiers": {name: rates.to_json() for name, rates in self.classifiers().items()},
            "windows": {name: rates.to_json() for name, rates in self.windows().items()},
            "each": [result.rates.to_json() for result in self.results],
        }
        return found | ({"lessons": lessons} if lessons else {})


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
    return _each(rates, fmean)


def deviation(rates: Sequence[Rates]) -> Rates:
    """Return the standard deviation of each rate from one order to the next; 0 of one order."""
    return _each(rates, lambda values: stdev(values) if len(values) > 1 else 0.0)


def _each(rates: Sequence[Rates], of: Callable[[Sequence[float]], float]) -> Rates:
    found = {field.name: of([getattr(one, field.name) for one in rates]) for field in fields(Rates)}
    return Rates(**found | {"errors": round(found["errors"])})  # type: ignore[arg-type] # the only int
