"""The Prometheus view: a collector over the store and the watch's gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Exemplar as ClientExemplar
from prometheus_client.utils import floatToGoString

from turnwatch.core.meter import Exemplar
from turnwatch.core.watch import Watch
from turnwatch.metrics.catalogue import CATALOGUE, Metric
from turnwatch.metrics.store import CounterCell, HistogramCell, Labels, Store

GaugeRows = dict[str, list[tuple[Labels, float]]]


def package_version() -> str:
    """The installed version of turnwatch."""
    try:
        return version("turnwatch")
    except PackageNotFoundError:  # run from a source tree without being installed
        return "0+unknown"


def gauge_rows(watch: Watch) -> GaugeRows:
    """Every gauge's series at this moment, the process's own included."""
    rows: GaugeRows = {
        "turnwatch_build_info": [((package_version(),), 1.0)],
        "turnwatch_settings_faults": [((), float(len(watch.settings_faults)))],
    }
    for name, labels, value in watch.gauges():
        rows.setdefault(name, []).append((labels, value))
    return rows


class StoreCollector:
    """Exposes a store and the gauges of whatever watch is current at the scrape."""

    def __init__(self, store: Store, watch: Callable[[], Watch]) -> None:
        self._store = store
        self._watch = watch

    def describe(self) -> Iterable[Family]:
        """Names for the registry's duplicate check, without a scrape."""
        return [_family(metric) for metric in CATALOGUE]

    def collect(self) -> Iterable[Family]:
        """A reading of everything: the gauges at one moment, then the counters and histograms at one."""
        watch = self._watch()
        gauges = gauge_rows(watch)
        with watch.lock:
            return [self._filled(metric, gauges) for metric in CATALOGUE]

    def _filled(self, metric: Metric, gauges: GaugeRows) -> Family:
        family = _family(metric)
        if isinstance(family, CounterMetricFamily):
            for labels, counter in self._store.counters.get(metric.name, {}).items():
                _add_counter(family, labels, counter)
        elif isinstance(family, HistogramMetricFamily):
            for labels, histogram in self._store.histograms.get(metric.name, {}).items():
                _add_histogram(family, labels, histogram)
        elif isinstance(family, GaugeMetricFamily):
            for labels, value in gauges.get(metric.name, ()):
                family.add_metric(labels, value)
        return family


def _family(metric: Metric) -> Family:
    if metric.type == "counter":
        return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    if metric.type == "histogram":
        return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)


def _exemplar(kept: tuple[Exemplar, float, float] | None) -> ClientExemplar | None:
    return None if kept is None else ClientExemplar(dict(kept[0]), kept[1], kept[2])


def _add_counter(family: CounterMetricFamily, labels: Labels, cell: CounterCell) -> None:
    family.add_metric(labels, cell.value, created=cell.created, exemplar=_exemplar(cell.exemplar))


def _add_histogram(family: HistogramMetricFamily, labels: Labels, cell: HistogramCell) -> None:
    buckets: list[tuple[str, float] | tuple[str, float, ClientExemplar]] = []
    below = 0
    for at, (bound, count) in enumerate(zip((*cell.bounds, float("inf")), cell.counts, strict=True)):
        below += count
        exemplar = _exemplar(cell.exemplars.get(at))
        le = floatToGoString(bound)
        buckets.append((le, float(below)) if exemplar is None else (le, float(below), exemplar))
    family.add_metric(labels, buckets, cell.total)
    family.add_sample(f"{family.name}_created", dict(zip(family._labelnames, labels, strict=True)), cell.created)
