"""What OpenLIT's spans of clients and frameworks leave out, or say in their own way."""

import json

import pytest
from tests.sources.spans.story import Story

from turnwatch.core.events import Usage
from turnwatch.sources.spans.shapes import shape_of
from turnwatch.sources.spans.usage import usage_of

CLIENT = "openlit.instrumentation.openai"
SMOLAGENTS = "openlit.instrumentation.smolagents"
GEMINI = "openlit.instrumentation.google_ai_studio"


@pytest.fixture
def story():
    return Story()


def asks(*calls):
    """A reply that asks for calls: each a tool, an id and what it is called with."""
    parts = [{"type": "tool_call", "name": tool, "id": call_id, "arguments": given} for tool, call_id, given in calls]
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}


def told(call_id):
    """A request that tells the result of a call."""
    part = {"type": "tool_call_response", "id": call_id, "response": "none"}
    return {"gen_ai.input.messages": json.dumps([{"role": "tool", "parts": [part]}])}


def test_a_failed_model_call_whose_span_has_a_name_alone_is_one_and_asked_for_nothing(story):
    failed = story.span("chat gpt-4o", {}, 9, at=0, scope="openlit.instrumentation.anthropic", failed=True)
    story.feed(failed, story.chat(9, at=1, scope=CLIENT), story.span("loop", {}, span_id=9, seconds=9))
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.missing_arguments) == (2, 0)


def test_a_failed_tool_call_whose_span_has_a_name_alone_has_what_the_reply_asked_for(story):
    for at in (0, 2):
        story.feed(
            story.chat(9, at=at, scope=CLIENT, attributes=asks(("search", "1", {"q": 1}), ("look", "2", {}))),
            story.span("execute_tool search", {}, 9, at=at + 1, scope=SMOLAGENTS, failed=True),
        )
    story.feed(story.agent(9, scope=SMOLAGENTS))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (2, 1, 0)


def test_which_of_two_calls_of_one_tool_failed_is_not_guessed(story):
    asked = asks(("search", "1", {"q": 1}), ("search", "2", {"q": 2}))
    story.feed(
        story.chat(9, at=0, scope=CLIENT, attributes=asked),
        story.span("execute_tool search", {}, 9, at=1, scope=SMOLAGENTS, failed=True),
        story.agent(9, scope=SMOLAGENTS),
    )
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.missing_arguments) == (1, 1)


@pytest.mark.parametrize("waited", [0.4, 0.0, -1.0, float("nan"), float("inf"), 1e300, "soon"])
def test_the_span_of_a_stream_that_was_written_after_it_tells_of_the_call_that_others_tell_of(waited, story):
    late = {"gen_ai.server.time_to_first_token": waited}
    story.feed(
        story.chat(9, at=0, seconds=0.5, scope="gcp.vertex.agent"),
        story.chat(9, at=0.51, seconds=0.001, scope=GEMINI, attributes=late),
        story.agent(9, scope="gcp.vertex.agent"),
    )
    assert story.all_turns()["bot"].iterations == (1 if waited == 0.4 else 2)


def test_a_tool_call_that_is_a_trace_of_its_own_counts_with_the_reply_that_asked_for_it(story):
    for number in range(3):
        asked = asks(("search", str(number), {"q": 1})) | (told(str(number - 1)) if number else {})
        story.feed(story.chat(at=2 * number, trace=10 + number, scope=CLIENT, attributes=asked))
        story.feed(
            story.tool(at=2 * number + 1, trace=20 + number, call_id=str(number), scope="openlit.instrumentation.agno")
        )
    story.feed(story.chat(at=6, trace=13, scope=CLIENT, attributes=told("2")))
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (4, 3, 2)


def test_arguments_in_pythons_form_are_read(story):
    asked = {"gen_ai.tool.name": "search", "gen_ai.tool.call.id": "1", "gen_ai.tool.args": "{'q': 'it''s'}"}
    for at in range(2):
        story.feed(story.chat(9, at=at, scope="openlit.otel.tracing", attributes=asked))
    story.feed(story.span("loop", {}, span_id=9, seconds=9))
    (turn,) = story.all_turns().values()
    assert (turn.tool_calls, turn.missing_arguments) == (2, 0)


def test_a_node_of_pydantic_ai_that_has_tools_called_is_no_tool(story):
    scope = "openlit.instrumentation.pydantic_ai"
    story.feed(
        story.chat(8, at=0, scope=CLIENT, attributes=asks(("search", "1", {"q": 1}))),
        story.span("execute_tool gpt-4o", {"gen_ai.operation.name": "execute_tool"}, 8, at=1, scope=scope),
        story.chat(8, at=2, scope=CLIENT, attributes=told("1")),
        story.span("execute_task bot", {"gen_ai.agent.name": "bot"}, 9, span_id=8, seconds=5, scope=scope),
        story.span("invoke_agent bot", {"gen_ai.agent.name": "bot"}, span_id=9, seconds=6, scope=scope),
    )
    turns = story.all_turns()
    assert {name: (turn.tool_calls, turn.iterations) for name, turn in turns.items()} == {"bot": (1, 2)}


def test_what_an_agent_of_ag2_does_to_answer_is_no_model_call(story):
    answer = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": "bot", "gen_ai.usage.input_tokens": 99}
    inside = story.span("execute_task bot", answer, 9, span_id=8, at=0, scope="openlit.instrumentation.ag2")
    story.feed(story.chat(8, at=0, scope=CLIENT, attributes=asks(("search", "1", {"q": 1}))), inside)
    story.feed(story.span("execute_task user", answer, span_id=9, seconds=6, scope="openlit.instrumentation.ag2"))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.usage.input) == (1, 1, 10)


@pytest.mark.parametrize(
    ("library", "counts"),
    [
        ("anthropic", Usage(147, 12, 40, 7, 3)),
        ("bedrock", Usage(147, 12, 40, 7, 3)),
        ("google_ai_studio", Usage(100, 15, 40, 7, 3)),
        ("openai", Usage(100, 12, 40, 7, 3)),
    ],
)
def test_tokens_are_counted_as_each_vendor_counts_them(library, counts):
    attributes = {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.reasoning_tokens": 3,
    }
    assert usage_of(attributes, shape_of(f"openlit.instrumentation.{library}", attributes)) == counts
