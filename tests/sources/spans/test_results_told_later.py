"""Results that the tool's own span leaves out, and that the model is told with its next call."""

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from tests.sources.spans.corpus import CountingMeter
from tests.sources.spans.story import Story

from turnwatch.core.watch import Watch
from turnwatch.sources.hand import turn as hand_turn
from turnwatch.sources.spans.answered import answered_to
from turnwatch.sources.spans.messages import asked_before
from turnwatch.sources.spans.processor import TurnSpanProcessor

AGENT = 100


@pytest.fixture
def story():
    story = Story()
    story.watch.meter = story.meter = CountingMeter()
    return story


def request(*results, **more):
    """The messages of a model call that was told these results, by call id."""
    told = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]}
        for call_id, result in results
    ]
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Find it."}]}, *told]
    return {"gen_ai.input.messages": json.dumps(messages), **more}


def rounds(story, results, first=0):
    """A model call and the tool call that it asked for, one pair for each result, which the next request tells."""
    told = []
    for number, result in enumerate(results, first):
        yield story.chat(AGENT, at=2 * number, attributes=request(*told))
        yield story.tool(AGENT, at=2 * number + 1, call_id=f"call_{number}")
        told.append((f"call_{number}", result))


def calls(story, outcome):
    return story.meter.total("agent_tool_calls_total", outcome)


def verdict_of(story):
    return story.all_turns()["bot"].verdict


def test_the_same_result_again_and_again_is_stuck(story):
    story.feed(*rounds(story, ["nothing"] * 6), story.agent(AGENT))
    verdict = verdict_of(story)
    assert (verdict.severity, verdict.mode, verdict.detected_call) == ("stuck", "full", 4)


def test_results_that_change_are_no_loop(story):
    story.feed(*rounds(story, [f"page {'abcdefgh'[number] * 40}" for number in range(6)]), story.agent(AGENT))
    verdict = verdict_of(story)
    assert verdict is None or verdict.severity == "warn"


def test_a_verdict_comes_with_the_next_request_while_the_turn_is_open(story):
    *before, model, last = rounds(story, ["nothing"] * 5)
    story.feed(*before)
    story.pass_time(40)
    (turn,) = [turn() for turn in story.watch._open.values()]
    assert turn.verdict.severity == "warn"
    story.feed(model, last, after=5)
    assert turn.verdict.severity == "stuck"


def test_a_failure_that_the_request_tells_of_is_an_error(story):
    failed = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": "no", "is_error": True}],
    }
    story.feed(
        *rounds(story, ["x"]),
        story.chat(AGENT, at=2, attributes={"gen_ai.input.messages": json.dumps([failed])}),
        story.agent(AGENT),
    )
    story.all_turns()
    assert (calls(story, "ok"), calls(story, "error")) == (0, 1)


def test_a_call_is_counted_at_the_end_of_its_turn_where_no_request_follows(story):
    story.feed(*rounds(story, ["nothing"]), story.agent(AGENT))
    assert calls(story, "ok") == 0
    story.all_turns()
    assert calls(story, "ok") == 1


def test_requests_that_tell_no_results_are_waited_for_once(story):
    plain = {"attributes": request()}
    story.feed(story.chat(AGENT, **plain), story.tool(AGENT, at=1))
    story.pass_time(40)
    story.feed(story.chat(AGENT, at=2, **plain), story.tool(AGENT, at=3, args='{"q": 2}'))
    assert calls(story, "ok") == 2


class Live:
    """The same spans in the agent's own process, inside a turn that is opened by hand."""

    def __init__(self):
        self.meter = CountingMeter()
        self.watch = Watch(meter=self.meter)
        self.processor = TurnSpanProcessor(self.watch)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self.processor)
        self.tracer = provider.get_tracer("my.instrumentation")
        self._told = []

    def run(self, rounds, result="nothing"):
        for _ in range(rounds):
            with self.tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as chat:
                chat.set_attributes(request(*self._told))
            call_id = f"call_{len(self._told)}"
            called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            with self.tracer.start_as_current_span("execute_tool search", attributes=called) as tool:
                tool.set_attributes({"gen_ai.tool.call.arguments": '{"q": 1}', "gen_ai.tool.call.id": call_id})
            self._told.append((call_id, result))


@pytest.fixture
def live():
    live = Live()
    yield live
    live.processor.shutdown()
    assert not live.meter.total("turnwatch_internal_errors_total")


def test_a_turn_opened_by_hand_hears_results_with_the_next_request_too(live):
    with hand_turn("bot", watch=live.watch) as turn, live.tracer.start_as_current_span("handler"):
        live.run(6)
        verdict = turn.verdict
    assert (verdict.severity, verdict.mode, verdict.detected_call) == ("stuck", "full", 4)


@pytest.mark.parametrize("ends_first", ["span", "turn", "process"])
def test_the_last_call_of_a_turn_opened_by_hand_is_counted_whatever_ends_first(live, ends_first):
    turn = hand_turn("bot", watch=live.watch).__enter__()
    with live.tracer.start_as_current_span("handler"):
        live.run(1)
        assert calls(live, "ok") == 0
        if ends_first == "turn":
            turn.__exit__(None, None, None)
        if ends_first == "process":
            live.processor.shutdown()
    assert calls(live, "ok") == 1
    turn.__exit__(None, None, None)
    assert (calls(live, "ok"), calls(live, "error")) == (1, 0)


def test_a_call_whose_span_has_its_result_does_not_wait(story):
    with_result = {"attributes": {"gen_ai.tool.call.result": "found"}}
    story.feed(story.chat(AGENT, attributes=request()), story.tool(AGENT, at=1, **with_result))
    story.pass_time(40)
    assert calls(story, "ok") == 1


@pytest.mark.parametrize(("apart", "severity"), [(1, "stuck"), (0.01, "warn")], ids=["one by one", "at once"])
def test_calls_inside_a_model_span_are_each_a_round_unless_they_overlap(story, apart, severity):
    """OpenInference for Google ADK writes the model's call on the agent's span."""
    told = {"attributes": {"gen_ai.tool.call.result": "nothing"}}
    story.feed(
        *(story.tool(AGENT, at=1 + number * apart, **told) for number in range(4)),
        story.chat(AGENT, seconds=30),
        story.agent(AGENT),
    )
    assert verdict_of(story).severity == severity


def test_messages_may_be_numbered_from_one():
    told = {
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.2.message.role": "assistant",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "call_1",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "search",
        "llm.input_messages.3.message.role": "tool",
        "llm.input_messages.3.message.tool_call_id": "call_1",
        "llm.input_messages.3.message.content": "nothing",
    }
    assert [(answer.call_id, answer.value) for answer in answered_to(told)] == [("call_1", "nothing")]
    assert [request.call_id for request in asked_before(told)[0]] == ["call_1"]


def test_results_are_found_in_langchains_own_messages():
    message = {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"]}
    message["kwargs"] = {"content": "nothing", "type": "tool", "tool_call_id": "call_1", "status": "error"}
    (answer,) = answered_to({"gen_ai.prompt": json.dumps({"messages": [[message]]})})
    assert (answer.call_id, answer.value, answer.failed) == ("call_1", "nothing", True)


def test_a_message_of_a_tool_that_is_text_as_any_other_is_a_result():
    messages = [{"role": "assistant", "parts": []}, {"role": "tool", "parts": [{"type": "text", "content": "nothing"}]}]
    (answer,) = answered_to({"gen_ai.input.messages": json.dumps(messages)})
    assert (answer.call_id, answer.value) == ("", [{"type": "text", "content": "nothing"}])
