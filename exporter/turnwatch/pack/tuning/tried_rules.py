"""What each rule of the pack would have fired on, at its present threshold and at others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from turnwatch.pack.tuning.alert_thresholds import AlertThresholds
from turnwatch.pack.tuning.outcomes import Outcome
from turnwatch.pack.tuning.runs import OF_CONVERSATIONS, AgentRuns, Group, Quantity, Runs


@dataclass(frozen=True, slots=True)
class TriedRule:
    """One threshold that is tried.

    Attributes:
        alert: The alert that asks for it; "" for a limit of the guards that no alert asks for.
        what: The quantity in words.
        quantity: What is compared with the threshold.
        key: The threshold's name in ``_config.thresholds``; "" for limits of the guards.
        ladder: Thresholds to try. Each is a "more than" and has three significant digits at most.
        unit: USD or s; "" for counts.
    """

    alert: str
    what: str
    quantity: Quantity
    key: str
    ladder: tuple[float, ...]
    unit: str = ""

    @property
    def of(self) -> str:
        """What is flagged: turns or conversations."""
        return "conversations" if self.quantity in OF_CONVERSATIONS else "turns"


_CALLS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)
_COUNTS: Final = (3, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500)
_DOLLARS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)

RULES: Final = (
    TriedRule(
        "AgentDuplicateToolCalls", "identical calls in a turn", Quantity.IDENTICAL_CALLS, "identicalCalls", _CALLS
    ),
    TriedRule(
        "AgentDuplicateToolCalls (critical)",
        "stale calls (same result, nothing changed)",
        Quantity.STALE_CALLS,
        "identicalCalls",
        _CALLS,
    ),
    TriedRule("AgentIterationsHigh", "model calls of a turn", Quantity.ITERATIONS, "iterations", _COUNTS),
    TriedRule("", "tool calls of a turn (budgets.max_tool_calls)", Quantity.TOOL_CALLS, "", _COUNTS),
    TriedRule(
        "AgentTurnTokensHigh",
        "tokens of a turn",
        Quantity.TOKENS,
        "turnTokens",
        (20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000),
    ),
    TriedRule("AgentTurnSpendHigh", "dollars of a turn", Quantity.SPEND_USD, "turnSpendUsd", _DOLLARS, "USD"),
    TriedRule(
        "AgentTurnLatencyHigh",
        "seconds of a turn (the alert asks for one in twenty)",
        Quantity.SECONDS,
        "turnSeconds",
        (30, 60, 120, 300, 600, 1_800, 3_600),
        "s",
    ),
    TriedRule(
        "AgentTurnStuckOpen",
        "seconds that a turn was open",
        Quantity.SECONDS,
        "openTurnSeconds",
        (300, 900, 1_800, 3_600, 7_200, 14_400),
        "s",
    ),
    TriedRule(
        "AgentConversationRunaway",
        "model calls of a conversation",
        Quantity.CONVERSATION_MODEL_CALLS,
        "conversationModelCalls",
        (20, 50, 100, 200, 300, 500, 1_000),
    ),
    TriedRule(
        "AgentConversationRunaway",
        "dollars of a conversation",
        Quantity.CONVERSATION_SPEND_USD,
        "conversationSpendUsd",
        _DOLLARS,
        "USD",
    ),
    TriedRule(
        "AgentConversationRunaway",
        "identical calls over a conversation",
        Quantity.CONVERSATION_IDENTICAL_CALLS,
        "conversationIdenticalCalls",
        (2, 3, 5, 8, 10, 20, 50),
    ),
)


@dataclass(frozen=True, slots=True)
class Flagged:
    """What one threshold would have fired on.

    Attributes:
        threshold: The "more than"; None for the present settings, which may have several, and for verdicts.
        flagged, all: Turns (or conversations) past it, and all of which the quantity is known.
        succeeded, all_succeeded, failed, all_failed: The same of those whose outcome is known.
        guessed: Of those that succeeded or failed, how many did so by how they ended only: nobody recorded it.
    """

    threshold: float | None
    flagged: int
    all: int
    succeeded: int
    all_succeeded: int
    failed: int
    all_failed: int
    guessed: int = 0

    @property
    def precision(self) -> float | None:
        """Of the flagged ones with a known outcome, the share that failed; None when there are none.

        It is a guess as far as outcomes are ``guessed``.
        """
        known = self.succeeded + self.failed
        return self.failed / known if known else None

    @classmethod
    def of(cls, groups: Iterable[tuple[Group, int, int]], threshold: float | None = None) -> Flagged:
        """Add up groups, each with how many of it are flagged and how many there are."""
        counts = [0] * 7
        for group, flagged, total in groups:
            counts[0] += flagged
            counts[1] += total
            if group.outcome is not Outcome.UNKNOWN:
                at = 2 if group.outcome is Outcome.SUCCESS else 4
                counts[at] += flagged
                counts[at + 1] += total
                counts[6] += flagged * group.is_guess
        return cls(threshold, *counts)


def tried(rule: TriedRule, agents: dict[str, AgentRuns], thresholds: AlertThresholds) -> tuple[Flagged, list[Flagged]]:
    """What a rule would have fired on: as it is set now, and at each step of its ladder as far as anything is past it.

    Args:
        rule: The rule.
        agents: The agents to count.
        thresholds: The thresholds in force.
    """
    ladder: list[Flagged] = []
    for threshold in rule.ladder:
        step = _counted(agents, rule.quantity, threshold, _the_same(threshold))
        if not step.flagged:
            break
        if ladder and step.flagged == step.all:  # of thresholds that flag everything the last one will do
            ladder.pop()
        ladder.append(step)
    return _now(rule, agents, thresholds), ladder


def paging(rule: TriedRule, agents: dict[str, AgentRuns], thresholds: AlertThresholds) -> Flagged | None:
    """What a rule would have paged for, past the critical thresholds in force; None where it has none."""
    if not rule.key or not thresholds.pages(rule.key):
        return None
    return _counted(agents, rule.quantity, None, lambda agent: thresholds.of_agent(rule.key, agent, "critical"))


def _the_same(threshold: float) -> Callable[[str], float]:
    """A threshold that is every agent's."""
    return lambda _: threshold


def _now(rule: TriedRule, agents: dict[str, AgentRuns], thresholds: AlertThresholds) -> Flagged:
    if rule.quantity in (Quantity.IDENTICAL_CALLS, Quantity.STALE_CALLS):
        return Flagged.of(
            (group, agent.flagged[rule.quantity, group], len(values))
            for agent in agents.values()
            for (kind, group), values in agent.values.items()
            if kind is rule.quantity
        )
    if not rule.key:
        return _counted(agents, rule.quantity, None, lambda _: float("inf"))
    return _counted(agents, rule.quantity, None, lambda agent: thresholds.of_agent(rule.key, agent))


def _counted(
    agents: dict[str, AgentRuns], quantity: Quantity, threshold: float | None, of_agent: Callable[[str], float]
) -> Flagged:
    groups = (
        (group, values.past(of_agent(name)), len(values))
        for name, agent in agents.items()
        for (kind, group), values in agent.values.items()
        if kind is quantity
    )
    return Flagged.of(groups, threshold)


def flagged_by(agent: AgentRuns, quantity: Quantity, threshold: float) -> Flagged:
    """What one threshold would have fired on for one agent."""
    return _counted({"": agent}, quantity, threshold, _the_same(threshold))


def verdicts(agents: dict[str, AgentRuns]) -> Iterator[tuple[str, Flagged]]:
    """What the engine's own verdicts would have fired on: stuck (critical), and stuck or warned."""
    for name, severities in (("stuck", {"stuck"}), ("stuck or warned", {"stuck", "warn"})):
        groups = (
            (group, turns if group.verdict in severities else 0, turns)
            for agent in agents.values()
            for group, turns in agent.turns.items()
        )
        yield name, Flagged.of(groups)


@dataclass(frozen=True, slots=True)
class ToolErrors:
    """How often one tool failed.

    Attributes:
        calls, errors: All calls, and those that failed.
        limit: The share past which AgentToolErrorsHigh fires.
    """

    tool: str
    calls: int
    errors: int
    limit: float

    @property
    def share(self) -> float:
        """The share of its calls that failed."""
        return self.errors / self.calls if self.calls else 0.0


def tool_errors(runs: Runs, thresholds: AlertThresholds) -> list[ToolErrors]:
    """Every tool that failed at all, the worst first."""
    found = [
        ToolErrors(name, tool.calls, tool.errors, thresholds.of_tool("toolErrorShare", name))
        for name, tool in runs.tools.items()
        if tool.errors
    ]
    return sorted(found, key=lambda tool: (-tool.share, tool.tool))
