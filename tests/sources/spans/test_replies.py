"""Tool calls that a model's reply asked for, where its span tells of them in part, or not at all."""

import json

import pytest
from tests.sources.spans.story import Story, only_turn

from turnwatch.sources.spans.shapes import shape_of
from turnwatch.sources.spans.usage import usage_of

AGENT = 100
CLIENT = "openinference.instrumentation.mistralai"
CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}


@pytest.fixture
def story():
    return Story()


def traceloop(replies, asked=True):
    attributes = {"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.role": "assistant"}
    for number in range(replies):
        reply, answer = f"gen_ai.prompt.{2 * number + 1}.", f"gen_ai.prompt.{2 * number + 2}."
        attributes |= {reply + "role": "assistant", reply + "tool_calls.0.arguments": '{"q": 1}'}
        attributes |= {answer + "role": "tool", answer + "content": "nothing"}
        if asked:
            attributes[reply + "tool_calls.0.name"] = "search"
    return attributes


def openinference(replies, asked=True):
    attributes = {"llm.input_messages.0.message.role": "user"}
    for number in range(replies):
        reply, answer = (f"llm.input_messages.{2 * number + which}.message." for which in (1, 2))
        call = reply + "tool_calls.0.tool_call.function."
        attributes |= {reply + "role": "assistant", call + "arguments": '{"q": 1}'}
        attributes |= {answer + "role": "tool", answer + "content": "nothing"}
        if asked:
            attributes[call + "name"] = "search"
    return attributes


def traceai(replies, asked=True):
    renamed = {
        key.replace("llm.input_", "gen_ai.input."): value for key, value in openinference(replies, asked).items()
    }
    return {**renamed, "gen_ai.span.kind": "LLM"}


def semantic_conventions(replies, asked=True):
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Search."}]}]
    for number in range(replies):
        call = {"type": "tool_call", "id": f"call_{number}", "name": "search", "arguments": {"q": 1}}
        answer = {"type": "tool_call_response", "id": f"call_{number}", "result": "nothing"}
        messages.append({"role": "assistant", "parts": [call] if asked else []})
        messages.append({"role": "tool", "parts": [answer]})
    return {"gen_ai.input.messages": json.dumps(messages)}


CONVENTIONS = [traceloop, openinference, traceai, semantic_conventions]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_calls_that_only_the_next_request_tells_of_count_with_what_came_of_them(story, convention):
    for at in range(4):
        story.feed(story.chat(1, at=at, attributes=convention(at)))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.repeats, turn.duplicates, turn.missing_arguments) == (3, 2, 1, 0)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_call_that_several_requests_tell_of_counts_once(story, convention):
    for at, replies in enumerate((0, 1, 1, 1, 1)):
        story.feed(story.chat(1, at=at, attributes=convention(replies)))
    assert only_turn(story).tool_calls == 1


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_calls_that_nothing_tells_of_are_said_to_be_missing(story, convention):
    for at in range(3):
        story.feed(story.chat(1, at=at, attributes=convention(at, asked=False)))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.missing_arguments) == (0, 2)


def test_roles_are_read_from_the_kinds_that_loongsuite_and_traceai_have(story):
    kind = "gen_ai.span.kind"
    for at in range(2):
        tool = {kind: "TOOL", "gen_ai.tool.name": "search", "input.value": '{"q": 1}', "output.value": "nothing"}
        model = {kind: "LLM", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
        story.feed(story.span("ChatOpenAI", model, 1, at=at), story.span("search", tool, 1, at=at + 0.5))
    story.feed(story.span("bot", {kind: "AGENT", "gen_ai.agent.name": "bot"}, span_id=1, seconds=9))
    turn = only_turn(story)
    assert (turn.agent, turn.iterations, turn.tool_calls, turn.repeats) == ("bot", 2, 2, 1)


def whole(at):
    """A client's call whose messages leave out the ids that its request and its reply have."""
    asked, reply = "llm.input_messages.0.message.", "llm.output_messages.0.message."
    previous = [
        {"role": "assistant", "tool_calls": [{**CALL, "id": f"call_{at - 1}"}]},
        {"role": "tool", "tool_call_id": f"call_{at - 1}", "content": "nothing"},
    ]
    return {
        "openinference.span.kind": "LLM",
        asked + "role": "tool" if at else "user",
        asked + "content": "nothing" if at else "Search.",
        reply + "role": "assistant",
        reply + "tool_calls.0.tool_call.function.name": "search",
        reply + "tool_calls.0.tool_call.function.arguments": '{"q": 1}',
        "input.value": json.dumps({"messages": previous if at else []}),
        "output.value": json.dumps({"choices": [{"message": {"tool_calls": [{**CALL, "id": f"call_{at}"}]}}]}),
    }


def test_calls_in_traces_of_their_own_are_one_turn_by_the_ids_in_whole_requests_and_replies(story):
    for at in range(3):
        story.feed(story.span("chat", whole(at), trace=at + 1, at=at, scope=CLIENT))
        story.pass_time(15)
    turn = only_turn(story)
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (3, 3, 2)


def reply(*calls):
    tool_calls = [{"name": name, "args": args, "id": call_id} for name, args, call_id in calls]
    return {"gen_ai.completion": json.dumps({"generations": [[{"message": {"kwargs": {"tool_calls": tool_calls}}}]]})}


@pytest.mark.parametrize("call_ids", [("call_1", "call_2"), ("", "")], ids=["by id", "by order"])
def test_arguments_that_a_tools_span_lacks_are_the_replys(story, call_ids):
    asked = reply(("search", {"q": 1}, "call_1"), ("search", {"q": 2}, "call_2"), ("order", {"n": 1}, "call_3"))
    for at in (0, 2):
        story.feed(story.chat(AGENT, at=at, attributes=asked))
        story.feed(*(story.tool(AGENT, at=at + 1, args=None, call_id=call_id) for call_id in call_ids))
    story.feed(story.agent(AGENT))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 2, 0)


def test_arguments_of_another_tool_are_not_a_calls(story):
    story.feed(story.chat(AGENT, attributes=reply(("order", {"n": 1}, "call_1"))))
    story.feed(story.tool(AGENT, at=1, args=None), story.agent(AGENT))
    assert only_turn(story).missing_arguments == 1


def test_a_turn_that_no_agents_span_bounds_is_called_after_its_workflow(story):
    story.feed(story.chat(AGENT), story.tool(AGENT, at=1), story.chat(AGENT, at=2))
    workflow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "support"}
    story.feed(story.span("invoke_workflow support", workflow, span_id=AGENT, seconds=60))
    assert list(story.all_turns()) == ["support"]


def test_an_agents_name_comes_before_its_workflows(story):
    story.feed(story.chat(AGENT), story.agent(AGENT, 1))
    workflow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "support"}
    story.feed(story.span("invoke_workflow support", workflow, span_id=1, seconds=60))
    assert list(story.all_turns()) == ["bot"]


def test_cached_tokens_are_read_out_of_a_whole_reply():
    usage = {"prompt_tokens": 120, "prompt_tokens_details": {"cached_tokens": 40}}
    text = json.dumps({"usage": {"cached_tokens": 7}})
    attributes = {
        "llm.token_count.prompt": 120,
        "llm.token_count.completion": 5,
        "output.value": json.dumps({"usage": usage, "choices": [{"message": {"content": text}}]}),
    }
    assert usage_of(attributes, shape_of(CLIENT, attributes)).cache_read == 40
