"""A client's calls that are traces of their own, and that a framework's spans may tell of again in its trace."""

import json

import pytest
from tests.sources.spans.story import Story

from turnwatch.sources.spans.facts import model_fact
from turnwatch.sources.spans.span import SpanData

CLIENT, FRAMEWORK = "openinference.instrumentation.openai", "openinference.instrumentation.langchain"
AGENT = 100


@pytest.fixture
def story():
    return Story()


def llm(story, scope, parent=0, *, at, seconds=1.0, text="", calls=(), answers=(), reply_id="", tokens=10, **more):
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "llm.token_count.prompt": tokens,
        "llm.token_count.completion": 1,
        "llm.output_messages.0.message.role": "assistant",
    }
    if text:
        attributes["llm.output_messages.0.message.content"] = text
    for number, call_id in enumerate(calls):
        call = f"llm.output_messages.0.message.tool_calls.{number}.tool_call."
        attributes |= {call + "id": call_id, call + "function.name": "search", call + "function.arguments": '{"q": 1}'}
    for number, call_id in enumerate(answers):
        message = f"llm.input_messages.{number}.message."
        attributes |= {message + "role": "tool", message + "tool_call_id": call_id, message + "content": "nothing"}
    if reply_id:
        whole = {"id": reply_id} if scope == CLIENT else {"generations": [], "llm_output": {"id": reply_id}}
        attributes["output.value"] = json.dumps(whole)
    return story.span("llm", attributes, parent, at=at, seconds=seconds, scope=scope, **more)


def client(story, trace, **more):
    return llm(story, CLIENT, trace=trace, **more)


def framework(story, *, at, **more):
    return llm(story, FRAMEWORK, AGENT, at=at - 0.1, seconds=1.2, **more)


def agent(story):
    return story.span("bot", {"openinference.span.kind": "AGENT", "agent.name": "bot"}, span_id=AGENT, seconds=60)


SAME = {
    "the reply's id": {"text": "yes", "reply_id": "chatcmpl-1"},
    "the calls asked for": {"calls": ["call_1", "call_2"]},
    "the text": {"text": "It is in the archive."},
}


@pytest.mark.parametrize("reply", [pytest.param(reply, id=by) for by, reply in SAME.items()])
def test_a_call_told_of_in_both_traces_counts_once_in_the_frameworks(story, reply):
    story.feed(client(story, 1, at=1, **reply))
    story.feed(framework(story, at=1, **reply))
    story.feed(agent(story))
    story.all_turns()
    assert [(turn.agent, turn.iterations, turn.usage.input) for turn in story.ended] == [("bot", 1, 10)]


@pytest.mark.parametrize(("late_s", "turns"), [(0.0007, 1), (0.0017, 2)])
def test_where_clocks_give_whole_milliseconds_a_span_may_end_up_to_one_after_the_one_round_it(story, late_s, turns):
    story.feed(client(story, 1, at=1.002, seconds=0.998 + late_s, text="yes"))
    story.feed(llm(story, FRAMEWORK, AGENT, at=1, text="yes"))
    story.feed(agent(story))
    story.all_turns()
    assert [turn.iterations for turn in story.ended] == [1] * turns


IN_JAVASCRIPT = {
    "a reply": [{"id": "chatcmpl-1", "object": "chat.completion"}],
    "a message": {"generations": [[{"message": {"lc": 1, "kwargs": {"id": "chatcmpl-1"}}}]], "llmOutput": {}},
}


@pytest.mark.parametrize("written", [pytest.param(whole, id=by) for by, whole in IN_JAVASCRIPT.items()])
def test_the_replys_id_is_found_where_instrumentations_in_javascript_put_it(written):
    attributes = {"openinference.span.kind": "LLM", "output.value": json.dumps(written, separators=(",", ":"))}
    assert response_id(attributes) == "chatcmpl-1"


@pytest.mark.parametrize("made_up", ["run-1", "lc_run--1", 7, None])
def test_an_id_that_langchain_made_up_itself_is_no_replys(made_up):
    written = {"generations": [[{"message": {"lc": 1, "kwargs": {"id": made_up}}}]], "llmOutput": {}}
    assert response_id({"openinference.span.kind": "LLM", "output.value": json.dumps(written)}) == ""


def response_id(attributes):
    span = SpanData(1, 1, name="llm", attributes=attributes, scope=CLIENT)
    return model_fact(span, span.shape.dialect).response_id


def test_what_follows_such_a_call_is_told_of_in_both_traces_as_well(story):
    first, second = {"calls": ["call_1"]}, {"answers": ["call_1"], "text": "done"}
    story.feed(client(story, 1, at=1, **first), framework(story, at=1, **first))
    story.feed(client(story, 2, at=4, **second), framework(story, at=4, **second), agent(story))
    assert (story.all_turns()["bot"].iterations, len(story.ended)) == (2, 1)


def test_calls_at_once_with_the_same_reply_are_as_many_as_the_framework_made(story):
    for trace in (1, 2, 3):
        story.feed(client(story, trace, at=1, text="yes"))
    story.feed(*(framework(story, at=1, text="yes") for _ in range(3)), agent(story))
    assert (story.all_turns()["bot"].iterations, len(story.ended)) == (3, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"text": "yes", "tokens": 11},
        {"text": "no"},
        {"text": "yes", "at": 1.5},
        {"text": "yes", "reply_id": "chatcmpl-2"},
    ],
    ids=["other tokens", "another reply", "at another time", "another reply's id"],
)
def test_a_call_of_the_applications_own_beside_it_stays_one(story, other):
    own = {"at": 1, **other}
    story.feed(client(story, 1, **own), framework(story, at=1, text="yes", reply_id="chatcmpl-1"), agent(story))
    story.all_turns()
    assert sorted(turn.iterations for turn in story.ended) == [1, 1]


def test_a_raw_clients_loop_is_one_turn_however_slow_its_tools_are(story):
    story.feed(client(story, 1, at=1, calls=["call_1"], reply_id="chatcmpl-1"))
    story.pass_time(120)
    story.feed(client(story, 2, at=121, answers=["call_1"], text="done", reply_id="chatcmpl-2"))
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (2, 1, "final_answer")


def test_a_raw_clients_loop_is_judged_while_it_runs(story):
    opened = []
    story.watch.opened = opened.append
    for number in range(6):
        answers = [f"call_{number - 1}"] if number else []
        story.feed(client(story, number + 1, at=2 * number, calls=[f"call_{number}"], answers=answers))
    assert (opened[0].iterations, opened[0].repeats, opened[1:]) == (6, 4, [])


def test_a_raw_clients_single_call_counts_when_nobody_told_of_it_again(story):
    story.feed(client(story, 1, at=1, text="yes", reply_id="chatcmpl-1"))
    story.pass_time(10.1)
    story.pass_time(1)
    assert [(turn.iterations, turn.stop_reason) for turn in story.ended] == [(1, "final_answer")]


# Whether they wait


def single_call(story, trace):
    """One call of a client that ends without tools; how many calls have been counted by then."""
    story.feed(client(story, trace, at=trace, text=f"yes {trace}", reply_id=f"chatcmpl-{trace}"))
    return sum(turn.iterations for turn in story.opened)


@pytest.fixture
def watched(story):
    story.opened = []
    story.watch.opened = story.opened.append
    return story


def test_a_single_call_counts_after_ten_seconds_at_the_latest(watched):
    assert single_call(watched, 1) == 0
    watched.pass_time(10.1)
    assert [turn.iterations for turn in watched.opened] == [1]


def test_in_a_service_of_which_nobody_told_again_calls_count_at_once(watched):
    single_call(watched, 1)
    watched.pass_time(10.1)
    assert single_call(watched, 2) == 2
    watched.all_turns()
    assert [turn.iterations for turn in watched.ended] == [1, 1]


def test_in_a_service_of_which_calls_are_told_again_they_go_on_waiting(watched):
    watched.feed(client(watched, 100, at=1, text="yes"), framework(watched, at=1, text="yes"), agent(watched))
    single_call(watched, 1)
    watched.pass_time(10.1)
    counted = single_call(watched, 2)
    assert single_call(watched, 3) == counted


def test_a_call_counted_at_once_is_not_counted_again_by_its_framework(watched):
    single_call(watched, 1)
    watched.pass_time(10.1)
    single_call(watched, 2)
    watched.feed(framework(watched, at=2, text="yes 2", reply_id="chatcmpl-2"))
    later = {"at": 3, "text": "yes 3", "reply_id": "chatcmpl-3"}
    watched.feed(client(watched, 3, **later))
    watched.feed(framework(watched, **later), agent(watched))
    assert watched.all_turns()["bot"].iterations == 1
    assert sum(turn.iterations for turn in watched.ended) == 3


@pytest.mark.parametrize("reply", [pytest.param(reply, id=by) for by, reply in SAME.items()])
def test_a_frameworks_span_that_comes_first_is_the_one_that_counts(story, reply):
    story.feed(framework(story, at=1, **reply), agent(story))
    story.feed(client(story, 1, at=1, **reply))
    story.feed(client(story, 2, at=4, text="another", reply_id="chatcmpl-9"))
    story.all_turns()
    assert sorted((turn.agent, turn.iterations) for turn in story.ended) == [("", 1), ("bot", 1)]


def test_calls_of_one_reply_that_their_framework_told_of_first_are_as_many_as_it_made(story):
    story.feed(*(framework(story, at=1, text="yes") for _ in range(2)), agent(story))
    for trace in (1, 2, 3):
        story.feed(client(story, trace, at=1, text="yes"))
    story.all_turns()
    assert sorted((turn.agent, turn.iterations) for turn in story.ended) == [("", 1), ("bot", 2)]


def test_a_framework_that_takes_over_from_raw_calls_has_its_tools_counted_once(watched):
    single_call(watched, 1)
    watched.pass_time(10.1)
    for number in range(3):
        at, answers = 20 + 4 * number, [f"call_{number - 1}"] if number else []
        reply = {"calls": [f"call_{number}"], "answers": answers, "reply_id": f"chatcmpl-{number}"}
        watched.feed(client(watched, 10 + number, at=at, **reply), framework(watched, at=at, **reply))
        watched.feed(watched.tool(AGENT, at=at + 2, call_id=f"call_{number}", scope=FRAMEWORK))
    watched.feed(agent(watched))
    watched.all_turns()
    assert sum(turn.tool_calls for turn in watched.ended) == 3
    assert sum(turn.iterations for turn in watched.ended) == 4


def test_a_second_span_inside_a_clients_own_does_not_end_its_turn(story):
    for number in range(3):
        answers = [f"call_{number - 1}"] if number else []
        reply = {"calls": [f"call_{number}"], "reply_id": f"chatcmpl-{number}"}
        own = llm(story, FRAMEWORK, trace=number + 1, at=4 * number, answers=answers, **reply)
        story.feed(own)
        inner = {"trace": number + 1, "at": 4 * number + 0.1, "seconds": 0.8, "reply_id": f"chatcmpl-{number}"}
        story.feed(llm(story, CLIENT, own.span_id, **inner))
    story.all_turns()
    assert [turn.iterations for turn in story.ended] == [3]
