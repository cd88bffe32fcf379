"""Spans as the OpenTelemetry Python SDK writes them with ``to_json()``, one a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from turnwatch.sources.spans.span import SpanData, SpanEvent

_KINDS: Final = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_sdk_json(value: object) -> bool:
    """Whether an object is a span in this form."""
    return isinstance(value, dict) and isinstance(value.get("context"), dict) and "trace_id" in value["context"]


def span_of(value: dict[str, Any]) -> SpanData:
    """The span in one object.

    Raises:
        ValueError, TypeError, KeyError: the object is not what the SDK writes.
    """
    context = value["context"]
    status = value.get("status") or {}
    scope = value.get("scope") or value.get("instrumentation_scope") or {}
    resource = value.get("resource") or {}
    return SpanData(
        _id(context["trace_id"]),
        _id(context["span_id"]),
        _id(value["parent_id"]) if value.get("parent_id") else 0,
        str(value.get("name") or ""),
        kind=_KINDS.get(str(value.get("kind") or "").rsplit(".", 1)[-1], 0),
        scope=str(scope.get("name") or ""),
        attributes=value.get("attributes") or {},
        resource=resource.get("attributes") or {},
        events=[
            SpanEvent(str(event.get("name") or ""), event.get("attributes") or {})
            for event in value.get("events") or ()
        ],
        start_ns=_ns(value.get("start_time")),
        end_ns=_ns(value.get("end_time")),
        failed=str(status.get("status_code") or "").endswith("ERROR"),
        status_text=str(status.get("description") or ""),
    )


def _id(text: Any) -> int:
    return text if type(text) is int else int(str(text), 16)


def _ns(text: Any) -> int:
    if not text:
        return 0
    if isinstance(text, int):
        return text
    since = datetime.fromisoformat(str(text)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
