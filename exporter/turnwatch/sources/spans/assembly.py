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

from collections.abc import Callable, Iterable, KeysView
from typing import Final

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.spans.above import Above
from turnwatch.sources.spans.awaited_arguments import AwaitedArguments
from turnwatch.sources.spans.calls import Calls
from turnwatch.sources.spans.dialect import Dialect
from turnwatch.sources.spans.facts import model_fact, tool_fact
from turnwatch.sources.spans.graphs import graph_name
from turnwatch.sources.spans.hints import about_agent, about_root, give_hints, own_name, spoken_name
from turnwatch.sources.spans.logs import LogData
from turnwatch.sources.spans.order import as_they_ended
from turnwatch.sources.spans.outcomes import OpenOutcomes
from turnwatch.sources.spans.placing import CallPlace, Places
from turnwatch.sources.spans.roles import NAMES, role_of
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import PassingSpans, SpanData
from turnwatch.sources.spans.stops import stop_reason_of
from turnwatch.sources.spans.turns import Turns

# Spans whose parents' ids go round in a circle would be looked for without end.
_MAX_ROUNDS: Final = 32
# Nothing that waits for time waits so exactly that it must be looked for more often.
_TICK_SECONDS: Final = 0.05


class Assembler:
    """Builds turns out of spans. Keeps no clock and does no I/O; one caller at a time.

    Args:
        watch: Opens the turns; its settings bound how many are open.
        grace_seconds: How long a turn stays open after its agent's span ended, for children that come late.
        settle_seconds: How long calls wait for the span above them before they count towards their trace.
        idle_seconds: How long a turn without news stays open when nothing says it ended.
        name_seconds: How long the calls of an agent that nothing has named yet wait for the span that does.
        outcome_seconds: How long a tool call waits for a span inside it that may tell of its failure alone.
        on_end: Told of every turn that ended.
    """

    def __init__(
        self,
        watch: Watch,
        *,
        grace_seconds: float = 10.0,
        settle_seconds: float = 30.0,
        idle_seconds: float = 1800.0,
        name_seconds: float = 0.0,
        outcome_seconds: float = 0.0,
        on_end: Callable[[TurnState], None] | None = None,
    ) -> None:
        self._watch = watch
        self._grace = grace_seconds
        self._places = Places(4 * watch.settings.bounds.open_turns)
        self._outcomes = OpenOutcomes(outcome_seconds)
        self._turns = Turns(
            watch,
            self._places,
            self._outcomes,
            grace_seconds=grace_seconds,
            settle_seconds=settle_seconds,
            idle_seconds=idle_seconds,
            name_seconds=name_seconds,
            on_end=on_end,
        )
        self._above = Above(self._places, self._turns)
        self._calls = Calls(self._places, self._above, self._turns, self._outcomes)
        self._arguments = AwaitedArguments(self._turns.logs, grace_seconds)
        self._spans: dict[str, int] = {}
        self._ticked = float("-inf")

    @property
    def open_turns(self) -> int:
        """How many turns are open."""
        return len(self._turns)

    @property
    def awaited(self) -> KeysView[int]:
        """The spans for which calls wait. The view stays right as they come."""
        return self._places.awaited

    def has_come(self, span_id: int) -> bool:
        """Whether it is known where the children of this span count."""
        return self._places.has_come(span_id)

    # In

    def feed(self, spans: Iterable[SpanData | PassingSpans], now: float) -> None:
        """Take ended spans in. A span that cannot be read is counted and left out; nothing is raised.

        Args:
            spans: In the order in which they came.
            now: Seconds of the caller's clock; never goes back.
        """
        passing: list[PassingSpans] = []
        for span in as_they_ended(spans):
            if isinstance(span, PassingSpans):
                passing.append(span)
                continue
            try:
                self._take(span, now)
            except Exception:
                self._unreadable()
        if passing:
            self._take_passing(passing, now)
        self._turns.open_ripe(now)
        if now - self._ticked >= _TICK_SECONDS:
            self.tick(now)

    def _take_passing(self, passing: list[PassingSpans], now: float) -> None:
        """Take in the spans of a batch that others hang under, whichever of them stands first in it."""
        left = sum(map(len, passing))
        for _ in range(_MAX_ROUNDS):
            before = left
            for spans in passing:
                try:
                    for parent in spans.among(self._places.awaited):
                        left -= 1
                        self._pass_through(parent, None, now)
                except Exception:
                    self._unreadable()
            if left == before:
                break
        if left > 0:
            self._count("unrelated", left)

    def _unreadable(self) -> None:
        self._count("unreadable")
        self._watch.internal_error("reading a span")

    def _take(self, span: SpanData, now: float) -> None:
        shape = span.shape
        if not shape.is_of_interest and (shape.is_unrelated or span.name not in NAMES):
            if span.span_id in self._places.awaited:
                self._pass_through(span, None, now)
            else:
                self._count("unrelated")
            return
        dialect = shape.dialect
        role = role_of(span, dialect)
        if role == "pending" or not span.end_ns:
            self._count("pending")
            return
        if span.span_id in self._places.announced:
            self._end_announced(span, dialect, now)
            return
        if self._places.has_come(span.span_id):
            self._count("repeated")  # sent twice, by an exporter that got no answer
            return
        if role == "tool" or role == "mcp":
            fact = tool_fact(span, dialect)
            if fact.call.tool in dialect.step_tools:
                self._pass_through(span, dialect, now)
            elif role == "tool":
                if dialect.arguments_in_logs and not self._arguments.fill(span, fact.call, now):
                    self._wait_for_arguments(span, now)
                    return
                self._calls.take_tool(span, fact, now)
            else:
                self._calls.take_mcp(span, fact, now)
        elif role == "model":
            if span.failed and stop_reason_of(span) == "max_iterations":
                # The framework's own limit was met before the model was called.
                self._pass_through(span, dialect, now)
                return
            self._calls.take_model(span, model_fact(span, dialect), now)
        elif (graph := graph_name(span)) or role == "agent":
            self._take_agent(span, dialect, graph, now)
        else:
            self._pass_through(span, dialect, now)
            return
        self._count(role)

    def _end_announced(self, span: SpanData, dialect: Dialect, now: float) -> None:
        del self._places.announced[span.span_id]
        self._count("agent" if role_of(span, dialect) == "agent" else "step")
        scope = self._places.of(span.span_id)
        if isinstance(scope, Scope) and scope.key == span.span_id and not scope.is_adopted:
            about_agent(scope, span, dialect)
            above = scope.above.found() if scope.above is not None else self._above.known(span)
            if above is None and span.parent_id:
                above = self._above.of(span, now)
            self._turns.finish(scope, above, span, now)

    # Spans round calls

    def _take_agent(self, span: SpanData, dialect: Dialect, graph: str, now: float) -> None:
        name = graph or own_name(span, dialect)
        below = self._places.take(span.span_id)
        if not name or dialect.agent_per_step or (below is not None and below.key != span.span_id):
            if below is not None:
                self._places.put_back(span.span_id, below)
            self._pass_through(span, dialect, now, agent=name, is_agent=True)
            return
        above = self._above.known(span)
        if below is None and above is not None and above.is_agent and above.agent == name and not above.closed:
            self._pass_through(span, dialect, now, agent=name, is_agent=True)
            return
        scope = below or Scope(span.span_id, span.trace_id, now)
        scope.agent = name
        scope.is_agent = True
        scope.saw_agent = scope.saw_agent or not scope.is_empty or not graph
        about_agent(scope, span, dialect)
        if scope.is_empty and span.parent_id:
            # A wrapper, or an agent that made no call: whoever is above learns its name.
            if above is None:
                above = self._above.of(span, now)
            if above is not None and not above.closed:
                above.learn_of(scope)
                if above.is_empty:
                    above.ended_ns = max(above.ended_ns, span.end_ns)
                scope.above = above
            # Its calls may come yet, where parents arrive first.
            scope.due = now + self._grace
            scope.ended_ns = span.end_ns
            self._places.came(span.span_id, scope)
            return
        if above is None and span.parent_id:
            above = self._above.of(span, now)
        self._turns.finish(scope, above, span, now)
        self._places.came(span.span_id, scope)

    def _pass_through(
        self, span: SpanData, dialect: Dialect | None, now: float, agent: str = "", *, is_agent: bool = False
    ) -> None:
        """A span that is no boundary: what hangs under it hangs under its parent."""
        if dialect is not None and not is_agent:
            self._count("step")
            if span.failed and span.parent_id and "gen_ai.tool.call.id" in span.attributes:
                self._note_failure(span, now)
        below = self._places.take(span.span_id)
        if dialect is not None or below is not None:  # where some calls hung under it more may come
            self._places.came(span.span_id, span.parent_id)
        if is_agent:
            self._above.agent_within(span, agent, now)
        if below is None and dialect is not None and not span.parent_id:
            below = Scope(span.span_id, span.trace_id, now)
        if below is None:
            return
        if is_agent and dialect is not None:
            below.saw_agent = True
            if dialect.agent_per_step and agent:
                below.agent = agent  # the outermost is the turn, and names it
            else:
                below.agent = below.agent or agent or spoken_name(span.name, dialect)
            about_agent(below, span, dialect)
        elif dialect is not None:
            give_hints(below, span, dialect)
        is_under = span.parent_id or span.span_id in self._above.adopted
        above = self._above.of(span, now, below) if is_under else None
        if above is not None:
            self._turns.join(below, above, now)
        elif below.is_empty and not below.saw_agent:
            below.due = now + self._grace
            self._places.came(span.span_id, below)
        else:
            about_root(below, span, dialect)
            self._turns.finish(below, None, span, now)
            self._places.came(span.span_id, below)

    def _note_failure(self, span: SpanData, now: float) -> None:
        """A step inside a tool call failed: where the tool's own span does not say so, the call did."""
        error = str(span.attributes.get("error.type") or "error")
        inside = self._places.of(span.parent_id)
        if isinstance(inside, CallPlace):
            self._calls.fail(inside, error)
        if inside is None:
            inside = self._places.wait_for(span.parent_id, span.trace_id, now)
        if isinstance(inside, Scope) and inside.is_empty:
            inside.failure = error

    # Log events

    def feed_logs(self, logs: Iterable[LogData], now: float) -> None:
        """Take log records in: some dialects say in them what their spans leave out. Nothing is raised."""
        try:
            calls, spans = self._turns.logs.take(logs)
            for span in self._arguments.told(calls):
                self._take(span, now)
            for span_id in spans:
                place = self._places.of(span_id)
                if isinstance(place, CallPlace) and place.tool is None:
                    self._turns.hear_reply(place.above.found(), span_id)
        except Exception:
            self._watch.internal_error("reading log records")

    def _wait_for_arguments(self, span: SpanData, now: float) -> None:
        """Keep a turn open while one of its calls waits for a log event."""
        above = self._above.known(span)
        if above is not None and above.due is not None:
            self._turns.end_soon(above, now)
        if self._arguments.are_too_many:
            self._take_late(float("inf"), now)

    def _take_late(self, limit: float, now: float) -> None:
        """Take the spans in whose log events did not come in time."""
        for span in self._arguments.late(limit):
            self._take(span, now)

    # Time

    def tick(self, now: float) -> None:
        """Let time pass: count what waited long enough, end what is due."""
        self._ticked = now
        self._take_late(now, now)
        self._outcomes.tick(now)
        self._calls.tick(now)
        self._turns.tick(now)

    def flush(self) -> None:
        """Count everything that waits and end every turn: nothing more will come."""
        self._take_late(float("inf"), float("-inf"))
        self._turns.flush()
        self._places.clear()
        self._calls.clear()
        self.report()

    # Its own counts

    def _count(self, outcome: str, number: int = 1) -> None:
        self._spans[outcome] = self._spans.get(outcome, 0) + number

    def report(self, unrelated: int = 0) -> None:
        """Write the counts of spans read to the meter.

        Args:
            unrelated: Spans that the caller left out itself.
        """
        counts, self._spans = self._spans, {}
        if unrelated:
            counts["unrelated"] = counts.get("unrelated", 0) + unrelated
        late, self._turns.late = self._turns.late, 0
        if late:
            counts["late"] = late
        second, self._calls.second = self._calls.second, 0
        if second:
            counts["second"] = second
        with self._watch.lock:
            for outcome, number in counts.items():
                self._watch.meter.counter("turnwatch_spans_total", outcome).inc(number)
