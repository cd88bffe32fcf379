"""Which metrics ``turnwatch top`` reads, and how each folds over replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from turnwatch.metrics.catalogue import BY_NAME


@dataclass(frozen=True, slots=True)
class Quantity:
    """One metric as it is shown.

    Attributes:
        metric: Its name in the catalogue.
        by: Labels that are kept apart; everything else (replicas, models) is folded.
        fold: "max" for what must not add up over replicas: one duplicate in each of three is not a loop.
        only: Label values that count, by label.
        is_rated: A counter that is shown per unit of time.
        is_tallied: A counter whose rises since the start are kept.
    """

    metric: str
    by: tuple[str, ...]
    fold: Literal["sum", "max"] = "sum"
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    is_rated: bool = False
    is_tallied: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.by) - set(BY_NAME[self.metric].labels)
        if unknown:
            raise ValueError(f"{self.metric} has no label {', '.join(sorted(unknown))}")

    def group_of(self, labels: dict[str, str]) -> tuple[str, ...] | None:
        """The values of ``by`` for a series with these labels; None where the series does not count."""
        for label, values in self.only:
            if labels.get(label) not in values:
                return None
        return tuple(labels.get(label, "") for label in self.by)


_A: Final = ("agent",)
_AT: Final = ("agent", "tool")

LEVELS: Final = (
    Quantity("agent_open_turns", _A),
    Quantity("agent_open_turn_age_seconds_max", _A, "max"),
    Quantity("agent_turn_iterations_max", _A, "max"),
    Quantity("agent_turn_spend_usd_max", _A, "max"),
    Quantity("agent_turn_identical_calls_max", _AT, "max"),
    Quantity("agent_turn_stale_calls_max", _AT, "max"),
)
"""Gauges."""

COUNTERS: Final = (
    Quantity("agent_tool_calls_total", ("agent", "tool", "outcome"), is_rated=True),
    Quantity("agent_repeat_results_total", _AT, is_rated=True),
    # Cache reads and writes are part of input, reasoning is part of output.
    Quantity("agent_tokens_total", _A, only=(("type", ("input", "output")),), is_rated=True),
    Quantity("agent_spend_usd_total", _A, is_rated=True, is_tallied=True),
    Quantity("agent_loops_detected_total", ("agent", "tool", "kind", "severity"), is_tallied=True),
    Quantity("agent_guard_stops_total", ("agent", "stop_reason"), is_tallied=True),
    Quantity("agent_iteration_limit_exceeded_total", _A, is_tallied=True),
    Quantity("agent_unpriced_model_calls_total", ("model",), is_tallied=True),
)

BY_METRIC: Final = {quantity.metric: quantity for quantity in (*LEVELS, *COUNTERS)}

VERDICTS: Final = "agent_loops_detected_total"
VERDICTS_CREATED: Final = "agent_loops_detected_created"
"""When each series of verdicts began: at its first verdict, for there is none before."""

READ: Final = frozenset({*BY_METRIC, VERDICTS_CREATED})
"""Names of the series that are read at all."""

PREFIXES: Final = ("agent_", "turnwatch_")
"""How the name of every metric of the catalogue begins. Other products have an ``agent_`` something, too."""
