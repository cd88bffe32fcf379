"""The turns that are open, and the calls that wait to be one: opened, joined and closed as time passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.spans.facts import Fact, ModelFact, ToolFact
from turnwatch.sources.spans.logs import LogFacts
from turnwatch.sources.spans.outcomes import OpenOutcomes
from turnwatch.sources.spans.placing import Places
from turnwatch.sources.spans.recording import BY_START, Recorder
from turnwatch.sources.spans.same_call import is_same_model_call, merge_usage, merged
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.stops import stop_reason_of

# A step is one model call and its tools. More than that under one span, and the span is no step.
_MODELS_IN_A_STEP: Final = 1
_TOOLS_IN_A_STEP: Final = 64
# The span that names the agent is often in the same batch, behind its calls. What waits for it is bounded.
_CALLS_OF_A_BATCH: Final = 256
# A turn that has made more calls than this is judged under whatever name it has.
_NAMELESS_CALLS: Final = 16
# Second spans of one model call come within a batch of each other.
_HELD_MODEL_SECONDS: Final = 2.0
# A moment in seconds as a float is right to a quarter of this.
_SLACK_NS: Final = 1_000
_NS: Final = 1e-9
# Calls that wait keep their arguments. Past this much the oldest wait no longer.
_WAITING_BYTES: Final = 25_165_824


class Turns:
    """Scopes by what they wait for.

    Args:
        watch: Opens the turns; its settings bound how many are open.
        places: Told of scopes that are no longer waited for.
        outcomes: Holds the ends of calls that spans inside them may tell more of.
        grace_seconds, settle_seconds, idle_seconds, name_seconds, on_end: See Assembler.
    """

    def __init__(
        self,
        watch: Watch,
        places: Places,
        outcomes: OpenOutcomes,
        *,
        grace_seconds: float,
        settle_seconds: float,
        idle_seconds: float,
        name_seconds: float,
        on_end: Callable[[TurnState], None] | None,
    ) -> None:
        self._watch = watch
        self._places = places
        self._grace = grace_seconds
        self._settle = settle_seconds
        self._idle = idle_seconds
        self._name_seconds = name_seconds
        self._on_end = on_end
        self.logs = LogFacts()
        self._recorder = Recorder(watch, self.logs, outcomes)
        self._bound = watch.settings.bounds.open_turns
        # Each ordered by the time that matters to it, so that looking for what is due looks at that only.
        self._unsettled: dict[Scope, None] = {}  # calls wait here
        self._open: dict[Scope, float] = {}  # by the last news
        self._due: dict[Scope, None] = {}  # their agent's span has come
        self._ripe: dict[Scope, None] = {}  # more than a step: a turn as soon as the batch has been read
        self._nameless: dict[Scope, float] = {}  # ripe since, and nothing has named the agent yet
        self._silent: dict[Scope, tuple[float, int]] = {}  # agents without calls, so far: since when, and their start
        self._held: dict[Scope, float] = {}  # a model call is held back, since then
        self._of_trace: dict[int, Scope] = {}  # where calls of a trace count that nothing else places
        self._weight = 0  # of all calls that wait
        self.late = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, scope: Scope, fact: Fact, now: float) -> None:
        """Count a call in its scope, or let it wait there."""
        if scope.closed:
            self.late += 1
            return
        if scope.turn is not None:
            self._record(scope, fact, now)
            return
        pending = scope.pending
        if pending is None:
            pending = scope.pending = []
            self._unsettle(scope, now)
        if type(fact) is ModelFact:
            for number, other in enumerate(pending) if scope.may_be_told_twice(fact) else ():
                if isinstance(other, ModelFact) and is_same_model_call(other, fact):
                    pending[number] = merged(other, fact)
                    return
            scope.pending_models += 1
        pending.append(fact)
        scope.weight += fact.weight
        self._weight += fact.weight
        if scope.is_agent or len(pending) > _CALLS_OF_A_BATCH:
            self.open(scope, now=now)
        elif scope.pending_models > _MODELS_IN_A_STEP or len(pending) > _TOOLS_IN_A_STEP:
            self._ripe[scope] = None
        while self._weight > _WAITING_BYTES and self._unsettled:
            self.settle(next(iter(self._unsettled)), now)

    def weigh(self, scope: Scope) -> None:
        """Note that calls which waited in a scope do so no more."""
        weight = sum([fact.weight for fact in scope.pending]) if scope.pending else 0
        self._weight += weight - scope.weight
        scope.weight = weight

    def _record(self, scope: Scope, fact: Fact, now: float) -> None:
        if scope.is_adopted:
            if scope.turn is not None and scope.turn.ended:
                self.late += 1
                return
            self._recorder.record(scope, fact)
            self._recorder.count_held(scope)  # whoever ends the turn does not wait
            return
        self._recorder.record(scope, fact)
        if scope.due is not None and fact.end_ns > scope.ended_ns > 0:
            self.end_soon(scope, now)  # some agents' spans end before their calls
        self._open.pop(scope, None)
        self._open[scope] = now
        if scope.held is None:
            self._held.pop(scope, None)
        else:
            self._hold(scope, now)

    def _hold(self, scope: Scope, now: float) -> None:
        self._held.pop(scope, None)
        self._held[scope] = now

    def join(self, below: Scope, above: Scope, now: float) -> None:
        """Make two scopes one. Where both are turns already they stay two."""
        if below is above:
            return
        if below.is_turn and above.is_turn:
            self.end_soon(below, now)
            return
        kept, gone = (below, above) if below.is_turn else (above, below)
        kept.key = above.key
        kept.is_agent = above.is_agent
        kept.take_hints(gone)
        if gone.is_empty and kept.is_empty:
            kept.failure = kept.failure or gone.failure  # a span between two inside one call
        kept.ended_ns = max(kept.ended_ns, gone.ended_ns)
        gone.into = kept
        kept.adopt_waiting(gone)
        if gone is above and gone.above is not None:
            kept.called_in(gone.above)
        self._unsettled.pop(gone, None)
        self._pass_on_seen_by_mcp(gone, kept, now)
        pending, gone.pending, gone.pending_models = gone.pending, None, 0
        self.weigh(gone)
        if gone.due is not None and kept.due is None and gone is above:
            self.end_soon(kept, now)
        for fact in sorted(pending, key=BY_START) if pending else ():
            self.add(kept, fact, now)

    def open(self, scope: Scope, now: float | None = None) -> None:
        """Make a scope a turn, and count what waited in it."""
        while len(self._open) >= self._bound:
            oldest = next(iter(self._open))
            oldest.stop_reason = "evicted"
            self._watch.count("turnwatch_turns_evicted_total", "open_turns_bound")
            self._close(oldest)
        self._unsettled.pop(scope, None)
        self._nameless.pop(scope, None)
        scope.says_above()
        parent = scope.caller()
        self._recorder.open(scope, parent.turn if parent is not None and not parent.closed else None)
        if parent is not None and parent.turn is None and scope.turn is not None:
            parent.adopt(scope.turn)
        scope.adopt_waiting(scope)
        self.weigh(scope)
        self._open[scope] = scope.since if now is None else now
        if parent is None or parent.is_empty:  # what is astray in a trace is rather its outermost agent's
            self._of_trace.setdefault(scope.trace_id, scope)
        if scope.held is not None:
            self._hold(scope, scope.since if now is None else now)
        if scope.seen_by_mcp:
            self._unsettle(scope, scope.since if now is None else now)
        if scope.due is not None:
            self._due[scope] = None

    def finish(self, scope: Scope, above: Scope | None, span: SpanData, now: float) -> None:
        """The span that bounds this scope has arrived: it is a turn, and it ends soon."""
        scope = scope.found()
        if scope.closed or scope.is_adopted:
            return
        scope.ended_ns = max(scope.ended_ns, span.end_ns)
        if above is not None and above is not scope:
            scope.called_in(above)
        if scope.turn is None:
            if scope.is_empty:
                if scope.saw_agent and not scope.child_turns:
                    # An agent without calls is a turn as well, unless its calls are still to come.
                    scope.due = now + self._grace
                    self._silent.setdefault(scope, (now, span.start_ns))
                elif above is not None:
                    above.adopt_waiting(scope)
                return
            self.open(scope, now)
        else:
            self._recorder.teams.join(scope, scope.turn)
        scope.stop_reason = scope.stop_reason or stop_reason_of(span)
        self.end_soon(scope, now)

    def end_soon(self, scope: Scope, now: float) -> None:
        """End a turn after the grace period."""
        if scope.is_adopted or scope.closed:
            return
        scope.due = now + self._grace
        self._due.pop(scope, None)
        self._due[scope] = None

    def _close(self, scope: Scope) -> None:
        scope.closed = True
        for index in (self._open, self._due, self._held, self._unsettled):
            index.pop(scope, None)
        self._places.forget(scope)
        if self._of_trace.get(scope.trace_id) is scope:
            del self._of_trace[scope.trace_id]
        self._recorder.close(scope)
        turn, scope.turn = scope.turn, None  # spans that come yet find the scope and need no more of it
        scope.recent_models, scope.recent_tools, scope.call_ids = (), (), None
        if self._on_end is not None and turn is not None:
            self._on_end(turn)

    def add_seen_by_mcp(self, scope: Scope, fact: ToolFact, now: float) -> None:
        """Keep a call that MCP saw, until it is clear whether another span stands for it."""
        if scope.has_tools or scope.closed:
            return
        if scope.seen_by_mcp is None:
            scope.seen_by_mcp = []
        scope.seen_by_mcp.append(fact)
        if scope not in self._unsettled:
            self._unsettle(scope, now)

    def _pass_on_seen_by_mcp(self, gone: Scope, kept: Scope, now: float) -> None:
        for fact in gone.seen_by_mcp or ():
            self.add_seen_by_mcp(kept, fact, now)

    def _unsettle(self, scope: Scope, now: float) -> None:
        scope.since = now
        self._unsettled.pop(scope, None)
        self._unsettled[scope] = None

    def hear_reply(self, scope: Scope, span_id: int) -> None:
        """Take the tool calls of a reply from a log event that came late."""
        if scope.turn is not None:
            self._recorder.hear_reply(scope, span_id)

    def tell_more(self, scope: Scope, span_id: int, fact: ModelFact) -> None:
        """Fill in what a span lacks, if its model call has not been counted, from another span inside it."""
        for waiting in (*(scope.held or ()), *(scope.pending or ())):
            if isinstance(waiting, ModelFact) and waiting.span_id == span_id:
                merge_usage(waiting, fact)

    def count_now(self, scope: Scope) -> None:
        """Count the model calls held back in a turn: no second span of them will come."""
        self._recorder.count_held(scope)
        self._held.pop(scope, None)

    def goes_on(self, scope: Scope) -> None:
        """Keep a turn open that was about to end."""
        scope.due = None
        self._due.pop(scope, None)

    def gather_trace(self, adopted: Scope) -> None:
        """Have calls that nothing else places count in a turn that somebody else opened round their trace."""
        self._of_trace.setdefault(adopted.trace_id, adopted)

    def ungather_trace(self, adopted: Scope) -> None:
        """The turn round this trace has ended."""
        if self._of_trace.get(adopted.trace_id) is adopted:
            del self._of_trace[adopted.trace_id]

    def _is_gathered(self, scope: Scope) -> bool:
        of_trace = self._of_trace.get(scope.trace_id)
        return of_trace is not None and of_trace.is_adopted and not scope.is_agent

    # Time

    def open_ripe(self, now: float) -> None:
        """Open the turns of scopes that hold more than a step can: the batch that may explain them has been read.

        A turn counts under the name that it is opened with, so one without a name waits a little for it.
        """
        while self._ripe:
            scope = self._ripe.popitem()[0].found()
            if scope.agent or not self._name_seconds or len(scope.pending or ()) > _NAMELESS_CALLS:
                self._open_waiting(scope, now)
            else:
                self._nameless.setdefault(scope, now)
        if self._nameless:
            for scope in _while_older(self._nameless, lambda scope: self._nameless[scope], now - self._name_seconds):
                del self._nameless[scope]
                self._open_waiting(scope.found(), now)

    def _open_waiting(self, scope: Scope, now: float) -> None:
        if scope.turn is None and scope.pending:
            if self._is_gathered(scope):
                self.settle(scope, now)
            else:
                self.open(scope, now=now)

    def tick(self, now: float) -> None:
        """Let time pass: count what waited long enough, end what is due."""
        self.open_ripe(now)
        for scope in _while_older(self._held, lambda scope: self._held[scope], now - _HELD_MODEL_SECONDS):
            self._recorder.count_held(scope)
            self._held.pop(scope, None)
        for scope in _while_older(self._unsettled, lambda scope: scope.since, now - self._settle):
            self.settle(scope, now)
        for scope in _while_older(self._due, lambda scope: scope.due or 0.0, now):
            self._close(scope)
        # By then the calls have settled that wait for spans below the agent's which never come.
        silent_since = now - max(self._grace, self._settle)
        for scope in _while_older(self._silent, lambda scope: self._silent[scope][0], silent_since):
            self._end_silent(scope)
        for scope in _while_older(self._open, lambda scope: self._open[scope], now - self._idle):
            self._close(scope)
        for scope in self._places.forget_older(now - self._idle, now):
            self._end_silent(scope)

    def _end_silent(self, scope: Scope) -> None:
        """End the turn of an agent under which no call was found: where its calls went astray, with those."""
        _, start_ns = self._silent.pop(scope, (0.0, 0))
        if scope.into is not None or not scope.is_empty or not scope.saw_agent or scope.child_turns:
            return
        astray = self._of_trace.get(scope.trace_id)
        if astray is not None and astray.turn is not None and not astray.is_agent:
            began_ns = round(astray.turn.started / _NS)
            if start_ns - _SLACK_NS <= began_ns and astray.last_ns <= scope.ended_ns + _SLACK_NS:
                self._claim(astray, scope)
                return
            if began_ns < scope.ended_ns and start_ns < astray.last_ns:
                scope.agent_usage = None  # the sum of calls some of which may be counted there
        self.open(scope)
        self._close(scope)

    def _claim(self, astray: Scope, agent: Scope) -> None:
        """Take a turn for an agent's whose span it did not hang under: spans between them were lost."""
        astray.agent = agent.agent
        astray.stop_reason = agent.stop_reason
        self.join(agent, astray, astray.since)
        astray.is_agent = True
        self._close(astray)

    def settle(self, scope: Scope, now: float) -> None:
        """Nothing came that says where these calls belong: they count towards their trace."""
        self._unsettled.pop(scope, None)
        if scope.turn is not None:
            self._recorder.count_seen_by_mcp(scope)
            return
        if scope.is_empty and not scope.orphans:
            return  # what waited here was told of by another span as well
        of_trace = None if scope.is_agent else self._of_trace.get(scope.trace_id)
        if of_trace is not None and of_trace is not scope:
            scope.take_hints(of_trace)
            pending, scope.pending = scope.pending, None
            self.weigh(scope)
            self._pass_on_seen_by_mcp(scope, of_trace, now)
            scope.into = of_trace
            of_trace.adopt_waiting(scope)
            for fact in sorted(pending, key=BY_START) if pending else ():
                self.add(of_trace, fact, now)
            return
        self.open(scope, now=now)
        if scope.seen_by_mcp:
            self._recorder.count_seen_by_mcp(scope)

    def flush(self) -> None:
        """Count everything that waits and end every turn."""
        for scope in list(self._unsettled):
            if scope in self._unsettled and scope.into is None:
                self.settle(scope, scope.since)
        for scope in (*self._silent, *self._places.waited_for()):
            self._end_silent(scope)
        for scope in list(self._open):
            self._close(scope)
        self._nameless.clear()
        self._of_trace.clear()


def _while_older(scopes: Iterable[Scope], age: Callable[[Scope], float], limit: float) -> list[Scope]:
    """The first scopes of an ordered index, as long as they are older than this."""
    old: list[Scope] = []
    for scope in scopes:
        if age(scope) > limit:
            break
        old.append(scope)
    return old
