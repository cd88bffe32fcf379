"""What each agent does, and whether it is worth a look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from turnwatch.top.journal import Journal, Sort
from turnwatch.top.marks import RECENT_SECONDS, Marks, State
from turnwatch.top.quantities import COUNTERS, VERDICTS
from turnwatch.top.reading import Group, Table
from turnwatch.top.rows import AgentRow, ToolRow

_PER_MINUTE: Final = 60.0
_PER_HOUR: Final = 3600.0
_OF_AGENTS: Final = tuple(quantity for quantity in COUNTERS if quantity.is_tallied and quantity.by[0] == "agent")


class AgentRows:
    """Makes the rows.

    Args:
        levels: Gauges of the sources that are up.
        rates: Their counters per second.
        tallies: Rises of counters since the start, of all sources.
        totals: What counters of verdicts stand at, of all sources.
        tools: The rows of the tools.
        journal: What happened so far.
        marks: From which numbers on an agent is worth a look.
        at: Unix time.
    """

    def __init__(
        self,
        levels: Table,
        rates: Table,
        tallies: Table,
        totals: Table,
        tools: Sequence[ToolRow],
        journal: Journal,
        marks: Marks,
        at: float,
    ) -> None:
        self._levels = levels
        self._rates = rates
        self._tallies = tallies
        self._marks = marks
        self._tools: dict[str, list[ToolRow]] = defaultdict(list)
        for tool in tools:
            self._tools[tool.agent].append(tool)
        self._recently: dict[Sort, set[str]] = {
            sort: {agent for agent, last in journal.last(sort).items() if at - last < RECENT_SECONDS}
            for sort in ("stuck", "warn")
        }
        self._there = {group[0] for column in levels.values() for group in column} | set(self._tools)
        self._stuck = _by_agent(tallies.get(VERDICTS, {}), severity="stuck")
        self._warned = _by_agent(tallies.get(VERDICTS, {}), severity="warn")
        self._stops = _by_agent(tallies.get("agent_guard_stops_total", {}))
        self._stuck_in_all = _by_agent(totals.get(VERDICTS, {}), severity="stuck")
        self._warned_in_all = _by_agent(totals.get(VERDICTS, {}), severity="warn")

    def all(self) -> list[AgentRow]:
        """One row for each agent that there is or was, in no order."""
        ever = {group[0] for quantity in _OF_AGENTS for group in self._tallies.get(quantity.metric, ())}
        return [self._row(agent) for agent in self._there | ever]

    def _row(self, agent: str) -> AgentRow:
        tools = self._tools.get(agent, [])
        worst = max(tools, key=_badness, default=None)
        return AgentRow(
            agent=agent,
            state=self._state(agent, tools),
            open_turns=self._level("agent_open_turns", agent),
            oldest_seconds=self._level("agent_open_turn_age_seconds_max", agent),
            iterations=self._level("agent_turn_iterations_max", agent),
            identical_calls=max(_known(tool.identical_calls for tool in tools), default=None),
            stale_calls=max(_known(tool.stale_calls for tool in tools), default=None),
            worst_tool=worst.tool if worst is not None and repeats_itself(worst) else "",
            repeats_per_minute=_sum(tool.repeats_per_minute for tool in tools),
            calls_per_minute=_sum(tool.calls_per_minute for tool in tools),
            errors_per_minute=_sum(tool.errors_per_minute for tool in tools),
            tokens_per_minute=self._rate("agent_tokens_total", agent, _PER_MINUTE),
            usd_per_hour=self._rate("agent_spend_usd_total", agent, _PER_HOUR),
            turn_usd=self._level("agent_turn_spend_usd_max", agent),
            spent_usd=self._tallies.get("agent_spend_usd_total", {}).get((agent,), 0.0),
            stuck_verdicts=self._stuck[agent],
            warn_verdicts=self._warned[agent],
            guard_stops=self._stops[agent],
            stuck_verdicts_total=self._stuck_in_all[agent],
            warn_verdicts_total=self._warned_in_all[agent],
            is_repeating=any(tool.is_repeating for tool in tools),
            is_stale=any(tool.is_stale for tool in tools),
        )

    def _state(self, agent: str, tools: Sequence[ToolRow]) -> State:
        if agent not in self._there:
            return "gone"
        if agent in self._recently["stuck"] or any(tool.is_stale for tool in tools):
            return "STUCK"
        iterations = self._level("agent_turn_iterations_max", agent) or 0.0
        if (
            agent in self._recently["warn"]
            or any(tool.is_repeating for tool in tools)
            or iterations > self._marks.iterations(agent)
        ):
            return "WARN"
        return "busy" if self._level("agent_open_turns", agent) else "idle"

    def _level(self, metric: str, agent: str) -> float | None:
        return self._levels.get(metric, {}).get((agent,))

    def _rate(self, metric: str, agent: str, scale: float) -> float | None:
        rate = self._rates.get(metric, {}).get((agent,))
        return None if rate is None or agent not in self._there else rate * scale


def _by_agent(column: Mapping[Group, float], severity: str | None = None) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for group, count in column.items():
        if severity is None or group[-1] == severity:
            counts[group[0]] += round(count)
    return counts


def repeats_itself(tool: ToolRow) -> bool:
    """Whether the tool was called twice with the same arguments lately."""
    return (tool.identical_calls or 0.0) > 1 or (tool.stale_calls or 0.0) > 1 or bool(tool.repeats_per_minute)


def _badness(tool: ToolRow) -> tuple[float, float, float, str]:
    return tool.stale_calls or 0.0, tool.identical_calls or 0.0, tool.repeats_per_minute or 0.0, tool.tool


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _sum(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) if known else None
