"""``wrap(client)`` round OpenAI's own client, sync and async, streamed or not, on both of its APIs."""

import asyncio
import gc
import json

import pytest
from openai import APIStatusError, AsyncOpenAI, NotFoundError, OpenAI

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply

ASKED = [{"role": "user", "content": "?"}]
TOOLS = [
    {
        "type": "function",
        "function": {"name": TOOL, "parameters": {"type": "object", "properties": {"customer_id": {"type": "string"}}}},
    }
]


class Agent:
    """The loop that everybody writes."""

    def __init__(self, client, tool, *, stream=False):
        self.client = client
        self.tool = tool
        self.stream = stream

    def run(self, ask):
        messages = [{"role": "user", "content": "Where are my orders?"}]
        for _ in range(20):
            message = ask(messages)
            if not message.get("tool_calls"):
                return message["content"]
            messages.append(message)
            for call in message["tool_calls"]:
                result = self.tool(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        raise AssertionError("the loop was not stopped")

    def ask_chat(self, messages):
        reply = self.client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        return reply.choices[0].message.to_dict()

    def ask_chat_raw(self, messages):
        raw = self.client.chat.completions.with_raw_response.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        return raw.parse().choices[0].message.to_dict()

    def ask_chat_parsed(self, messages):
        reply = self.client.chat.completions.parse(model="gpt-4o-mini", messages=messages)
        return reply.choices[0].message.to_dict()

    def ask_chat_copy(self, messages):
        reply = self.client.with_options(max_retries=1).chat.completions.create(
            model="gpt-4o-mini", messages=messages, tools=TOOLS
        )
        return reply.choices[0].message.to_dict()

    def ask_chat_create_stream(self, messages):
        chunks = self.client.chat.completions.create(
            model="gpt-4o-mini", messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        return _joined(list(chunks))

    def ask_chat_stream(self, messages):
        with self.client.chat.completions.stream(
            model="gpt-4o-mini", messages=messages, tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            return stream.get_final_completion().choices[0].message.to_dict()

    def ask_responses(self, messages):
        reply = self.client.responses.create(model="gpt-4o-mini", input=_items(messages))
        return _message(reply)

    def ask_responses_stream(self, messages):
        with self.client.responses.stream(model="gpt-4o-mini", input=_items(messages)) as stream:
            stream.until_done()
            return _message(stream.get_final_response())


def _joined(chunks):
    message = {"role": "assistant", "content": "", "tool_calls": []}
    for chunk in chunks:
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                if part.id:
                    message["tool_calls"].append(
                        {"id": part.id, "type": "function", "function": {"name": part.function.name, "arguments": ""}}
                    )
                message["tool_calls"][-1]["function"]["arguments"] += part.function.arguments or ""
    if not message["tool_calls"]:
        del message["tool_calls"]
    return message


def _items(messages):
    items = []
    for message in messages:
        if message["role"] == "tool":
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": message["tool_call_id"],
                    "output": message["content"],
                }
            )
        elif message.get("tool_calls"):
            items += [
                {
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": call["function"]["arguments"],
                }
                for call in message["tool_calls"]
            ]
        else:
            items.append({"role": message["role"], "content": message["content"]})
    return items


def _message(reply):
    calls = [
        {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}
        for item in reply.output
        if item.type == "function_call"
    ]
    return {"role": "assistant", "content": reply.output_text, **({"tool_calls": calls} if calls else {})}


WAYS = [
    "ask_chat",
    "ask_chat_raw",
    "ask_chat_parsed",
    "ask_chat_copy",
    "ask_chat_create_stream",
    "ask_chat_stream",
    "ask_responses",
    "ask_responses_stream",
]


def _agent(model, tool, **guarding):
    client = OpenAI(base_url=f"{model.url}/v1", max_retries=0)
    return Agent(tw.wrap(client, agent="support-bot", **guarding), tool)


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, way):
    model.script = stub_model.loop
    agent = _agent(model, tool, on_loop="stop")
    with pytest.raises(tw.LoopDetected) as stopped:
        agent.run(getattr(agent, way))
    assert len(tool.calls) <= 4
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_guard_stops_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_nudge_is_in_the_next_request(model, tool, counts, way):
    model.script = stub_model.loop_until_nudged
    agent = _agent(model, tool, on_loop="nudge")
    answer = agent.run(getattr(agent, way))
    assert answer.strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]
    assert len(tool.calls) <= 4
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, way):
    agent = _agent(model, tool, on_loop="stop", limits=tw.Limits(max_iterations=5, max_usd=1.0))
    answer = agent.run(getattr(agent, way))
    assert answer.strip() == "Both orders are on their way."
    assert tool.calls == ["C-1", "C-2"]
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_spend_usd_total", agent="support-bot") > 0
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_iterations_sum", agent="support-bot") == 3
    assert counts("agent_duplicate_tool_calls_total") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_budget_stop_leaves_partial_results(model, tool, counts, way):
    model.script = stub_model.different_calls
    agent = _agent(model, tool, limits=tw.Limits(max_tokens=3000))
    with pytest.raises(tw.BudgetExceeded) as stopped:
        agent.run(getattr(agent, way))
    assert [result for _, result in stopped.value.partial.results] == [
        f"no orders of C-{number}" for number in range(1, len(tool.calls) + 1)
    ]
    assert stopped.value.partial.tokens == 3300
    assert len(model.requests) == 3


def test_a_tool_call_past_the_limit_is_refused_before_it_runs(model, tool, counts):
    model.script = stub_model.different_calls
    agent = _agent(model, tool, limits=tw.Limits(max_tool_calls=2))
    with pytest.raises(tw.ToolBudgetExceeded):
        agent.run(agent.ask_chat)
    assert len(tool.calls) == 2
    assert counts("agent_tool_calls_total", outcome="denied") == 1


def test_calls_count_in_the_agents_own_turn_once(model, tool, counts):
    client = tw.wrap(OpenAI(base_url=f"{model.url}/v1"))
    with tw.turn("by-hand") as turn:
        agent = Agent(client, lambda **args: turn.call_tool(TOOL, tool, **args))
        agent.run(agent.ask_chat)
        assert (turn.iterations, turn.tool_calls) == (3, 2)
    with tw.turn("by-hand") as turn:
        model.requests.clear()
        agent = Agent(client, tool)
        agent.run(agent.ask_chat)
        assert (turn.iterations, turn.tool_calls) == (3, 2)
    with tw.turn("by-hand") as turn:
        model.requests.clear()
        with turn.model_call("gpt-4o-mini") as call:
            call.usage(client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "?"}]))
        assert turn.iterations == 1
    assert counts("agent_turns_total") == 3


def test_a_failed_request_is_counted_and_passes_unchanged(model, counts):
    model.script = lambda number, request: Reply(status=503)
    client = tw.wrap(OpenAI(base_url=f"{model.url}/v1", max_retries=0), agent="support-bot")
    with pytest.raises(APIStatusError):
        client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "?"}])
    assert counts("agent_model_calls_total", outcome="error") == 1
    assert counts("agent_turns_total", stop_reason="error") == 1


def test_requests_that_are_no_model_calls_pass_untouched(model, counts):
    client = tw.wrap(OpenAI(base_url=f"{model.url}/v1", max_retries=0), limits=tw.Limits(max_iterations=0))
    with pytest.raises(NotFoundError):
        client.models.list()
    with pytest.raises(NotFoundError):
        client.embeddings.create(model="text-embedding-3-small", input="?")
    assert counts("agent_model_calls_total") == 0


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError):
        tw.wrap(object())


async def test_an_async_client_is_guarded(model, tool, counts):
    client = tw.wrap(AsyncOpenAI(base_url=f"{model.url}/v1"), agent="support-bot", on_loop="stop")
    model.script = stub_model.loop
    for stream in (False, True):
        tool.calls.clear()
        model.requests.clear()
        with pytest.raises(tw.LoopDetected):
            await _run_async(client, tool, stream=stream)
        assert len(tool.calls) <= 4
    model.script = stub_model.healthy
    model.requests.clear()
    assert (await _run_async(client, tool, stream=True)).strip() == "Both orders are on their way."
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("turnwatch_internal_errors_total") == 0


async def _run_async(client, tool, *, stream):
    messages = [{"role": "user", "content": "Where are my orders?"}]
    for _ in range(20):
        options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        reply = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS, **options)
        message = _joined([chunk async for chunk in reply]) if stream else reply.choices[0].message.to_dict()
        if not message.get("tool_calls"):
            return message["content"]
        messages.append(message)
        for call in message["tool_calls"]:
            result = tool(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise AssertionError("the loop was not stopped")


@pytest.mark.parametrize("taken", [0, 1])
def test_a_stream_that_is_thrown_away_ends_its_turn(model, counts, taken):
    model.script = lambda number, request: stub_model.Reply("There are two.")
    client = tw.wrap(OpenAI(base_url=f"{model.url}/v1"), agent="support-bot")
    with client.chat.completions.create(model="gpt-4o-mini", messages=ASKED, stream=True) as stream:
        for _ in range(taken):
            next(stream)
    del stream
    gc.collect()
    assert counts("agent_open_turns") == 0
    assert counts("agent_turns_total", agent="support-bot", stop_reason="user_cancelled") == 1
    assert counts("agent_model_calls_total", agent="support-bot") == 1


@pytest.mark.parametrize("taken", [0, 1])
async def test_an_async_stream_that_is_thrown_away_ends_its_turn(model, counts, taken):
    model.script = lambda number, request: stub_model.Reply("There are two.")
    async with tw.wrap(AsyncOpenAI(base_url=f"{model.url}/v1"), agent="support-bot") as client:
        async with await client.chat.completions.create(model="gpt-4o-mini", messages=ASKED, stream=True) as stream:
            for _ in range(taken):
                await anext(stream)
        del stream
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
    assert counts("agent_open_turns") == 0
    assert counts("agent_turns_total", agent="support-bot", stop_reason="user_cancelled") == 1
