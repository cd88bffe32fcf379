"""Spans in OTLP: protobuf bodies, and the JSON form that exporters and the Collector write."""

from __future__ import annotations

import base64
import binascii
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


# Protobuf


def spans_of_request(request: Any) -> Iterator[SpanData]:
    """The spans of a TracesRequest (see otlp_request), wholly decoded."""
    for resource_spans in request.resource_spans:
        resource = attributes_of_map(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = shortened(scope_spans.scope.name)
            for span in scope_spans.spans:
                # Bodies of logs parse as traces without ids, and a span without ids is nobody's.
                if len(span.trace_id) == _TRACE_ID_BYTES and len(span.span_id) == _SPAN_ID_BYTES:
                    yield _span(span, scope, resource)


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
                if is_known or span.name in NAMES or not MARKERS.isdisjoint(span.attributes):
                    if resource is None:
                        resource = attributes_of_map(resource_spans.resource.attributes)
                    yield _span(span, scope, resource)
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


def _span(span: Any, scope: str, resource: dict[str, Any]) -> SpanData:
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
        attributes_of_map(span.attributes),
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
        text = value.string_value  # most are texts, and asking which kind a value is costs more than reading one
        if text:
            attributes[key] = text
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


# JSON


def is_otlp_json(value: object) -> bool:
    """Whether an object is a traces request in OTLP's JSON form."""
    return isinstance(value, dict) and isinstance(value.get("resourceSpans", value.get("resource_spans")), list)


def spans_of_json(value: dict[str, Any]) -> Iterator[SpanData]:
    """The spans of a traces request in OTLP's JSON form.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the object is no such request.
    """
    for resource_spans in _get(value, "resourceSpans", "resource_spans") or ():
        resource = attributes_of_json((resource_spans.get("resource") or {}).get("attributes"))
        scopes = _get(resource_spans, "scopeSpans", "scope_spans")
        for scope_spans in scopes or resource_spans.get("instrumentationLibrarySpans") or ():
            scope = scope_spans.get("scope") or scope_spans.get("instrumentationLibrary") or {}
            name = shortened(str(scope.get("name") or ""))
            for span in scope_spans.get("spans") or ():
                yield _json_span(span, name, resource)


def _get(value: dict[str, Any], camel: str, snake: str) -> Any:
    found = value.get(camel)
    return value.get(snake) if found is None else found


def _json_span(span: dict[str, Any], scope: str, resource: dict[str, Any]) -> SpanData:
    status = span.get("status") or {}
    parent = _get(span, "parentSpanId", "parent_span_id")
    return SpanData(
        json_id(_get(span, "traceId", "trace_id"), 16),
        json_id(_get(span, "spanId", "span_id"), 8),
        json_id(parent, 8) if parent else 0,
        str(span.get("name") or ""),
        kind=_kind(span.get("kind")),
        scope=scope,
        attributes=attributes_of_json(span.get("attributes")),
        resource=resource,
        events=[
            SpanEvent(str(event.get("name") or ""), attributes_of_json(event.get("attributes")))
            for event in span.get("events") or ()
        ],
        start_ns=int(_get(span, "startTimeUnixNano", "start_time_unix_nano") or 0),
        end_ns=int(_get(span, "endTimeUnixNano", "end_time_unix_nano") or 0),
        failed=status.get("code") in (_ERROR, "STATUS_CODE_ERROR", "Error"),
        status_text=str(status.get("message") or ""),
    )


_KIND_NAMES: Final = {
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}


def _kind(value: Any) -> int:
    return value if type(value) is int else _KIND_NAMES.get(str(value), 0)


def json_id(text: Any, size: int) -> int:
    """An id: hexadecimal as OTLP has it, or base64 as protobuf's own JSON form has it."""
    text = str(text)
    if len(text) == 2 * size:
        return int(text, 16)
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"an id of {len(text)} characters") from error
    if len(raw) != size:
        raise ValueError(f"an id of {len(raw)} bytes")
    return int.from_bytes(raw, "big")


def attributes_of_json(pairs: Any) -> dict[str, Any]:
    """Attributes of a JSON request as Python objects."""
    attributes: dict[str, Any] = {}
    for pair in pairs or ():
        value = json_value(pair.get("value"), _MAX_DEPTH)
        if value is not None:
            attributes[pair["key"]] = value
    return attributes


def json_value(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """One value of a JSON request as a Python object."""
    if not isinstance(value, dict) or depth <= 0:
        return None
    for kind, content in value.items():
        if kind in ("stringValue", "boolValue", "doubleValue", "string_value", "bool_value", "double_value"):
            return content
        if kind in ("intValue", "int_value"):
            return int(content)
        if kind in ("arrayValue", "array_value"):
            return [json_value(member, depth - 1) for member in (content or {}).get("values") or ()]
        if kind in ("kvlistValue", "kvlist_value"):
            return {pair["key"]: json_value(pair.get("value"), depth - 1) for pair in content.get("values") or ()}
        if kind in ("bytesValue", "bytes_value"):
            return base64.b64decode(content or "")
    return None
