"""Spans in the JSON form of OTLP that exporters and the Collector write.

Most spans of a file are somebody else's. Calls may hang under them, so their ids are needed, and no more is read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from turnwatch.sources.spans.dialect import dialect_of_scope, is_unrelated_scope
from turnwatch.sources.spans.roles import MARKERS, NAMES
from turnwatch.sources.spans.span import NO_EVENTS, SpanData, SpanEvent
from turnwatch.sources.spans.values import MAX_DEPTH, shortened

WRONG_SHAPE: Final = (ValueError, TypeError, KeyError, AttributeError)
"""What something raises that has not the shape of a span or a request."""

_LAST_NS: Final = 2**64 - 1
_ERRORS: Final = frozenset({2, "2", "STATUS_CODE_ERROR", "Error"})
_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_SPAN_ID_DIGITS: Final = 2 * _SPAN_ID_BYTES
_KIND_NAMES: Final = {
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}


def is_otlp_json(value: object) -> bool:
    """Whether an object is a traces request in OTLP's JSON form."""
    return isinstance(value, dict) and isinstance(value.get("resourceSpans", value.get("resource_spans")), list)


Passing = tuple[int, int, int, str | None, str | None, str, bool]
"""A span that plays no part but as somebody's parent: its end and start in nanoseconds, its id, those of its parent and
its trace as they are written, its name, and whether it failed. A plain tuple, for most spans of most files are such."""


def bare_span(passing: Passing) -> SpanData:
    """The span, as far as it matters for spans below it.

    Raises:
        ValueError: An id is none, or a time.
    """
    end_ns, start_ns, span_id, parent, trace, name, failed = passing
    _check_times(start_ns, end_ns)
    return SpanData(
        json_id(trace, _TRACE_ID_BYTES),
        span_id,
        json_id(parent, _SPAN_ID_BYTES) if parent else 0,
        name,
        start_ns=start_ns,
        end_ns=end_ns,
        failed=failed,
    )


def spans_of_json(value: dict[str, Any]) -> Iterator[SpanData]:
    """The spans of a traces request; of those that cannot play a part only ids, name and times.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: The object is no such request.
    """
    for span in spans_to_order(value):
        yield span if isinstance(span, SpanData) else bare_span(span)


def spans_to_order(
    value: dict[str, Any], on_broken: Callable[[Exception], None] | None = None
) -> Iterator[SpanData | Passing]:
    """The spans of a traces request; those that cannot play a part are hardly read.

    Args:
        value: The request.
        on_broken: Told of every part that cannot be read, and the others are; when left out it is raised.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: The object is no such request.
    """
    for resource_spans in _get(value, "resourceSpans", "resource_spans") or ():
        try:
            scopes = _get(resource_spans, "scopeSpans", "scope_spans")
            scopes = scopes or resource_spans.get("instrumentationLibrarySpans") or ()
            resource: dict[str, Any] | None = None
            for scope_spans in scopes:
                scope = scope_spans.get("scope") or scope_spans.get("instrumentationLibrary") or {}
                name = shortened(str(scope.get("name") or ""))
                is_unrelated = is_unrelated_scope(name)
                is_known = dialect_of_scope(name) is not None
                for span in scope_spans.get("spans") or ():
                    try:
                        if is_unrelated or not (is_known or _is_marked(span)):
                            yield _passing(span)
                            continue
                        if resource is None:
                            resource = attributes_of_json((resource_spans.get("resource") or {}).get("attributes"))
                        yield _span(span, name, resource)
                    except WRONG_SHAPE as error:
                        if on_broken is None:
                            raise
                        on_broken(error)
        except WRONG_SHAPE as error:
            if on_broken is None:
                raise
            on_broken(error)


def _get(value: dict[str, Any], camel: str, snake: str) -> Any:
    found = value.get(camel)
    return value.get(snake) if found is None else found


def _is_marked(span: dict[str, Any]) -> bool:
    """Whether a span of a scope that nobody declared can play a part."""
    for pair in span.get("attributes") or ():
        if pair["key"] in MARKERS:
            return True
    return span.get("name") in NAMES


def _passing(span: dict[str, Any]) -> Passing:
    find = span.get
    span_id = find("spanId") or find("span_id")
    status = find("status")
    return (
        int(find("endTimeUnixNano") or find("end_time_unix_nano") or 0),
        int(find("startTimeUnixNano") or find("start_time_unix_nano") or 0),
        int(span_id, 16)
        if type(span_id) is str and len(span_id) == _SPAN_ID_DIGITS
        else json_id(span_id, _SPAN_ID_BYTES),
        find("parentSpanId") or find("parent_span_id"),
        find("traceId") or find("trace_id"),
        str(find("name") or ""),
        status.get("code") in _ERRORS if status else False,
    )


def _span(span: dict[str, Any], scope: str, resource: dict[str, Any]) -> SpanData:
    find = span.get
    status, events, parent = find("status") or {}, find("events"), find("parentSpanId") or find("parent_span_id")
    start_ns = int(find("startTimeUnixNano") or find("start_time_unix_nano") or 0)
    end_ns = int(find("endTimeUnixNano") or find("end_time_unix_nano") or 0)
    _check_times(start_ns, end_ns)
    return SpanData(
        json_id(find("traceId") or find("trace_id"), _TRACE_ID_BYTES),
        json_id(find("spanId") or find("span_id"), _SPAN_ID_BYTES),
        json_id(parent, _SPAN_ID_BYTES) if parent else 0,
        str(find("name") or ""),
        _kind(find("kind")),
        scope,
        attributes_of_json(find("attributes")),
        resource,
        [SpanEvent(str(event.get("name") or ""), attributes_of_json(event.get("attributes"))) for event in events]
        if events
        else NO_EVENTS,
        start_ns,
        end_ns,
        status.get("code") in _ERRORS,
        str(status.get("message") or ""),
    )


def _check_times(start_ns: int, end_ns: int) -> None:
    """Refuse what no fixed64 holds, as protobuf does: as JSON it may have more digits than a float can hold."""
    if not 0 <= start_ns <= _LAST_NS or not 0 <= end_ns <= _LAST_NS:
        raise ValueError("a time that is none")


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


def attributes_of_json(pairs: Iterable[dict[str, Any]] | None) -> dict[str, Any]:
    """Attributes of a JSON request as Python objects."""
    attributes: dict[str, Any] = {}
    for pair in pairs or ():
        value: Any = pair.get("value")
        if type(value) is dict:
            text = value.get("stringValue")  # most are texts
            value = json_value(value) if text is None else text
            if value is not None:
                name = pair["key"]
                if type(name) is not str:
                    raise TypeError("the name of an attribute is no text")
                attributes[name] = value
    return attributes


def json_value(value: Any, depth: int = MAX_DEPTH) -> Any:
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
