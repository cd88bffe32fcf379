"""OTLP bodies: what is read is what was written."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from turnwatch.sources.spans.otlp import spans_of_body, spans_to_feed
from turnwatch.sources.spans.otlp_request import ScopeOutline, TracesRequest
from turnwatch.sources.spans.otlp_values import attributes_of_message
from turnwatch.sources.spans.span import PassingSpans, SpanData

leaves = st.one_of(
    st.builds(lambda text: AnyValue(string_value=text), st.text()),
    st.builds(lambda number: AnyValue(int_value=number), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.builds(lambda number: AnyValue(double_value=number), st.floats(allow_nan=False)),
    st.builds(lambda yes: AnyValue(bool_value=yes), st.booleans()),
    st.builds(lambda raw: AnyValue(bytes_value=raw), st.binary()),
    st.just(AnyValue()),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda members: AnyValue(array_value=ArrayValue(values=members)), st.lists(inner, max_size=4)),
        st.builds(
            lambda members: AnyValue(
                kvlist_value=KeyValueList(values=[KeyValue(key=key, value=value) for key, value in members.items()])
            ),
            st.dictionaries(st.text(), inner, max_size=4),
        ),
    ),
    max_leaves=10,
)


def request_of(pairs, name="span", scope="my.agents"):
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add(scope={"name": scope}).spans
    spans.add(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\2", name=name, attributes=pairs)
    return request


# How long drawing takes on a busy machine says nothing of the reader.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(), values, max_size=8))
def test_attributes_read_as_a_map_are_those_that_were_written(attributes):
    pairs = [KeyValue(key=key, value=value) for key, value in attributes.items()]
    (span,) = spans_of_body(request_of(pairs).SerializeToString())
    assert span.attributes == attributes_of_message(pairs)


def test_of_an_attribute_that_is_there_twice_the_last_counts():
    pairs = [KeyValue(key="a", value=AnyValue(int_value=number)) for number in (1, 2)]
    (span,) = spans_of_body(request_of(pairs).SerializeToString())
    assert span.attributes == {"a": 2}


def test_spans_of_no_interest_stay_together_and_are_not_decoded():
    chat = KeyValue(key="gen_ai.operation.name", value=AnyValue(string_value="chat"))
    request = request_of([], "GET /")
    spans = request.resource_spans[0].scope_spans[0].spans
    spans.add(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\3", name="chat", attributes=[chat])
    spans.add(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\4", name="GET /")
    found, passing = spans_to_feed(TracesRequest.FromString(request.SerializeToString()))
    assert isinstance(found, SpanData)
    assert isinstance(passing, PassingSpans)
    assert (found.span_id, len(passing)) == (3, 2)
    assert [span.span_id for span in passing.among({4, 9})] == [4]


def test_a_scope_of_no_interest_is_parsed_only_where_somebody_waits():
    request = request_of([], "GET /", scope="opentelemetry.instrumentation.fastapi")
    (passing,) = spans_to_feed(TracesRequest.FromString(request.SerializeToString()))
    assert (len(passing), list(passing.among(set()))) == (1, [])
    assert [(span.span_id, span.name) for span in passing.among({2})] == [(2, "GET /")]


def test_spans_of_a_scope_of_no_interest_that_are_none_tell_nothing():
    request = ScopeOutline(scope={"name": "opentelemetry.instrumentation.fastapi"}, spans=[b"\xff", b"\xff"])
    body = TracesRequest(resource_spans=[{"scope_spans": [request.SerializeToString()]}]).SerializeToString()
    (passing,) = spans_to_feed(TracesRequest.FromString(body))
    assert (len(passing), list(passing.among({2}))) == (2, [])
    with pytest.raises(DecodeError):
        spans_of_body(body)
