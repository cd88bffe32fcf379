"""The metric series of one agent and of each of its tools and models, looked up once and kept."""

from __future__ import annotations

from typing import Final

from turnwatch.core.events import Usage
from turnwatch.core.meter import Counter, Histogram, Meter
from turnwatch.core.windows import ExpiringMax

TOKEN_TYPES: Final = ("input", "output", "cache_read", "cache_write", "reasoning")
REPEAT_RESULTS: Final = ("same", "changed", "unknown")


class ToolSeries:
    """Series of one (agent, tool)."""

    __slots__ = (
        "_duration",
        "_labels",
        "_meter",
        "calls",
        "duplicates",
        "identical",
        "label",
        "max_identical",
        "results",
        "stale",
    )

    def __init__(self, meter: Meter, agent: str, tool: str, max_identical: int) -> None:
        self._meter = meter
        self._labels = (agent, tool)
        self.label = tool
        self.max_identical = max_identical
        # Born at 0, so that the first increment is an increase to Prometheus.
        self.duplicates = meter.counter("agent_duplicate_tool_calls_total", agent, tool)
        self.calls: dict[str, Counter] = {}
        self.results: dict[str, Counter] = {}
        for outcome in ("ok", "error"):
            self.call(outcome)
        for result in REPEAT_RESULTS:
            self.result(result)
        self._duration: Histogram | None = None
        self.identical = ExpiringMax()
        self.stale = ExpiringMax()

    def call(self, outcome: str) -> Counter:
        """Calls with this outcome."""
        counter = self.calls.get(outcome)
        if counter is None:
            counter = self.calls[outcome] = self._meter.counter("agent_tool_calls_total", *self._labels, outcome)
        return counter

    def result(self, result: str) -> Counter:
        """Repeats with this result."""
        counter = self.results.get(result)
        if counter is None:
            counter = self.results[result] = self._meter.counter("agent_repeat_results_total", *self._labels, result)
        return counter

    def took(self, seconds: float) -> None:
        """A call took this long."""
        if self._duration is None:
            self._duration = self._meter.histogram("agent_tool_call_duration_seconds", *self._labels)
        self._duration.observe(seconds)

    def wasted(self) -> Counter:
        """Calls after a stuck verdict."""
        return self._meter.counter("agent_wasted_tool_calls_total", *self._labels)

    def loops(self, kind: str, severity: str) -> Counter:
        """Verdicts of this kind and severity."""
        return self._meter.counter("agent_loops_detected_total", *self._labels, kind, severity)


class ModelSeries:
    """Series of one (agent, model)."""

    __slots__ = ("_duration", "_labels", "_meter", "calls", "spend", "tokens")

    def __init__(self, meter: Meter, agent: str, model: str) -> None:
        self._meter = meter
        self._labels = (agent, model)
        self.spend = meter.counter("agent_spend_usd_total", agent, model)
        self.tokens = {kind: meter.counter("agent_tokens_total", agent, model, kind) for kind in TOKEN_TYPES}
        self.calls = {
            outcome: meter.counter("agent_model_calls_total", agent, model, outcome) for outcome in ("ok", "error")
        }
        self._duration: Histogram | None = None

    def used(self, usage: Usage) -> None:
        """A call used these tokens."""
        tokens = self.tokens
        if usage.input:
            tokens["input"].inc(usage.input)
        if usage.output:
            tokens["output"].inc(usage.output)
        if usage.cache_read:
            tokens["cache_read"].inc(usage.cache_read)
        if usage.cache_write:
            tokens["cache_write"].inc(usage.cache_write)
        if usage.reasoning:
            tokens["reasoning"].inc(usage.reasoning)

    def took(self, seconds: float) -> None:
        """A call took this long."""
        if self._duration is None:
            self._duration = self._meter.histogram("agent_model_call_duration_seconds", *self._labels)
        self._duration.observe(seconds)


class AgentSeries:
    """Series of one agent, its gauges' windows, and its open turns.

    Attributes:
        open_turns: Start time of each open turn by its key.
    """

    __slots__ = (
        "conversation_identical",
        "conversation_model_calls",
        "conversation_spend",
        "iteration_threshold",
        "iterations",
        "label",
        "meter",
        "models",
        "open_turns",
        "over_iterations",
        "spend",
        "tokens",
        "tool_calls",
        "tools",
        "wasted_usd",
        "without_usage",
    )

    def __init__(self, meter: Meter, agent: str, iteration_threshold: int) -> None:
        self.meter = meter
        self.label = agent
        self.iteration_threshold = iteration_threshold
        self.tools: dict[str, ToolSeries] = {}
        self.models: dict[str, ModelSeries] = {}
        self.over_iterations = meter.counter("agent_iteration_limit_exceeded_total", agent)
        self.without_usage = meter.counter("agent_model_calls_without_usage_total", agent)
        self.wasted_usd = meter.counter("agent_wasted_usd_total", agent)
        self.iterations = ExpiringMax()
        self.tool_calls = ExpiringMax()
        self.spend = ExpiringMax()
        self.tokens = ExpiringMax()
        self.conversation_model_calls = ExpiringMax()
        self.conversation_spend = ExpiringMax()
        self.conversation_identical = ExpiringMax()
        self.open_turns: dict[int, float] = {}

    def gauges(self, now: float) -> list[tuple[str, tuple[str, ...], float]]:
        """(metric, label values, value) of every gauge at ``now``."""
        agent = (self.label,)
        rows: list[tuple[str, tuple[str, ...], float]] = [
            ("agent_turn_iterations_max", agent, self.iterations.largest(now)),
            ("agent_turn_tool_calls_max", agent, self.tool_calls.largest(now)),
            ("agent_turn_spend_usd_max", agent, self.spend.largest(now)),
            ("agent_turn_tokens_max", agent, self.tokens.largest(now)),
            ("agent_conversation_model_calls_max", agent, self.conversation_model_calls.largest(now)),
            ("agent_conversation_spend_usd_max", agent, self.conversation_spend.largest(now)),
            ("agent_conversation_identical_calls_max", agent, self.conversation_identical.largest(now)),
            ("agent_open_turns", agent, float(len(self.open_turns))),
            (
                "agent_open_turn_age_seconds_max",
                agent,
                max(0.0, now - min(self.open_turns.values())) if self.open_turns else 0.0,
            ),
        ]
        for tool in self.tools.values():
            labels = (self.label, tool.label)
            rows.append(("agent_turn_identical_calls_max", labels, tool.identical.largest(now)))
            rows.append(("agent_turn_stale_calls_max", labels, tool.stale.largest(now)))
        return rows
