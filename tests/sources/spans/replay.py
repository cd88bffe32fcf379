"""Captured spans, made again by a real TracerProvider: started, filled and ended in the order in which they were."""

import json
from datetime import datetime

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags


class _GivenIds(IdGenerator):
    def __init__(self):
        self.trace_id = self.span_id = 0

    def generate_span_id(self):
        return self.span_id

    def generate_trace_id(self):
        return self.trace_id


def replay(path, *processors):
    """Make the spans of a file again and run them through these processors."""
    ids = _GivenIds()
    provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
    for processor in processors:
        provider.add_span_processor(processor)
    captured = [json.loads(line) for line in path.read_text().splitlines()]
    live = {}
    for _, is_end, span in sorted(_moments(captured), key=lambda moment: moment[:2]):
        span_id = span["context"]["span_id"]
        if is_end:
            _end(live[span_id], span)
        else:
            live[span_id] = _start(provider, ids, span, live)
    return provider


def _moments(captured):
    by_sequence = all(span["x_capture"]["start_seq"] < span["x_capture"]["end_seq"] for span in captured)
    for number, span in enumerate(captured):
        if by_sequence:
            yield span["x_capture"]["start_seq"], 0, span
            yield span["x_capture"]["end_seq"], 1, span
        else:  # converted from an export: starts by time, ends in the order of export
            yield (_ns(span["start_time"]), 0), 0, span
            yield (_ns(span["end_time"]), 1 + number), 1, span


def _start(provider, ids, span, live):
    ids.trace_id = int(span["context"]["trace_id"], 16)
    ids.span_id = int(span["context"]["span_id"], 16)
    context = None
    if span["parent_id"]:
        parent = live.get(span["parent_id"])
        if parent is None:
            parent = trace.NonRecordingSpan(
                SpanContext(ids.trace_id, int(span["parent_id"], 16), False, TraceFlags(TraceFlags.SAMPLED))
            )
        context = trace.set_span_in_context(parent)
    capture = span["x_capture"]
    known = set(capture.get("attr_keys_at_start") or ())
    return provider.get_tracer(span["scope"]["name"], span["scope"]["version"]).start_span(
        capture.get("name_at_start") or span["name"],
        context=context if context is not None else trace.set_span_in_context(trace.INVALID_SPAN),
        kind=SpanKind[span["kind"].rsplit(".", 1)[-1]],
        attributes={key: value for key, value in span["attributes"].items() if key in known and value is not None},
        start_time=_ns(span["start_time"]),
    )


def _end(live, span):
    live.update_name(span["name"])
    live.set_attributes({key: value for key, value in span["attributes"].items() if value is not None})
    for event in span["events"]:
        live.add_event(event["name"], event["attributes"])
    status = StatusCode[span["status"]["status_code"]]
    if status is not StatusCode.UNSET:
        is_error = status is StatusCode.ERROR
        live.set_status(Status(status, span["status"].get("description") if is_error else None))
    live.end(_ns(span["end_time"]))


def _ns(text):
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
