"""Arguments out of the envelopes that instrumentations put round them."""

import json

import pytest

from turnwatch.core.events import MISSING
from turnwatch.core.hashing import input_hash
from turnwatch.sources.spans.arguments import arguments_of, digests_of, may_have_digests, unwrapped
from turnwatch.sources.spans.span import SpanData, SpanEvent

PARIS = {"city": "Paris"}


@pytest.mark.parametrize(
    "given",
    [
        '{"city": "Paris"}',
        "{'city': 'Paris'}",
        {"city": "Paris"},
        '{"input_str": "{\'city\': \'Paris\'}", "inputs": {"city": "Paris"}, "metadata": {"langgraph_step": 3}}',
        '{"input_str": "{\'city\': \'Paris\'}", "inputs": null, "metadata": {"langgraph_step": 4}}',
        '{"kwargs": {"city": "Paris"}}',
        '{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"city": "Paris"}}',
        '{"tool_name": "get_weather", "arguments": {"city": "Paris"}}',
        '{"tool_name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}',
        '{"method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
    ],
)
def test_one_call_is_one_call_in_any_envelope(given):
    assert input_hash("get_weather", unwrapped(given)) == input_hash("get_weather", PARIS)


def test_a_bare_text_is_the_one_argument():
    assert unwrapped("A-17") == "A-17"


def test_an_empty_object_is_no_missing_argument():
    assert unwrapped("{}") == {}


@pytest.mark.parametrize(
    "given",
    ["__REDACTED__", "<REDACTED>", "N/A", '{"city": "__REDACTED__"}', '{"kwargs": "<REDACTED>"}', None],
)
def test_what_was_taken_out_is_missing_and_never_hashed(given):
    assert unwrapped(given) is MISSING


def test_a_word_within_a_text_is_no_redaction():
    assert unwrapped('{"note": "N/A until Monday"}') == {"note": "N/A until Monday"}


def test_a_schema_is_not_taken_for_arguments():
    schema = '{"properties": {"city": {"type": "string"}}, "required": ["city"]}'
    assert arguments_of(SpanData(1, 1, attributes={"tool.parameters": schema})) is MISSING
    flat = '{"city": {"type": "string", "description": "a city"}}'
    assert arguments_of(SpanData(1, 1, attributes={"tool.parameters": flat})) is MISSING
    assert arguments_of(SpanData(1, 1, attributes={"tool.parameters": '{"city": "Paris"}'})) == PARIS


def test_an_empty_object_of_an_instrumentation_that_does_not_capture_is_missing():
    assert arguments_of(SpanData(1, 1, attributes={"gcp.vertex.agent.tool_call_args": "{}"})) is MISSING


def test_arguments_may_stand_in_a_span_event():
    event = SpanEvent("gen_ai.tool.message", {"content": '{"city": "Paris"}'})
    assert arguments_of(SpanData(1, 1, events=[event])) == PARIS


def test_text_that_was_cut_off_is_taken_as_it_is():
    assert unwrapped('{"query": "refund po') == '{"query": "refund po'


@pytest.mark.parametrize("given", ["(" * 5000, "{" * 5000, "[" * 100_000, "{'a': " * 2000])
def test_hostile_text_is_only_text(given):
    assert unwrapped(given) == given


def test_positional_and_named_arguments_are_both_kept():
    assert unwrapped('{"args": ["x"], "kwargs": {"limit": 3}}') == {"args": ["x"], "limit": 3}


@pytest.mark.parametrize(
    "schema",
    [
        {"city": {"type": "string", "description": "where"}, "days": {"type": "integer"}},
        {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    ],
)
def test_positional_arguments_have_the_names_that_the_schema_gives_them(schema):
    attributes = {"input.value": '{"args": ["Paris"], "kwargs": {}}', "tool.parameters": json.dumps(schema)}
    assert arguments_of(SpanData(1, 1, attributes=attributes)) == PARIS
    attributes["input.value"] = '{"args": ["Paris", 2, "more"], "kwargs": {}}'
    assert arguments_of(SpanData(1, 1, attributes=attributes)) == ["Paris", 2, "more"]


@pytest.mark.parametrize(
    ("asked", "given", "may_be"),
    [
        ({"q": 5}, {"q": 5.0, "limit": 10}, True),
        ({"q": [1, {"a": "b"}]}, {"q": [1, {"a": "b"}]}, True),
        ({"q": -1}, {"q": -2}, False),
        ({"q": "a"}, {"q": "b"}, False),
        ({"q": "a"}, MISSING, True),
        ({"q": 2**60}, {"q": 2**60 + 1}, False),
        ({"q": 10**400}, {"q": 10**400}, True),
        ({"q": float("inf")}, {"q": 1.0}, False),
        ({str(n): n for n in range(1000)}, {"0": 1}, True),
    ],
)
def test_what_stands_for_arguments_tells_whether_a_function_may_have_been_given_them(asked, given, may_be):
    assert may_have_digests(digests_of(asked), digests_of(given)) is may_be
