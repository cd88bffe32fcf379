"""Spans that stand for calls: each call into its scope, once, whoever else tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnwatch.core.events import MISSING
from turnwatch.sources.spans.above import Above, is_sub_agent
from turnwatch.sources.spans.facts import Fact, ModelFact, ToolFact, conversation_of, service_name
from turnwatch.sources.spans.hints import called_agent, give_hints
from turnwatch.sources.spans.loose import LooseCalls
from turnwatch.sources.spans.outcomes import OpenOutcomes
from turnwatch.sources.spans.placing import CallPlace, Place, Places
from turnwatch.sources.spans.same_call import is_same_model_call, merged
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.stops import is_last_reply
from turnwatch.sources.spans.told_again import ToldAgain, waits
from turnwatch.sources.spans.turns import Turns

# Spans that stand for one call: its tool's, other instrumentations' and those of MCP.
_MAX_NESTING: Final = 8


class Calls:
    """Takes tool and model calls in.

    Args:
        places: Scopes by span.
        above: Finds the scope in which a span counts.
        turns: Counts.
        outcomes: Holds the ends of calls that spans inside them may tell more of.
    """

    def __init__(self, places: Places, above: Above, turns: Turns, outcomes: OpenOutcomes) -> None:
        self._places = places
        self._above = above
        self._turns = turns
        self._outcomes = outcomes
        self._loose = LooseCalls()
        self._told = ToldAgain()
        self.second = 0

    def clear(self) -> None:
        """Forget which turns wait for their next model call, and which calls to be told of again."""
        self._loose.clear()
        self._told.clear()

    def tick(self, now: float) -> None:
        """Count the calls of which nobody told again in time."""
        for scope in self._told.waited_in_vain(now):
            self._turns.settle(scope, now)

    def take_tool(self, span: SpanData, fact: ToolFact, now: float) -> None:
        """Take a tool call in."""
        above = self._asked_for(span, fact) or self._above.of(span, now)
        if above is None:
            fact.awaits = False
            self._take_second(span, fact)
            return
        place = CallPlace(fact, above, called_agent(span, fact))
        self._places.came(span.span_id, place)
        give_hints(above, span, fact.dialect)
        below = self._places.take(span.span_id)
        if below is not None:
            self._merge_inner_tools(fact, place, below)
            self._turns.weigh(below)
            if is_sub_agent(below, above):
                below.agent = below.agent or place.agent
                place.within = below
                self._turns.finish(below, above, span, now)
            else:
                self._turns.join(below, above, now)
                above = above.found()
        self._turns.add(above, fact, now)

    def _asked_for(self, span: SpanData, fact: ToolFact) -> Scope | None:
        """The turn of a call that is a trace of its own, if a model call that is one asked for it."""
        if span.parent_id or span.span_id in self._above.adopted:
            return None
        return self._loose.asked_for(fact.call, service_name(span))

    @staticmethod
    def _merge_inner_tools(fact: ToolFact, place: CallPlace, below: Scope) -> None:
        """Take in the spans inside this one that stand for the same call."""
        inner_calls, below.seen_by_mcp = below.seen_by_mcp, None
        if below.failure is not None and fact.call.outcome != "error":
            fact.fail(below.failure)
        if inner_calls and len(inner_calls) == 1:
            fact.hear(inner_calls[0])
        left: list[Fact] = []
        for inner in below.pending or ():
            if isinstance(inner, ToolFact) and place.is_told_by(inner):
                if fact.call.args is MISSING and fact.call.input_hash is None:
                    fact.call.args, fact.call.input_hash = inner.call.args, inner.call.input_hash
                fact.call.tool = min(fact.call.tool, inner.call.tool, key=len)
                fact.call.call_id = fact.call.call_id or inner.call.call_id
                fact.call.result = fact.call.result or inner.call.result
                fact.counted = fact.counted or inner.counted
                inner.awaits = False
                fact.hear(inner)
                place.learn(fact)
            else:
                left.append(inner)
        below.pending = left or None

    def take_mcp(self, span: SpanData, fact: ToolFact, now: float) -> None:
        """Take in a tool call as an MCP client or server saw it."""
        fact.awaits = not fact.is_servers
        below = self._places.take(span.span_id)
        if below is not None:
            inner, below.seen_by_mcp = below.seen_by_mcp, None  # the server's view of this call
            if inner:
                fact.hear(inner[0])
        if not span.parent_id and fact.is_servers:
            # A server that was told of no trace: whoever called it sees the call as well.
            if below is not None:
                self._turns.finish(below, None, span, now)
            return
        above = self._above.of(span, now)
        if above is None:
            self._take_second(span, fact)
            return
        self._places.came(span.span_id, CallPlace(fact, above, parent_id=span.parent_id))
        if below is not None:
            self._turns.join(below, above, now)
            above = above.found()
        if fact.counted:
            return
        give_hints(above, span, fact.dialect)
        self._turns.add_seen_by_mcp(above, fact, now)
        if not span.parent_id:
            self._turns.finish(above, None, span, now)

    def _take_second(self, span: SpanData, fact: ToolFact | None = None) -> None:
        """A span inside one that was told of already, which stands for the same call."""
        self.second += 1
        place = self._places.of(span.parent_id)
        if place is not None:
            self._places.came(span.span_id, place)
        if fact is not None:
            self._hear_inside(place, fact)

    def _hear_inside(self, place: Place | None, inner: ToolFact) -> None:
        """Take from a span inside a call, which came after it, how it ended."""
        for call in self._round(place):
            outer = self._waiting(call)
            if outer is not None:
                outer.hear(inner)
                self._outcomes.told(outer)
                return
            if call.tool is not None and inner.awaits is False:
                self._outcomes.learn(call.scope, call.tool, tells=True)  # too late for this one

    def fail(self, place: CallPlace, error_type: str) -> None:
        """A step inside a call, which came after it, has failed, and the call with it."""
        for call in self._round(place):
            outer = self._waiting(call)
            if outer is not None:
                outer.fail(error_type)
                self._outcomes.told(outer)
                return

    def _round(self, place: Place | None) -> Iterator[CallPlace]:
        """The spans of one call that lie round each other, from this one outwards."""
        for _ in range(_MAX_NESTING):
            if not isinstance(place, CallPlace):
                return
            yield place
            place = self._places.of(place.parent_id)

    def _waiting(self, call: CallPlace) -> ToolFact | None:
        """The tool call of a span, as long as its end has not been counted."""
        above = call.above.found()
        for fact in (*(above.pending or ()), *(above.seen_by_mcp or ())):
            if type(fact) is ToolFact and fact.span_id == call.span_id:
                return fact
        return self._outcomes.of(call.span_id)

    def take_model(self, span: SpanData, fact: ModelFact, now: float) -> None:
        """Take a model call in."""
        logs = self._turns.logs
        logged = logs.messages.pop(span.span_id, None) if logs.heard else None
        if logged is not None:
            fact.attributes = {**span.attributes, **logged}
        below = self._places.take(span.span_id)
        if below is not None:
            kept: list[Fact] = []
            for inner in below.pending or ():
                if isinstance(inner, ModelFact):
                    fact = merged(fact, inner)
                else:
                    kept.append(inner)
            below.pending = kept or None
            below.pending_models = 0
            self._turns.weigh(below)
        is_adopted = span.span_id in self._above.adopted
        if not span.parent_id and not is_adopted and (below is None or below.is_empty):
            self._take_loose(span, fact, now)
            return
        above = self._above.of(span, now)
        if above is None:
            self._take_second(span)
            place = self._places.of(span.parent_id)
            if isinstance(place, CallPlace) and place.tool is None:
                self._turns.tell_more(place.above.found(), span.parent_id, fact)
            return
        self._places.came(span.span_id, CallPlace(fact, above))
        if below is not None and not below.is_empty:
            self._turns.join(below, above, now)
            above = above.found()
        give_hints(above, span, fact.dialect)
        if is_last_reply(span):
            above.ended_ns = max(above.ended_ns, span.end_ns)
            above.stop_reason = "error" if span.failed else "final_answer"
        alone = self._told.take_alone(fact) or self._told.take_inside(fact)
        if alone is None or alone is above or waits(alone):
            if alone is not None and alone is not above:
                fact = self._one_fact(fact, alone, above, now)
            if fact.attributes:
                self._told.note_above(fact, above)
            self._turns.add(above, fact, now)
            self._told.note_inside(fact, above)
        else:  # it has been counted in a turn of its own; what its reply asked for, and what follows, is told of here
            self.second += 1
            alone.asked, alone.reads_replies = None, False
            self._loose.forget(alone)
            self._turns.end_soon(alone, now)
        if not span.parent_id and not is_adopted:
            self._turns.finish(above, None, span, now)

    def _take_loose(self, span: SpanData, fact: ModelFact, now: float) -> None:
        """A model call that is a trace of its own: a raw client without a span round its loop."""
        twin = self._told.take_alone(fact) or self._told.take_inside(fact)
        above = self._told.take_above(fact) if twin is None else None
        if above is not None or (twin is not None and twin.closed):
            self.second += 1
            self._places.came(span.span_id, above or twin or span.parent_id)
            return
        conversation = conversation_of(span)
        scope = self._loose.scope_for(fact, conversation)
        if twin is not None:
            scope = self._one_call(twin, scope, now)
        begins = scope is None
        scope = scope or Scope(span.span_id, span.trace_id, now)
        give_hints(scope, span, fact.dialect)
        may_be_told_again = begins and self._told.may_happen(fact, conversation, scope.service)
        self._turns.add(scope, fact, now)
        self._places.came(span.span_id, scope)
        self._told.note_alone(fact, scope)
        if may_be_told_again:
            self._told.wait(scope, now)
            goes_on = self._loose.asks(fact, scope)
        else:
            if not scope.is_turn:
                self._turns.open(scope)  # a call in it need not wait any more: this one goes on with it
            self._turns.count_now(scope)
            goes_on = self._loose.goes_on(scope, fact, fact.attributes or span.attributes, conversation)
        if goes_on:
            self._turns.goes_on(scope)
            return
        scope.stop_reason = "error" if fact.call.outcome == "error" else "final_answer"
        if may_be_told_again:
            scope.due = now  # should it become a turn, nothing more of that will come by then
        else:
            self._turns.end_soon(scope, now)

    def _one_fact(self, fact: ModelFact, told: Scope, above: Scope, now: float) -> ModelFact:
        """A call in its turn, and what was told of it in a trace of its own."""
        left: list[Fact] = []
        for other in told.pending or ():
            if isinstance(other, ModelFact) and is_same_model_call(other, fact):
                fact = merged(fact, other)
            else:
                left.append(other)
        told.pending = left or None
        told.pending_models = sum(isinstance(other, ModelFact) for other in left)
        self._turns.weigh(told)
        if not left:
            told.due = None
            self._turns.join(told, above, now)
        return fact

    def _one_call(self, twin: Scope, scope: Scope | None, now: float) -> Scope:
        """The scope of a call that two clients tell of: the turn it goes on with, or one that it begins."""
        if not waits(twin):
            return scope or twin
        twin.stop_reason = twin.due = None
        if scope is None:
            return twin
        self._turns.join(twin, scope, now)
        return scope
