"""What each tool of each agent does."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from turnwatch.top.marks import Marks
from turnwatch.top.reading import Table
from turnwatch.top.rows import ToolRow

_PER_MINUTE: Final = 60.0


def tool_rows(levels: Table, rates: Table, marks: Marks) -> list[ToolRow]:
    """One row for each tool of each agent, in no order.

    Args:
        levels: Gauges of the sources that are up.
        rates: Their counters per second.
        marks: From which numbers on a tool is worth a look.
    """
    identical = levels.get("agent_turn_identical_calls_max", {})
    stale = levels.get("agent_turn_stale_calls_max", {})
    repeats = rates.get("agent_repeat_results_total", {})
    calls: dict[tuple[str, ...], float] = defaultdict(float)
    errors: dict[tuple[str, ...], float] = defaultdict(float)
    for (agent, tool, outcome), rate in rates.get("agent_tool_calls_total", {}).items():
        calls[agent, tool] += rate * _PER_MINUTE
        errors[agent, tool] += rate * _PER_MINUTE if outcome == "error" else 0.0
    rows = []
    for key in {**identical, **stale, **repeats, **calls}:
        agent, tool = key
        limit = marks.identical_calls(agent, tool)
        rows.append(
            ToolRow(
                agent=agent,
                tool=tool,
                is_repeating=limit is not None and identical.get(key, 0.0) > limit,
                is_stale=limit is not None and stale.get(key, 0.0) > limit,
                identical_calls=identical.get(key),
                stale_calls=stale.get(key),
                repeats_per_minute=repeats[key] * _PER_MINUTE if key in repeats else None,
                calls_per_minute=calls.get(key),
                errors_per_minute=errors.get(key),
            )
        )
    return rows
