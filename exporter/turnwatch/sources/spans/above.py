"""Where a span stands: the scope above it."""

from __future__ import annotations

from turnwatch.sources.spans.dialect import dialect_of
from turnwatch.sources.spans.facts import is_same_tool_name, tool_fact
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

    def of(self, span: SpanData, now: float) -> Scope | None:
        """The scope in which this span counts; None when a span that came before stands for the same call."""
        parent = span.parent_id
        if self.adopted and span.span_id in self.adopted:
            return self.adopted[span.span_id]
        if not parent:
            return Scope(span.span_id, span.trace_id, now)
        place = self._places.of(parent)
        if isinstance(place, Scope):
            return place
        if isinstance(place, CallPlace):
            return self._within(place, span, now)
        scope = self._places.wait_for(place or parent, span.trace_id, now)
        oldest = self._places.over_bound()
        if oldest is not None and oldest.turn is None and not oldest.is_empty:
            self._turns.settle(oldest, now)
        return scope

    def _within(self, place: CallPlace, span: SpanData, now: float) -> Scope | None:
        """Where a span counts that lies inside a tool call which is told of already."""
        dialect = dialect_of(span)
        role = role_of(span, dialect)
        if place.tool is None:
            return None if role == "model" else place.above.found()
        if role == "mcp":
            return None
        if role == "model" and place.within is None and not span.shape.is_of_sub_agent:
            return place.above.found()
        if role == "tool":
            fact = tool_fact(span, dialect)
            if fact.scope != place.scope and is_same_tool_name(fact.call.tool, place.tool):
                return None
        if place.within is None:
            place.within = Scope(span.parent_id, span.trace_id, now)
            place.within.agent = place.agent
            place.within.is_agent = True
            place.within.above = place.above
        within = place.within.found()
        if role == "tool" or role == "model":
            self._time(within, span, role, now)
        return within

    def _time(self, sub_agent: Scope, span: SpanData, role: str, now: float) -> None:
        """End the turn of a sub-agent whose tool's span has come, unless it runs on in the background."""
        is_news = span.shape.is_of_sub_agent and span.end_ns > sub_agent.ended_ns
        if is_news and (role == "tool" or not is_last_reply(span)):
            self._turns.goes_on(sub_agent)
        else:
            self._turns.end_soon(sub_agent, now)
