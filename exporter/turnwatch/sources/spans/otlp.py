"""Spans in the protobuf bodies of OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from turnwatch.sources.spans.dialect import dialect_of_scope, is_unrelated_scope
from turnwatch.sources.spans.otlp_request import ScopeOutline, ScopeSpans, TracesRequest
from turnwatch.sources.spans.otlp_values import attributes_of_map
from turnwatch.sources.spans.roles import MARKERS, NAMES
from turnwatch.sources.spans.span import NO_EVENTS, PassingSpans, SpanData, SpanEvent
from turnwatch.sources.spans.values import shortened

_ERROR: Final = 2
_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_number: Final = int.from_bytes


def spans_of_request(request: Any) -> Iterator[SpanData]:
    """The spans of a TracesRequest (see otlp_request), wholly decoded."""
    for resource_spans in request.resource_spans:
        resource = attributes_of_map(resource_spans.resource.attributes)
        for content in resource_spans.scope_spans:
            scope_spans = ScopeSpans.FromString(content)
            scope = shortened(scope_spans.scope.name)
            for span in scope_spans.spans:
                # Bodies of logs parse as traces without ids, and a span without ids is nobody's.
                if len(span.trace_id) == _TRACE_ID_BYTES and len(span.span_id) == _SPAN_ID_BYTES:
                    yield _span(span, span.attributes, scope, resource)


def spans_to_feed(request: Any) -> Iterator[SpanData | PassingSpans]:
    """The spans of a TracesRequest; those that cannot play a part are not decoded.

    Most spans of a service are of no interest here, and decoding them would cost more than all the rest.

    Raises:
        google.protobuf.message.DecodeError: what a scope of interest holds is no spans.
    """
    for resource_spans in request.resource_spans:
        resource: dict[str, Any] | None = None
        for content in resource_spans.scope_spans:
            outline = ScopeOutline.FromString(content)
            scope = shortened(outline.scope.name)
            if is_unrelated_scope(scope):
                yield PassingSpans(_Unparsed(content, len(outline.spans)), _bare)
                continue
            scope_spans = ScopeSpans.FromString(content)
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


class _Unparsed:
    """The spans of one scope, parsed once somebody looks at them; none where they are none."""

    __slots__ = ("_content", "_number")

    def __init__(self, content: bytes, number: int) -> None:
        self._content = content
        self._number = number

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(ScopeSpans.FromString(self._content).spans)
        except DecodeError:
            return iter(())


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
