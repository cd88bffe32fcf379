"""Which calls has somebody near the agent counted, so that a span which tells of one later is not a second call?

A framework's hook often sees a call from beside its span, not from inside: neither knows of the other. They are
joined by the call's id, or by the same call (the tool and its arguments; a model call's tokens) at the same time,
within one trace where the hook knew it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, final

from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.forking import fork_safe_lock

MAX_CALLS: Final = 512
# A span's clock and the watch's are read one after the other, and by different clocks.
_SLACK_SECONDS: Final = 0.1


@final
class _Counted:
    """One counted call: who it is and when it ran."""

    __slots__ = ("call", "ended", "input_hash", "started", "tool", "trace_id", "usage")

    def __init__(self, call: ModelCall | ToolCall, started: float, trace_id: str | None) -> None:
        self.call: ModelCall | ToolCall | None = call
        self.tool = call.tool if isinstance(call, ToolCall) else None
        self.input_hash = call.input_hash if isinstance(call, ToolCall) else None
        self.started = started
        self.ended: float | None = None
        self.trace_id = trace_id
        self.usage: Usage | None = None

    def used(self, usage: Usage | None) -> bool:
        if self.usage is None or usage is None:
            return True
        return (self.usage.input, self.usage.output) == (usage.input, usage.output)

    def ran_during(self, started: float | None, ended: float | None, trace_id: str) -> bool:
        if self.trace_id is not None and self.trace_id != trace_id:
            return False
        if started is None or ended is None:
            return False
        mine = self.ended if self.ended is not None else ended
        return started <= mine + _SLACK_SECONDS and ended >= self.started - _SLACK_SECONDS


@final
class CountedCalls:
    """The latest calls that hooks counted. Thread-safe, bounded."""

    def __init__(self) -> None:
        self._latest: deque[_Counted] = deque(maxlen=MAX_CALLS)
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._lock = fork_safe_lock()

    def __len__(self) -> int:
        return len(self._latest)

    def begun(self, call: ModelCall | ToolCall, now: float, trace_id: str | None) -> None:
        """A hook has counted this call; it runs now."""
        with self._lock:
            self._latest.append(_Counted(call, now, trace_id))
            if isinstance(call, ToolCall) and call.call_id:
                self._ids[call.call_id] = call.tool
                if len(self._ids) > MAX_CALLS:
                    self._ids.popitem(last=False)

    def over(self, call: ModelCall | ToolCall, now: float) -> None:
        """The call has ended."""
        with self._lock:
            for counted in reversed(self._latest):
                if counted.call is call:
                    counted.ended, counted.call = now, None
                    counted.usage = call.usage if isinstance(call, ModelCall) else None
                    return

    def has_tool(self, call: ToolCall, trace_id: str) -> bool:
        """Whether this call of a tool, read from a span, is one of them."""
        if call.call_id and self._ids.get(call.call_id) == call.tool:
            return True
        with self._lock:
            return any(
                counted.tool == call.tool
                and (counted.input_hash == call.input_hash or call.input_hash is None)
                and counted.ran_during(call.started, call.ended, trace_id)
                for counted in self._latest
            )

    def has_model(self, call: ModelCall, trace_id: str) -> bool:
        """Whether this model call, read from a span, is one of them."""
        with self._lock:
            return any(
                counted.tool is None
                and counted.used(call.usage)
                and counted.ran_during(call.started, call.ended, trace_id)
                for counted in self._latest
            )
