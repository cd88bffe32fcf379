"""Both views of the metrics, read through a real scrape, give the same names, labels and values."""

from __future__ import annotations

import urllib.request

import prometheus_client
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from tests.metrics.behaviour import behave

from turnwatch.core.watch import Watch
from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE, CLOSED_LABELS
from turnwatch.metrics.outlet import Outlet, sampled_trace
from turnwatch.settings import Settings

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Scraped:
    """An outlet behind a real HTTP endpoint, with a watch of its own."""

    def __init__(self, view: str) -> None:
        self.registry = CollectorRegistry()
        provider = None
        if view == "otel":
            self._reader = PrometheusMetricReader(registry=self.registry) if _takes_registry() else None
            if self._reader is None:
                self._reader = PrometheusMetricReader()
                self.registry = prometheus_client.REGISTRY
            provider = MeterProvider(metric_readers=[self._reader])
        self.outlet = Outlet(view, registry=self.registry, meter_provider=provider, watch=lambda: self.watch)
        self.watch = Watch(Settings(), self.outlet.meter, clock=lambda: 1_000.0, exemplar=sampled_trace)
        self._provider = provider
        self.server, self._thread = prometheus_client.start_http_server(0, "127.0.0.1", self.registry)

    def text(self, accept: str = "text/plain") -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.server.server_port}/metrics", headers={"Accept": accept}
        )
        with urllib.request.urlopen(request) as reply:
            return reply.read().decode()

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        found = {}
        for family in parse_text(self.text()):
            for sample in family.samples:
                if sample.name.startswith(("agent_", "turnwatch_")) and not sample.name.endswith("_created"):
                    labels = {key: value for key, value in sample.labels.items() if not key.startswith("otel_scope")}
                    if "le" in labels:
                        labels["le"] = str(float(labels["le"]))
                    found[sample.name, tuple(sorted(labels.items()))] = sample.value
        return found

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.outlet.close()
        if self._provider is not None:
            self._provider.shutdown()


def _takes_registry() -> bool:
    import inspect

    return "registry" in inspect.signature(PrometheusMetricReader.__init__).parameters


@pytest.fixture(scope="module")
def views():
    made = {view: Scraped(view) for view in ("prometheus", "otel")}
    for scraped in made.values():
        behave(scraped.watch)
    yield made
    for scraped in made.values():
        scraped.close()


def test_both_views_give_the_same_names_labels_and_values(views: dict[str, Scraped]):
    prometheus, otel = views["prometheus"].samples(), views["otel"].samples()
    assert prometheus.keys() == otel.keys()
    assert {key: value for key, value in prometheus.items() if otel[key] != pytest.approx(value)} == {}


def test_a_looping_turn_fills_every_metric_that_belongs_to_a_turn(views: dict[str, Scraped]):
    seen = {name for name, _ in views["prometheus"].samples()}
    for metric in CATALOGUE:
        if metric.name.startswith(("turnwatch_", "agent_guard_")) or metric.name in {
            "agent_budget_warnings_total",
            "agent_goal_checks_total",
        }:
            continue  # no guard, no service and no bound takes part here
        name = f"{metric.name}_count" if metric.type == "histogram" else metric.name
        assert name in seen


def test_closed_labels_have_no_other_values(views: dict[str, Scraped]):
    for name, labels in views["prometheus"].samples():
        for label, value in labels:
            if name.startswith("agent_") and label in CLOSED_LABELS:
                assert value in CLOSED_LABELS[label], name


def test_numbers_of_the_looping_turn(views: dict[str, Scraped]):
    samples = views["prometheus"].samples()

    def value(name: str, **labels: str) -> float:
        return samples[name, tuple(sorted(labels.items()))]

    assert value("agent_duplicate_tool_calls_total", agent="bot", tool="search_orders") == 8
    assert value("agent_turn_identical_calls_max", agent="bot", tool="search_orders") == 10
    assert value("agent_turn_stale_calls_max", agent="bot", tool="search_orders") == 10
    assert value("agent_iteration_limit_exceeded_total", agent="bot") == 1
    assert value("agent_iterations_bucket", agent="bot", stop_reason="max_iterations", le="10.0") == 1
    assert value("agent_iterations_bucket", agent="bot", stop_reason="max_iterations", le="8.0") == 0
    assert value("agent_tokens_total", agent="bot", model="claude-sonnet-4-5", type="cache_read") == 1_600
    assert value("agent_unpriced_model_calls_total", model="no-such-model-1") == 1
    assert value("turnwatch_fingerprint_missing_total", source="hand") == 1


def test_created_series_stand_beside_the_counters(views: dict[str, Scraped]):
    text = views["prometheus"].text()
    assert 'agent_duplicate_tool_calls_created{agent="bot",tool="search_orders"}' in text


def exemplars_under(sampler: Sampler) -> tuple[set[tuple[str, str]], str]:
    """(metric, trace id) of every exemplar after a run inside a span, and the id of that one's trace."""
    scraped = Scraped("prometheus")
    try:
        with TracerProvider(sampler=sampler).get_tracer("test").start_as_current_span("request") as span:
            behave(scraped.watch)
        exemplars = {
            (sample.name, sample.exemplar.labels["trace_id"])
            for family in parse_openmetrics(scraped.text(OPENMETRICS))
            for sample in family.samples
            if sample.exemplar
        }
    finally:
        scraped.close()
    return exemplars, format(span.get_span_context().trace_id, "032x")


def test_exemplars_carry_the_trace_id_in_openmetrics():
    exemplars, trace_id = exemplars_under(ALWAYS_ON)
    assert ("agent_duplicate_tool_calls_total", trace_id) in exemplars
    assert ("agent_iterations_bucket", trace_id) in exemplars


def test_a_trace_that_is_not_sampled_is_no_exemplar():
    assert exemplars_under(ALWAYS_OFF)[0] == set()


def test_every_exposed_series_is_in_the_catalogue(views: dict[str, Scraped]):
    for name, labels in views["prometheus"].samples():
        base = name
        for suffix in ("_bucket", "_sum", "_count"):
            if base not in BY_NAME:
                base = name.removesuffix(suffix)
        assert {label for label, _ in labels} - {"le"} == set(BY_NAME[base].labels)
