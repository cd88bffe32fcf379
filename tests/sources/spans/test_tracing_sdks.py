"""SDKs with which people put spans round functions of their own, beside spans of clients and frameworks."""

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.sources.spans.story import Story

from turnwatch.sources.spans.instrument import instrument

AGENT = 100


@pytest.fixture
def story():
    return Story()


def call_of(story):
    (turn,) = story.all_turns().values()
    return turn


# The function of a tool is decorated, and a framework's span of the call lies round it.


def tools_within(story, inner, outer='{"q": 1}', *, name="search"):
    outside = story.tool(AGENT, at=1, args=outer, seconds=1.0)
    inside = story.tool(outside.span_id, at=1.2, args=inner, name=name, seconds=0.5)
    return outside, inside


@pytest.mark.parametrize("inner", ['{"q": 1}', '{"args": [], "kwargs": {"q": 1}}', '{"q": 1, "limit": 5}'])
@pytest.mark.parametrize("order", [1, -1])
def test_a_decorated_function_inside_its_tools_span_is_one_call_though_one_sdk_wrote_both(story, inner, order):
    outside, inside = tools_within(story, inner)
    story.feed(*(inside, outside)[::order], story.agent(AGENT))
    assert story.all_turns()["bot"].tool_calls == 1


@pytest.mark.parametrize("order", [1, -1])
def test_a_tool_that_calls_itself_with_other_arguments_is_called_twice(story, order):
    outside, inside = tools_within(story, '{"q": 2}')
    story.feed(*(inside, outside)[::order], story.agent(AGENT))
    assert sum(turn.tool_calls for turn in story.all_turns().values()) == 2


def test_another_tool_inside_a_tool_is_another_call(story):
    outside, inside = tools_within(story, '{"q": 1}', name="fetch")
    story.feed(inside, outside, story.agent(AGENT))
    assert sum(turn.tool_calls for turn in story.all_turns().values()) == 2


# Neither the loop nor its model calls have a span above them, and the tools are decorated.


def asks(story, number, *arguments, **more):
    parts = [
        {"type": "tool_call", "id": f"call_{number}_{n}", "name": "search", "arguments": given}
        for n, given in enumerate(arguments)
    ]
    answered = [{"type": "tool_call_response", "id": f"call_{number - 1}_0", "result": "nothing"}] if number else []
    attributes = {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": answered}]),
    }
    return story.chat(trace=10 * number + 1, at=10 * number, attributes=attributes, **more)


def test_a_tools_span_that_is_a_trace_of_its_own_is_the_call_that_the_reply_asked_for(story):
    for number in range(3):
        story.feed(asks(story, number, {"q": 1}), story.tool(trace=10 * number + 2, at=10 * number + 2))
    story.feed(asks(story, 3))
    turn = call_of(story)
    assert (turn.tool_calls, turn.repeats, turn.iterations) == (3, 2, 4)


def test_calls_of_one_reply_are_as_many_as_there_are(story):
    story.feed(asks(story, 0, {"q": 1}, {"q": 2}, {"q": 1}))
    for number, given in enumerate(('{"q": 1}', '{"q": 2}', '{"q": 1}')):
        story.feed(story.tool(trace=50 + number, at=2 + number, args=given))
    story.feed(asks(story, 1))
    turn = call_of(story)
    assert (turn.tool_calls, turn.repeats) == (3, 1)


def test_a_tools_span_with_other_arguments_is_nobodys(story):
    story.feed(asks(story, 0, {"q": 1}), story.tool(trace=50, at=2, args='{"q": 9}'), asks(story, 1))
    story.all_turns()
    assert sorted(turn.tool_calls for turn in story.ended) == [1, 1]


def test_a_tools_span_with_an_id_is_the_call_of_that_id_though_another_session_asked_for_the_same(story):
    story.feed(asks(story, 0, {"q": 1}, {"q": 1}), asks(story, 7, {"q": 1}))
    story.feed(*(story.tool(trace=90 + number, at=72, call_id=f"call_0_{number}") for number in range(2)))
    story.all_turns()
    assert sorted((turn.tool_calls, turn.repeats) for turn in story.ended) == [(1, 0), (2, 1)]


# A wrapper's span of a call of the Anthropic SDK, which writes one as well, in a trace of its own.


@pytest.mark.parametrize("calls", [1, 3])
def test_a_first_hand_span_under_one_that_never_comes_is_the_wrappers_call(story, calls):
    for number in range(calls):
        told = {"reply_id": f"msg_{number}", "at": 2 * number}
        story.feed(story.chat(900 + number, scope="com.anthropic.sdk.python", trace=500, seconds=0.5, **told))
        story.feed(story.chat(AGENT, scope="langsmith", seconds=0.6, **told))
    story.feed(story.agent(AGENT))
    story.all_turns()
    assert [(turn.agent, turn.iterations, turn.usage.input) for turn in story.ended] == [("bot", calls, 10 * calls)]


# Attributes


def test_what_logfire_scrubbed_is_missing(story):
    scrubbed = "[Scrubbed due to 'password']"
    story.feed(*(story.tool(AGENT, at=at, args=json.dumps({"password": scrubbed})) for at in range(3)))
    story.feed(story.agent(AGENT))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (3, 0, 3)


def test_text_that_is_json_is_the_text(story):
    story.feed(
        story.span(
            "Completions",
            {
                "mlflow.spanType": '"CHAT_MODEL"',
                "mlflow.llm.model": '"gpt-4o"',
                "mlflow.chat.tokenUsage": '{"input_tokens": 3}',
            },
            AGENT,
            scope="mlflow.tracing.provider",
        ),
        story.span("bot", {"mlflow.spanType": '"AGENT"'}, span_id=AGENT, scope="mlflow.tracing.provider", seconds=9),
    )
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input, turn.unpriced_models) == (1, 3, set())


ANTHROPIC = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 7}


@pytest.mark.parametrize(
    ("counts", "given", "read"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}, 100, 40),
        ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 40}}, 100, 40),
        ({**ANTHROPIC}, 47, 30),
        ({**ANTHROPIC, "input_tokens": 47, "total_tokens": 52}, 47, 30),
        ({"input": 60, "output": 5, "input_cache_read": 40}, 100, 40),
    ],
)
def test_counts_are_read_in_the_form_of_whoever_gave_them(story, counts, given, read):
    attributes = {"langfuse.observation.type": "generation", "langfuse.observation.usage_details": json.dumps(counts)}
    story.feed(story.span("generation", attributes, AGENT, scope="langfuse-sdk"), story.agent(AGENT))
    usage = story.all_turns()["bot"].usage
    assert (usage.input, usage.output, usage.cache_read) == (given, 5, read)


# Messages in the form of whoever gave them

CALL = {"name": "search", "arguments": '{"q": 1}'}
RESULT = '["nothing"]'


FORMS = {
    "OpenAI's Chat Completions": (
        {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "call_1", "function": CALL}]}}]},
        {"messages": [{"role": "tool", "tool_call_id": "call_1", "content": RESULT}]},
    ),
    "OpenAI's Responses": (
        {"object": "response", "output": [{"type": "function_call", "call_id": "call_1", **CALL}]},
        {"input": [{"type": "function_call_output", "call_id": "call_1", "output": RESULT}]},
    ),
    "one item of OpenAI's Responses": (
        {"type": "function_call", "call_id": "call_1", **CALL},
        {"input": [{"type": "function_call_output", "call_id": "call_1", "output": RESULT}]},
    ),
    "Anthropic's Messages": (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": 1}}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": RESULT}]}
            ]
        },
    ),
    "Gemini": (
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"id": "call_1", "name": "search", "args": {"q": 1}}}]}}
            ]
        },
        {"contents": [{"parts": [{"functionResponse": {"id": "call_1", "response": RESULT}}]}]},
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [("gen_ai.prompt", "gen_ai.completion"), ("langfuse.observation.input", "langfuse.observation.output")],
)
def test_tool_calls_are_read_from_replies_and_their_results_from_what_the_model_is_told(story, form, inputs, outputs):
    reply, told = (json.dumps(message) for message in FORMS[form])
    for at in range(5):
        asked = {outputs: reply} if at < 4 else {outputs: '"nothing was found"'}
        story.feed(story.chat(AGENT, at=at, attributes={**asked, **({inputs: told} if at else {})}))
    story.feed(story.agent(AGENT))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 3, 0)
    assert (turn.verdict.severity, turn.verdict.mode) == ("stuck", "full")


# Streams


def streamed(story, at, *, failed=False, **reply):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "logfire.span_type": "span"}
    return story.span("Chat Completion", {**attributes, **reply}, AGENT, at=at, scope="logfire.openai", failed=failed)


def test_a_streamed_call_whose_reply_has_a_span_of_its_own_is_one(story):
    request = streamed(story, 1)
    told = {"gen_ai.response.id": "chatcmpl-1", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 2}
    reply = streamed(story, 3, **told, duration=1.5)
    reply.end_ns = reply.start_ns
    story.feed(request, reply, streamed(story, 5, failed=True), story.agent(AGENT))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (2, 9)


class PhoenixProvider(TracerProvider):
    """Gives up its own exporter for the first processor that is added, as that of Phoenix and Arize does."""

    def __init__(self, exporter):
        super().__init__()
        self._own = SimpleSpanProcessor(exporter)
        super().add_span_processor(self._own)

    def add_span_processor(self, span_processor, replace_default_processor=True):
        if replace_default_processor:
            self._own.shutdown()
        super().add_span_processor(span_processor)


def test_a_provider_exports_as_before_once_it_is_instrumented():
    exporter = InMemorySpanExporter()
    provider = PhoenixProvider(exporter)
    instrument(provider)
    provider.get_tracer("my.app").start_span("answer").end()
    assert [span.name for span in exporter.get_finished_spans()] == ["answer"]
    provider.shutdown()
