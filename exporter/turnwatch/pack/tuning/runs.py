"""What one's runs were like: for each agent and quantity how often each value occurred, by what came of the turn."""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from cachetools import LRUCache

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Severity
from turnwatch.core.watch import OTHER, UNKNOWN, Watch
from turnwatch.pack.tuning.distribution import Distribution
from turnwatch.pack.tuning.outcomes import Outcome
from turnwatch.settings import Settings

_MAX_CONVERSATIONS: Final = 10_000
_MAX_OPEN_TURNS: Final = 10_000


class Quantity(StrEnum):
    """What is measured of a turn, or of its conversation."""

    IDENTICAL_CALLS = "identical_calls"
    STALE_CALLS = "stale_calls"
    ITERATIONS = "iterations"
    TOOL_CALLS = "tool_calls"
    TOKENS = "tokens"
    SPEND_USD = "spend_usd"
    SECONDS = "seconds"
    CONVERSATION_MODEL_CALLS = "conversation_model_calls"
    CONVERSATION_SPEND_USD = "conversation_spend_usd"
    CONVERSATION_IDENTICAL_CALLS = "conversation_identical_calls"


OF_CONVERSATIONS: Final = (
    Quantity.CONVERSATION_MODEL_CALLS,
    Quantity.CONVERSATION_SPEND_USD,
    Quantity.CONVERSATION_IDENTICAL_CALLS,
)


class Group(NamedTuple):
    """Turns that are counted together.

    Attributes:
        outcome: What came of them.
        verdict: The worst that the engine said of them.
        is_guess: Whether the outcome is guessed from how they ended.
    """

    outcome: Outcome
    verdict: Severity | None
    is_guess: bool = False

    @property
    def is_healthy(self) -> bool:
        """Whether limits should let such turns be: they did not fail, and were not stuck."""
        return self.outcome is not Outcome.FAILURE and self.verdict != "stuck"


class AgentRuns:
    """The turns of one agent.

    Attributes:
        turns: How many, by group.
        flagged: How many the present threshold of identical calls would have flagged, by quantity and group.
        values: How often each value occurred, by quantity and group. What is not known is not in it.
    """

    def __init__(self) -> None:
        self.turns: Counter[Group] = Counter()
        self.flagged: Counter[tuple[Quantity, Group]] = Counter()
        self.values: dict[tuple[Quantity, Group], Distribution] = defaultdict(Distribution)

    def of(self, quantity: Quantity, keep: Callable[[Group], bool] = lambda _: True) -> Distribution:
        """One quantity over the turns (or conversations) of some groups."""
        return Distribution.of_all(
            values for (kind, group), values in self.values.items() if kind is quantity and keep(group)
        )

    def count(self, keep: Callable[[Group], bool] = lambda _: True) -> int:
        """The number of turns of some groups."""
        return sum(count for group, count in self.turns.items() if keep(group))


class ToolRuns:
    """The calls of one tool.

    Attributes:
        calls, errors: All calls, and those that failed.
        same, changed: Repeats whose result was known to be the same as before, or another.
        identical_calls: Most identical calls in a turn, over the turns of each group that used the tool.
        flagged: Of those turns the ones that the present threshold would have flagged.
    """

    def __init__(self) -> None:
        self.calls = self.errors = self.same = self.changed = 0
        self.identical_calls: dict[Group, Distribution] = defaultdict(Distribution)
        self.flagged: Counter[Group] = Counter()

    @property
    def error_share(self) -> float:
        """The share of its calls that failed."""
        return self.errors / self.calls if self.calls else 0.0


_T = TypeVar("_T", AgentRuns, ToolRuns)


class _Maxima:
    """Identical and stale calls of one open turn, the most for each tool, and over its conversation."""

    __slots__ = ("conversation", "identical", "stale")

    def __init__(self) -> None:
        self.identical: dict[str, int] = {}
        self.stale: dict[str, int] = {}
        self.conversation = 0


class Runs:
    """Collects what is known of turns while they are scanned.

    It listens to the watches that it makes for the scan, for a turn's state does not keep how often each call was
    made; the rest is taken from the ended turn.

    Attributes:
        settings: The present thresholds.
        agents: By agent, at most as many as the settings allow labels; the rest is ``__other__``.
        tools: By tool, in the same way.
        has_conversations: Whether any conversation has more than one turn. Where none has, its numbers are its turn's.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.agents: dict[str, AgentRuns] = {}
        self.tools: dict[str, ToolRuns] = {}
        self.has_conversations = False
        self._open: LRUCache[TurnState, _Maxima] = LRUCache(_MAX_OPEN_TURNS)
        self._files = 0
        self._file_of: weakref.WeakKeyDictionary[Watch, int] = weakref.WeakKeyDictionary()
        self._conversations: LRUCache[tuple[int, str, str], tuple[Group, dict[Quantity, float]]] = LRUCache(
            _MAX_CONVERSATIONS
        )
        # A parent's totals go on growing when its children stand behind it in the file.
        self._totals: weakref.WeakKeyDictionary[TurnState, tuple[Group, dict[Quantity, float]]] = (
            weakref.WeakKeyDictionary()
        )

    # While a file is scanned

    def new_watch(self) -> Watch:
        """A watch for the turns of one file, which tells of their calls."""
        watch = Watch(self.settings, clock=lambda: 0.0)
        watch.listeners.append(self)
        self._files += 1
        self._file_of[watch] = self._files
        return watch

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """Nothing to note: the turn keeps it."""

    def turn_ended(self, turn: TurnState) -> None:
        """Nothing to do yet: what came of the turn is not known here, see ``add``."""

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Note how often this call has been made by now, and how often in vain."""
        tool = self._tool(call.tool)
        tool.calls += 1
        tool.errors += call.outcome == "error"
        seen = turn.engine.last
        tool.same += seen.repeat_result == "same"
        tool.changed += seen.repeat_result == "changed"
        maxima = self._open.get(turn)
        if maxima is None:
            maxima = self._open[turn] = _Maxima()
        if call.input_hash is None:
            return
        override = self.settings.tools.overrides.get(call.tool)
        if override is not None and override.polling:
            return  # the pack's rules leave it out as well
        label = turn.watch.shown_tool(call.tool)
        _raise(maxima.identical, label, turn.identical_calls(call.tool, call.input_hash))
        _raise(maxima.stale, label, seen.stale_calls)
        if turn.conversation is not None:
            over_turns = turn.conversation.identical_calls(call.tool, call.input_hash)
            maxima.conversation = max(maxima.conversation, over_turns)

    def add(self, turn: TurnState, outcome: Outcome, is_guess: bool = False) -> None:
        """Count a turn that has ended.

        Args:
            turn: The turn.
            outcome: What came of it.
            is_guess: Whether that is guessed from how it ended.
        """
        group = Group(outcome, None if turn.verdict is None else turn.verdict.severity, is_guess)
        agent = self._agent(turn.agent)
        agent.turns[group] += 1
        maxima = self._open.pop(turn, None) or _Maxima()
        self._add_identical(agent, group, turn, maxima)
        values: dict[Quantity, float] = {Quantity.ITERATIONS: turn.iterations, Quantity.TOOL_CALLS: turn.tool_calls}
        if turn.elapsed_seconds > 0:
            values[Quantity.SECONDS] = turn.elapsed_seconds
        for quantity, value in values.items():
            agent.values[quantity, group].add(value)
        self._add_totals(agent, group, turn)
        self._add_conversation(agent, group, turn, maxima)

    def _add_identical(self, agent: AgentRuns, group: Group, turn: TurnState, maxima: _Maxima) -> None:
        allowed = turn.watch.settings.identical_calls_allowed
        for quantity, by_tool in (
            (Quantity.IDENTICAL_CALLS, maxima.identical),
            (Quantity.STALE_CALLS, maxima.stale),
        ):
            agent.values[quantity, group].add(max(by_tool.values(), default=0))
            if any(count > allowed(turn.agent, tool) for tool, count in by_tool.items()):
                agent.flagged[quantity, group] += 1
        for name, count in maxima.identical.items():
            tool = self._tool(name)
            tool.identical_calls[group].add(count)
            tool.flagged[group] += count > allowed(turn.agent, name)

    def _add_totals(self, agent: AgentRuns, group: Group, turn: TurnState) -> None:
        kept = _totals_of(turn)
        for quantity, value in kept.items():
            agent.values[quantity, group].add(value)
        self._totals[turn] = (group, kept)
        parent = turn.parent
        while parent is not None:
            if parent in self._totals:
                of_group, before = self._totals[parent]
                after = _totals_of(parent)
                _move(self._agent(parent.agent), of_group, before, of_group, after)
                self._totals[parent] = (of_group, after)
            parent = parent.parent

    def _add_conversation(self, agent: AgentRuns, group: Group, turn: TurnState, maxima: _Maxima) -> None:
        conversation = turn.conversation
        if conversation is None:
            return
        self.has_conversations = self.has_conversations or conversation.turns > 1
        key = (self._file_of.get(turn.watch, 0), conversation.conversation_id, turn.agent)
        before_group, before = self._conversations.get(key, (group, {}))
        identical = max(maxima.conversation, before.get(Quantity.CONVERSATION_IDENTICAL_CALLS, 0))
        after: dict[Quantity, float] = {
            Quantity.CONVERSATION_MODEL_CALLS: conversation.model_calls,
            Quantity.CONVERSATION_IDENTICAL_CALLS: identical,
        }
        if conversation.spend_usd:
            after[Quantity.CONVERSATION_SPEND_USD] = conversation.spend_usd
        _move(agent, before_group, before, group, after)
        self._conversations[key] = (group, after)

    def _agent(self, name: str) -> AgentRuns:
        return _one_of(self.agents, name or UNKNOWN, AgentRuns, self.settings.bounds.agents)

    def _tool(self, name: str) -> ToolRuns:
        return _one_of(self.tools, name or UNKNOWN, ToolRuns, self.settings.bounds.tools)


def _totals_of(turn: TurnState) -> dict[Quantity, float]:
    values: dict[Quantity, float] = {}
    if turn.usage is not None or turn.total_tokens:
        values[Quantity.TOKENS] = turn.total_tokens
    if turn.iterations and (turn.spend_usd is not None or turn.total_spend_usd):
        values[Quantity.SPEND_USD] = turn.total_spend_usd
    return values


def _move(
    agent: AgentRuns,
    from_group: Group,
    before: dict[Quantity, float],
    to_group: Group,
    after: dict[Quantity, float],
) -> None:
    for quantity, value in before.items():
        agent.values[quantity, from_group].add(value, -1)
    for quantity, value in after.items():
        agent.values[quantity, to_group].add(value)


def _raise(most: dict[str, int], tool: str, count: int) -> None:
    if count > most.get(tool, 0):
        most[tool] = count


def _one_of(known: dict[str, _T], name: str, new: type[_T], bound: int) -> _T:
    found = known.get(name)
    if found is None:
        if len(known) >= bound:
            name = OTHER
        found = known.get(name)
        if found is None:
            found = known[name] = new()
    return found
