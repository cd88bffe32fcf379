"""Results out of the messages that frameworks wrap round them, whose ids differ on every call."""

import json

import pytest

from turnwatch.core.evidence import Evidence
from turnwatch.sources.spans.results import opened, result_of
from turnwatch.sources.spans.span import SpanData, SpanEvent

MESSAGE = {"content": "no hits", "type": "tool", "name": "search", "tool_call_id": "call_7", "status": "success"}
LLAMA = {"tool_name": "search", "raw_input": {}, "raw_output": "no hits", "is_error": False}


@pytest.mark.parametrize(
    "wrapped",
    [
        MESSAGE,
        {"type": "tool", "data": MESSAGE},
        {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": MESSAGE},
        {"output": {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": MESSAGE}, "kwargs": {"tags": []}},
        {"output": MESSAGE},
        {"graph": "__parent__", "update": {"messages": [{"type": "human"}, MESSAGE]}, "goto": "bob"},
        {"graph": "__parent__", "update": {"messages": [{"type": "tool", "data": MESSAGE}]}, "goto": []},
        {"output": {"update": {"messages": [{"lc": 1, "kwargs": MESSAGE}]}, "goto": "bob"}, "kwargs": {"name": "x"}},
        {"tool_name": "search", "raw_input": {"kwargs": {}}, "raw_output": "no hits", "is_error": False},
        {"tool_name": "search", "tool_kwargs": {}, "tool_id": "call_7", "tool_output": LLAMA, "return_direct": False},
        {"result": "no hits"},
        "content='no hits' name='search' tool_call_id='call_7'",
        "no hits",
    ],
)
def test_the_result_is_what_the_tool_returned(wrapped):
    raw = wrapped if isinstance(wrapped, str) else json.dumps(wrapped)
    assert Evidence.of(opened(raw).value).exact == Evidence.of("no hits").exact
    assert not opened(raw).failed


@pytest.mark.parametrize(
    "wrapped",
    [
        {**MESSAGE, "status": "error"},
        {"output": {**MESSAGE, "status": "error"}},
        {"tool_name": "search", "raw_output": "x", "is_error": True},
        {"tool_name": "search", "tool_kwargs": {}, "tool_id": "call_7", "tool_output": {**LLAMA, "is_error": True}},
        {"result": "x", "is_error": True},
    ],
)
def test_an_error_that_only_the_result_tells_of_is_an_error(wrapped):
    assert opened(json.dumps(wrapped)).failed


def test_an_error_written_by_repr_is_an_error():
    assert opened("content='x' name='search' tool_call_id='c' status='error'").failed


@pytest.mark.parametrize(
    "more",
    [
        {"failed": True},
        {"attributes": {"error.type": "Timeout"}},
        {"attributes": {"gen_ai.tool.status": "error"}},
        {"attributes": {"haystack.tool.error": True}},
        {"attributes": {"langfuse.observation.level": "ERROR"}},
    ],
)
def test_an_error_that_the_span_tells_of_is_an_error(more):
    assert result_of(SpanData(1, 1, **more)).failed


def test_the_text_of_an_error_is_its_result():
    event = SpanEvent("exception", {"exception.type": "app.Down", "exception.message": "503"})
    result = result_of(SpanData(1, 1, failed=True, events=[event]))
    assert (result.value, result.error_type) == ("503", "Down")


def test_a_result_of_the_tools_own_shape_is_left_as_it_is():
    own = json.dumps({"content": "x", "pages": 3})
    assert opened(own).value == own


@pytest.mark.parametrize(
    "told",
    [
        {"bash_command": "cat a.txt", "output": "one"},
        {"file_path": "a.txt", "content": "one"},
        {"file_path": "a.txt", "diff": "one"},
    ],
)
def test_what_claude_codes_tools_return_is_read_from_their_event(told):
    span = SpanData(
        1, 2, 0, "claude_code.tool", attributes={"gen_ai.tool.name": "Read"}, events=(SpanEvent("tool.output", told),)
    )
    assert result_of(span).value == "one"
