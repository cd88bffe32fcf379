"""What is known of one turn: the part of its state that callers read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from turnwatch.core.default import default_watch
from turnwatch.core.engine import Engine
from turnwatch.core.events import Usage
from turnwatch.core.forking import shared_lock
from turnwatch.core.keys import KeyTable, key_of
from turnwatch.core.meter import NullMeter
from turnwatch.core.names import id_of, is_plain_name, name_of
from turnwatch.core.quietly import Quietly
from turnwatch.core.series import AgentSeries
from turnwatch.core.tool_in_turn import ToolInTurn
from turnwatch.core.verdict import Verdict, explain

if TYPE_CHECKING:
    from turnwatch.core.conversation import ConversationState
    from turnwatch.core.guard import Guard
    from turnwatch.core.turn import TurnState
    from turnwatch.core.watch import Watch

_TURN_OF_SPANS: Final = re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}")  # as turns that are read from spans are named


class TurnCounts:
    """Counts one turn's calls and judges them, in memory that does not grow with the turn.

    Args:
        agent: The agent whose turn it is.
        conversation_id: Turns with the same id are judged together as well.
        parent: The turn that started this one, for sub-agents. Spend and tokens count into its totals.
        turn_id: An id of the caller's; made up when left out.
        at: Start in seconds since the epoch; now when left out.
        watch: What it shares with other turns; the process's own when left out.

    Attributes:
        iterations: Model calls, failed ones included.
        tool_calls: Tool calls, cached and denied ones included.
        repeats: Calls whose (tool, input hash) came before in this turn.
        duplicates: Repeats past the threshold.
        missing_arguments: Calls whose arguments the source did not carry.
        usage: Tokens of this turn's own model calls; None when none reported any.
        total_spend_usd, total_tokens: Child turns included.
        verdict: The worst verdict so far.
        wasted_tool_calls, wasted_usd: What came after the first stuck verdict.
        stop_reason: Why the turn ended; None while it is open.
        source: Who reports the calls, for counting what it does not carry.
        guard: What stops the turn, for sources that can; child turns find their parent's here.
    """

    __slots__ = (
        "__weakref__",
        "_before_end",
        "_conversation",
        "_ended_at",
        "_judging",
        "_key",
        "_keys",
        "_priced_calls",
        "_stuck",
        "_tools",
        "_unpriced_models",
        "_verdicts",
        "agent",
        "conversation_id",
        "duplicates",
        "engine",
        "guard",
        "iterations",
        "last_active",
        "missing_arguments",
        "parent",
        "repeats",
        "series",
        "source",
        "spent_usd",
        "started",
        "stop_reason",
        "tool_calls",
        "total_spend_usd",
        "total_tokens",
        "turn_id",
        "usage",
        "verdict",
        "wasted_tool_calls",
        "wasted_usd",
        "watch",
    )

    def __init__(
        self,
        agent: str = "",
        *,
        conversation_id: str | None = None,
        parent: TurnState | None = None,
        turn_id: str | None = None,
        at: float | None = None,
        watch: Watch | None = None,
        source: str = "hand",
    ) -> None:
        self.watch = watch = watch or default_watch()
        self.agent = agent = agent if is_plain_name(agent) else name_of(agent)
        self.parent = parent
        if conversation_id is None and parent is not None:
            conversation_id = parent.conversation_id
        elif conversation_id is not None:
            conversation_id = id_of(conversation_id)
        self.conversation_id: str | None = conversation_id
        self.turn_id = (id_of(turn_id) if turn_id is not None else "") or os.urandom(16).hex()
        self.started = watch.clock() if at is None else at
        self.last_active = self.started
        self.source = source
        self.iterations = 0
        self.tool_calls = 0
        self.repeats = 0
        self.duplicates = 0
        self.missing_arguments = 0
        self.usage: Usage | None = None
        self.spent_usd = 0.0
        self.total_spend_usd = 0.0
        self.total_tokens = 0
        self._unpriced_models: set[str] | None = None
        self.verdict: Verdict | None = None
        self._verdicts: list[Verdict] | None = None
        self.wasted_tool_calls = 0
        self.wasted_usd = 0.0
        self.stop_reason: str | None = None
        self._ended_at: float | None = None
        self._before_end: list[Callable[[TurnState], None]] | None = None
        self._keys = KeyTable(watch.settings.bounds.keys_per_turn)
        self._tools: dict[str, ToolInTurn] = {}
        self._priced_calls = 0
        self._stuck = False
        self._judging = shared_lock()
        self.engine = Engine(volatile_keys=watch.volatile_keys)
        self.guard: Guard | None = None
        try:
            with watch.lock:
                self.series: AgentSeries = watch.agent_series(agent)
        except Exception:  # a metrics backend that fails costs the turn its metrics
            watch.internal_error("an agent's metrics")
            self.series = AgentSeries(NullMeter(), agent, watch.settings.iterations_allowed(agent))
        self._conversation: ConversationState | None = None
        if self.conversation_id is not None:
            with Quietly(watch, "entering a conversation"):
                self._conversation = self._enter(self.conversation_id)
        self._key = 0
        with Quietly(watch, "noting that a turn is open"):
            # Nobody makes one that does not record as well.
            self._key = watch.opened(cast("TurnState", self))

    def _enter(self, conversation_id: str) -> ConversationState:
        """The conversation of this id, with this turn in it."""
        watch = self.watch
        with watch.lock:
            conversation, dropped = watch.conversations.touch(conversation_id, self.last_active)
            conversation.turns += 1
        with conversation.judging:
            conversation.engine.begin_turn(self.agent, child=self.parent is not None)
        if dropped:
            with Quietly(watch, "counting dropped conversations"):
                watch.count("turnwatch_turns_evicted_total", "conversations_bound", amount=dropped)
        return conversation

    def before_end(self, hook: Callable[[TurnState], None]) -> None:
        """Have this called once, when the turn is about to end, by whoever holds ends of its calls back."""
        hooks = self._before_end = self._before_end or []
        if hook not in hooks:
            hooks.append(hook)

    # What a caller reads

    @property
    def verdicts(self) -> list[Verdict]:
        """Every verdict, the first ones of a turn that has very many."""
        return self._verdicts or []

    @property
    def unpriced_models(self) -> frozenset[str]:
        """Models used that have no known price."""
        return frozenset(self._unpriced_models or ())

    @property
    def spend_usd(self) -> float | None:
        """Dollars of this turn's own model calls: 0 before the first, None when none had usage and a price."""
        if self._priced_calls or not self.iterations:
            return self.spent_usd
        return None

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the turn started, or that it took."""
        return max(0.0, (self.watch.clock() if self._ended_at is None else self._ended_at) - self.started)

    @property
    def still_stuck(self) -> bool:
        """Whether the latest call, or text reply, went on with a pattern that is stuck."""
        over_turns = self._conversation.engine if self._conversation is not None else None
        return self.engine.last.stuck or (over_turns is not None and over_turns.last.stuck)

    def identical_calls(self, tool: str, input_hash: str | None) -> int:
        """How often this (tool, input hash) was called in this turn, as far as remembered."""
        return self._keys.count(key_of(tool, input_hash)) if input_hash is not None else 0

    @property
    def trace_id(self) -> str | None:
        """The trace that the turn is in: the one that its id names, else the current one; None where there is none."""
        of_spans = _TURN_OF_SPANS.fullmatch(self.turn_id)
        if of_spans is not None:
            return of_spans[1]
        current = self.watch.exemplar()
        return None if current is None else current["trace_id"]

    @property
    def dropped_keys(self) -> int:
        """Distinct calls that were forgotten because the turn made too many different ones."""
        return self._keys.dropped

    @property
    def conversation(self) -> ConversationState | None:
        """What is known of the conversation that this turn belongs to."""
        return self._conversation

    @property
    def ended(self) -> bool:
        """Whether the turn is over."""
        return self.stop_reason is not None

    def explain(self) -> str:
        """Every verdict in words: which calls, what stayed the same, what would have cleared it."""
        if not self.verdicts:
            return "No loop seen in this turn."
        return "\n".join(explain(verdict) for verdict in self.verdicts)
