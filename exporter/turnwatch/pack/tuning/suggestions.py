"""Which limits one's own runs ask for.

A turn is healthy unless it failed or the engine found it stuck. An alert's threshold moves only where it raises false
alarms, and is then half as much again as what all but one in a hundred healthy turns stay under; a guard's limit, which
takes an answer away, is twice that, and never below what a healthy turn has needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from turnwatch.core.printable import many
from turnwatch.core.watch import OTHER, UNKNOWN
from turnwatch.metrics.catalogue import TURN_SECONDS
from turnwatch.pack.tuning.alert_thresholds import AlertThresholds
from turnwatch.pack.tuning.distribution import Distribution
from turnwatch.pack.tuning.runs import AgentRuns, Group, Quantity, Runs, ToolRuns
from turnwatch.pack.tuning.tried_rules import Flagged, flagged_by
from turnwatch.settings import Settings

MIN_TURNS: Final = 50
_ALERT_MARGIN: Final = 1.5
_LIMIT_MARGIN: Final = 2.0
_TOLERATED: Final = 0.01
_TOLERATED_SLOW: Final = 0.05  # the alert on latency asks for one turn in twenty by itself
_MOSTLY: Final = 0.5
MIN_CALLS: Final = 100
_LARGEST_SHARE: Final = 0.9

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One value for the settings file.

    Attributes:
        path: The keys that lead to it.
        value: What to set.
        present: What is in force; None where nothing is.
        why: The evidence, in one sentence or two.
        before, after: What the present value and the suggested one flag of these runs; None where nothing is in force,
            or where it is no turns that are flagged.
    """

    path: Path
    value: float | int
    present: float | int | None
    why: str
    before: Flagged | None = None
    after: Flagged | None = None


@dataclass(frozen=True, slots=True)
class FailingTool:
    """A tool past the present limit for which no number can be suggested."""

    tool: str
    calls: int
    errors: int


@dataclass(frozen=True, slots=True)
class Suggested:
    """What the runs ask for, and where they are too few to ask for anything.

    Attributes:
        changes: Values that differ from what is in force.
        unchanged: How many values the runs confirm.
        too_few: Agents with too few healthy turns, and how many they have.
        too_few_calls: Tools that fail more often than their limit allows, but were called too seldom to say how often.
        always_failing: Tools that fail so often that no limit would be one.
    """

    changes: list[Suggestion]
    unchanged: int
    too_few: dict[str, int]
    too_few_calls: list[FailingTool] = field(default_factory=list)
    always_failing: list[FailingTool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Limit:
    """How one quantity of an agent becomes settings."""

    quantity: Quantity
    of: str
    alert: str
    budget: str
    unit: str = ""


_LIMITS: Final = (
    _Limit(Quantity.ITERATIONS, "model calls", "iterations", "max_steps"),
    _Limit(Quantity.TOOL_CALLS, "tool calls", "", "max_tool_calls"),
    _Limit(Quantity.TOKENS, "tokens", "turnTokens", "max_tokens"),
    _Limit(Quantity.SPEND_USD, "dollars", "turnSpendUsd", "max_usd", "USD"),
    _Limit(Quantity.SECONDS, "seconds", "openTurnSeconds", "max_seconds", "s"),
)
_CONVERSATION_LIMITS: Final = (
    _Limit(Quantity.CONVERSATION_MODEL_CALLS, "model calls", "conversationModelCalls", ""),
    _Limit(Quantity.CONVERSATION_SPEND_USD, "dollars", "conversationSpendUsd", "", "USD"),
    _Limit(Quantity.CONVERSATION_IDENTICAL_CALLS, "identical calls", "conversationIdenticalCalls", ""),
)


def suggest(runs: Runs, settings: Settings, thresholds: AlertThresholds, min_turns: int = MIN_TURNS) -> Suggested:
    """Limits for every agent and tool with enough runs.

    Args:
        runs: What was seen.
        settings: What is set now.
        thresholds: The pack's thresholds under these settings.
        min_turns: Healthy turns that an agent must have, or that must have used a tool.
    """
    return _Suggester(runs, settings, thresholds, min_turns).suggested()


class _Suggester:
    def __init__(self, runs: Runs, settings: Settings, thresholds: AlertThresholds, min_turns: int) -> None:
        self.runs = runs
        self.settings = settings
        self.thresholds = thresholds
        self.min_turns = min_turns

    def suggested(self) -> Suggested:
        found: list[Suggestion] = []
        too_few: dict[str, int] = {}
        for name, agent in _named(self.runs.agents):
            healthy = agent.count(_healthy)
            if healthy < self.min_turns:
                too_few[name] = healthy
            else:
                found += self._of_agent(name, agent)
        for name, tool in _named(self.runs.tools):
            found += self._of_identical_calls(name, tool)
            found += self._of_errors(name, tool)
        changes = [one for one in found if one.value != one.present]
        past_limit = [
            FailingTool(name, tool.calls, tool.errors)
            for name, tool in _named(self.runs.tools)
            if tool.error_share > self.thresholds.of_tool("toolErrorShare", name)
        ]
        return Suggested(
            changes,
            len(found) - len(changes),
            too_few,
            too_few_calls=[tool for tool in past_limit if tool.calls < MIN_CALLS],
            always_failing=[
                tool for tool in past_limit if tool.calls >= MIN_CALLS and _always_fails(self.runs.tools[tool.tool])
            ],
        )

    def _of_agent(self, name: str, agent: AgentRuns) -> Iterator[Suggestion]:
        budgets = self.settings.budgets_of(name)
        present_iterations = iterations = self.thresholds.of_agent("iterations", name)
        for limit in _LIMITS:
            values = agent.of(limit.quantity, _healthy)
            if len(values) < self.min_turns:
                continue
            wanted = rounded(_above(values.quantile(0.99), limit.unit), limit.unit)
            if limit.alert:
                present = self.thresholds.of_agent(limit.alert, name)
                if _raises_false_alarms(agent, limit.quantity, present):
                    yield _alert(name, agent, limit, wanted, present)
                    if limit.quantity is Quantity.ITERATIONS:
                        iterations = wanted
            budget = rounded(max(wanted * _LIMIT_MARGIN, values.largest), limit.unit)
            in_force = getattr(budgets, limit.budget)
            yield Suggestion(
                ("agents", name, "budgets", limit.budget),
                budget,
                in_force,
                f"The most {limit.of} of {many(len(values), 'healthy turn')}: {shown(values.largest, limit.unit)}.",
                None if in_force is None else flagged_by(agent, limit.quantity, in_force),
                flagged_by(agent, limit.quantity, budget),
            )
        yield from self._of_latency(name, agent)
        if self.runs.has_conversations:
            yield from self._of_conversations(name, agent, iterations / present_iterations)

    def _of_latency(self, name: str, agent: AgentRuns) -> Iterator[Suggestion]:
        values = agent.of(Quantity.SECONDS, _healthy)
        if len(values) < self.min_turns:
            return
        slow = values.quantile(0.95)
        # The alert reads a histogram, which knows its boundaries only.
        boundary = next((bound for bound in TURN_SECONDS if bound >= slow * _ALERT_MARGIN), None)
        present = self.thresholds.of_agent("turnSeconds", name)
        if boundary is not None and _raises_false_alarms(agent, Quantity.SECONDS, present, _TOLERATED_SLOW):
            yield Suggestion(
                ("alerts", "agents", name, "turnSeconds"),
                _plain(boundary),
                _plain(present),
                f"One healthy turn in twenty takes {shown(slow, 's')} s or more; a boundary of the histogram.",
                flagged_by(agent, Quantity.SECONDS, present),
                flagged_by(agent, Quantity.SECONDS, boundary),
            )

    def _of_conversations(self, name: str, agent: AgentRuns, more_iterations: float) -> Iterator[Suggestion]:
        for limit in _CONVERSATION_LIMITS:
            values = agent.of(limit.quantity, _healthy)
            present = in_force = self.thresholds.of_agent(limit.alert, name)
            if limit.quantity is Quantity.CONVERSATION_MODEL_CALLS:  # moves with the agent's iterations
                in_force = math.ceil(present * more_iterations)
            if len(values) >= self.min_turns and _raises_false_alarms(agent, limit.quantity, in_force):
                wanted = rounded(_above(values.quantile(0.99), limit.unit), limit.unit)
                yield _alert(name, agent, limit, wanted, present, in_force, "conversation")

    def _of_identical_calls(self, name: str, tool: ToolRuns) -> Iterator[Suggestion]:
        override = self.settings.tools.overrides.get(name)
        counts = Distribution.of_all(values for group, values in tool.identical_calls.items() if group.is_healthy)
        if (override and override.polling) or len(counts) < self.min_turns:
            return
        present = self.thresholds.of_tool("identicalCalls", name)
        flagged = sum(count for group, count in tool.flagged.items() if group.is_healthy)
        if flagged > _TOLERATED * len(counts):
            known = tool.same + tool.changed
            results = f" {tool.changed / known:.0%} of its repeats brought another result." if known else ""
            wanted = int(counts.quantile(0.99))
            yield Suggestion(
                ("tools", "overrides", name, "max_identical_calls"),
                wanted,
                _plain(present),
                f"{flagged} of {many(len(counts), 'healthy turn')} with this tool ({flagged / len(counts):.0%}) made "
                f"more identical calls than the present {shown(present)}.{results} Calls in vain still page: "
                "AgentLoopDetected.",
                Flagged.of((group, tool.flagged[group], len(each)) for group, each in tool.identical_calls.items()),
                Flagged.of((group, each.past(wanted), len(each)) for group, each in tool.identical_calls.items()),
            )

    def _of_errors(self, name: str, tool: ToolRuns) -> Iterator[Suggestion]:
        share = tool.error_share
        limit = self.thresholds.of_tool("toolErrorShare", name)
        if tool.calls < MIN_CALLS or share * _ALERT_MARGIN <= limit or _always_fails(tool):
            return
        path = ("alerts", "tools", name, "toolErrorShare")
        warning = min(_LARGEST_SHARE, rounded(share * _ALERT_MARGIN, "USD"))
        why = f"{tool.errors} of its {tool.calls} calls failed ({share:.0%}): is it broken, or is that its way?"
        yield Suggestion((*path, "warning"), warning, limit, why)
        critical = round((1 + warning) / 2, 2)
        present = self.thresholds.of_tool("toolErrorShare", name, "critical")
        yield Suggestion((*path, "critical"), critical, present, "Half way from the warning one to all of them.")


_T = TypeVar("_T", AgentRuns, ToolRuns)


def _named(found: dict[str, _T]) -> list[tuple[str, _T]]:
    """Those that a setting can name."""
    return [(name, runs) for name, runs in sorted(found.items()) if name not in (OTHER, UNKNOWN)]


def _healthy(group: Group) -> bool:
    return group.is_healthy


def _raises_false_alarms(agent: AgentRuns, quantity: Quantity, present: float, tolerated: float = _TOLERATED) -> bool:
    """Whether a threshold flags too many healthy turns, and they are most of what it flags.

    Where most of what it flags did fail, the threshold is right more often than not: a larger one would miss that.
    """
    healthy = agent.of(quantity, _healthy)
    false_alarms = healthy.past(present)
    return false_alarms > max(tolerated * len(healthy), _MOSTLY * agent.of(quantity).past(present))


def _always_fails(tool: ToolRuns) -> bool:
    return tool.error_share >= _LARGEST_SHARE


def _alert(
    name: str,
    agent: AgentRuns,
    limit: _Limit,
    wanted: float,
    present: float,
    in_force: float | None = None,
    of: str = "turn",
) -> Suggestion:
    """A threshold of an alert, with what it flags now (at ``in_force``, if that is not ``present``) and then."""
    now = present if in_force is None else in_force
    return Suggestion(
        _alert_path(name, limit.alert),
        wanted,
        _plain(present),
        _evidence(agent, limit, now, of),
        flagged_by(agent, limit.quantity, now),
        flagged_by(agent, limit.quantity, wanted),
    )


def _evidence(agent: AgentRuns, limit: _Limit, present: float, of: str) -> str:
    everything = agent.of(limit.quantity)
    healthy = agent.of(limit.quantity, _healthy)
    flagged = everything.past(present)
    return (
        f"{many(len(everything), of)}, {len(healthy)} of them healthy, of whose {limit.of} the median is "
        f"{shown(healthy.quantile(0.5), limit.unit)} and p99 {shown(healthy.quantile(0.99), limit.unit)}; the present "
        f"{shown(present, limit.unit)} would have flagged {flagged} ({flagged / len(everything):.0%}), "
        f"{healthy.past(present)} of them healthy."
    )


def _alert_path(agent: str, key: str) -> Path:
    return ("agents", agent, "iteration_threshold") if key == "iterations" else ("alerts", "agents", agent, key)


def _above(value: float, unit: str) -> float:
    """Past a value by the margin; past a small count by two at least."""
    return value * _ALERT_MARGIN if unit else max(value * _ALERT_MARGIN, value + 2)


def rounded(value: float, unit: str = "") -> float | int:
    """Up to a number that people would choose: two significant digits, whole where it is no dollars."""
    if value <= 0:
        return 1
    exponent = math.floor(math.log10(value)) - 1
    if unit != "USD":
        exponent = max(0, exponent)
    scale = 10.0**exponent
    return _plain(round(math.ceil(value / scale - 1e-9) * scale, max(0, -exponent)))


def shown(value: float, unit: str = "") -> str:
    """A value as people write it."""
    if unit == "USD":
        return f"{value:.3g}" if value < 10 else f"{value:,.2f}"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value
