"""Teams: several agents in one trace whose spans name no conversation."""

import json

import pytest
from tests.sources.spans.story import TRACE, Story

from turnwatch.core.watch import Watch
from turnwatch.sources.spans.messages import said_in
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.teams import Teams

CONVERSATION = f"{TRACE:032x}"


@pytest.fixture
def story():
    return Story()


def says(text):
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}]
    return {"gen_ai.output.messages": json.dumps(messages)}


def speaks(story, name, number, *, text="", asked=None, tool=None, args="{}", result="", attributes=None, trace=TRACE):
    """One agent's turn, its spans in the order in which they end: a call or a reply."""
    own, at = 100 + number, 10.0 * number
    about = says(text) if text else {}
    if asked is not None:
        about["gen_ai.input.messages"] = json.dumps(asked)
    story.feed(story.chat(own, at=at, seconds=1, trace=trace, attributes=about))
    if tool is not None:
        found = {"gen_ai.tool.call.result": result}
        story.feed(story.tool(own, at=at + 1, name=tool, args=args, trace=trace, attributes=found))
    story.feed(story.agent(own, 1, name=name, at=at, seconds=5, trace=trace, attributes=attributes or {}), after=5)
    story.pass_time(20)


def turns_of(story):
    story.feed(story.span("workflow.run", {}, span_id=1, at=0, seconds=1000))
    story.assembler.flush()
    assert not story.faults
    return story.ended


def gauge(story, name, agent):
    return {labels[0]: value for metric, labels, value in story.watch.gauges() if metric == name}.get(agent, 0)


def test_agents_of_one_trace_that_ask_each_other_are_stuck_at_the_third_pass(story):
    for number in range(8):
        me, other = ("analyzer", "verifier") if number % 2 == 0 else ("verifier", "analyzer")
        speaks(story, me, number, tool=f"transfer_to_{other}", result="transferred")
    turns = turns_of(story)
    assert {turn.conversation_id for turn in turns} == {CONVERSATION}
    assert [turn.verdict.severity for turn in turns if turn.verdict][-1] == "stuck"


def test_agents_of_one_trace_that_only_talk_are_stuck_as_well(story):
    for number in range(8):
        speaks(story, "analyzer" if number % 2 == 0 else "verifier", number, text=f"Please clarify {'ab'[number % 2]}.")
    found = [turn.verdict for turn in turns_of(story) if turn.verdict]
    assert [(verdict.kind, verdict.severity) for verdict in found] == [("monologue", "stuck")]


def test_the_model_calls_of_a_team_are_counted_over_its_turns(story):
    story.watch.clock = lambda: 1_000_000.0
    for number in range(60):
        speaks(story, ("analyzer", "verifier", "writer")[number % 3], number, text=f"Version {number * 'x'}.")
    assert gauge(story, "agent_conversation_model_calls_max", "writer") == 60
    assert not any(turn.verdict for turn in turns_of(story))


def test_agents_that_make_the_same_call_once_each_are_no_loop(story):
    for number, name in enumerate("abcdef"):
        speaks(story, name, number, tool="search_docs", args='{"q": "refunds"}', result="thirty days")
    assert not any(turn.verdict for turn in turns_of(story))


def test_one_agent_asked_again_and_again_in_one_trace_is_no_conversation(story):
    for number in range(60):
        speaks(story, "bot", number, tool="search_docs", args='{"q": "refunds"}', result="thirty days")
    turns = turns_of(story)
    assert {turn.conversation_id for turn in turns} == {None}
    assert not any(turn.verdict for turn in turns)


def test_a_conversation_that_spans_name_is_theirs(story):
    for number, name in enumerate("abab"):
        speaks(story, name, number, text="Hello.", attributes={"gen_ai.conversation.id": "c-1"})
    assert {turn.conversation_id for turn in turns_of(story)} == {"c-1"}


def test_agents_of_different_traces_are_no_team(story):
    for number in range(6):
        speaks(story, "ab"[number % 2], number, text="Please clarify.", trace=TRACE + number)
    turns = turns_of(story)
    assert {turn.conversation_id for turn in turns} == {None}


def test_a_turn_that_was_begun_before_its_agent_had_a_name_joins_its_team(story):
    speaks(story, "a", 0, text="Hello.")
    for at in range(20, 30):
        story.feed(story.chat(300, at=at, seconds=0.5))
    story.feed(story.agent(300, 1, name="b", at=20, seconds=15), after=20)
    turns = turns_of(story)
    assert {turn.agent: turn.conversation_id for turn in turns} == {"a": CONVERSATION, "b": CONVERSATION}


def test_many_traces_are_not_remembered_for_ever():
    teams, watch = Teams(), Watch()
    for number in range(5_000):
        scope = Scope(number, TRACE + number, 0.0)
        scope.agent = "a"
        teams.note(scope, watch.open_turn("a"))
    assert len(teams) == 2_048


def test_turns_below_another_one_make_no_team():
    teams, watch = Teams(), Watch()
    boss = watch.open_turn("boss")
    for name in ("a", "b", "c"):
        scope = Scope(1, TRACE, 0.0)
        scope.agent = name
        assert teams.conversation_of(scope, boss) is None
        teams.note(scope, watch.open_turn(name, parent=boss))
    assert len(teams) == 0


def test_agents_that_go_through_many_documents_in_the_same_words_are_no_loop(story):
    for number in range(12):
        asked = [{"role": "user", "parts": [{"type": "text", "content": f"Document {'abcdef'[number // 2]}."}]}]
        text = ("It complies with the policy.", "No changes are needed.")[number % 2]
        speaks(story, ("reviewer", "editor")[number % 2], number, text=text, asked=asked)
    assert not [turn.verdict for turn in turns_of(story) if turn.verdict]


def test_agents_that_are_asked_the_same_again_and_again_are_stuck(story):
    texts = ("Could you clarify what you need?", "Which of the orders do you mean?")
    for number in range(10):
        asked = [{"role": "user", "parts": [{"type": "text", "content": texts[(number + 1) % 2]}]}]
        speaks(story, ("planner", "coder")[number % 2], number, text=texts[number % 2], asked=asked)
    assert "stuck" in {turn.verdict.severity for turn in turns_of(story) if turn.verdict}


def test_an_agent_round_others_gives_its_name_to_nobody_above(story):
    """A group chat's manager asks a model which agent speaks next: that is none of theirs."""
    story.feed(story.chat(1, at=0, seconds=1))
    story.feed(story.tool(200, at=2), story.agent(200, 201, name="worker", at=2, seconds=3))
    story.feed(story.agent(201, 1, name="worker", at=2, seconds=4))
    counts = {turn.agent: turn.iterations for turn in turns_of(story)}
    assert counts == {"worker": 0, "": 1}


REPLIES = {
    "parts": ({"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]'}),
    "content blocks": (
        {"gen_ai.output.messages": '[{"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}]'}
    ),
    "plain": ({"langfuse.observation.output": '{"role": "assistant", "content": "Yes."}'}),
    "text alone": ({"langfuse.observation.output": "Yes."}),
    "flat": ({"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Yes."}),
    "numbered": ({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Yes."}),
    "haystack": ({"haystack.component.output": '{"replies": [{"role": "assistant", "_content": [{"text": "Yes."}]}]}'}),
    "vercel": ({"ai.response.text": "Yes."}),
}


@pytest.mark.parametrize("form", REPLIES)
def test_the_text_of_a_reply_is_read_in_every_form(form):
    assert said_in(REPLIES[form]) == "Yes."


NO_TEXTS = {
    "a tool is asked for": {
        "gen_ai.output.messages": '[{"parts": [{"type": "text", "content": "Let me see."}, '
        '{"type": "tool_call", "name": "look", "arguments": {}}]}]'
    },
    "it ended to have tools called": {
        "gen_ai.response.finish_reasons": '["tool_calls"]',
        "gen_ai.completion.0.content": "Let me see.",
    },
    "thoughts": {"gen_ai.output.messages": '[{"parts": [{"type": "reasoning", "content": "Hm."}]}]'},
    "nothing": {},
    "no messages": {"gen_ai.output.messages": "[1, null]"},
}


@pytest.mark.parametrize("case", NO_TEXTS)
def test_what_is_no_reply_in_words_has_no_text(case):
    assert said_in(NO_TEXTS[case]) == ""
