"""What agents and tools did over all turns of a scan, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar, final

from cachetools import LRUCache

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import OTHER

_MAX_AGENTS: Final = 500
_MAX_TOOLS: Final = 2_000
_MAX_OPEN: Final = 10_000


@dataclass(slots=True)
class AgentTotals:
    """What one agent did. Tokens and dollars are those of its own model calls, where they are known."""

    turns: int = 0
    stuck: int = 0
    warned: int = 0
    iterations: int = 0
    tool_calls: int = 0
    repeats: int = 0
    duplicates: int = 0
    missing_arguments: int = 0
    tokens: int = 0
    spend_usd: float = 0.0
    wasted_tool_calls: int = 0
    wasted_usd: float = 0.0

    def add(self, turn: TurnState) -> None:
        """Add an ended turn."""
        severity = None if turn.verdict is None else turn.verdict.severity
        self.turns += 1
        self.stuck += severity == "stuck"
        self.warned += severity == "warn"
        self.iterations += turn.iterations
        self.tool_calls += turn.tool_calls
        self.repeats += turn.repeats
        self.duplicates += turn.duplicates
        self.missing_arguments += turn.missing_arguments
        self.tokens += 0 if turn.usage is None else turn.usage.total
        self.spend_usd += turn.spend_usd or 0.0
        self.wasted_tool_calls += turn.wasted_tool_calls
        self.wasted_usd += turn.wasted_usd


@dataclass(slots=True)
class ToolTotals:
    """What was asked of one tool.

    Attributes:
        calls: Calls, cached and denied ones included.
        errors: Those that failed.
        same, changed: Those whose result, or error, was or was not the one that the same call of the turn had before.
        unknown: Those that were made before in the turn, where the results are not known.
        wasted: Those after the first stuck verdict of their turn.
        stuck_turns: Turns whose first stuck verdict fell at this tool.
    """

    calls: int = 0
    errors: int = 0
    same: int = 0
    changed: int = 0
    unknown: int = 0
    wasted: int = 0
    stuck_turns: int = 0

    @property
    def repeats(self) -> int:
        """Calls that were made before in their turn."""
        return self.same + self.changed + self.unknown

    def add(self, outcome: str, against_before: str | None, *, is_wasted: bool) -> None:
        """Add an ended call."""
        self.calls += 1
        self.errors += outcome == "error"
        self.same += against_before == "same"
        self.changed += against_before == "changed"
        self.unknown += against_before == "unknown"
        self.wasted += is_wasted


_T = TypeVar("_T", AgentTotals, ToolTotals)


@final
class Totals:
    """A listener (see ``turnwatch.core.listener``) that adds up what it hears, over any number of watches.

    Args:
        by_turn: Also keep what each turn asked of its tools, until ``tools_of`` takes it.

    Attributes:
        all: Over all agents.
        agents: By the agent's name; past a bound under ``__other__``.
        tools: By the tool's name; past a bound under ``__other__``.
    """

    def __init__(self, *, by_turn: bool = False) -> None:
        self.all = AgentTotals()
        self.agents: dict[str, AgentTotals] = {}
        self.tools: dict[str, ToolTotals] = {}
        self._already_stuck: LRUCache[TurnState, bool] = LRUCache(_MAX_OPEN)
        self._by_turn: LRUCache[TurnState, dict[str, ToolTotals]] | None = LRUCache(_MAX_OPEN) if by_turn else None

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """A text reply may be what makes a turn stuck."""
        self._note_stuck(turn)

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Add the call to its tool's."""
        against_before, is_wasted = turn.engine.last.repeat_result, turn in self._already_stuck
        tool = _one_of(self.tools, call.tool, ToolTotals, _MAX_TOOLS)
        tool.add(call.outcome, against_before, is_wasted=is_wasted)
        if self._by_turn is not None:
            tool = _one_of(self._by_turn.setdefault(turn, {}), call.tool, ToolTotals, _MAX_TOOLS)
            tool.add(call.outcome, against_before, is_wasted=is_wasted)
        if not is_wasted:
            self._note_stuck(turn)

    def tools_of(self, turn: TurnState) -> dict[str, ToolTotals]:
        """What an ended turn asked of its tools, by their names; to be asked once."""
        return {} if self._by_turn is None else self._by_turn.pop(turn, {})

    def turn_ended(self, turn: TurnState) -> None:
        """Add the turn to its agent's."""
        self._already_stuck.pop(turn, None)
        self.all.add(turn)
        _one_of(self.agents, turn.agent, AgentTotals, _MAX_AGENTS).add(turn)

    def _note_stuck(self, turn: TurnState) -> None:
        verdict = turn.verdict
        if verdict is not None and verdict.severity == "stuck" and turn not in self._already_stuck:
            self._already_stuck[turn] = True
            _one_of(self.tools, verdict.tool, ToolTotals, _MAX_TOOLS).stuck_turns += 1


def _one_of(known: dict[str, _T], name: str, new: type[_T], bound: int) -> _T:
    found = known.get(name)
    if found is None:
        if len(known) >= bound:
            name = OTHER
        found = known.setdefault(name, new())
    return found
