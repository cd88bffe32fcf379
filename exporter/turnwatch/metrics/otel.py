"""The OpenTelemetry view: instruments of the metrics API over the store and the watch's gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError
from turnwatch.metrics.catalogue import CATALOGUE, Metric
from turnwatch.metrics.prometheus import gauge_rows, package_version
from turnwatch.metrics.store import Labels, Store

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation


def attach(store: Store, watch: Callable[[], Watch], meter_provider: MeterProvider | None = None) -> None:
    """Register the catalogue's instruments with a meter provider.

    Counters and gauges are observed when the SDK collects; histograms are recorded at once, because
    OpenTelemetry has no asynchronous one. Boundaries are given explicitly: the SDK's own are meant
    for milliseconds.

    Args:
        store: Where the counts are.
        watch: The watch whose gauges are read, asked for at every collection.
        meter_provider: The application's; the global one when left out.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError as error:
        raise MissingExtraError("The OpenTelemetry view of the metrics", "otel") from error
    meter = metrics.get_meter("turnwatch", package_version(), meter_provider)
    histograms: dict[str, Histogram] = {}
    for metric in CATALOGUE:
        if metric.type == "counter":
            meter.create_observable_counter(
                metric.otel_name, [_counter_callback(store, watch, metric)], metric.unit, metric.help
            )
        elif metric.type == "gauge":
            meter.create_observable_gauge(metric.otel_name, [_gauge_callback(watch, metric)], metric.unit, metric.help)
        else:
            histograms[metric.name] = meter.create_histogram(
                metric.otel_name, metric.unit, metric.help, explicit_bucket_boundaries_advisory=metric.buckets
            )

    def record(metric: Metric, labels: Labels, value: float) -> None:
        histograms[metric.name].record(value, dict(zip(metric.labels, labels, strict=True)))

    store.observers.append(record)


def _counter_callback(
    store: Store, watch: Callable[[], Watch], metric: Metric
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        with watch().lock:
            cells = [(labels, cell.value) for labels, cell in store.counters.get(metric.name, {}).items()]
        return [Observation(value, dict(zip(metric.labels, labels, strict=True))) for labels, value in cells]

    return observe


def _gauge_callback(watch: Callable[[], Watch], metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        rows = gauge_rows(watch()).get(metric.name, [])
        return [Observation(value, dict(zip(metric.labels, labels, strict=True))) for labels, value in rows]

    return observe
