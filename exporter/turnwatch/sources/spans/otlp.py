"""Spans in the protobuf bodies of OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from turnwatch.sources.spans.dialect import dialect_of_scope, is_unrelated_scope
from turnwatch.sources.spans.roles import MARKERS, NAMES
from turnwatch.sources.spans.span import NO_EVENTS, PassingSpans, SpanData, SpanEvent
from turnwatch.sources.spans.values import shortened

# Attribute values may be nested; deeper than this they are cut.
_MAX_DEPTH: Final = 32
_ERROR: Final = 2
_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_PLAIN_KINDS: Final = frozenset({"int_value", "double_value", "bool_value", "string_value", "bytes_value"})
_number: Final = int.from_bytes


def spans_of_request(request: Any) -> Iterator[SpanData]:
    """The spans of a TracesRequest (see otlp_request), wholly decoded."""
    for resource_spans in request.resource_spans:
        resource = attributes_of_map(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = shortened(scope_spans.scope.name)
            for span in scope_spans.spans:
                # Bodies of logs parse as traces without ids, and a span without ids is nobody's.
                if len(span.trace_id) == _TRACE_ID_BYTES and len(span.span_id) == _SPAN_ID_BYTES:
                    yield _span(span, span.attributes, scope, resource)


def spans_to_feed(request: Any) -> Iterator[SpanData | PassingSpans]:
    """The spans of a TracesRequest; those that cannot play a part are not decoded.

    Most spans of a service are of no interest here, and decoding them would cost more than all the rest.
    """
    for resource_spans in request.resource_spans:
        resource: dict[str, Any] | None = None
        for scope_spans in resource_spans.scope_spans:
            scope = shortened(scope_spans.scope.name)
            if is_unrelated_scope(scope):
                yield PassingSpans(scope_spans.spans, _bare)
                continue
            is_known = dialect_of_scope(scope) is not None
            passing: list[Any] = []
            for span in scope_spans.spans:
                attributes = span.attributes
                if is_known or not MARKERS.isdisjoint(attributes) or span.name in NAMES:
                    if resource is None:
                        resource = attributes_of_map(resource_spans.resource.attributes)
                    yield _span(span, attributes, scope, resource)
                else:
                    passing.append(span)
            if passing:
                yield PassingSpans(passing, _bare)


def spans_of_body(body: bytes) -> list[SpanData]:
    """The spans of an OTLP protobuf body.

    Raises:
        google.protobuf.message.DecodeError: the bytes are no such body.
    """
    from turnwatch.sources.spans.otlp_request import TracesRequest

    return list(spans_of_request(TracesRequest.FromString(body)))


def _span(span: Any, attributes: Any, scope: str, resource: dict[str, Any]) -> SpanData:
    failed, status_text = False, ""
    if span.HasField("status"):
        status = span.status
        failed, status_text = status.code == _ERROR, status.message
    events = span.events
    return SpanData(
        _number(span.trace_id, "big"),
        _number(span.span_id, "big"),
        _number(span.parent_span_id, "big"),
        span.name,
        span.kind,
        scope,
        attributes_of_map(attributes),
        resource,
        [SpanEvent(event.name, attributes_of_map(event.attributes)) for event in events] if events else NO_EVENTS,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        failed,
        status_text,
    )


def _bare(span: Any) -> SpanData:
    """A span that plays no part but as somebody's parent: its attributes are not worth decoding."""
    return SpanData(
        _number(span.trace_id, "big"),
        _number(span.span_id, "big"),
        _number(span.parent_span_id, "big"),
        span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        failed=span.status.code == _ERROR,
    )


def attributes_of_map(values: Any) -> dict[str, Any]:
    """Attributes of a protobuf message that has them as a map, as Python objects."""
    attributes: dict[str, Any] = {}
    for key in values:
        value = values[key]
        text = value.string_value  # most are texts or numbers, and asking which costs more than reading both
        if text:
            attributes[key] = text
            continue
        number = value.int_value
        if number:
            attributes[key] = number
            continue
        kind = value.WhichOneof("value")
        if kind is not None:
            attributes[key] = getattr(value, kind) if kind in _PLAIN_KINDS else _value(value, kind, _MAX_DEPTH)
    return attributes


def attributes_of_message(pairs: Any) -> dict[str, Any]:
    """Attributes of a protobuf message as Python objects."""
    attributes: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        text = value.string_value  # most are texts, and asking which kind a value is costs more than reading one
        if text:
            attributes[pair.key] = text
            continue
        kind = value.WhichOneof("value")
        if kind is not None:
            attributes[pair.key] = _value(value, kind, _MAX_DEPTH)
    return attributes


def message_value(value: Any) -> Any:
    """One value of a protobuf message as a Python object."""
    return _value(value, value.WhichOneof("value"), _MAX_DEPTH)


def _value(value: Any, kind: str | None, depth: int) -> Any:
    if kind is None or depth <= 0:
        return None
    if kind == "array_value":
        return [_value(member, member.WhichOneof("value"), depth - 1) for member in value.array_value.values]
    if kind == "kvlist_value":
        return {
            pair.key: _value(pair.value, pair.value.WhichOneof("value"), depth - 1)
            for pair in value.kvlist_value.values
        }
    return getattr(value, kind)
