"""From spans, in any order and in any batches, to turns.

A call belongs to the nearest agent above it. Spans end before their parents, so calls wait in a scope
(:mod:`turnwatch.sources.spans.scope`) until the span above them arrives:

- a step, a workflow, or an agent that does not say its name: the scope becomes one with the scope above;
- an agent: the scope is that agent's turn;
- a tool: the scope is a sub-agent's turn when an agent or tool calls were seen in it, and otherwise
  becomes one with the scope above;
- nothing arrives: the scope becomes one with the turn of its trace.

An agent that runs for hours must be judged while it runs. A scope therefore becomes a turn at once when
it holds more than a step can hold, or has waited for longer than steps take.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from turnwatch.core.events import MISSING
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.spans.dialect import Dialect, dialect_of
from turnwatch.sources.spans.facts import (
    ModelFact,
    ToolFact,
    agent_name,
    conversation_of,
    model_fact,
    service_name,
    tool_fact,
)
from turnwatch.sources.spans.loose import LooseCalls
from turnwatch.sources.spans.recording import Recorder, merged
from turnwatch.sources.spans.roles import is_of_interest, role_of
from turnwatch.sources.spans.scope import Fact, Scope, is_same_model_call, is_same_tool
from turnwatch.sources.spans.span import SERVER, SpanData
from turnwatch.sources.spans.stops import stop_reason_of
from turnwatch.sources.spans.usage import usage_of_agent

# A step is one model call and its tools. More than that under one span, and the span is no step.
_MODELS_IN_A_STEP: Final = 1
_TOOLS_IN_A_STEP: Final = 64
# Which spans have been seen lately, for children that arrive after their parents.
_REMEMBERED_SPANS: Final = 65_536
_HELD_MODEL_SECONDS: Final = 2.0


class ToolPlace:
    """Where the children of a tool span belong that arrive after it."""

    __slots__ = ("above", "fact", "within")

    def __init__(self, fact: ToolFact, above: Scope) -> None:
        self.fact = fact
        self.above = above
        self.within: Scope | None = None


Place = Scope | ToolPlace | int  # an int: where the children of that span belong, these belong too


class Assembler:
    """Builds turns out of spans. Keeps no clock and does no I/O; one caller at a time.

    Args:
        watch: Opens the turns; its settings bound how many are open.
        grace_seconds: How long a turn stays open after its agent's span ended, for children that come late.
        settle_seconds: How long calls wait for the span above them before they count towards their trace.
        idle_seconds: How long a turn without news stays open when nothing says it ended.
        on_end: Told of every turn that ended.
    """

    def __init__(
        self,
        watch: Watch,
        *,
        grace_seconds: float = 10.0,
        settle_seconds: float = 30.0,
        idle_seconds: float = 1800.0,
        on_end: Callable[[TurnState], None] | None = None,
    ) -> None:
        self._watch = watch
        self._grace = grace_seconds
        self._settle = settle_seconds
        self._idle = idle_seconds
        self._on_end = on_end
        self._recorder = Recorder(watch)
        self._loose = LooseCalls()
        self._bound = watch.settings.bounds.open_turns
        self._waiting: dict[int, Scope] = {}  # by the span that has not arrived
        self._places: OrderedDict[int, Place] = OrderedDict()  # by the span that has
        self._unsettled: dict[Scope, None] = {}  # calls wait here; oldest first
        self._open: dict[Scope, float] = {}  # turns by their last news, oldest first
        self._due: dict[Scope, None] = {}  # turns that end soon, soonest first
        self._held: dict[Scope, None] = {}  # turns with a model call held back
        self._of_trace: dict[int, Scope] = {}  # where calls of a trace go that nothing else places
        self._spans: dict[str, int] = {}

    @property
    def open_turns(self) -> int:
        """How many turns are open."""
        return len(self._open)

    # In

    def feed(self, spans: Iterable[SpanData], now: float) -> None:
        """Take ended spans in. A span that cannot be read is counted and left out; nothing is raised.

        Args:
            spans: In the order in which they came.
            now: Seconds of the caller's clock; never goes back.
        """
        for span in spans:
            try:
                self._take(span, now)
            except Exception:
                self._count("unreadable")
                self._watch.internal_error("reading a span")
        self.tick(now)

    def _take(self, span: SpanData, now: float) -> None:
        if not is_of_interest(span.scope, span.name, span.attributes):
            if span.span_id in self._waiting:
                self._pass_through(span, None, now)
            else:
                self._count("unrelated")
            return
        dialect = dialect_of(span)
        role = role_of(span, dialect)
        if role == "pending" or not span.end_ns:
            self._count("pending")
            return
        if role == "tool" or role == "mcp":
            fact = tool_fact(span, dialect)
            if fact.call.tool in dialect.step_tools:
                self._pass_through(span, dialect, now)
            elif role == "tool":
                self._take_tool(span, fact, now)
            else:
                self._take_mcp(span, fact, now)
        elif role == "model":
            if span.failed and stop_reason_of(span) == "max_iterations":
                # The framework's own limit was met before the model was called.
                self._pass_through(span, dialect, now)
                return
            self._take_model(span, model_fact(span, dialect), now)
        elif role == "agent":
            self._take_agent(span, dialect, now)
        else:
            self._pass_through(span, dialect, now)
            return
        self._count(role)

    # Spans that are calls

    def _take_tool(self, span: SpanData, fact: ToolFact, now: float) -> None:
        above = self._scope_above(span, now)
        if above is None:
            self._count("second")
            return
        self._remember(span.span_id, ToolPlace(fact, above))
        below = self._arrived(span.span_id)
        if below is not None:
            below.seen_by_mcp = None
            self._merge_inner_tools(fact, below)
            if below.turn is not None or below.saw_agent or any(isinstance(f, ToolFact) for f in below.pending or ()):
                above.child_turns = True
                below.agent = below.agent or fact.call.tool
                self._finish(below, above, span, now)
            else:
                self._join(below, above, now)
                above = above.found()
        self._give_hints(above, span, fact.dialect)
        self._add(above, fact, now)

    @staticmethod
    def _merge_inner_tools(fact: ToolFact, below: Scope) -> None:
        """Take in the spans of other instrumentations that lie inside this one and stand for the same call."""
        left: list[Fact] = []
        for inner in below.pending or ():
            if isinstance(inner, ToolFact) and inner.scope != fact.scope and is_same_tool(inner.call, fact.call):
                if fact.call.args is MISSING and fact.call.input_hash is None:
                    fact.call.args, fact.call.input_hash = inner.call.args, inner.call.input_hash
                fact.call.call_id = fact.call.call_id or inner.call.call_id
                fact.call.result = fact.call.result or inner.call.result
                fact.counted = fact.counted or inner.counted
                if inner.call.outcome == "error":
                    fact.call.outcome = "error"
                    fact.call.error_type = fact.call.error_type or inner.call.error_type
            else:
                left.append(inner)
        below.pending = left or None

    def _take_mcp(self, span: SpanData, fact: ToolFact, now: float) -> None:
        below = self._arrived(span.span_id)
        if below is not None:
            below.seen_by_mcp = None  # the server's view of this call
        if not span.parent_id and span.kind == SERVER:
            # A server that was told of no trace: whoever called it sees the call as well.
            if below is not None:
                self._finish(below, None, span, now)
            return
        above = self._scope_above(span, now)
        if above is None:
            return
        self._remember(span.span_id, ToolPlace(fact, above))
        if below is not None:
            self._join(below, above, now)
            above = above.found()
        if above.has_tools or fact.counted:
            return
        self._give_hints(above, span, fact.dialect)
        if above.seen_by_mcp is None:
            above.seen_by_mcp = []
        above.seen_by_mcp.append(fact)
        self._unsettled.setdefault(above)
        if not span.parent_id:
            self._finish(above, None, span, now)

    def _take_model(self, span: SpanData, fact: ModelFact, now: float) -> None:
        below = self._arrived(span.span_id)
        if below is not None:
            kept: list[Fact] = []
            for inner in below.pending or ():
                if isinstance(inner, ModelFact):
                    fact = merged(fact, inner)
                else:
                    kept.append(inner)
            below.pending = kept or None
            below.pending_models = 0
        if not span.parent_id and (below is None or below.is_empty):
            self._take_loose(span, fact, now)
            return
        above = self._scope_above(span, now)
        if above is None:
            self._count("second")
            return
        self._remember(span.span_id, above)
        if below is not None and not below.is_empty:
            self._join(below, above, now)
            above = above.found()
        self._give_hints(above, span, fact.dialect)
        self._add(above, fact, now)
        if not span.parent_id:
            self._finish(above, None, span, now)

    def _take_loose(self, span: SpanData, fact: ModelFact, now: float) -> None:
        """A model call that is a trace of its own: a raw client without a span round its loop."""
        conversation = conversation_of(span)
        scope = self._loose.scope_for(fact, conversation)
        if scope is None:
            scope = Scope(span.span_id, span.trace_id, now)
            scope.raw = True
            self._give_hints(scope, span, fact.dialect)
            self._add(scope, fact, now)
            self._open_turn(scope)
        else:
            self._add(scope, fact, now)
        self._remember(span.span_id, scope)
        self._recorder.count_held(scope)
        if self._loose.goes_on(scope, fact, span.attributes, conversation):
            scope.due = None
            self._due.pop(scope, None)
        else:
            scope.stop_reason = "error" if fact.call.outcome == "error" else "final_answer"
            self._schedule_end(scope, now)

    # Spans round calls

    def _take_agent(self, span: SpanData, dialect: Dialect, now: float) -> None:
        name = agent_name(span, dialect)
        below = self._arrived(span.span_id)
        if not name or dialect.agent_per_step or (below is not None and below.key != span.span_id):
            if below is not None:
                self._waiting[span.span_id] = below
            self._pass_through(span, dialect, now, agent=name, is_agent=True)
            return
        scope = below or Scope(span.span_id, span.trace_id, now)
        scope.agent = name
        scope.is_agent = scope.saw_agent = True
        self._about_agent(scope, span, dialect)
        above = self._known_above(span)
        if scope.is_empty and span.parent_id:
            # A wrapper, or an agent that made no call: whoever is above learns its name.
            if above is None:
                above = self._scope_above(span, now)
            if above is not None and not above.closed:
                above.take_hints(scope)
            self._remember(span.span_id, span.parent_id)
            return
        if above is None and span.parent_id:
            above = self._scope_above(span, now)
        self._finish(scope, above, span, now)
        self._remember(span.span_id, scope)

    def _pass_through(
        self, span: SpanData, dialect: Dialect | None, now: float, agent: str = "", *, is_agent: bool = False
    ) -> None:
        """A span that is no boundary: what hangs under it hangs under its parent."""
        if dialect is not None:
            self._count("agent" if is_agent else "step")
            self._remember(span.span_id, span.parent_id)
        below = self._arrived(span.span_id)
        if below is None and is_agent and not span.parent_id:
            below = Scope(span.span_id, span.trace_id, now)
        if below is None:
            return
        if is_agent and dialect is not None:
            below.saw_agent = True
            below.agent = below.agent or agent or _spoken_name(span.name)
            self._about_agent(below, span, dialect)
        elif dialect is not None:
            self._give_hints(below, span, dialect)
        above = self._scope_above(span, now) if span.parent_id else None
        if above is not None:
            self._join(below, above, now)
        else:
            below.stop_reason = below.stop_reason or stop_reason_of(span)
            self._finish(below, None, span, now)
            if dialect is not None:
                self._remember(span.span_id, below)

    def _about_agent(self, scope: Scope, span: SpanData, dialect: Dialect) -> None:
        scope.agent_dialect = scope.agent_dialect or dialect
        scope.conversation = scope.conversation or conversation_of(span)
        scope.service = scope.service or service_name(span)
        if scope.agent_usage is None:
            scope.agent_usage = usage_of_agent(span.attributes)
            scope.model_name = scope.model_name or str(span.attributes.get("gen_ai.request.model") or "")
        scope.stop_reason = stop_reason_of(span)

    @staticmethod
    def _give_hints(scope: Scope, span: SpanData, dialect: Dialect) -> None:
        if scope.turn is not None:
            return
        if not scope.agent:
            scope.agent = agent_name(span, dialect)
        if scope.conversation is None:
            scope.conversation = conversation_of(span)
        if not scope.service:
            scope.service = service_name(span)

    # Which scope

    def _arrived(self, span_id: int) -> Scope | None:
        scope = self._waiting.pop(span_id, None)
        return None if scope is None else scope.found()

    def _known_above(self, span: SpanData) -> Scope | None:
        """The scope of the span's parent, if there is one already."""
        scope = self._waiting.get(span.parent_id)
        if scope is not None:
            return scope.found()
        place = self._place(span.parent_id)
        return place.found() if isinstance(place, Scope) else None

    def _place(self, span_id: int) -> Place | None:
        place = self._places.get(span_id)
        hops = 0
        while type(place) is int:
            hops += 1
            scope = self._waiting.get(place)
            if scope is not None:
                return scope
            above = self._places.get(place)
            if above is None or hops > 64:
                return place
            place = above
        return place

    def _scope_above(self, span: SpanData, now: float) -> Scope | None:
        """The scope in which this span counts; None when a span that came before stands for the same call."""
        parent = span.parent_id
        if not parent:
            return Scope(span.span_id, span.trace_id, now)
        scope = self._waiting.get(parent)
        if scope is not None:
            return scope.found()
        place = self._place(parent)
        if isinstance(place, Scope):
            return place.found()
        if isinstance(place, ToolPlace):
            return self._scope_within(place, span, now)
        key = parent if place is None or not place else place
        scope = self._waiting[key] = Scope(key, span.trace_id, now)
        if len(self._waiting) > 4 * self._bound + 64:
            self._forget_oldest(now)
        return scope

    def _scope_within(self, place: ToolPlace, span: SpanData, now: float) -> Scope | None:
        """Where a span counts that lies inside a tool call which is told of already."""
        dialect = dialect_of(span)
        role = role_of(span, dialect)
        if role == "mcp":
            return None
        if role == "model":
            return (place.within or place.above).found()
        if role == "tool":
            fact = tool_fact(span, dialect)
            if fact.scope != place.fact.scope and is_same_tool(fact.call, place.fact.call):
                return None
        if place.within is None:
            place.within = Scope(span.parent_id, span.trace_id, now)
            place.within.agent = place.fact.call.tool
            place.above.found().child_turns = True
        return place.within.found()

    def _remember(self, span_id: int, place: Place) -> None:
        places = self._places
        places[span_id] = place
        if len(places) > _REMEMBERED_SPANS:
            places.popitem(last=False)

    def _add(self, scope: Scope, fact: Fact, now: float) -> None:
        """Count a call in its scope, or let it wait there."""
        if scope.turn is not None:
            if scope.closed:
                self._count("late")
                return
            self._record(scope, fact, now)
            return
        pending = scope.pending
        if pending is None:
            pending = scope.pending = []
            self._unsettled[scope] = None
        if isinstance(fact, ModelFact):
            for number, other in enumerate(pending):
                if isinstance(other, ModelFact) and is_same_model_call(other, fact):
                    pending[number] = merged(other, fact)
                    return
            scope.pending_models += 1
        pending.append(fact)
        if scope.pending_models > _MODELS_IN_A_STEP or len(pending) > _TOOLS_IN_A_STEP:
            self._open_turn(scope, now=now)

    def _record(self, scope: Scope, fact: Fact, now: float) -> None:
        self._recorder.record(scope, fact)
        self._open.pop(scope, None)
        self._open[scope] = now
        if scope.held is None:
            self._held.pop(scope, None)
        else:
            self._hold(scope, now)

    def _hold(self, scope: Scope, now: float) -> None:
        scope.held_since = now
        self._held.pop(scope, None)
        self._held[scope] = None

    def _join(self, below: Scope, above: Scope, now: float) -> None:
        """Make two scopes one. Where both are turns already they stay two."""
        if below is above:
            return
        if below.turn is not None and above.turn is not None:
            self._schedule_end(below, now)
            return
        kept, gone = (below, above) if below.turn is not None else (above, below)
        kept.key = above.key
        kept.is_agent = above.is_agent
        kept.take_hints(gone)
        gone.into = kept
        self._unsettled.pop(gone, None)
        if gone.seen_by_mcp and not kept.has_tools:
            kept.seen_by_mcp = (kept.seen_by_mcp or []) + gone.seen_by_mcp
            self._unsettled.setdefault(kept)
        pending, gone.pending, gone.pending_models = gone.pending, None, 0
        if gone.due is not None and kept.due is None and gone is above:
            self._schedule_end(kept, now)
        for fact in sorted(pending, key=lambda fact: fact.start_ns) if pending else ():
            self._add(kept, fact, now)

    # Turns

    def _open_turn(self, scope: Scope, parent: Scope | None = None, now: float | None = None) -> None:
        while len(self._open) >= self._bound:
            oldest = next(iter(self._open))
            oldest.stop_reason = "evicted"
            self._watch.count("turnwatch_turns_evicted_total", "open_turns_bound")
            self._close(oldest)
        self._unsettled.pop(scope, None)
        self._recorder.open(scope, parent.turn if parent is not None and not parent.closed else None)
        self._open[scope] = scope.since if now is None else now
        self._of_trace.setdefault(scope.trace_id, scope)
        if scope.held is not None:
            self._hold(scope, scope.since if now is None else now)
        if scope.seen_by_mcp:
            self._unsettled[scope] = None

    def _finish(self, scope: Scope, above: Scope | None, span: SpanData, now: float) -> None:
        """The span that bounds this scope has arrived: it is a turn, and it ends soon."""
        scope = scope.found()
        if scope.closed:
            return
        scope.ended_ns = max(scope.ended_ns, span.end_ns)
        if scope.turn is None:
            if scope.is_empty and (scope.child_turns or not scope.saw_agent):
                return
            self._open_turn(scope, above, now)
        if above is not None:
            above.child_turns = True
        scope.stop_reason = scope.stop_reason or stop_reason_of(span)
        self._schedule_end(scope, now)

    def _schedule_end(self, scope: Scope, now: float) -> None:
        scope.due = now + self._grace
        self._due.pop(scope, None)
        self._due[scope] = None

    def _close(self, scope: Scope) -> None:
        scope.closed = True
        for index in (self._open, self._due, self._held, self._unsettled):
            index.pop(scope, None)
        waiting = self._waiting.get(scope.key)
        if waiting is not None and waiting.found() is scope:
            del self._waiting[scope.key]
        if self._of_trace.get(scope.trace_id) is scope:
            del self._of_trace[scope.trace_id]
        self._recorder.close(scope)
        if self._on_end is not None and scope.turn is not None:
            self._on_end(scope.turn)

    # Time

    def tick(self, now: float) -> None:
        """Let time pass: count what waited long enough, end what is due."""
        for scope in _while_older(self._held, lambda scope: scope.held_since, now - _HELD_MODEL_SECONDS):
            self._recorder.count_held(scope)
            self._held.pop(scope, None)
        for scope in _while_older(self._unsettled, lambda scope: scope.since, now - self._settle):
            self._settle_scope(scope, now)
        for scope in _while_older(self._due, lambda scope: scope.due or 0.0, now):
            self._close(scope)
        for scope in _while_older(self._open, lambda scope: self._open[scope], now - self._idle):
            self._close(scope)

    def _settle_scope(self, scope: Scope, now: float) -> None:
        """Nothing came that says where these calls belong: they count towards their trace."""
        self._unsettled.pop(scope, None)
        if scope.turn is not None:
            self._recorder.count_seen_by_mcp(scope)
            return
        of_trace = self._of_trace.get(scope.trace_id)
        if of_trace is not None and of_trace is not scope:
            scope.take_hints(of_trace)
            pending, scope.pending = scope.pending, None
            if scope.seen_by_mcp and not of_trace.has_tools:
                of_trace.seen_by_mcp = (of_trace.seen_by_mcp or []) + scope.seen_by_mcp
                self._unsettled.setdefault(of_trace)
            scope.into = of_trace
            for fact in sorted(pending, key=lambda fact: fact.start_ns) if pending else ():
                self._add(of_trace, fact, now)
            return
        self._open_turn(scope, now=now)
        if scope.seen_by_mcp:
            self._recorder.count_seen_by_mcp(scope)

    def _forget_oldest(self, now: float) -> None:
        key = next(iter(self._waiting))
        scope = self._waiting.pop(key).found()
        if scope.turn is None and not scope.is_empty:
            self._settle_scope(scope, now)

    def flush(self) -> None:
        """Count everything that waits and end every turn: nothing more will come."""
        for scope in list(self._unsettled):
            if scope in self._unsettled and scope.into is None:
                self._settle_scope(scope, scope.since)
        for scope in list(self._open):
            self._close(scope)
        self._waiting.clear()
        self._places.clear()
        self._of_trace.clear()
        self._loose.clear()
        self.report()

    # Its own counts

    def _count(self, outcome: str) -> None:
        self._spans[outcome] = self._spans.get(outcome, 0) + 1

    def report(self) -> None:
        """Write the counts of spans read to the meter."""
        counts, self._spans = self._spans, {}
        with self._watch.lock:
            for outcome, number in counts.items():
                self._watch.meter.counter("turnwatch_spans_total", outcome).inc(number)


def _while_older(
    scopes: dict[Scope, float] | dict[Scope, None], age: Callable[[Scope], float], limit: float
) -> list[Scope]:
    """The first scopes of an ordered index, as long as they are older than this."""
    old: list[Scope] = []
    for scope in scopes:
        if age(scope) > limit:
            break
        old.append(scope)
    return old


def _spoken_name(name: str) -> str:
    """What an agent span is called, where nothing else names the agent."""
    for start in ("invoke_agent ", "invoke_workflow "):
        name = name.removeprefix(start)
    for end in (".run", "._execute_core", ".kickoff", ".workflow", ".agent"):
        name = name.removesuffix(end)
    return name
