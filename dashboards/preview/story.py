"""The hour that the pictures show: an agent gets stuck and is noticed."""

import math
import random
from collections.abc import Iterator
from itertools import accumulate, pairwise

from hour_of_data import STEP_SECONDS, STEPS

from turnwatch.metrics.catalogue import CLOSED_LABELS, Metric

Labels = dict[str, str]

USES = {
    "coder": ("read_file", "run_tests"),
    "researcher": ("fetch_page", "web_search"),
    "support-bot": ("search_orders", "send_reply"),
}
STUCK, NOTICED, STOPPED = 78, 82, 200
"""Steps: the loop begins, its alert fires, a guard ends the turn (after what the pictures show)."""
LONGER = range(16, 30)
"""Steps: another agent takes longer than it should, and still comes to an end."""
LOOP = {"agent": "support-bot", "tool": "search_orders"}
ALERTS = (
    ({"alertname": "AgentLoopDetected", "severity": "critical", **LOOP}, NOTICED, STOPPED + 10),
    ({"alertname": "AgentDuplicateToolCalls", "severity": "warning", **LOOP}, NOTICED + 2, STOPPED + 10),
    ({"alertname": "AgentIterationsHigh", "severity": "warning", "agent": "support-bot"}, NOTICED + 5, STOPPED + 10),
    ({"alertname": "AgentIterationsHigh", "severity": "warning", "agent": "coder"}, LONGER.start + 2, LONGER.stop),
)

# Events a minute of one series, where they are not 4.
PER_MINUTE = {
    "agent_tokens_total": 9000.0,
    "agent_spend_usd_total": 0.04,
    "agent_repeat_results_total": 0.4,
    "agent_tool_calls_total": 6.0,
    "turnwatch_spans_total": 240.0,
    "turnwatch_forwarded_total": 240.0,
}
SHARE_OF = {
    "outcome": {"error": 0.04, "rejected": 0.0},
    "stop_reason": {"max_iterations": 0.03, "error": 0.02, "loop_detected": 0.0},
    "model": {"claude-haiku-4-5": 0.4},
    "type": {"output": 0.12, "cache_read": 0.5, "cache_write": 0.06, "reasoning": 0.05},
    "mode": {"args_only": 0.15, "none": 0.02},
    "result": {"same": 0.5, "unknown": 0.1},
}
# Counters of what goes wrong: nothing happens but in the loop.
ONLY_IN_THE_LOOP = {
    "agent_duplicate_tool_calls_total": 8.0,
    "agent_loops_detected_total": 0.2,
    "agent_wasted_usd_total": 0.12,
    "agent_wasted_tool_calls_total": 8.0,
    "agent_iteration_limit_exceeded_total": 0.1,
    "agent_budget_warnings_total": 0.1,
    "agent_guard_shadow_stops_total": 0.1,
}
RARE = ("unpriced", "without_usage", "guard_stops", "errors", "folded", "missing", "evicted", "dropped", "retries")
# A gauge outside the loop, and what a minute of the loop adds to it.
GAUGES = {
    "agent_turn_identical_calls_max": (1, 0.9),
    "agent_turn_stale_calls_max": (0, 0.85),
    "agent_turn_iterations_max": (4, 1.2),
    "agent_turn_tool_calls_max": (5, 1.2),
    "agent_turn_spend_usd_max": (0.08, 0.13),
    "agent_turn_tokens_max": (14000, 9000),
    "agent_conversation_model_calls_max": (11, 1.2),
    "agent_conversation_spend_usd_max": (0.3, 0.13),
    "agent_conversation_identical_calls_max": (2, 0.9),
    "agent_open_turns": (5, 0),
    "turnwatch_forward_queue_ratio": (0.05, 0),
    "turnwatch_settings_faults": (0, 0),
    "agent_open_turn_age_seconds_max": (35, 60),
}


def increments(totals: list[float]) -> list[float]:
    """How much each total is above the one before."""
    return [now - before for before, now in pairwise([0.0, *totals])]


class Incident:
    """A story for ``hour_of_data``. The same at every run: its noise is seeded by the series."""

    values = {  # noqa: RUF012 - read, never changed
        **CLOSED_LABELS,
        "agent": tuple(USES),
        "tool": tuple(sorted(tool for tools in USES.values() for tool in tools)),
        "model": ("claude-haiku-4-5", "claude-sonnet-4-5"),
        "outcome": ("ok", "error"),
        "stop_reason": ("final_answer", "max_iterations", "error", "loop_detected"),
        "kind": ("stale_repeat",),
        "severity": ("stuck", "warn"),
        "limit": ("max_usd",),
        "version": ("0.1.0",),
        "source": ("langchain",),
        "reason": ("idle",),
        "signal": ("traces", "logs"),
        "label": ("tool",),
    }

    def others(self, start: int) -> Iterator[tuple[str, Labels, list[int | None]]]:
        """The target and the alerts."""
        yield "up", {}, [1 for _ in STEPS]
        for labels, begins, ends in ALERTS:
            yield "ALERTS", {**labels, "alertstate": "firing"}, [1 if begins <= step < ends else None for step in STEPS]
        for labels, begins, ends in ALERTS:
            since = start + begins * STEP_SECONDS
            yield "ALERTS_FOR_STATE", labels, [since if begins <= step < ends else None for step in STEPS]

    def series(self, metric: Metric, labels: Labels) -> list[float]:
        """Nothing for a tool that the agent does not have."""
        agent, tool = labels.get("agent"), labels.get("tool")
        if tool and agent and tool not in USES[agent]:
            return []
        noise = random.Random(f"{metric.name} {labels}")
        in_loop = all(labels.get(name, value) == value for name, value in LOOP.items())
        if metric.type == "gauge":
            values = [self._gauge(metric.name, in_loop and bool(agent), step, noise) for step in STEPS]
            if (metric.name, agent) == ("agent_turn_iterations_max", "coder"):
                return [value + 6 * (step in LONGER) for step, value in zip(STEPS, values, strict=True)]
            return values
        totals = accumulate(self._grows(metric, labels, in_loop, step, noise) for step in STEPS)
        return [total if "usd" in metric.name else math.floor(total) for total in totals]

    def below(self, metric: Metric, labels: Labels, position: int) -> list[float]:
        """Most values fall into the middle buckets, of some series into lower ones, and into higher ones later on."""
        counts = self.series(metric, labels)
        if position >= len(metric.buckets):
            return counts
        middle = len(metric.buckets) / 2 - 2 + 2 * random.Random(str(labels)).random()
        return list(
            accumulate(
                grown / (1 + math.exp(-1.3 * (position - middle - math.sin(step / 25))))
                for step, grown in enumerate(increments(counts))
            )
        )

    def total(self, metric: Metric, labels: Labels) -> list[float]:
        """Between two and five each."""
        usual = 2.5 + 2 * random.Random(str(labels)).random()
        counts = self.series(metric, labels)
        return list(
            accumulate(grown * (usual + 0.5 * math.sin(step / 25)) for step, grown in enumerate(increments(counts)))
        )

    def _gauge(self, name: str, in_loop: bool, step: int, noise: random.Random) -> float:
        usual, a_minute = GAUGES.get(name, (1, 0))
        if name == "turnwatch_build_info":
            return 1
        value = usual + (noise.choice((0, 0, 0, 1)) if usual >= 1 else usual * noise.random() / 4)
        # What the trailing window has seen stays in it for five minutes.
        until = STOPPED + (0 if "open" in name else 10)
        if in_loop and STUCK <= step < until:
            value += (min(step, STOPPED) - STUCK) * a_minute * STEP_SECONDS / 60
        return round(value, 4) if "usd" in name or name.endswith("_ratio") else round(value)

    def _grows(self, metric: Metric, labels: Labels, in_loop: bool, step: int, noise: random.Random) -> float:
        looping = in_loop and STUCK <= step < STOPPED
        if metric.name in ONLY_IN_THE_LOOP:
            right = (
                labels.get("severity", "stuck") == "stuck"
                and labels.get("stop_reason", "loop_detected") == "loop_detected"
            )
            a_minute = ONLY_IN_THE_LOOP[metric.name] if looping and right else 0.0
        elif any(word in metric.name for word in RARE):
            a_minute = 0.02 if labels.get("stop_reason", "max_iterations") == "max_iterations" else 0.0
        else:
            a_minute = PER_MINUTE.get(metric.name, 4.0)
            for label, shares in SHARE_OF.items():
                a_minute *= shares.get(labels.get(label), 1.0)
            if labels.get("stop_reason") == "loop_detected" and in_loop and STOPPED <= step < STOPPED + 4:
                a_minute = 0.5
            if looping and not labels.get("stop_reason") and metric.type == "counter":
                a_minute *= 2.5 if labels.get("result") != "same" else 20
            a_minute *= 1 + 0.25 * math.sin(step / 19 + len(str(labels)))
        return round(a_minute * STEP_SECONDS / 60 * (0.6 + 0.8 * noise.random()), 6)
