"""Which tool spans wait for log events that tell their arguments?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from turnwatch.core.events import MISSING, ToolCall
from turnwatch.sources.spans.logs import LogFacts, call_key
from turnwatch.sources.spans.span import SpanData

# Spans and log events are sent in batches of their own, each some seconds after it was begun.
_LOGS_SECONDS: Final = 10.0
_WAITING_BYTES: Final = 16_777_216


class AwaitedArguments:
    """Tool spans whose arguments come as log events.

    Args:
        logs: What log events told.
        seconds: How long a turn is open after its end: none of its calls may wait longer.
    """

    def __init__(self, logs: LogFacts, seconds: float) -> None:
        self._logs = logs
        self._seconds = min(_LOGS_SECONDS, seconds)
        self._waiting: dict[str, tuple[SpanData, float]] = {}  # by call id, and until when
        self._bytes = 0

    @property
    def are_too_many(self) -> bool:
        """Whether those that wait take more memory than they may."""
        return self._bytes > _WAITING_BYTES

    def fill(self, span: SpanData, call: ToolCall, now: float) -> bool:
        """Fill in what a log event told; False while the event may still come, for which the span waits here."""
        if call.call_id is None or call.args is not MISSING or call.input_hash is not None:
            return True
        key = call_key(span.trace_id, call.call_id)
        logged = self._logs.arguments
        arguments = logged.pop(key, MISSING)
        if arguments is MISSING:
            arguments = logged.pop(call_key(0, call.call_id), MISSING)  # a log record outside any span
        if arguments is not MISSING:
            call.args = arguments
        elif key not in self._waiting:  # an id used twice in a trace tells no call from another
            self._waiting[key] = (span, now + self._seconds)
            self._bytes += span.weight
            return False
        return True

    def told(self, calls: Iterable[str]) -> Iterator[SpanData]:
        """The spans that wait for log events of these calls, which have come."""
        for call_id in calls:
            if call_id in self._waiting:
                yield self._forget(call_id)

    def late(self, limit: float) -> Iterator[SpanData]:
        """The spans whose events did not come in time. They are known until they have been read, and wait no more."""
        for call_id in list(takewhile(lambda call_id: self._waiting[call_id][1] <= limit, self._waiting)):
            try:
                yield self._waiting[call_id][0]
            finally:
                self._forget(call_id)

    def _forget(self, call_id: str) -> SpanData:
        span, _ = self._waiting.pop(call_id)
        self._bytes -= span.weight
        return span
