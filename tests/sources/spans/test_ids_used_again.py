"""Servers that draw the ids of their replies from few, or give one id always: two calls are two all the same."""

import json

import pytest
from tests.sources.spans.story import Story

AGENT = 100


@pytest.fixture
def story():
    return Story()


def asking(query, answers=0):
    """A chat span's messages: what it was told so far, and a reply that asks for a tool, or ends."""
    told = [{"role": "user", "parts": [{"type": "text", "content": "find it"}]}]
    for _ in range(answers):
        told.append({"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "nothing"}]})
    part = {"type": "text", "content": "It is not there."}
    if query:
        part = {"type": "tool_call", "id": "call_1", "name": "search", "arguments": {"q": query}}
    reply = [{"role": "assistant", "parts": [part], "finish_reason": "tool_call" if query else "stop"}]
    return {"gen_ai.input.messages": json.dumps(told), "gen_ai.output.messages": json.dumps(reply)}


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "batch by batch"])
def test_calls_one_after_another_with_one_reply_id_are_as_many_as_they_are(story, at_once):
    calls = [
        call
        for at in range(6)
        for call in (
            story.chat(AGENT, at=at, reply_id="chatcmpl-x"),
            story.tool(AGENT, at=at + 0.5, seconds=0.4, call_id="call_1"),
        )
    ]
    if at_once:
        story.feed(*calls, story.agent(AGENT))
    else:
        for call in calls:
            story.feed(call)
        story.feed(story.agent(AGENT))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.repeats, turn.usage.input) == (6, 6, 5, 60)


def test_one_call_is_counted_once_whose_spans_share_id_and_time(story):
    story.feed(
        story.chat(AGENT, at=1, seconds=2, reply_id="chatcmpl-x", scope="one"),
        story.chat(AGENT, at=1.1, seconds=1.8, reply_id="chatcmpl-x", scope="two"),
        story.chat(AGENT, at=3, seconds=2, reply_id="chatcmpl-x", scope="one"),
        story.chat(AGENT, at=3.1, seconds=1.8, reply_id="chatcmpl-x", scope="two"),
        story.agent(AGENT),
    )
    assert story.all_turns()["bot"].iterations == 2


def test_a_raw_clients_loop_is_one_turn_whose_ids_never_change(story):
    loop = [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("", 4)]
    for trace, (query, answers) in enumerate(loop, start=1):
        story.feed(story.chat(at=trace, trace=trace, reply_id="chatcmpl-x", attributes=asking(query, answers)))
    story.all_turns()
    assert [(turn.iterations, turn.tool_calls, turn.repeats) for turn in story.ended] == [(5, 4, 3)]


def test_questions_of_several_users_with_one_reply_id_are_turns_of_their_own(story):
    for trace in range(1, 5):
        story.feed(story.chat(at=trace, trace=trace, reply_id="chatcmpl-x", attributes=asking("")))
    story.all_turns()
    assert [turn.iterations for turn in story.ended] == [1, 1, 1, 1]
