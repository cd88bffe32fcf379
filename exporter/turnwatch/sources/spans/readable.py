"""Spans as the OpenTelemetry SDK hands them to a span processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from turnwatch.sources.spans.span import NO_ATTRIBUTES, NO_EVENTS, SpanData, SpanEvent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


_ERROR: Final = 2  # opentelemetry.trace.StatusCode, which is not there to import without the SDK


def attributes_of(span: ReadableSpan) -> Mapping[str, Any]:
    """A span's attributes, fast to look into.

    The SDK's own mapping is a class written in Python behind a proxy; the dictionary inside answers ten times as
    fast. Whatever is not as expected falls back to what the SDK promises.
    """
    try:
        inner: Any = span._attributes._dict  # type: ignore[union-attr]
    except AttributeError:
        inner = None
    return inner if type(inner) is dict else span.attributes or NO_ATTRIBUTES


def span_of(span: ReadableSpan, attributes: Mapping[str, Any], *, end_ns: int | None = None) -> SpanData:
    """A neutral span.

    A parent in another process counts as none: its span does not come here.
    """
    context, parent, scope = span.context, span.parent, span.instrumentation_scope
    assert context is not None
    status, events = span.status, span.events
    return SpanData(
        context.trace_id,
        context.span_id,
        0 if parent is None or parent.is_remote else parent.span_id,
        span.name,
        span.kind._value_ + 1,  # as is .value, which Python 3.11 takes ten times as long for
        "" if scope is None else scope.name,
        attributes,
        span.resource.attributes,
        [SpanEvent(event.name, event.attributes or NO_ATTRIBUTES) for event in events] if events else NO_EVENTS,
        span.start_time or 0,
        (span.end_time or 0) if end_ns is None else end_ns,
        status.status_code._value_ == _ERROR,
        status.description or "",
    )
