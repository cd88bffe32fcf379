"""Log events that carry what spans do not: arguments by the call's id, and replies by the model call's span."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, final

from turnwatch.sources.spans.answered import answered_to
from turnwatch.sources.spans.arguments import unwrapped
from turnwatch.sources.spans.messages import MESSAGES, Asked, asked_in, asked_of
from turnwatch.sources.spans.otlp_json import attributes_of_json, json_id, json_value
from turnwatch.sources.spans.otlp_values import attributes_of_message, message_value
from turnwatch.sources.spans.values import MISSING, is_redacted, shortened

K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED: Final = 10_000
# Texts longer than these are not kept for spans that may never come.
_LONGEST: Final = 65_536
_REMEMBERED_BYTES: Final = 16_777_216
_SPAN_ID_BYTES: Final = 8
_TRACE_ID_BYTES: Final = 16
_CALL_ID: Final = ("tool_use_id", "gen_ai.tool.call.id")
_ARGUMENTS: Final = ("tool_input", "gen_ai.tool.call.arguments")
# All messages of a model call, under the names that they have on spans.
_DETAILS: Final = "gen_ai.client.inference.operation.details"
# Where a record's event stood before it had a field of its own, and does in JavaScript's instrumentations.
_EVENT_NAME: Final = "event.name"
_EVENTS: Final = frozenset({"gen_ai.choice", "gen_ai.tool.message", _DETAILS})


@final
class LogData:
    """One log record.

    Attributes:
        trace_id, span_id: The trace and span it was written in; 0 for none.
        event: Its event name.
        attributes, body: As Python objects.
    """

    __slots__ = ("attributes", "body", "event", "span_id", "trace_id")

    def __init__(self, span_id: int, event: str, attributes: Mapping[str, Any], body: Any, trace_id: int = 0) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.event = event
        self.attributes = attributes
        self.body = body


def logs_of_request(request: Any) -> Iterator[LogData]:
    """The log records of an ExportLogsServiceRequest that can be of interest."""
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                event = record.event_name or _named_in(record.attributes)
                if event in _EVENTS or any(pair.key in _CALL_ID for pair in record.attributes):
                    span_id = record.span_id
                    yield LogData(
                        int.from_bytes(span_id, "big") if len(span_id) == _SPAN_ID_BYTES else 0,
                        event,
                        attributes_of_message(record.attributes),
                        message_value(record.body),
                        int.from_bytes(record.trace_id, "big") if len(record.trace_id) == _TRACE_ID_BYTES else 0,
                    )


def _named_in(attributes: Iterable[Any]) -> str:
    for pair in attributes:
        if pair.key == _EVENT_NAME:
            return str(pair.value.string_value)
    return ""


def is_logs_json(value: object) -> bool:
    """Whether an object is a logs request in OTLP's JSON form."""
    return isinstance(value, dict) and isinstance(value.get("resourceLogs"), list)


def logs_of_json(value: dict[str, Any]) -> Iterator[LogData]:
    """The log records of a logs request in OTLP's JSON form.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the object is no such request.
    """
    for resource_logs in value.get("resourceLogs") or ():
        for scope_logs in resource_logs.get("scopeLogs") or ():
            for record in scope_logs.get("logRecords") or ():
                attributes = attributes_of_json(record.get("attributes"))
                event = str(record.get("eventName") or attributes.get(_EVENT_NAME) or "")
                if event in _EVENTS or any(key in attributes for key in _CALL_ID):
                    span_id = record.get("spanId")
                    body = json_value(record.get("body"))
                    trace_id = record.get("traceId")
                    yield LogData(
                        json_id(span_id, _SPAN_ID_BYTES) if span_id else 0,
                        event,
                        attributes,
                        body,
                        json_id(trace_id, _TRACE_ID_BYTES) if trace_id else 0,
                    )


class LogFacts:
    """What log events told, until the spans they belong to come. Bounded; the oldest is forgotten."""

    def __init__(self) -> None:
        self.heard = False  # most sources send none, and need not be asked about every call
        self.arguments: Kept[str, Any] = Kept()
        self.results: Kept[str, Any] = Kept()
        self.asked: Kept[int, list[Asked]] = Kept()
        self.messages: Kept[int, dict[str, Any]] = Kept()

    def take(self, logs: Iterable[LogData]) -> tuple[list[str], list[int]]:
        """Note log records.

        Returns:
            The keys of calls whose arguments are known now, and the spans of model calls whose replies are.
        """
        self.heard = True
        calls: list[str] = []
        spans: list[int] = []
        for log in logs:
            if log.event == "gen_ai.choice" and isinstance(log.body, dict) and log.span_id:
                asked = list(asked_in([log.body.get("message")]))
                if asked:
                    self.asked.put(log.span_id, asked, len(str(log.body)))
                    spans.append(log.span_id)
            elif log.event == _DETAILS:
                if log.span_id and self._take_details(log):
                    spans.append(log.span_id)
            elif log.event == "gen_ai.tool.message" and isinstance(log.body, dict):
                if log.body.get("id") and log.body.get("content") is not None:
                    content = log.body["content"]
                    self.results.put(shortened(str(log.body["id"])), content, len(str(content)))
            else:
                call_id = _first(log.attributes, _CALL_ID)
                given = _first(log.attributes, _ARGUMENTS)
                if call_id is None or given is None or is_redacted(given):
                    continue
                arguments = unwrapped(given)
                if arguments is not MISSING:
                    key = call_key(log.trace_id, str(call_id))
                    self.arguments.put(key, arguments, len(str(given)))
                    calls.append(key)
        return calls, spans

    def _take_details(self, log: LogData) -> bool:
        """Note the messages of a model call; whether its reply asks for tools."""
        told = log.attributes if any(name in log.attributes for name in MESSAGES) else log.body
        if not isinstance(told, Mapping):
            return False
        messages = {name: told[name] for name in MESSAGES if told.get(name)}
        if not messages:
            return False
        self.messages.put(log.span_id, messages, len(str(messages)))
        for answer in answered_to(messages):
            if answer.call_id and answer.value is not MISSING:
                self.results.put(shortened(answer.call_id), answer.value, len(str(answer.value)))
        asked = asked_of(messages)
        if asked:
            self.asked.put(log.span_id, asked, sum(len(str(request)) for request in asked))
        return bool(asked)


def call_key(trace_id: int, call_id: str) -> str:
    """What a call's arguments are kept by: small models number their calls anew in every trace."""
    return f"{trace_id:x}:{shortened(call_id)}"


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


class Kept(Generic[K, V]):
    """The latest values by key, bounded in number and size."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value of about this many bytes, unless it is larger than any is kept."""
        self.pop(key, None)
        if size > _LONGEST:
            return
        self._values[key] = (value, size)
        self._bytes += size
        while len(self._values) > _REMEMBERED or self._bytes > _REMEMBERED_BYTES:
            self._bytes -= self._values.popitem(last=False)[1][1]

    def pop(self, key: K, default: Any) -> Any:
        """Take a value out; the default where it is not kept."""
        found = self._values.pop(key, None)
        if found is None:
            return default
        self._bytes -= found[1]
        return found[0]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __getitem__(self, key: K) -> V:
        return self._values[key][0]
