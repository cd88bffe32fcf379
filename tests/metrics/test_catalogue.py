from __future__ import annotations

import re

from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE, CLOSED_LABELS

UNBOUNDED = {"conversation", "conversation_id", "turn", "turn_id", "trace_id", "span_id", "hash", "input_hash"}


def test_names_are_unique_in_both_views():
    assert len(BY_NAME) == len(CATALOGUE)
    assert len({metric.otel_name for metric in CATALOGUE}) == len(CATALOGUE)


def test_names_follow_the_conventions_of_prometheus():
    for metric in CATALOGUE:
        assert re.fullmatch(r"(agent|turnwatch)_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.type == "counter")
        assert metric.help.endswith(".")


def test_gauges_carry_no_unit():
    assert [metric.name for metric in CATALOGUE if metric.type == "gauge" and metric.unit] == []


def test_histograms_have_rising_buckets_with_one_at_each_alert_threshold():
    for metric in CATALOGUE:
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert bool(metric.buckets) == (metric.type == "histogram")
    assert {8.0, 10.0} <= set(BY_NAME["agent_iterations"].buckets)


def test_no_label_is_unbounded():
    for metric in CATALOGUE:
        assert not UNBOUNDED & set(metric.labels)


def test_every_label_of_agents_metrics_is_a_name_or_has_a_closed_set():
    labels = {label for metric in CATALOGUE if metric.name.startswith("agent_") for label in metric.labels}
    assert labels == {"agent", "tool", "model"} | CLOSED_LABELS.keys()


def test_documented_opentelemetry_names():
    assert BY_NAME["agent_duplicate_tool_calls_total"].otel_name == "agent.duplicate_tool_calls"
    assert (BY_NAME["agent_spend_usd_total"].otel_name, BY_NAME["agent_spend_usd_total"].unit) == ("agent.spend", "usd")
    assert BY_NAME["agent_turn_duration_seconds"].otel_name == "agent.turn_duration"
