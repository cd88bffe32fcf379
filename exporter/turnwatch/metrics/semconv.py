"""The GenAI conventions' own metrics, beside turnwatch's, for those who chart by the conventions.

Names, units, attributes and boundaries are those of the OpenTelemetry semantic conventions for generative AI
(status Development). Off unless ``semconv_metrics`` is set: most instrumentations record them already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.providers import provider_by_name
from turnwatch.metrics.prometheus import package_version

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider

    from turnwatch.core.turn import TurnState

CALL_SECONDS: Final = tuple(0.01 * 2**step for step in range(14))
AGENT_SECONDS: Final = tuple(0.1 * 2**step for step in range(13))
CALLS: Final = tuple(2**step for step in range(8))
TOKENS: Final = tuple(4**step for step in range(14))


class SemconvMetrics:
    """Listens to a watch and records the conventions' metrics.

    Args:
        meter_provider: The application's; the global one when left out.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        from opentelemetry import metrics

        meter = metrics.get_meter("turnwatch", package_version(), meter_provider)

        def histogram(name: str, unit: str, description: str, boundaries: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=boundaries)

        self._token_usage = histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", TOKENS
        )
        self._operation = histogram("gen_ai.client.operation.duration", "s", "GenAI operation duration.", CALL_SECONDS)
        self._agent = histogram("gen_ai.invoke_agent.duration", "s", "Duration of an agent invocation.", AGENT_SECONDS)
        self._inference_calls = histogram(
            "gen_ai.invoke_agent.inference_calls", "{inference_call}", "Model calls of an agent invocation.", CALLS
        )
        self._tool_calls = histogram(
            "gen_ai.invoke_agent.tool_calls", "{tool_call}", "Tool calls of an agent invocation.", CALLS
        )
        self._tool = histogram("gen_ai.execute_tool.duration", "s", "Duration of a tool execution.", CALL_SECONDS)

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """Record a model call's tokens and duration."""
        attributes = {"gen_ai.operation.name": "chat"}
        provider = call.provider or provider_by_name(call.model)
        if provider:
            attributes["gen_ai.provider.name"] = provider
        if call.model:
            attributes["gen_ai.request.model"] = turn.watch.shown_model(call.model)
        if call.usage is not None:
            self._token_usage.record(call.usage.input, {**attributes, "gen_ai.token.type": "input"})
            self._token_usage.record(call.usage.output, {**attributes, "gen_ai.token.type": "output"})
        if call.outcome == "error":
            attributes["error.type"] = call.error_type or "_OTHER"
        if call.started is not None and call.ended is not None:
            self._operation.record(max(0.0, call.ended - call.started), attributes)

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Record a tool call's duration; a call that was not executed, or was told of when it was over, has none."""
        if call.outcome in ("cached", "denied") or call.started is None or call.ended is None:
            return
        if call.ended <= call.started:
            return
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": turn.watch.shown_tool(call.tool),
        }
        if call.outcome == "error":
            attributes["error.type"] = call.error_type or "_OTHER"
        self._tool.record(max(0.0, call.ended - call.started), attributes)

    def turn_ended(self, turn: TurnState) -> None:
        """Record a turn's duration, model calls and tool calls."""
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": turn.series.label}
        self._inference_calls.record(turn.iterations, attributes)
        self._tool_calls.record(turn.tool_calls, attributes)
        if turn.stop_reason == "error":
            attributes["error.type"] = "_OTHER"
        self._agent.record(turn.elapsed_seconds, attributes)
