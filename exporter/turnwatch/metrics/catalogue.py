"""Every metric turnwatch exports: name, unit, labels, help and buckets stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from turnwatch.core.events import STOP_REASONS, Outcome
from turnwatch.core.guard import GoalVerdict
from turnwatch.core.limits import LIMIT_NAMES
from turnwatch.core.series import REPEAT_RESULTS, TOKEN_TYPES
from turnwatch.core.verdict import Kind, Mode, Severity

MetricType = Literal["counter", "histogram", "gauge"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: The Prometheus name, with its ``_total`` or unit suffix.
        type: counter, histogram or gauge.
        help: What it counts, in one sentence.
        labels: Label names in order.
        unit: The OpenTelemetry unit ("" for none: gauges never carry one, or their translated names grow a suffix).
        buckets: Upper bounds of a histogram's buckets.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()

    @property
    def otel_name(self) -> str:
        """The OpenTelemetry name: first underscore a dot, ``_total`` and the unit's suffix dropped."""
        base = self.name.removesuffix("_total")
        suffix = {"usd": "_usd", "s": "_seconds"}.get(self.unit, "")
        return base.removesuffix(suffix).replace("_", ".", 1)


COUNT_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 25.0, 50.0, 100.0, 200.0)
USD_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
TURN_SECONDS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
CALL_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

_A = ("agent",)
_AT = ("agent", "tool")
_AM = ("agent", "model")

CATALOGUE: Final[tuple[Metric, ...]] = (
    Metric("agent_turns_total", "counter", "Turns ended, by stop reason.", ("agent", "stop_reason")),
    Metric("agent_model_calls_total", "counter", "Model calls (iterations).", ("agent", "model", "outcome")),
    Metric("agent_tool_calls_total", "counter", "Tool calls the agent asked for.", ("agent", "tool", "outcome")),
    Metric(
        "agent_duplicate_tool_calls_total",
        "counter",
        "Tool calls past the threshold of identical calls in one turn (third and later by default).",
        _AT,
    ),
    Metric(
        "agent_repeat_results_total",
        "counter",
        "Repeated identical tool calls, by whether the result was the same as the time before.",
        ("agent", "tool", "result"),
    ),
    Metric(
        "agent_loops_detected_total",
        "counter",
        "Loop verdicts, by kind and severity.",
        ("agent", "tool", "kind", "severity"),
    ),
    Metric(
        "agent_iteration_limit_exceeded_total",
        "counter",
        "Turns that passed the iteration threshold, counted once each, while they still run.",
        _A,
    ),
    Metric("agent_guard_stops_total", "counter", "Turns stopped by a guard.", ("agent", "stop_reason")),
    Metric(
        "agent_guard_shadow_stops_total",
        "counter",
        "Turns that on_loop: stop would have stopped, where on_loop is observe.",
        ("agent", "stop_reason"),
    ),
    Metric(
        "agent_tokens_total",
        "counter",
        "Tokens by type. Cache reads and writes are part of input, reasoning is part of output.",
        ("agent", "model", "type"),
    ),
    Metric("agent_spend_usd_total", "counter", "Dollars spent on model calls.", _AM, "usd"),
    Metric("agent_wasted_usd_total", "counter", "Dollars spent after a turn's first stuck verdict.", _A, "usd"),
    Metric("agent_wasted_tool_calls_total", "counter", "Tool calls made after a turn's first stuck verdict.", _AT),
    Metric("agent_unpriced_model_calls_total", "counter", "Model calls whose model has no known price.", ("model",)),
    Metric("agent_model_calls_without_usage_total", "counter", "Model calls that reported no token usage.", _A),
    Metric(
        "agent_turns_judged_total",
        "counter",
        "Turns ended, by how much the loop engine could see of them.",
        ("agent", "mode"),
    ),
    Metric(
        "agent_budget_warnings_total",
        "counter",
        "Warnings that a limit is half, four fifths or wholly used.",
        ("agent", "limit"),
    ),
    Metric("agent_goal_checks_total", "counter", "Goal checks at the end of a turn, by verdict.", ("agent", "verdict")),
    Metric("agent_iterations", "histogram", "Model calls of a turn.", ("agent", "stop_reason"), buckets=COUNT_BUCKETS),
    Metric("agent_turn_tool_calls", "histogram", "Tool calls of a turn.", _A, buckets=COUNT_BUCKETS),
    Metric("agent_turn_spend_usd", "histogram", "Dollars a turn spent.", _A, "usd", USD_BUCKETS),
    Metric("agent_turn_duration_seconds", "histogram", "Seconds a turn took.", _A, "s", TURN_SECONDS),
    Metric("agent_model_call_duration_seconds", "histogram", "Seconds a model call took.", _AM, "s", CALL_SECONDS),
    Metric("agent_tool_call_duration_seconds", "histogram", "Seconds a tool call took.", _AT, "s", CALL_SECONDS),
    Metric(
        "agent_turn_identical_calls_max",
        "gauge",
        "Largest number of identical tool calls within one turn, started in the trailing window.",
        _AT,
    ),
    Metric(
        "agent_turn_stale_calls_max",
        "gauge",
        "Largest number of identical tool calls with the same result while nothing changed, within one turn, "
        "started in the trailing window.",
        _AT,
    ),
    Metric("agent_turn_iterations_max", "gauge", "Most model calls of a turn active in the trailing window.", _A),
    Metric("agent_turn_tool_calls_max", "gauge", "Most tool calls of a turn active in the trailing window.", _A),
    Metric(
        "agent_turn_spend_usd_max",
        "gauge",
        "Most dollars of a turn active in the trailing window, child turns included.",
        _A,
    ),
    Metric(
        "agent_turn_tokens_max",
        "gauge",
        "Most tokens of a turn active in the trailing window, child turns included.",
        _A,
    ),
    Metric(
        "agent_conversation_model_calls_max",
        "gauge",
        "Most model calls of a conversation active in the trailing window.",
        _A,
    ),
    Metric(
        "agent_conversation_spend_usd_max",
        "gauge",
        "Most dollars of a conversation active in the trailing window.",
        _A,
    ),
    Metric(
        "agent_conversation_identical_calls_max",
        "gauge",
        "Largest number of identical tool calls over the turns of a conversation active in the trailing window.",
        _A,
    ),
    Metric("agent_open_turns", "gauge", "Turns open now.", _A),
    Metric("agent_open_turn_age_seconds_max", "gauge", "Age of the oldest open turn.", _A),
    Metric("turnwatch_build_info", "gauge", "Version of turnwatch; always 1.", ("version",)),
    Metric(
        "turnwatch_settings_faults",
        "gauge",
        "Settings that are wrong and were left out when the process began; a limit or a response may be among them.",
        (),
    ),
    Metric("turnwatch_internal_errors_total", "counter", "Errors inside turnwatch that were kept from the agent.", ()),
    Metric(
        "turnwatch_label_values_folded_total",
        "counter",
        "Samples whose label value was folded to __other__ because the bound was reached.",
        ("label",),
    ),
    Metric(
        "turnwatch_fingerprint_missing_total",
        "counter",
        "Tool calls whose arguments the source did not carry.",
        ("source",),
    ),
    Metric("turnwatch_spans_total", "counter", "Spans read, by outcome.", ("outcome",)),
    Metric("turnwatch_turns_evicted_total", "counter", "Turns dropped before they ended, by reason.", ("reason",)),
    Metric(
        "turnwatch_requests_total",
        "counter",
        "Export requests that the service received, by signal and what became of them.",
        ("signal", "outcome"),
    ),
    Metric(
        "turnwatch_forwarded_total",
        "counter",
        "Spans and log records passed on by the service; for metrics, requests.",
        ("signal",),
    ),
    Metric(
        "turnwatch_forward_dropped_total",
        "counter",
        "Spans and log records that were accepted but not passed on, by reason; for metrics, requests.",
        ("signal", "reason"),
    ),
    Metric(
        "turnwatch_forward_retries_total",
        "counter",
        "Attempts to pass a request on that failed and are made again.",
        (),
    ),
    Metric(
        "turnwatch_forward_queue_ratio",
        "gauge",
        "How full the queue of what is to be passed on is, from 0 to 1; what finds no room is dropped.",
        (),
    ),
)

BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in CATALOGUE}

CLOSED_LABELS: Final[dict[str, tuple[str, ...]]] = {
    "outcome": get_args(Outcome),
    "stop_reason": STOP_REASONS,
    "result": REPEAT_RESULTS,
    "kind": get_args(Kind),
    "severity": get_args(Severity),
    "type": TOKEN_TYPES,
    "mode": get_args(Mode),
    "limit": (*LIMIT_NAMES, *(f"conversation_{name}" for name in LIMIT_NAMES)),
    "verdict": (*get_args(GoalVerdict), "error"),
}
"""Every value of the labels of agents' metrics that no agent, tool or model gives its name to."""
