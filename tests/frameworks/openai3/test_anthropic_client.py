"""``wrap(client)`` round Anthropic's own client, sync and async, streamed, and its tool runner."""

import json
from types import SimpleNamespace

import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL

MODEL = "claude-haiku-4-5"
TOOLS = [{"name": TOOL, "input_schema": {"type": "object", "properties": {"customer_id": {"type": "string"}}}}]
QUESTION = {"role": "user", "content": "Where are my orders?"}


def _client(model, **guarding):
    return tw.wrap(Anthropic(base_url=model.url, max_retries=0), agent="support-bot", **guarding)


def _create(client, messages):
    return client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=TOOLS)


def _stream(client, messages):
    with client.messages.stream(model=MODEL, max_tokens=500, messages=messages, tools=TOOLS) as stream:
        return stream.get_final_message()


def _events(client, messages):
    blocks = []
    for event in client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=TOOLS, stream=True):
        if event.type == "content_block_start":
            blocks.append(event.content_block)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            blocks[-1].text += event.delta.text
        elif event.type == "content_block_delta":
            blocks[-1].input = json.loads(event.delta.partial_json)
    return SimpleNamespace(content=blocks)


def _run(client, tool, ask):
    messages = [QUESTION]
    for _ in range(20):
        reply = ask(client, messages)
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            return reply.content[0].text
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": tool(**block.input)} for block in uses]
        messages.append({"role": "user", "content": results})
    raise AssertionError("the loop was not stopped")


def _run_tool_runner(client, tool, _ask):
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=500, messages=[QUESTION], tools=[beta_tool(search_orders)]
    )
    return runner.until_done().content[0].text


WAYS = pytest.mark.parametrize(
    ("run", "ask"),
    [(_run, _create), (_run, _stream), (_run, _events), (_run_tool_runner, None)],
    ids=["create", "stream", "events", "tool_runner"],
)


@WAYS
def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, run, ask):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected) as stopped:
        run(_client(model, on_loop="stop"), tool, ask)
    assert len(tool.calls) <= 4
    assert stopped.value.partial.tool_calls == len(tool.calls)
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1


@WAYS
def test_a_nudge_is_in_the_next_request(model, tool, counts, run, ask):
    model.script = stub_model.loop_until_nudged
    assert run(_client(model, on_loop="nudge"), tool, ask) == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]
    last = model.requests[-1].body["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"]


@WAYS
def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, run, ask):
    answer = run(_client(model, on_loop="stop", limits=tw.Limits(max_usd=1.0)), tool, ask)
    assert answer == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model=MODEL) == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
def test_a_budget_stop_leaves_partial_results(model, tool, counts, run, ask):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped:
        run(_client(model, limits=tw.Limits(max_usd=0.0042)), tool, ask)
    assert stopped.value.stop_reason == "max_usd"
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]


async def test_an_async_client_is_guarded(model, tool, counts):
    model.script = stub_model.loop
    client = tw.wrap(AsyncAnthropic(base_url=model.url), agent="support-bot", on_loop="stop")

    async def run(stream):
        messages = [QUESTION]
        for _ in range(20):
            if stream:
                async with client.messages.stream(
                    model=MODEL, max_tokens=500, messages=messages, tools=TOOLS
                ) as events:
                    reply = await events.get_final_message()
            else:
                reply = await client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=TOOLS)
            messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": tool(**block.input)}
                for block in reply.content
            ]
            messages.append({"role": "user", "content": results})

    for stream in (False, True):
        tool.calls.clear()
        with pytest.raises(tw.LoopDetected):
            await run(stream)
        assert len(tool.calls) <= 4
