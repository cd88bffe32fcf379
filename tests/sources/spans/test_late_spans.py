"""Spans that come behind those which they belong before: counted once, and in the turn that they belong to."""

import json

import pytest
from tests.sources.spans.story import Story

AGENT, REQUEST = 100, 200


@pytest.fixture
def story():
    return Story(grace_seconds=10)


def request(story):
    return story.span("POST /ask", {}, span_id=REQUEST, scope="fastapi", seconds=60)


def test_calls_that_come_after_the_span_round_all_belong_to_its_turn(story):
    story.feed(story.chat(REQUEST), story.tool(REQUEST, at=1), request(story))
    story.feed(story.chat(REQUEST, at=2), story.tool(REQUEST, at=3), after=5)
    story.pass_time(10)
    assert [(turn.iterations, turn.tool_calls, turn.repeats) for turn in story.ended] == [(2, 2, 1)]


def test_calls_below_a_span_of_the_applications_own_that_has_come_are_not_astray(story):
    own = story.span("handle", {}, AGENT, span_id=300, scope="my.app")
    story.feed(story.tool(300), own)
    story.feed(story.tool(300, at=2), story.tool(AGENT, at=3), story.agent(AGENT), after=5)
    story.pass_time(10)
    assert [turn.tool_calls for turn in story.ended] == [3]


def test_a_turn_goes_on_as_long_as_calls_end_after_its_agents_span(story):
    story.feed(story.tool(AGENT), story.agent(AGENT, seconds=1))
    for at in range(5, 40, 5):
        story.feed(story.tool(AGENT, at=at), after=5)
    assert not story.ended
    assert story.all_turns()["bot"].tool_calls == 8


def test_calls_that_ended_before_their_agents_span_do_not_hold_its_turn(story):
    story.feed(story.tool(AGENT), story.agent(AGENT, seconds=60))
    story.feed(story.tool(AGENT, at=3), after=8)
    story.pass_time(2.1)
    assert [turn.tool_calls for turn in story.ended] == [2]


def test_a_call_that_waits_for_its_log_event_holds_its_turn():
    story = Story(grace_seconds=10)
    claude = {"scope": "com.anthropic.claude_code.tracing"}
    story.feed(story.chat(AGENT, **claude), story.agent(AGENT, **claude))
    story.feed(story.tool(AGENT, at=1, args=None, call_id="toolu_1", **claude), after=8)
    story.pass_time(9)
    assert not story.ended
    story.pass_time(1.1)
    story.pass_time(0.1)
    assert [turn.tool_calls for turn in story.ended] == [1]


def asking(call_id):
    part = {"type": "tool_call", "id": call_id, "name": "search", "arguments": {"q": 1}}
    return {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part], "finish_reason": "tool_call"}])
    }


@pytest.mark.parametrize("reordered", [False, True], ids=["behind the next model call", "behind all"])
def test_a_call_that_a_reply_asked_for_and_whose_span_comes_later_counts_once(story, reordered):
    first = story.chat(AGENT, at=0, attributes=asking("c1"))
    second = story.chat(AGENT, at=4, attributes=asking("c2"))
    story.feed(*([second, first] if reordered else [first, second]), story.chat(AGENT, at=8), story.agent(AGENT))
    story.pass_time(3)
    story.feed(story.tool(AGENT, at=2, call_id="c1"), story.tool(AGENT, at=6, call_id="c2"))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (3, 2, 1)


def test_a_call_with_an_id_that_was_used_before_is_another_one(story):
    for at in range(0, 12, 4):
        story.feed(story.chat(AGENT, at=at, attributes=asking("call_1")))
    story.pass_time(3)
    story.feed(story.tool(AGENT, at=9, call_id="call_1"), story.agent(AGENT))
    assert story.all_turns()["bot"].tool_calls == 3


@pytest.mark.parametrize("behind", [0.5, 7200.0], ids=["at once", "after two hours in a queue"])
def test_an_open_turn_is_no_older_because_its_spans_come_late(behind):
    now = [1_000_000 + 60 + behind]
    story = Story(clock=lambda: now[0])
    story.feed(story.chat(AGENT), story.tool(AGENT, at=58, seconds=2), story.agent(AGENT))
    now[0] += 5
    ages = [age for name, _, age in story.watch.gauges() if name == "agent_open_turn_age_seconds_max"]
    assert ages == [65]
