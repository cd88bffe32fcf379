"""The kinds of telemetry, and the OTLP messages of each."""

from __future__ import annotations

from typing import Any, Final, Literal

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from turnwatch.sources.spans.otlp_request import TracesRequest

Signal = Literal["traces", "logs", "metrics"]
Form = Literal["protobuf", "json"]

READ: Final[tuple[Signal, ...]] = ("traces", "logs")
"""What turnwatch reads. Metrics are only passed on."""

PATHS: Final[dict[Signal, str]] = {"traces": "/v1/traces", "logs": "/v1/logs", "metrics": "/v1/metrics"}

REQUESTS: Final[dict[Signal, Any]] = {"traces": TracesRequest, "logs": ExportLogsServiceRequest}

CONTENT_TYPES: Final[dict[Form, str]] = {"protobuf": "application/x-protobuf", "json": "application/json"}
FORMS: Final[dict[str, Form]] = {
    "application/x-protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/json": "json",
}


def response(signal: Signal, rejected: int, why: str) -> Any:
    """The Export…ServiceResponse; partial_success stands in it only where something was rejected."""
    if signal == "logs":
        partial_logs = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=why)
        return ExportLogsServiceResponse(partial_success=partial_logs if rejected else None)
    # An ExportMetricsServiceResponse without a partial success is empty as well.
    partial_trace = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
    return ExportTraceServiceResponse(partial_success=partial_trace if rejected else None)
