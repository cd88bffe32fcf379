"""The span processor: turns out of the spans of this process, judged while they run."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from turnwatch.core.current_call import current_call
from turnwatch.core.default import default_watch
from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.guard import open_guard
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError
from turnwatch.sources.hand import current_turn
from turnwatch.sources.spans.dialect import standing_of
from turnwatch.sources.spans.facts import is_counted
from turnwatch.sources.spans.in_process import Counted, InProcessAssembler
from turnwatch.sources.spans.readable import attributes_of, span_of
from turnwatch.sources.spans.roles import MARKERS, NAMES
from turnwatch.sources.spans.shapes import COUNTED_MODEL, COUNTED_TOOL
from turnwatch.sources.spans.span import NO_ATTRIBUTES, SpanData

try:
    from opentelemetry.sdk.trace import SpanProcessor
except ImportError as error:
    raise MissingExtraError("Reading spans in this process", "otel") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

logger = logging.getLogger("turnwatch")

_TICK_SECONDS: Final = 1.0
_MAX_LIVE_SPANS: Final = 50_000
_MAX_ANCESTORS: Final = 64
_STILL_OPEN: Final = 1

_processors: weakref.WeakSet[TurnSpanProcessor] = weakref.WeakSet()


class _Live(weakref.ref["Span"]):
    """A span that is open, held by nobody but who will end it, and what was so when it started."""

    __slots__ = ("call", "iterations", "parent_id", "span_id", "turn")

    call: ModelCall | ToolCall | None
    iterations: int  # as its span says
    parent_id: int
    span_id: int
    turn: TurnState | None


class TurnSpanProcessor(SpanProcessor):
    """Counts and judges turns out of the GenAI spans of this process, in every dialect.

    It only observes: it changes no span but to add ``loop.*`` and ``agent.iterations`` to the span of a turn that is
    still open, and it raises nothing. Works beside any exporter. It sees what is sampled, and nothing else. Where a
    provider has two that count for the same watch, the second counts nothing.

    Args:
        watch: Where turns count; the process's own watch when left out.
        grace_seconds: How long a turn stays open after its span ended, for spans that end after it.
        settle_seconds, idle_seconds: See Assembler.
    """

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        grace_seconds: float = 2.0,
        settle_seconds: float = 30.0,
        idle_seconds: float = 1800.0,
    ) -> None:
        self._given_watch = watch
        self._grace_seconds = grace_seconds
        self._settle_seconds = settle_seconds
        self._idle_seconds = idle_seconds
        self._start_afresh()
        _processors.add(self)

    def _start_afresh(self) -> None:
        """Forget all state: at the start, and in a forked process, whose parent's turns are not its own."""
        self._lock = threading.RLock()  # the garbage collector may end a generator, and its span, below
        self._watch = self._given_watch or default_watch()
        self._assembler = self._new_assembler()
        self._awaited = self._assembler.awaited
        self._live: dict[int, _Live] = {}
        # Spans that nobody ended before they were let go, as those of replies of which nobody read the end.
        self._lost: deque[weakref.ref[Span]] = deque(maxlen=_MAX_LIVE_SPANS)
        self._note_lost = self._lost.append  # runs inside the garbage collector: no Python, no lock
        self._timer: threading.Thread | None = None
        self._stopped = threading.Event()
        self._annotated: weakref.WeakKeyDictionary[TurnState, Verdict] = weakref.WeakKeyDictionary()
        self._unrelated = 0
        self._is_said_to_be_second = False

    def _new_assembler(self) -> InProcessAssembler:
        return InProcessAssembler(
            self._watch,
            grace_seconds=self._grace_seconds,
            settle_seconds=self._settle_seconds,
            idle_seconds=self._idle_seconds,
            on_end=_end_guard,
        )

    # What the SDK calls

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember an open span, and the turn and call in progress around it."""
        try:
            context, parent = span.context, span.parent
            if context is None:
                return
            parent_id = 0 if parent is None or parent.is_remote else parent.span_id
            hand = current_turn()
            turn = hand._state if hand is not None else None
            live = self._live
            if self._lost:
                self._forget_lost()
            entry = live[context.span_id] = _Live(span, self._note_lost)
            entry.span_id, entry.parent_id, entry.iterations = context.span_id, parent_id, 0
            entry.turn, entry.call = turn, current_call()
            if len(live) > _MAX_LIVE_SPANS:
                del live[next(iter(live))]
            if turn is not None and not turn.ended:
                above = live.get(parent_id)
                if above is None or above.turn is not turn:
                    with self._lock:
                        self._assembler.adopt(context.span_id, context.trace_id, turn, self._watch.clock())
                    turn.before_end(self._end_waits)
        except Exception:
            self._watch.internal_error("the start of a span")

    def on_end(self, span: ReadableSpan) -> None:
        """Count an ended span, where it stands for a call or bounds a turn."""
        try:
            # Most spans are somebody else's, and the agent waits meanwhile: no more is done for them than must be. The
            # SDK's properties are functions, and calling them would be a quarter of it.
            try:
                context, scope, name = span._context, span._instrumentation_scope, span._name
                attributes: Mapping[str, Any] = span._attributes._dict  # type: ignore[union-attr]
            except AttributeError:
                context, scope, name = span.context, span.instrumentation_scope, span.name
                attributes = span.attributes or NO_ATTRIBUTES
            if context is None:
                return
            span_id = context.span_id
            live = self._live.pop(span_id, None)
            standing = standing_of("" if scope is None else scope.name)
            is_unrelated = standing == "unrelated" or (
                standing is None and MARKERS.isdisjoint(attributes) and name not in NAMES
            )
            if is_unrelated and span_id not in self._awaited:
                self._unrelated += 1
                self._assembler.passed.discard(span_id)
                if live is not None and live.turn is not None:
                    self._disown(span_id)
                return
            if live is not None and live.call is not None and not is_counted(attributes):
                attributes = _marked(attributes, live.call)
            self._take(span_of(span, attributes), live)
        except Exception:
            self._watch.internal_error("the end of a span")

    def _disown(self, span_id: int) -> None:
        if self._assembler.is_adopted(span_id):
            with self._lock:
                self._assembler.disown(span_id)

    def _end_waits(self, turn: TurnState) -> None:
        if self._assembler.holds_calls:
            with self._lock:
                self._assembler.end_waits(turn)

    def shutdown(self) -> None:
        """End every turn."""
        self._stopped.set()
        try:
            with self._lock:
                self._assembler.flush()
                self._report()
        except Exception:
            self._watch.internal_error("the shutdown of the span processor")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Count what waits only for time. Open turns stay open."""
        self._tick()
        return True

    # Counting

    def _take(self, span: SpanData, live: _Live | None) -> None:
        if len(_processors) > 1 and self._is_taken(span.span_id):
            self._disown(span.span_id)
            return
        with self._lock:
            self._follow_default_watch()
            now = self._watch.clock()
            if live is not None:
                self._announce_above(live, now)
            self._assembler.feed((span,), now)
            counted = self._assembler.counted_in(span)
            self._assembler.disown(span.span_id)
            self._start_timer()
        if counted is not None:
            self._annotate(counted, live)  # without the lock: guards may call out

    def _is_taken(self, span_id: int) -> bool:
        """Whether another processor of the same provider, for the same watch, has counted this span."""
        for other in list(_processors):
            if other is not self and other._watch is self._watch and other._assembler.has_come(span_id):
                if not self._is_said_to_be_second:
                    self._is_said_to_be_second = True
                    logger.warning("A tracer provider has two TurnSpanProcessors. The second one counts nothing.")
                return True
        return False

    def _follow_default_watch(self) -> None:
        """Go over to the watch that a later ``configure`` made; what is open ends, and goes on as new turns."""
        if self._given_watch is None:
            watch = default_watch()
            if watch is not self._watch:
                self._assembler.flush()
                self._watch = watch
                self._assembler = self._new_assembler()
                self._awaited = self._assembler.awaited

    def _announce_above(self, live: _Live, now: float) -> None:
        """Tell of the open spans above an ended one, from the top, as far as they already say what they are."""
        above: list[Span] = []
        parent = live.parent_id
        while parent and len(above) < _MAX_ANCESTORS and not self._assembler.has_come(parent):
            entry = self._live.get(parent)
            span = None if entry is None else entry()
            if entry is None or span is None:
                break
            above.append(span)
            parent = entry.parent_id
        for span in reversed(above):
            self._assembler.announce(span_of(span, dict(attributes_of(span)), end_ns=_STILL_OPEN), now)

    def _annotate(self, counted: Counted, live: _Live | None) -> None:
        """Write on the turn's span, or on the topmost one that is open, how the turn goes, and tell its guard."""
        turn = counted.turn
        entry = self._open_span_of(counted, live)
        span = entry() if entry is not None else None
        if entry is not None and span is not None and entry.iterations != turn.iterations:
            entry.iterations = turn.iterations
            span.set_attribute("agent.iterations", turn.iterations)
        verdict = turn.verdict
        if verdict is None or self._annotated.get(turn) is verdict:
            return
        self._annotated[turn] = verdict
        if span is not None:
            span.set_attributes(
                {"loop.detected": True, "loop.kind": verdict.kind, "loop.reason": verdict.reason},
            )
        _tell_guard(turn, verdict)

    def _open_span_of(self, counted: Counted, live: _Live | None) -> _Live | None:
        own = self._live.get(counted.span_id)
        if own is not None:
            return own
        topmost = None
        parent = live.parent_id if live is not None else 0
        for _ in range(_MAX_ANCESTORS):
            entry = self._live.get(parent) if parent else None
            if entry is None:
                break
            topmost, parent = entry, entry.parent_id
        return topmost

    # Time

    def _start_timer(self) -> None:
        if self._timer is None and not self._stopped.is_set():
            self._timer = threading.Thread(target=_run_timer, args=(weakref.ref(self), self._stopped), daemon=True)
            self._timer.name = "turnwatch-spans"
            self._timer.start()

    def _tick(self) -> None:
        try:
            with self._lock:
                self._assembler.tick(self._watch.clock())
                self._report()
        except Exception:
            self._watch.internal_error("the passing of time in the span processor")

    def _forget_lost(self) -> None:
        while self._lost:
            lost = self._lost.popleft()
            assert isinstance(lost, _Live)
            if self._live.pop(lost.span_id, None) is not None and lost.turn is not None:
                self._disown(lost.span_id)

    def _report(self) -> None:
        unrelated, self._unrelated = self._unrelated, 0
        self._assembler.report(unrelated=unrelated)


def _run_timer(processor: weakref.ref[TurnSpanProcessor], stopped: threading.Event) -> None:
    while not stopped.wait(_TICK_SECONDS):
        alive = processor()
        if alive is None:
            return
        alive._tick()
        del alive


def _marked(attributes: Mapping[str, Any], call: ModelCall | ToolCall) -> dict[str, Any]:
    """The attributes of a span that ran inside a call which is counted already, and may stand for the same."""
    if isinstance(call, ModelCall):
        return {**attributes, COUNTED_MODEL: True}
    return {**attributes, COUNTED_TOOL: call.tool}


def _tell_guard(turn: TurnState, verdict: Verdict) -> None:
    """Have the turn's guard, or its parent's, note a verdict. It stops the agent at the next call it is asked about."""
    state: TurnState | None = turn
    while state is not None and state.guard is None:
        state = state.parent
    guard = state.guard if state is not None else None
    if guard is None:
        guard = turn.guard = open_guard(turn, {})
    if guard is not None:
        # As the end of a failed call, which a guard takes note of and never raises at: a span's end stops nobody.
        guard.after_tool(ToolCall(verdict.tool, outcome="error"), verdict)


def _end_guard(turn: TurnState) -> None:
    if turn.guard is not None:
        turn.guard.end()


def _in_forked_child() -> None:
    for processor in list(_processors):
        processor._start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
