"""Calls that a reply asks for and nobody makes: the provider made them itself, or the reply was given up."""

import json

import pytest
from tests.sources.spans.story import Story, only_turn


@pytest.fixture
def story():
    return Story()


def called(call_id, tool="search"):
    return {"type": "tool_call", "id": call_id, "name": tool, "arguments": {"q": 1}}


def answered(call_id):
    return {"type": "tool_call_response", "id": call_id, "result": "nothing"}


def chat(story, at, history, *reply, replied=None):
    """A model call that is given the replies and results of these ids, and replies with these parts."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Search."}]}]
    for call_id in history:
        messages.append({"role": "assistant", "parts": [called(call_id)]})
        messages.append({"role": "tool", "parts": [answered((replied or {}).get(call_id, call_id))]})
    attributes = {"gen_ai.input.messages": json.dumps(messages)}
    if reply:
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": list(reply)}])
    return story.chat(1, at=at, attributes=attributes)


def test_a_reply_that_was_broken_off_and_asked_for_again_made_no_call(story):
    story.feed(chat(story, 0, [], called("a")))
    story.feed(chat(story, 1, ["a"], called("b")))  # its stream was broken off
    story.feed(chat(story, 2, ["a"], called("c")))
    story.feed(chat(story, 3, ["a", "c"]))
    turn = only_turn(story)
    assert (turn.iterations, turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 2, 1, 0)


def test_a_reply_of_which_nothing_came_before_it_was_broken_off_hides_no_call(story):
    story.feed(chat(story, 0, [], called("a")))
    story.feed(chat(story, 1, ["a"]))
    story.feed(chat(story, 2, ["a"], called("c")))
    story.feed(chat(story, 3, ["a", "c"], {"type": "text", "content": "Nothing."}))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.missing_arguments) == (2, 0)


def test_calls_of_a_reply_to_which_no_results_are_told_count(story):
    for at in range(3):
        story.feed(chat(story, at, [], called(f"call_{at}")))
    assert only_turn(story).tool_calls == 3


@pytest.mark.parametrize("ids", [("srvtoolu_1", "srvtoolu_2"), ("mcptoolu_1", "mcptoolu_2"), ("ws_1", "fs_1")])
def test_calls_that_the_provider_made_itself_are_not_the_agents(story, ids):
    first, last = (called(call_id, "web_search") for call_id in ids)
    story.feed(chat(story, 0, [], first, called("a")))
    story.feed(chat(story, 1, ["a"], {"type": "text", "content": "Nothing."}, last))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (1, 0, 0)


def test_a_call_without_a_result_beside_others_that_have_one_was_not_made(story):
    story.feed(chat(story, 0, [], called("a"), called("elsewhere", "web_search")))
    story.feed(chat(story, 1, ["a"], called("b")))
    story.feed(chat(story, 2, ["a", "b"]))
    assert only_turn(story).tool_calls == 2


def openinference(at, *, left_out):
    """A client's call of OpenAI's Responses, items of whose replies have numbers and no words."""
    attributes = {"openinference.span.kind": "LLM", "llm.input_messages.1.message.role": "user"}
    number = 2
    for call in range(at):
        number += left_out
        asked, result = f"llm.input_messages.{number}.message.", f"llm.input_messages.{number + 1}.message."
        attributes |= {asked + "role": "assistant", asked + "tool_calls.0.tool_call.id": f"call_{call}"}
        attributes[asked + "tool_calls.0.tool_call.function.name"] = "search"
        attributes |= {result + "role": "tool", result + "tool_call_id": f"call_{call}", result + "content": "nothing"}
        number += 2
    reply = f"llm.output_messages.{left_out}.message."
    call = reply + "tool_calls.0.tool_call."
    attributes |= {reply + "role": "assistant", call + "id": f"call_{at}", call + "function.name": "search"}
    attributes[call + "function.arguments"] = '{"q": 1}'
    return attributes


@pytest.mark.parametrize("left_out", range(8))
def test_replies_are_read_past_items_that_are_left_out(story, left_out):
    for at in range(4):
        attributes = openinference(at, left_out=left_out)
        story.feed(story.span("Response", attributes, 1, at=at, scope="openinference.instrumentation.openai"))
    turn = only_turn(story)
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 3, 0)
    assert turn.verdict is not None


def test_replies_are_read_that_do_not_say_whose_they_are(story):
    for at in range(3):
        attributes = openinference(at, left_out=0)
        del attributes["llm.output_messages.0.message.role"]
        story.feed(story.span("openai.chat.completion", attributes, 1, at=at))
    assert only_turn(story).tool_calls == 3


def test_calls_in_traces_of_their_own_are_one_turn_where_requests_repeat_the_ids_of_items(story):
    """OpenAI's Responses name a call by its item's id and its result by the call's."""
    for at in range(4):
        history = [f"fc_{number}" for number in range(at)]
        span = chat(story, at, history, called(f"fc_{at}"), replied={old: old.replace("fc", "call") for old in history})
        span.trace_id, span.parent_id = at + 1, 0
        story.feed(span)
    turn = only_turn(story)
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (4, 4, 3)


def test_a_request_of_results_alone_answers_the_latest_reply(story):
    for at in range(5):
        messages = [{"role": "tool", "parts": [answered(f"call_{at - 1}")]}]
        attributes = {
            "gen_ai.input.messages": json.dumps(messages if at else [{"role": "user", "parts": []}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [called(f"fc_{at}")]}]),
        }
        story.feed(story.chat(1, at=at, attributes=attributes))
    assert only_turn(story).verdict.mode == "full"


def test_a_request_that_comes_late_and_was_earlier_takes_no_call_away(story):
    story.feed(chat(story, 0, [], called("a")))
    story.feed(chat(story, 4, ["a", "b"], called("c")))
    story.pass_time(5)
    story.feed(chat(story, 2, ["a"], called("b")), chat(story, 6, ["a", "b", "c"]))
    assert only_turn(story).tool_calls == 3


def test_one_stream_that_two_clients_saw_broken_off_is_one_call(story):
    whole = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}
    for scope, at in (("one", 1.0), ("other", 1.1)):
        story.feed(story.chat(1, at=at, scope=scope, attributes=whole))
    assert only_turn(story).iterations == 1
