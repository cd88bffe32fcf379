"""Log events that carry what spans do not: arguments by the call's id, and replies by the model call's span."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final

from turnwatch.sources.spans.arguments import unwrapped
from turnwatch.sources.spans.messages import Asked, asked_in
from turnwatch.sources.spans.otlp import attributes_of_json, attributes_of_message, json_id, json_value, message_value
from turnwatch.sources.spans.values import MISSING, is_redacted

_REMEMBERED: Final = 10_000
_SPAN_ID_BYTES: Final = 8
_CALL_ID: Final = ("tool_use_id", "gen_ai.tool.call.id")
_ARGUMENTS: Final = ("tool_input", "gen_ai.tool.call.arguments")
_EVENTS: Final = frozenset({"gen_ai.choice", "gen_ai.tool.message"})


@final
class LogData:
    """One log record.

    Attributes:
        span_id: The span it was written in; 0 for none.
        event: Its event name.
        attributes, body: As Python objects.
    """

    __slots__ = ("attributes", "body", "event", "span_id")

    def __init__(self, span_id: int, event: str, attributes: Mapping[str, Any], body: Any) -> None:
        self.span_id = span_id
        self.event = event
        self.attributes = attributes
        self.body = body


def logs_of_request(request: Any) -> Iterator[LogData]:
    """The log records of an ExportLogsServiceRequest that can be of interest."""
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                event = record.event_name
                if event in _EVENTS or any(pair.key in _CALL_ID for pair in record.attributes):
                    span_id = record.span_id
                    yield LogData(
                        int.from_bytes(span_id, "big") if len(span_id) == _SPAN_ID_BYTES else 0,
                        event,
                        attributes_of_message(record.attributes),
                        message_value(record.body),
                    )


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
                event = str(record.get("eventName") or "")
                if event in _EVENTS or any(key in attributes for key in _CALL_ID):
                    span_id = record.get("spanId")
                    body = json_value(record.get("body"))
                    yield LogData(json_id(span_id, _SPAN_ID_BYTES) if span_id else 0, event, attributes, body)


class LogFacts:
    """What log events told, until the spans they belong to come. Bounded; the oldest is forgotten."""

    def __init__(self) -> None:
        self.arguments: OrderedDict[str, Any] = OrderedDict()
        self.results: OrderedDict[str, Any] = OrderedDict()
        self.asked: OrderedDict[int, list[Asked]] = OrderedDict()

    def take(self, logs: Iterable[LogData]) -> tuple[list[str], list[int]]:
        """Note log records.

        Returns:
            The ids of calls whose arguments are known now, and the spans of model calls whose replies are.
        """
        calls: list[str] = []
        spans: list[int] = []
        for log in logs:
            if log.event == "gen_ai.choice" and isinstance(log.body, dict) and log.span_id:
                asked = list(asked_in([log.body.get("message")]))
                if asked:
                    _put(self.asked, log.span_id, asked)
                    spans.append(log.span_id)
            elif log.event == "gen_ai.tool.message" and isinstance(log.body, dict):
                if log.body.get("id") and log.body.get("content") is not None:
                    _put(self.results, str(log.body["id"]), log.body["content"])
            else:
                call_id = _first(log.attributes, _CALL_ID)
                given = _first(log.attributes, _ARGUMENTS)
                if call_id is None or given is None or is_redacted(given):
                    continue
                arguments = unwrapped(given)
                if arguments is not MISSING:
                    _put(self.arguments, str(call_id), arguments)
                    calls.append(str(call_id))
        return calls, spans


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _put(index: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    index[key] = value
    if len(index) > _REMEMBERED:
        index.popitem(last=False)
