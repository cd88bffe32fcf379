"""The GenAI conventions' own metrics, read back from the SDK."""

from __future__ import annotations

import contextlib

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

import turnwatch as tw
from turnwatch.core.default import set_default_watch
from turnwatch.metrics import outlet


def recorded(semconv: bool) -> dict[str, list[HistogramDataPoint]]:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    kept, outlet._outlet = outlet._outlet, None
    try:
        tw.configure(tw.Settings(semconv_metrics=semconv), metrics="otel", meter_provider=provider)
        with tw.turn(agent="bot") as turn:
            with turn.model_call("gpt-4o") as call:
                call.usage(input_tokens=300, output_tokens=20)
            turn.call_tool("search", lambda: "found")
            with contextlib.suppress(ZeroDivisionError):
                turn.call_tool("broken", lambda: 1 / 0)
            turn.state.record("told_when_it_was_over", None, at=turn.state.started)
        data = reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name.startswith("gen_ai.")
        }
    finally:
        provider.shutdown()
        outlet._outlet = kept
        set_default_watch(None)


def test_conventions_metrics_are_off_unless_asked_for():
    assert recorded(semconv=False) == {}


def test_conventions_metrics_carry_their_attributes_and_boundaries():
    found = recorded(semconv=True)
    assert set(found) == {
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.invoke_agent.duration",
        "gen_ai.invoke_agent.inference_calls",
        "gen_ai.invoke_agent.tool_calls",
        "gen_ai.execute_tool.duration",
    }
    tokens = {point.attributes["gen_ai.token.type"]: point for point in found["gen_ai.client.token.usage"]}
    assert (tokens["input"].sum, tokens["output"].sum) == (300, 20)
    assert tokens["input"].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.token.type": "input",
    }
    assert tokens["input"].explicit_bounds[:3] == (1, 4, 16)
    (calls,) = found["gen_ai.invoke_agent.tool_calls"]
    assert (calls.sum, calls.explicit_bounds) == (3, (1, 2, 4, 8, 16, 32, 64, 128))
    assert calls.attributes["gen_ai.agent.name"] == "bot"
    tools = {point.attributes["gen_ai.tool.name"]: point.attributes for point in found["gen_ai.execute_tool.duration"]}
    assert tools.keys() == {"search", "broken"}
    assert tools["broken"]["error.type"] == "ZeroDivisionError"
    assert "error.type" not in tools["search"]
