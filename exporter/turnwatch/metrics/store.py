"""Counts in plain memory. The Prometheus and OpenTelemetry views read it when they are asked.

Three increments through prometheus-client cost more than everything else turnwatch does at a call
(bench/call_cost.py), so the counting is done here and exposed through a collector.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable

from turnwatch.core.meter import Exemplar
from turnwatch.metrics.catalogue import BY_NAME, Metric

Labels = tuple[str, ...]
Clock = Callable[[], float]
Observer = Callable[[Metric, Labels, float], None]


class CounterCell:
    """One counter series. Guarded by the lock of the watch that counts into it."""

    __slots__ = ("_clock", "created", "exemplar", "value")

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self.value = 0.0
        self.created = clock()
        self.exemplar: tuple[Exemplar, float, float] | None = None

    def inc(self, amount: float = 1.0, exemplar: Exemplar | None = None) -> None:
        """Add to the series."""
        self.value += amount
        if exemplar:
            self.exemplar = (exemplar, amount, self._clock())


class HistogramCell:
    """One histogram series. Guarded by the lock of the watch that counts into it."""

    __slots__ = ("_labels", "_metric", "_store", "bounds", "counts", "created", "exemplars", "total")

    def __init__(self, store: Store, metric: Metric, labels: Labels) -> None:
        self._store = store
        self._metric = metric
        self._labels = labels
        self.bounds = metric.buckets
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self.created = store.clock()
        self.exemplars: dict[int, tuple[Exemplar, float, float]] = {}

    def observe(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add one observation."""
        bucket = bisect_left(self.bounds, value)
        self.counts[bucket] += 1
        self.total += value
        if exemplar:
            self.exemplars[bucket] = (exemplar, value, self._store.clock())
        for observer in self._store.observers:
            observer(self._metric, self._labels, value)


class Store:
    """All series of this process.

    Args:
        clock: Seconds since the epoch, for when a series was created.

    Attributes:
        counters, histograms: Series by metric name and label values.
        observers: Called with every histogram observation; OpenTelemetry has no asynchronous histogram.
    """

    def __init__(self, clock: Clock = time.time) -> None:
        self.clock = clock
        self.counters: dict[str, dict[Labels, CounterCell]] = {}
        self.histograms: dict[str, dict[Labels, HistogramCell]] = {}
        self.observers: list[Observer] = []
        self.counter("turnwatch_internal_errors_total")

    def counter(self, name: str, *labels: str) -> CounterCell:
        """The counter series of these label values, born at 0."""
        series = self.counters.get(name)
        if series is None:
            _check(name, "counter", labels)
            series = self.counters[name] = {}
        cell = series.get(labels)
        if cell is None:
            _check(name, "counter", labels)
            cell = series[labels] = CounterCell(self.clock)
        return cell

    def histogram(self, name: str, *labels: str) -> HistogramCell:
        """The histogram series of these label values."""
        series = self.histograms.get(name)
        cell = None if series is None else series.get(labels)
        if cell is None:
            cell = HistogramCell(self, _check(name, "histogram", labels), labels)
            self.histograms.setdefault(name, {})[labels] = cell
        return cell


def _check(name: str, kind: str, labels: Labels) -> Metric:
    metric = BY_NAME[name]
    if metric.type != kind or len(metric.labels) != len(labels):
        raise ValueError(f"{name} is a {metric.type} with labels {metric.labels}")
    return metric
