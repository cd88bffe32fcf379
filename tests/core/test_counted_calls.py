"""A call that a hook counted is known again in a span, and nothing else is."""

import pytest

from turnwatch.core.counted_calls import MAX_CALLS, CountedCalls
from turnwatch.core.events import ModelCall, ToolCall, Usage


def tool(name="search", key="a" * 16, *, call_id=None, started=10.0, ended=11.0):
    return ToolCall(name, input_hash=key, call_id=call_id, started=started, ended=ended)


def model(usage=None, started=10.0, ended=11.0):
    return ModelCall("gpt-4o-mini", usage=usage, started=started, ended=ended)


@pytest.fixture
def counted():
    return CountedCalls()


def test_a_tool_call_is_joined_by_its_id_at_any_time(counted):
    counted.begun(tool(call_id="call_1"), 10.0, "t1")
    assert counted.has_tool(tool(key=None, call_id="call_1", started=500.0, ended=501.0), "t2")
    assert not counted.has_tool(tool("other", None, call_id="call_1", started=500.0, ended=501.0), "t2")


def test_a_tool_call_without_an_id_is_joined_by_arguments_and_time(counted):
    call = tool()
    counted.begun(call, 10.0, None)
    assert counted.has_tool(tool(started=10.2, ended=10.4), "t1")
    counted.over(call, 10.5)
    assert counted.has_tool(tool(started=10.2, ended=10.4), "t1")
    assert counted.has_tool(tool(key=None, started=10.2, ended=10.4), "t1")
    assert not counted.has_tool(tool(key="b" * 16, started=10.2, ended=10.4), "t1")
    assert not counted.has_tool(tool(started=12.0, ended=13.0), "t1")


def test_another_trace_is_another_call(counted):
    counted.begun(tool(), 10.0, "t1")
    counted.begun(model(), 10.0, "t1")
    assert counted.has_tool(tool(), "t1")
    assert counted.has_model(model(), "t1")
    assert not counted.has_tool(tool(), "t2")
    assert not counted.has_model(model(), "t2")


def test_a_model_call_with_other_tokens_is_another_call(counted):
    call = model(Usage(100, 10))
    counted.begun(call, 10.0, None)
    counted.over(call, 11.0)
    assert counted.has_model(model(Usage(100, 10)), "t1")
    assert counted.has_model(model(), "t1")
    assert not counted.has_model(model(Usage(100, 11)), "t1")


def test_only_the_latest_calls_are_kept(counted):
    for number in range(MAX_CALLS + 10):
        counted.begun(tool(call_id=f"call_{number}"), 10.0, None)
    assert len(counted) == MAX_CALLS
    assert not counted.has_tool(tool("search", "b" * 16, call_id="call_0"), "t1")
    assert counted.has_tool(tool(call_id=f"call_{MAX_CALLS}"), "t1")
