"""What turns share: settings, series, prices, conversations, and the lock that guards them."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from turnwatch.core.canonical import canonical_bytes, hidden_type, hides_content
from turnwatch.core.conversation import Conversations, ConversationState
from turnwatch.core.counted_calls import CountedCalls
from turnwatch.core.engine import Engine
from turnwatch.core.events import MISSING
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.hashing import hash_of
from turnwatch.core.listener import Listener
from turnwatch.core.meter import Exemplar, Meter, NullMeter
from turnwatch.core.names import is_plain_name, name_of
from turnwatch.core.prices import PriceBook
from turnwatch.core.quietly import Quietly
from turnwatch.core.series import AgentSeries, ModelSeries, ToolSeries
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict

if TYPE_CHECKING:
    from turnwatch.settings import Settings, ToolOverride

OTHER = "__other__"
UNKNOWN = "unknown"

GaugeRow = tuple[str, tuple[str, ...], float]
"""Metric, label values, value."""

logger = logging.getLogger("turnwatch")

# Goes on while the machine sleeps, as the times on spans do; time.monotonic() stands still then.
_seconds: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
_EPOCH_OFFSET = time.time() - _seconds()


def steady_clock() -> float:
    """Seconds since the epoch that never go backwards while the process lives."""
    return _EPOCH_OFFSET + _seconds()


def _trace() -> str:
    """Where the exception that is being handled came from; not its message, which may hold arguments."""
    error = sys.exception()
    if error is None:
        return ""
    return f"\n{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}"


def _kind_of_fault() -> str:
    error = sys.exception()
    return "" if error is None else f" ({type(error).__name__})"


def _volatile_keys_under(settings: Settings) -> Callable[[str], frozenset[str]]:
    # Not a method: conversations keep this, and outlive the watch they began under.
    general = settings.detect.volatile_keys
    of_tool = {
        tool: general | override.volatile_keys
        for tool, override in settings.tools.overrides.items()
        if override.volatile_keys
    }
    return lambda tool: of_tool.get(tool, general)


class _OpenTurn(weakref.ref[TurnState]):
    """An open turn, held by nobody but its owner."""

    __slots__ = ("key", "series")

    key: int
    series: AgentSeries


class Watch:
    """Everything that the turns of one process share.

    Args:
        settings: Thresholds, bounds, overrides.
        meter: Where metrics are counted; None counts nowhere.
        clock: Seconds since the epoch, for calls that bring no time of their own. Not called with the lock held; where
            it raises, the fault is counted and the process's own clock says the time.
        exemplar: Gives the labels of an exemplar (the current trace id), or None where there is none.
        prices: What tokens cost; those of the settings when left out.
        before: The watch that this one takes the place of. Its conversations go on here. Turns that are open keep
            theirs, so its gauges are shown with this one's until there is nothing left to show.

    Attributes:
        volatile_keys: Gives the argument names that do not count for a tool.
        settings_faults: What was wrong with the settings and is left out, so that guards may be missing: a line each.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        meter: Meter | None = None,
        *,
        clock: Callable[[], float] = steady_clock,
        exemplar: Callable[[], Exemplar | None] | None = None,
        prices: PriceBook | None = None,
        before: Watch | None = None,
    ) -> None:
        if settings is None:
            from turnwatch.settings import Settings

            settings = Settings()
        self.settings = settings
        self.meter: Meter = meter or NullMeter()
        self.clock = clock if clock is steady_clock else self._with_fallback(clock)
        # Turns of both may have one parent, and count into one meter.
        self.lock: threading.RLock = fork_safe_lock(quiet=True) if before is None else before.lock
        self.exemplar = exemplar or (lambda: None)
        self.on_verdict: list[Callable[[TurnState, Verdict], None]] = []
        self.listeners: list[Listener] = []
        self.more_gauges: list[Callable[[], Iterable[GaugeRow]]] = []
        self._before_gauges: list[Callable[[], None]] = []
        self.window = self.settings.detect.window_seconds
        self.prices = prices or PriceBook(self.settings.own_prices())
        self.agents: dict[str, AgentSeries] = {}
        self._names: dict[str, set[str]] = {"agent": set(), "tool": set(), "model": set()}
        bounds = self.settings.bounds
        self._name_bounds = {"agent": bounds.agents, "tool": bounds.tools, "model": bounds.models}
        # What the settings name keeps its label, and with it its own thresholds, whatever the bound.
        self._registered: dict[str, set[str]] = {
            "agent": set(self.settings.agents),
            "tool": set(self.settings.tools.overrides),
            "model": set(),
        }
        self._open: dict[int, _OpenTurn] = {}
        self._next_turn = 0
        self.counted_calls = CountedCalls()
        self.conversations: Conversations = Conversations(
            self._make_conversation,
            bounds.conversations,
            bounds.conversation_ttl_s,
            None if before is None else before.conversations,
        )
        self.volatile_keys: Callable[[str], frozenset[str]] = _volatile_keys_under(self.settings)
        self._forget_turn = self._forget  # each turn keeps it; a method looked up anew is an object of its own
        # Those before that one as well: whoever configures at every request has many.
        earlier = [] if before is None else [before, *before._before]
        self._before: list[Watch] = [watch for watch in earlier if any(value for *_, value in watch._own_gauges())]
        self.faults = 0
        self.settings_faults: tuple[str, ...] = ()
        self._said_to_hide: set[str] = set()
        self._last_error_log = 0.0
        self._unlogged_errors = 0

    # Turns

    def open_turn(
        self,
        agent: str = "",
        *,
        conversation_id: str | None = None,
        parent: TurnState | None = None,
        turn_id: str | None = None,
        at: float | None = None,
    ) -> TurnState:
        """Open a turn. A turn with a parent belongs to the parent's conversation unless told otherwise."""
        return TurnState(agent, conversation_id=conversation_id, parent=parent, turn_id=turn_id, at=at, watch=self)

    def opened(self, turn: TurnState) -> int:
        """Register an open turn under a key of its own; past the bound the oldest is evicted and counted."""
        oldest: TurnState | None = None
        with self.lock:
            self._next_turn += 1
            key = self._next_turn
            open_turn = self._open[key] = _OpenTurn(turn, self._forget_turn)
            open_turn.key, open_turn.series = key, turn.series
            turn.series.open_turns[key] = turn.started
            if len(self._open) > self.settings.bounds.open_turns:
                oldest = next(iter(self._open.values()))()
        if oldest is not None:
            with Quietly(self, "counting an evicted turn"):
                self.count("turnwatch_turns_evicted_total", "open_turns_bound")
            oldest.end("evicted")
        return key

    def _forget(self, open_turn: weakref.ref[TurnState]) -> None:
        # Runs inside the garbage collector, maybe with the lock held: single dict operations only.
        assert isinstance(open_turn, _OpenTurn)
        self._open.pop(open_turn.key, None)
        open_turn.series.open_turns.pop(open_turn.key, None)

    def closed(self, turn: TurnState, key: int) -> None:
        """Take a turn off the list of open ones. The caller holds the lock."""
        self._open.pop(key, None)
        turn.series.open_turns.pop(key, None)

    def forget_open_turns(self) -> None:
        """Forget the turns that were open in the parent process: after a fork they are not this one's."""
        self._open.clear()
        for series in self.agents.values():
            series.open_turns.clear()

    def _make_conversation(self, conversation_id: str) -> ConversationState:
        bound = self.settings.bounds.keys_per_conversation
        return ConversationState(
            conversation_id,
            Engine(scope="conversation", bound=bound, volatile_keys=self.volatile_keys),
            bound,
        )

    # Series

    def agent_series(self, agent: str) -> AgentSeries:
        """The series of this agent, or of ``__other__`` past the bound."""
        series = self.agents.get(agent)
        if series is None:
            label = self._label("agent", agent)
            series = self.agents.get(label)
            if series is None:
                allowed = self.settings.iterations_allowed(agent)
                series = self.agents[label] = AgentSeries(self.meter, label, allowed)
        return series

    def tool_series(self, agent: AgentSeries, tool: str, agent_name: str) -> ToolSeries:
        """The series of this agent's tool, or of ``__other__`` past the bound. The caller holds the lock."""
        series = agent.tools.get(tool)
        if series is None:
            label = self._label("tool", tool)
            series = agent.tools.get(label)
            if series is None:
                series = agent.tools[label] = ToolSeries(
                    self.meter, agent.label, label, self.settings.identical_calls_allowed(agent_name, tool)
                )
        return series

    def model_series(self, agent: AgentSeries, model: str) -> ModelSeries:
        """The series of this agent's model, or of ``__other__`` past the bound. The caller holds the lock."""
        series = agent.models.get(model)
        if series is None:
            label = self._label("model", model)
            series = agent.models.get(label)
            if series is None:
                series = agent.models[label] = ModelSeries(self.meter, agent.label, label)
        return series

    def register_tool(self, tool: str) -> None:
        """Keep this tool's own label whatever the bound: it comes from code, not from a model."""
        self._registered["tool"].add(tool)

    def _label(self, kind: str, name: str) -> str:
        if not is_plain_name(name):
            name = name_of(name)
        if not name:
            return UNKNOWN
        names = self._names[kind]
        if name in names or name in self._registered[kind]:
            return name
        if len(names) < self._name_bounds[kind]:
            names.add(name)
            return name
        self.meter.counter("turnwatch_label_values_folded_total", kind).inc()
        return OTHER

    def shown_tool(self, tool: str) -> str:
        """The name under which this tool is counted: its own, or __other__ past the bound."""
        with self.lock:
            return self._label("tool", tool)

    def shown_model(self, model: str) -> str:
        """The name under which this model is counted: its own, or __other__ past the bound."""
        with self.lock:
            return self._label("model", model)

    def model_label(self, model: str) -> str:
        """The label under which this model is counted. The caller holds the lock."""
        return self._label("model", model)

    def before_gauges(self, call: Callable[[], None]) -> None:
        """Have this called, once, before the gauges are computed: to end turns that only the passing of time ends."""
        if call not in self._before_gauges:
            self._before_gauges.append(call)

    def gauges(self) -> list[GaugeRow]:
        """Every gauge that is computed at scrape time, those of ``more_gauges`` included."""
        for watch in (self, *self._before):
            for call in watch._before_gauges:
                call()
        rows = self._own_gauges()
        return rows if not self._before else self._with_those_before(rows)

    def _own_gauges(self) -> list[GaugeRow]:
        now = self.clock()
        with self.lock:
            rows = [row for series in self.agents.values() for row in series.gauges(now)]
        for source in self.more_gauges:
            rows.extend(source())
        return rows

    def _with_those_before(self, rows: list[GaugeRow]) -> list[GaugeRow]:
        values = {(name, labels): value for name, labels, value in rows}
        still_shown: list[Watch] = []
        for before in self._before:
            earlier_rows = before._own_gauges()
            if not any(value for *_, value in earlier_rows):
                continue
            still_shown.append(before)
            for name, labels, earlier in earlier_rows:
                value = values.get((name, labels), 0.0)
                values[name, labels] = value + earlier if name == "agent_open_turns" else max(value, earlier)
        self._before = still_shown
        return [(name, labels, value) for (name, labels), value in values.items()]

    def count(self, name: str, *labels: str, amount: float = 1.0) -> None:
        """Add to one of the catalogue's counters."""
        with self.lock:
            self.meter.counter(name, *labels).inc(amount)

    # Settings of one tool or agent

    def hash(self, tool: str, args: object = MISSING) -> str:
        """The public input hash under this watch's settings."""
        return hash_of(tool, canonical_bytes(args, self.volatile_keys(tool)), self.settings.hash_key)

    def hash_of_call(self, tool: str, canonical: bytes) -> str | None:
        """The input hash under which a call counts; None where no argument shows what it holds."""
        if not hides_content(canonical):
            return hash_of(tool, canonical, self.settings.hash_key)
        shown = self.shown_tool(tool)
        if shown not in self._said_to_hide:
            self._said_to_hide.add(shown)
            logger.warning(
                "No argument of the tool %s shows what it holds (type %s), so its calls are not compared. "
                "Give the type fields or a repr; or, if it is the same for every call, name the argument in the "
                "tool's volatile_keys.",
                shown,
                hidden_type(canonical),
            )
        return None

    def override(self, tool: str) -> ToolOverride | None:
        """What the settings say about this tool."""
        return self.settings.tools.overrides.get(tool)

    # Faults

    def _with_fallback(self, clock: Callable[[], float]) -> Callable[[], float]:
        def now() -> float:
            try:
                return clock()
            except Exception:
                self.internal_error("the clock")
                return steady_clock()

        return now

    def internal_error(self, where: str) -> None:
        """Count an error that was kept from the agent; log it once a minute at most. Never raises."""
        try:
            self.faults += 1
            self._unlogged_errors += 1
            now = time.monotonic()
            if now - self._last_error_log >= 60.0 or not self._last_error_log:
                self._last_error_log = now
                logger.warning(
                    "turnwatch met a fault and went on: %s%s (%d since the last such line)%s",
                    where,
                    _kind_of_fault(),
                    self._unlogged_errors,
                    _trace() if logger.isEnabledFor(logging.DEBUG) else "",
                )
                self._unlogged_errors = 0
            self.count("turnwatch_internal_errors_total")
        except Exception:  # the meter itself may be what is broken
            pass

    def tell(self, event: Callable[[Listener], None]) -> None:
        """Tell every listener of an event. The caller does not hold the lock."""
        for listener in self.listeners:
            try:
                event(listener)
            except Exception:
                self.internal_error("a listener")

    def notify(self, turn: TurnState, verdict: Verdict) -> None:
        """Tell whoever listens of a new verdict. The caller does not hold the lock."""
        for listener in tuple(self.on_verdict):
            try:
                listener(turn, verdict)
            except Exception:
                self.internal_error("a verdict listener")
