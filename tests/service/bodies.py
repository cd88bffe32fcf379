"""OTLP requests of an agent that repeats itself."""

from __future__ import annotations

import json
import random

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

# Of their own seed: tests that damage bodies must not hit upon the ids of others.
_chance = random.Random(4318)
_START = 1_790_000_000_000_000_000


def pair(key, value):
    kind = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}[type(value)]
    return KeyValue(key=key, value=AnyValue(**{kind: value}))


def attributes(**values):
    return [pair(key.replace("__", "."), value) for key, value in values.items()]


def turn_request(agent="support-bot", calls=3, *, same=True, more=0, text="") -> ExportTraceServiceRequest:
    """One whole turn: an agent span and its tool calls; ``more`` attributes on each call."""
    request = ExportTraceServiceRequest()
    scope_spans = request.resource_spans.add().scope_spans.add()
    scope_spans.scope.name = "my.app"
    trace = _chance.randbytes(16)
    root = _chance.randbytes(8)
    for number in range(calls):
        arguments = f'{{"customer_id": "C-{0 if same else number}", "note": "{text}"}}'
        scope_spans.spans.add(
            trace_id=trace,
            span_id=_chance.randbytes(8),
            parent_span_id=root,
            name="execute_tool search_orders",
            start_time_unix_nano=_START + number * 1000,
            end_time_unix_nano=_START + number * 1000 + 500,
            attributes=[
                *attributes(
                    gen_ai__operation__name="execute_tool",
                    gen_ai__tool__name="search_orders",
                    gen_ai__tool__call__arguments=arguments,
                    gen_ai__tool__call__result="no orders",
                ),
                *(pair(f"extra.{at}", at) for at in range(more)),
            ],
        )
    scope_spans.spans.add(
        trace_id=trace,
        span_id=root,
        name=f"invoke_agent {agent}",
        start_time_unix_nano=_START,
        end_time_unix_nano=_START + 1_000_000,
        attributes=attributes(gen_ai__operation__name="invoke_agent", gen_ai__agent__name=agent),
    )
    return request


def turn_body(*arguments, **more) -> bytes:
    return turn_request(*arguments, **more).SerializeToString()


def as_json(request) -> bytes:
    """In OTLP's JSON: ids in hexadecimal, where protobuf's own form has base64."""
    value = json_format.MessageToDict(request)
    spans = [
        (span, raw)
        for one, raw_one in zip(value.get("resourceSpans", ()), getattr(request, "resource_spans", ()), strict=True)
        for scope, raw_scope in zip(one["scopeSpans"], raw_one.scope_spans, strict=True)
        for span, raw in zip(scope["spans"], raw_scope.spans, strict=True)
    ]
    for span, raw in spans:
        for camel, snake in (("traceId", "trace_id"), ("spanId", "span_id"), ("parentSpanId", "parent_span_id")):
            if camel in span:
                span[camel] = getattr(raw, snake).hex()
    return json.dumps(value).encode()


def log_body(records=2) -> bytes:
    request = ExportLogsServiceRequest()
    scope_logs = request.resource_logs.add().scope_logs.add()
    for number in range(records):
        scope_logs.log_records.add(body=AnyValue(string_value=f"record {number}"))
    return request.SerializeToString()


def orphans_body(calls, **values) -> bytes:
    """Calls under spans that never come."""
    request = ExportTraceServiceRequest()
    scope_spans = request.resource_spans.add().scope_spans.add()
    scope_spans.scope.name = "my.app"
    for number in range(calls):
        scope_spans.spans.add(
            trace_id=_chance.randbytes(16),
            span_id=_chance.randbytes(8),
            parent_span_id=_chance.randbytes(8),
            name="call",
            start_time_unix_nano=_START + number * 1000,
            end_time_unix_nano=_START + number * 1000 + 500,
            attributes=attributes(
                **{name: f"{number} {value}" if " " in value else value for name, value in values.items()}
            ),
        )
    return request.SerializeToString()
