"""Which argument names do not count unless the settings say otherwise.

Apart from the settings, because a hash needs no more of them, and building their models takes most of an import.
"""

from __future__ import annotations

from typing import Final

DEFAULT_VOLATILE_KEYS: Final = frozenset(
    {
        "timestamp",
        "_timestamp",
        "_ts",
        "now",
        "nonce",
        "request_id",
        "requestid",
        "x_request_id",
        "trace_id",
        "traceid",
        "traceparent",
        "tracestate",
        "span_id",
        "spanid",
        "correlation_id",
        "correlationid",
        "tool_call_id",
        "toolcallid",
        "tool_use_id",
        "tooluseid",
        "call_id",
        "invocation_id",
        "_meta",
    }
)
