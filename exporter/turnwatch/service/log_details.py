"""Tool arguments that stand in log events, and the spans that wait for them.

Some agents (Claude Code and its SDK) keep arguments off their spans and write them into log events, which name the call
by its id. Spans and events come in requests of their own, in either order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from turnwatch.sources.spans.arguments import arguments_of
from turnwatch.sources.spans.dialect import dialect_of
from turnwatch.sources.spans.roles import role_of
from turnwatch.sources.spans.span import PassingSpan, SpanData
from turnwatch.sources.spans.values import MISSING

_CALL_IDS: Final = ("tool_use_id", "gen_ai.tool.call.id")
_ARGUMENTS: Final = ("tool_input", "gen_ai.tool.call.arguments")
_SPAN_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
# Exporters of logs and of traces send every five seconds by default, each by its own clock.
PATIENCE_SECONDS: Final = 6.0
_REMEMBERED: Final = 10_000
_LONGEST: Final = 65_536
_HELD: Final = 10_000

Spans = Iterable[SpanData | PassingSpan]


class Detail(NamedTuple):
    """The arguments of one tool call, as text."""

    trace_id: int
    call_id: str
    arguments: str


def details_of_request(request: Any) -> Iterator[Detail]:
    """What an ExportLogsServiceRequest says of tool calls."""
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                found = {pair.key: pair.value.string_value for pair in record.attributes}
                yield from _detail(int.from_bytes(record.trace_id, "big"), found)


def details_of_json(value: dict[str, Any]) -> Iterator[Detail]:
    """What a logs request in OTLP's JSON form says of tool calls.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the object is no such request.
    """
    for resource_logs in value.get("resourceLogs") or ():
        for scope_logs in resource_logs.get("scopeLogs") or ():
            for record in scope_logs.get("logRecords") or ():
                found = {
                    pair["key"]: str((pair.get("value") or {}).get("stringValue") or "")
                    for pair in record.get("attributes") or ()
                }
                yield from _detail(int(record.get("traceId") or "0", 16), found)


def _detail(trace_id: int, attributes: dict[str, str]) -> Iterator[Detail]:
    call_id = next((attributes[name] for name in _CALL_IDS if attributes.get(name)), "")
    arguments = next((attributes[name] for name in _ARGUMENTS if attributes.get(name)), "")
    if call_id and arguments and len(arguments) <= _LONGEST:
        yield Detail(trace_id, call_id, arguments)


class LogJoin:
    """Puts arguments from log events onto the spans that lack them. One caller at a time.

    A tool span without arguments waits some seconds for its event, but only where the same dialect has had events
    before: nobody else's spans are delayed. Both memories are bounded; what does not find its other half goes on as it
    came.

    Args:
        patience_seconds: How long a span waits.
    """

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._arguments: OrderedDict[tuple[int, str], str] = OrderedDict()
        self._held: OrderedDict[tuple[int, str], tuple[SpanData, float]] = OrderedDict()
        self._with_events: set[str] = set()  # dialects

    def note(self, details: Iterable[Detail]) -> list[SpanData]:
        """Remember what events say; the spans that waited for them, ready to feed."""
        ready: list[SpanData] = []
        for trace_id, call_id, arguments in details:
            key = (trace_id, call_id)
            held = self._held.pop(key, None)
            if held is not None:
                ready.append(_with_arguments(held[0], arguments))
                continue
            self._arguments[key] = arguments
            if len(self._arguments) > _REMEMBERED:
                self._arguments.popitem(last=False)
        return ready

    def join(self, spans: Spans, now: float) -> Spans:
        """The spans that need not wait, with the arguments that are known by now."""
        if not self._arguments and not self._with_events:
            return spans
        return list(self._joined(spans, now))

    def _joined(self, spans: Spans, now: float) -> Iterator[SpanData | PassingSpan]:
        for span in spans:
            if isinstance(span, PassingSpan) or (key := _key_of(span)) is None:
                yield span
                continue
            dialect = dialect_of(span).name
            arguments = self._arguments.pop(key, None)
            if arguments is not None:
                self._with_events.add(dialect)
                yield _with_arguments(span, arguments)
            elif dialect in self._with_events:
                self._held[key] = (span, now + self._patience)
                if len(self._held) > _HELD:
                    yield self._held.popitem(last=False)[1][0]
            else:
                yield span

    def overdue(self, now: float) -> list[SpanData]:
        """The spans that waited long enough."""
        due: list[SpanData] = []
        while self._held and next(iter(self._held.values()))[1] <= now:
            due.append(self._held.popitem(last=False)[1][0])
        return due


def _key_of(span: SpanData) -> tuple[int, str] | None:
    """Trace and call id of a tool span that lacks its arguments."""
    call_id = next((str(span.attributes[name]) for name in _CALL_IDS if span.attributes.get(name)), "")
    if not call_id or role_of(span, dialect_of(span)) != "tool" or arguments_of(span) is not MISSING:
        return None
    return span.trace_id, call_id


def _with_arguments(span: SpanData, arguments: str) -> SpanData:
    span.attributes = {**span.attributes, _SPAN_ARGUMENTS: arguments}
    return span
