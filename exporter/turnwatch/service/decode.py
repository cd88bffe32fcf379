"""From the bytes of a request to what is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from google.protobuf.message import DecodeError

from turnwatch.service.decompress import decompressed
from turnwatch.service.elements import check_elements
from turnwatch.service.refusal import MALFORMED, Refusal
from turnwatch.service.signals import REQUESTS, Form, Signal
from turnwatch.settings import Service
from turnwatch.sources.spans.logs import LogData, logs_of_json, logs_of_request
from turnwatch.sources.spans.otlp import spans_to_feed
from turnwatch.sources.spans.otlp_json import spans_of_json
from turnwatch.sources.spans.span import PassingSpans, SpanData

_NAMES: Final = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
# What a body of the wrong shape raises on the way through it; never one of our own errors.
_WRONG_SHAPE: Final = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(slots=True)
class Decoded:
    """What a request holds.

    Attributes:
        items: How many spans or log records came, rejected ones included.
        spans: Those to count.
        logs: Log records that may tell something of calls.
        rejected: How many were left out.
        why: Why, in words.
    """

    items: int = 0
    spans: list[SpanData | PassingSpans] = field(default_factory=list)
    logs: list[LogData] = field(default_factory=list)
    rejected: int = 0
    why: str = ""


def decode(body: bytes, signal: Signal, form: Form, encoding: str, limits: Service) -> Decoded:
    """Decode one request within the limits.

    Raises:
        Refusal: malformed, or too large.
    """
    if signal == "metrics":  # passed on, never read
        return Decoded(items=1)
    body = decompressed(body, encoding, limits.max_body_bytes)
    check_elements(body, signal, form, limits.max_elements)
    try:
        message = _json(body, signal) if form == "json" else REQUESTS[signal].FromString(body)
        decoded = Decoded(items=_items(message, signal, form))
        if signal == "traces":
            _take_spans(decoded, spans_of_json(message) if form == "json" else spans_to_feed(message), limits)
        else:
            decoded.logs.extend(logs_of_json(message) if form == "json" else logs_of_request(message))
        return decoded
    except DecodeError:
        raise Refusal(MALFORMED, f"the body is no valid OTLP {form}") from None
    except _WRONG_SHAPE as error:
        raise Refusal(MALFORMED, f"the body is no valid OTLP {form} ({type(error).__name__})") from None


def _json(body: bytes, signal: Signal) -> dict[str, Any]:
    value = orjson.loads(body)
    if not isinstance(value, dict) or not isinstance(value.get(_NAMES[signal][0], []), list):
        raise TypeError
    return value


def _items(message: Any, signal: Signal, form: Form) -> int:
    """How many spans or log records stand in a request; spans in protobuf are counted as they are read."""
    if form == "json":
        resource, scope, item = _NAMES[signal]
        scopes = [scopes for one in message.get(resource) or () for scopes in one.get(scope) or ()]
        return sum(len(one.get(item) or ()) for one in scopes)
    if signal == "logs":
        return sum(len(scope.log_records) for one in message.resource_logs for scope in one.scope_logs)
    return 0


def _take_spans(decoded: Decoded, spans: Iterable[SpanData | PassingSpans], limits: Service) -> None:
    most = limits.max_attributes
    crowded = nobodys = taken = 0
    take = decoded.spans.append
    for span in spans:
        if type(span) is PassingSpans:  # most spans; nothing of them is kept
            take(span)
            taken += len(span)
        elif len(span.attributes) > most:
            crowded += 1
        elif 0 < span.span_id < 1 << 64 and 0 < span.trace_id < 1 << 128:
            take(span)
            taken += 1
        else:
            nobodys += 1
    decoded.items = max(decoded.items, crowded + nobodys + taken)  # JSON may have names in another style
    decoded.rejected = decoded.items - taken
    if crowded:
        decoded.why = f"more than {limits.max_attributes} attributes on {crowded} of the spans"
    elif decoded.rejected:
        decoded.why = "no valid trace and span id"
