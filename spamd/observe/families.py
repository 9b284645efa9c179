"""Counters, gauges and histograms over shared cells: how one is counted, and how all are read.

    messages = Counter(cells, "spamd_messages", "Messages by verdict.", ("verdict",))
    messages.inc("spam")
    messages.family(found(board.regions()))       # summed over all processes

A counter and a histogram are the sums of what every process has counted, those that have ended
too. A gauge is the sum of what processes that live have set; one that nobody has set is not shown.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isnan, nan

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from spamd.observe.cells import Cells, Key, Region

Found = Mapping[str, Mapping[Key, float]]
"""Sums by the name of a metric and the values of its labels."""


def found(regions: Iterable[Region]) -> Found:
    """Return the sums of what stands in all regions."""
    sums: dict[str, dict[Key, float]] = defaultdict(lambda: defaultdict(float))
    for region in regions:
        for (name, *values), value in region.values():
            if not isnan(value):
                sums[name][tuple(values)] += value
    return sums


class Labelled:
    """What the three kinds share: cells by the values of labels."""

    def __init__(self, cells: Cells, name: str, text: str, labels: tuple[str, ...] = ()) -> None:
        self.name = name
        self._text = text
        self._labels = labels
        self._cells = cells
        self._index: dict[Key, int] = {}

    def _cell(self, values: Key) -> int:
        index = self._index.get(values)
        if index is None:
            index = self._index[values] = self._cells.cell((self.name, *map(str, values)))
        return index


class Counter(Labelled):
    """A number that only rises."""

    def inc(self, *values: str, amount: float = 1.0) -> None:
        """Count, under these values of the labels."""
        self._cells.add(self._cell(values), amount)

    def family(self, counted: Found) -> Metric:
        """Return the sums."""
        family = CounterMetricFamily(self.name, self._text, labels=self._labels)
        for values, value in sorted(counted.get(self.name, {}).items()):
            family.add_metric(values, value)
        return family


class Gauge(Labelled):
    """A number that is true of a moment, and ends with the process that set it."""

    def __init__(self, cells: Cells, name: str, text: str, labels: tuple[str, ...] = ()) -> None:
        super().__init__(cells, name, text, labels)
        for key, _ in list(cells.values()):
            if key[0] == name:
                cells.set(cells.cell(key), nan)  # its predecessor's

    def set(self, *values: str, value: float) -> None:
        """Say what is true now, under these values of the labels."""
        self._cells.set(self._cell(values), value)

    def family(self, true_now: Found) -> Metric:
        """Return the sums of what processes that live have set."""
        family = GaugeMetricFamily(self.name, self._text, labels=self._labels)
        for values, value in sorted(true_now.get(self.name, {}).items()):
            family.add_metric(values, value)
        return family


class Current:
    """A number that is asked for when it is read; every worker would tell the same."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...] = ()) -> None:
        self._name = name
        self._text = text
        self._labels = labels

    def family(self, values: Mapping[Key, float]) -> Metric:
        """Return what is true now, by the values of the labels; NaN is not shown."""
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for key, value in values.items():
            if not isnan(value):
                family.add_metric(key, value)
        return family


class Histogram(Labelled):
    """How often a number was at most as large as each bound, and the sum of all."""

    def __init__(self, cells: Cells, name: str, text: str, *, buckets: Sequence[float]) -> None:
        super().__init__(cells, name, text)
        self._bounds = (*buckets, inf)
        self._names = [*map(str, buckets), "+Inf"]
        self._buckets = [self._cell((name,)) for name in self._names]
        self._sum = self._cell(("sum",))

    def observe(self, number: float) -> None:
        """Count a number."""
        self._cells.add(self._sum, number)
        self._cells.add(self._buckets[bisect_left(self._bounds, number)], 1.0)

    def family(self, counted: Found) -> Metric:
        """Return the sums."""
        sums = counted.get(self.name, {})
        total, buckets = 0.0, []
        for name in self._names:
            total += sums.get((name,), 0.0)
            buckets.append((name, total))
        family = HistogramMetricFamily(self.name, self._text)
        family.add_metric((), buckets, sum_value=sums.get(("sum",), 0.0))
        return family
