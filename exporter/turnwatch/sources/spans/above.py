"""Where a span stands: the scope above it."""

from __future__ import annotations

from turnwatch.sources.spans.dialect import dialect_of
from turnwatch.sources.spans.facts import ToolFact, agent_name, tool_fact
from turnwatch.sources.spans.hints import is_another
from turnwatch.sources.spans.placing import CallPlace, Places
from turnwatch.sources.spans.roles import role_of
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.stops import is_last_reply
from turnwatch.sources.spans.turns import Turns


class Above:
    """Finds the scope in which a span counts.

    Args:
        places: Scopes by span.
        turns: Told of calls that are waited for no longer.

    Attributes:
        adopted: Scopes by span, where somebody else opened the turn that the span belongs to.
    """

    def __init__(self, places: Places, turns: Turns) -> None:
        self._places = places
        self._turns = turns
        self.adopted: dict[int, Scope] = {}

    def known(self, span: SpanData) -> Scope | None:
        """The scope of the span's parent, if there is one already."""
        adopted = self.adopted.get(span.span_id)
        if adopted is not None:
            return adopted
        place = self._places.of(span.parent_id)
        return place if isinstance(place, Scope) else None

    def of(self, span: SpanData, now: float, below: Scope | None = None) -> Scope | None:
        """The scope in which this span counts; None when a span that came before stands for the same call.

        Args:
            span: The span.
            now: When it came.
            below: The calls under it, where it counts by those.
        """
        parent = span.parent_id
        if self.adopted and span.span_id in self.adopted:
            return self.adopted[span.span_id]
        if not parent:
            return Scope(span.span_id, span.trace_id, now)
        place = self._places.of(parent)
        if isinstance(place, Scope):
            return place
        if isinstance(place, CallPlace):
            return self._within(place, span, below, now)
        scope = self._places.wait_for(place or parent, span.trace_id, now)
        oldest = self._places.over_bound()
        if oldest is not None and oldest.turn is None and not oldest.is_empty:
            self._turns.settle(oldest, now)
        return scope

    def _within(self, place: CallPlace, span: SpanData, below: Scope | None, now: float) -> Scope | None:
        """Where a span counts that lies inside a tool call which is told of already."""
        dialect = dialect_of(span)
        role = role_of(span, dialect)
        if place.tool is None:
            return None if role == "model" else place.above.found()
        if role == "mcp":
            return None
        named = ""
        if place.within is None:
            caller = place.above.found()
            if below is not None:
                named = below.agent
                is_callers_own = not is_sub_agent(below, caller)
            else:
                named = agent_name(span, dialect) if span.shape.may_name_agent else ""
                is_callers_own = (
                    role == "model" and not span.shape.is_of_sub_agent and not is_another(named, caller.agent)
                )
            if is_callers_own:
                return caller
        if role == "tool" and place.is_told_by(tool_fact(span, dialect)):
            return None
        within = (place.within or self._begin_sub_agent(place, named, span, now)).found()
        if role == "tool" or role == "model":
            self._time(within, span, role, now)
        return within

    def agent_within(self, span: SpanData, name: str, now: float) -> None:
        """Note an agent's span that bounds no turn of its own: inside a tool call it tells of a sub-agent."""
        place = self._places.of(span.parent_id)
        if isinstance(place, CallPlace) and place.tool is not None and place.within is None:
            self._begin_sub_agent(place, name, span, now)

    @staticmethod
    def _begin_sub_agent(place: CallPlace, name: str, span: SpanData, now: float) -> Scope:
        place.within = Scope(span.parent_id, span.trace_id, now)
        place.within.agent = name or place.agent
        place.within.is_agent = True
        place.within.above = place.above
        return place.within

    def _time(self, sub_agent: Scope, span: SpanData, role: str, now: float) -> None:
        """End the turn of a sub-agent whose tool's span has come, unless it runs on in the background."""
        is_news = span.shape.is_of_sub_agent and span.end_ns > sub_agent.ended_ns
        if is_news and (role == "tool" or not is_last_reply(span)):
            self._turns.goes_on(sub_agent)
        else:
            self._turns.end_soon(sub_agent, now)


def is_sub_agent(below: Scope, caller: Scope) -> bool:
    """Whether the calls inside a tool call are a turn of their own."""
    if below.is_turn or below.saw_agent or any(isinstance(fact, ToolFact) for fact in below.pending or ()):
        return True
    return bool(below.pending) and is_another(below.agent, caller.agent)
