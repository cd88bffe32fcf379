"""A turn in the making: the calls that belong together, before and after it is known to which agent."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from turnwatch.core.events import Usage
from turnwatch.core.turn import TurnState
from turnwatch.sources.spans.dialect import Dialect
from turnwatch.sources.spans.facts import Fact, ModelFact, ToolFact
from turnwatch.sources.spans.messages import Asked
from turnwatch.sources.spans.same_call import ToldModel, ToldTool

if TYPE_CHECKING:
    from turnwatch.sources.spans.outcomes import HeldCall

_MAX_NESTING: Final = 64
SEVERAL: Final = "\0several"
_MAX_ORPHANS: Final = 64


@final
class Scope:
    """Calls under one parent span that has not arrived yet, or under one agent.

    Spans end before their parents, so the agent of a call is not known when the call arrives. Calls that
    hang under the same span share a scope; when that span arrives and turns out to be a step, its scope
    becomes one with the scope above. No span is kept: a scope holds the calls of one step at most, and
    from then on a turn that counts.

    Attributes:
        key: Id of the span under which the calls hang; 0 for a call that is a trace of its own.
        into: The scope this one became part of.
        above: The scope in which this one's agent was called, once that is known.
        turn: Set once it is clear that this is a turn of its own, until that is closed.
        is_adopted: Somebody else opened the turn and ends it.
        agent, conversation: What is known of them so far.
        service: What to call the agent, should nothing name it.
        failure: Class of the error of a span inside a tool call, where the call's own span tells of none.
        models_by, tools_by: Who wrote its model and its tool spans, or SEVERAL; None before the first.
        orphans: Turns of sub-agents that wait for the turn, which is their parent.
        pending: Calls that wait for the turn.
        weight: About how many bytes those take.
        seen_by_mcp: Tool calls seen by MCP only; they count if no other span stands for them.
        held: The latest model calls, held back until it is clear that no second span tells of them.
        asked: Tool calls of the latest reply; they count if no span stands for them.
        unread_reply: Set while the latest reply asked for tools but does not say which; surely, if it says
            why it ended.
        replies_told: How many replies were among the messages of the longest request that an unread one was read from.
        without_usage: Who wrote the span of a model call that did not fail and tells of no tokens.
        model_starts: When the latest model calls began, where tool calls wait for log events while they come.
        tells_results: The requests of its model say what came of the calls before them, as far as is known.
        unended: Its calls from the first whose end is not known yet.
        due: When the turn is closed, in seconds of the feeder's clock; None while it is open.
    """

    __slots__ = (
        "above",
        "agent",
        "agent_dialect",
        "agent_usage",
        "asked",
        "call_ids",
        "child_turns",
        "closed",
        "conversation",
        "due",
        "ended_ns",
        "failure",
        "has_tools",
        "held",
        "into",
        "is_adopted",
        "is_agent",
        "key",
        "lacks_arguments",
        "last_ns",
        "model_name",
        "model_starts",
        "models_by",
        "orphans",
        "pending",
        "pending_models",
        "reads_replies",
        "recent_models",
        "recent_tools",
        "replies_told",
        "round",
        "round_end_ns",
        "saw_agent",
        "saw_usage",
        "seen_by_mcp",
        "service",
        "since",
        "stop_reason",
        "surely_unread",
        "tells_results",
        "tools_by",
        "trace_id",
        "turn",
        "unended",
        "unread_reply",
        "weight",
        "without_usage",
    )

    def __init__(self, key: int, trace_id: int, since: float) -> None:
        self.key = key
        self.trace_id = trace_id
        self.since = since
        self.into: Scope | None = None
        self.above: Scope | None = None
        self.turn: TurnState | None = None
        self.closed = False
        self.due: float | None = None
        # What is known of the agent
        self.agent = ""
        self.is_agent = False
        self.is_adopted = False
        self.saw_agent = False
        self.agent_dialect: Dialect | None = None
        self.agent_usage: Usage | None = None
        self.model_name = ""
        self.conversation: str | None = None
        self.service = ""
        self.child_turns = False
        self.stop_reason: str | None = None
        self.ended_ns = 0
        self.failure: str | None = None
        # Calls that wait
        self.pending: list[Fact] | None = None
        self.pending_models = 0
        self.orphans: tuple[TurnState, ...] = ()
        self.models_by: str | None = None
        self.tools_by: str | None = None
        self.weight = 0
        self.seen_by_mcp: list[ToolFact] | None = None
        # Calls that have been counted, as far as the next ones depend on them
        self.held: list[ModelFact] | None = None
        self.asked: list[Asked] | None = None
        self.has_tools = False
        self.reads_replies = False
        self.unread_reply: Dialect | None = None
        self.replies_told = 0
        self.surely_unread = False
        self.tells_results = False
        self.lacks_arguments = False
        self.saw_usage = False
        self.without_usage: tuple[Dialect, str] | None = None
        self.recent_models: tuple[ToldModel, ...] = ()
        self.model_starts: list[int] | None = None
        self.call_ids: dict[str, ToldTool] | None = None
        self.unended: deque[HeldCall] | None = None
        self.recent_tools: tuple[ToldTool, ...] = ()
        self.round = 0
        self.round_end_ns = 0
        self.last_ns = 0

    @property
    def is_empty(self) -> bool:
        """Whether no call hangs here."""
        return not self.is_turn and not self.pending and not self.seen_by_mcp

    @property
    def is_turn(self) -> bool:
        """Whether this is, or was, a turn of its own."""
        return self.turn is not None or self.closed

    def found(self) -> Scope:
        """The scope that this one has become part of, itself otherwise."""
        scope = self
        while scope.into is not None:
            if scope.into.into is not None:
                scope.into = scope.into.into  # keeps chains short
            scope = scope.into
        return scope

    def may_be_told_twice(self, fact: ModelFact) -> bool:
        """Whether another span here can stand for the same model call; notes who wrote this one.

        Most turns have one instrumentation, which tells of a call twice only under the same reply's id.
        """
        if self.models_by != fact.scope:
            self.models_by = fact.scope if self.models_by is None else SEVERAL
        return self.models_by is SEVERAL or bool(fact.response_id)

    def caller(self) -> Scope | None:
        """The scope in which this one's agent was called, past those in which there was nothing but this one."""
        scope = self.above.found() if self.above is not None else None
        for _ in range(_MAX_NESTING):
            if scope is None or scope.above is None or not scope.is_empty:
                break
            scope = scope.above.found()
        return scope

    def called_in(self, above: Scope) -> None:
        """Note in which scope this one's agent was called."""
        self.above = above
        if self.turn is not None:
            self.says_above()
            caller = self.caller()
            if caller is not None:
                caller.adopt(self.turn)

    def says_above(self) -> None:
        """Let the scopes above know that the calls below them are a turn of their own."""
        scope = self.above
        for _ in range(_MAX_NESTING):
            if scope is None:
                return
            scope = scope.found()
            scope.child_turns = True
            scope = scope.above

    def adopt(self, child: TurnState) -> None:
        """Take a turn for a sub-agent's of this one's turn, now or once that is open."""
        if self.turn is not None:
            self.turn.adopt(child)
        elif not self.closed and len(self.orphans) < _MAX_ORPHANS:
            self.orphans = (*self.orphans, child)

    def adopt_waiting(self, other: Scope) -> None:
        """Take the sub-agents' turns that wait in a scope, which may be this one."""
        children, other.orphans = other.orphans, ()
        for child in children:
            self.adopt(child)

    def take_hints(self, other: Scope) -> None:
        """Keep what another scope knows of the agent, where this one knows nothing."""
        self.agent = self.agent or other.agent
        self.service = self.service or other.service
        self.conversation = self.conversation or other.conversation
        self.agent_dialect = self.agent_dialect or other.agent_dialect
        self.agent_usage = self.agent_usage or other.agent_usage
        self.model_name = self.model_name or other.model_name
        self.stop_reason = self.stop_reason or other.stop_reason
        self.saw_agent = self.saw_agent or other.saw_agent
        self.child_turns = self.child_turns or other.child_turns
        self.has_tools = self.has_tools or other.has_tools

    def learn_of(self, agent: Scope) -> None:
        """Keep what an agent below says that made no call. Where its turn lies below it, that one has the name."""
        own = self.agent
        self.take_hints(agent)
        if agent.child_turns:
            self.agent = own
