"""MCP servers in processes of their own, whose spans come after those of the agent that called them."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.service.running import serving
from tests.sources.spans.corpus import cases

from turnwatch.sources.spans.span import SERVER


def sent_by(case, *, server):
    """One request with those spans of a case that MCP's server wrote, or with all others."""
    request = ExportTraceServiceRequest()
    for file in case.files("otlp-protobuf"):
        request.MergeFromString(file.read_bytes())
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            kept = [span for span in scope_spans.spans if (span.kind == SERVER) == server]
            del scope_spans.spans[:]
            scope_spans.spans.extend(kept)
    return request.SerializeToString()


def test_a_failure_that_only_the_servers_span_tells_of_is_counted_as_one(tmp_path):
    (case,) = [case for case in cases() if (case.dialect, case.name) == ("openai_agents_genai_mcp", "error")]
    with serving(tmp_path) as service:
        assert service.post(sent_by(case, server=False)).status_code == 200
        assert service.metric("agent_tool_calls_total") == 0, "they wait for the server's spans"
        assert service.post(sent_by(case, server=True)).status_code == 200
        assert service.metric("agent_tool_calls_total") == case.expected.tool_calls
        assert service.metric("agent_tool_calls_total", outcome="error") == case.expected.errors == 2
