"""The hooks, with the real Claude Agent SDK and the command line that it brings along."""

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    CLIConnectionError,
    ResultMessage,
    TextBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
    query,
)
from claude_agent_sdk import tool as as_tool

import turnwatch as tw
from frameworks import stub_model
from frameworks.openai3 import claude_cli
from frameworks.stub_model import Reply
from turnwatch.guards.frameworks.claude_agent_sdk import TurnHooks

NAME = "mcp__shop__search_orders"


def _for_the_agent(script):
    """The command line asks models for other things as well; those get a short answer."""

    def answer(number, request):
        if NAME not in [tool.get("name") for tool in request.body.get("tools") or ()]:
            return Reply("ok")
        results = sum(
            1
            for message in request.body["messages"]
            for block in message["content"]
            if isinstance(block, dict) and block.get("type") == "tool_result"
        )
        reply = script(results + 1, request)
        reply.calls = [(NAME, arguments) for _, arguments in reply.calls]
        return reply

    return answer


@pytest.fixture
def options(model, tool, tmp_path):
    @as_tool("search_orders", "Search orders", {"customer_id": str})
    async def search_orders(arguments):
        return {"content": [{"type": "text", "text": tool(**arguments)}]}

    return ClaudeAgentOptions(
        model="claude-haiku-4-5",
        mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[search_orders])},
        allowed_tools=[NAME],
        setting_sources=[],
        cwd=tmp_path,
        env=claude_cli.environment(model, tmp_path),
    )


async def _run(hooks, options, seen=None):
    answer = None
    async for message in hooks.watch(query(prompt="Where are my orders?", options=hooks.guard(options))):
        if seen is not None:
            seen.append(message)
        if isinstance(message, ResultMessage):
            answer = message.result
    return answer


async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, options):
    model.script = _for_the_agent(stub_model.healthy)
    answer = await _run(TurnHooks("support-bot", on_loop="stop", limits=tw.Limits(max_usd=1.0)), options)
    assert answer == "Both orders are on their way."
    assert tool.calls == ["C-1", "C-2"]
    assert counts("agent_tool_calls_total", agent="support-bot", tool=NAME, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="claude-haiku-4-5") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, options):
    model.script = _for_the_agent(stub_model.loop)
    seen = []
    with pytest.raises(tw.LoopDetected) as stopped:
        await _run(TurnHooks("support-bot", on_loop="stop"), options, seen)
    assert len(tool.calls) <= 4
    assert stopped.value.partial.tool_calls == len(tool.calls)
    assert isinstance(seen[-1], ResultMessage)
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1


async def test_a_nudge_is_in_the_next_request(model, tool, counts, options):
    model.script = _for_the_agent(stub_model.loop_until_nudged)
    assert await _run(TurnHooks("support-bot", on_loop="nudge"), options) == "I could not find the order."
    assert len(tool.calls) <= 4


async def test_a_limit_of_tool_calls_leaves_partial_results(model, tool, counts, options):
    model.script = _for_the_agent(stub_model.different_calls)
    with pytest.raises(tw.ToolBudgetExceeded) as stopped:
        await _run(TurnHooks("support-bot", limits=tw.Limits(max_tool_calls=2)), options)
    assert tool.calls == ["C-1", "C-2"]
    assert len(stopped.value.partial.results) == 2


async def _stream(*messages):
    for message in messages:
        yield message


def _said(message_id, *blocks, by=None):
    usage = {"input_tokens": 1000, "output_tokens": 1}
    return AssistantMessage(list(blocks), "claude-haiku-4-5", by, usage=usage, message_id=message_id, session_id="s")


def _result(output_tokens):
    usage = {"input_tokens": 2000, "output_tokens": output_tokens}
    return ResultMessage("success", 1, 1, False, 2, "s", result="Done.", usage=usage)


async def test_replies_of_sub_agents_that_come_mixed_are_counted_once_each(turns, counts):
    text, asks = TextBlock("Looking."), ToolUseBlock("t", NAME, {})
    messages = _stream(
        _said("m1", text),
        _said("m1", asks),
        _said("m2", text, by="first"),
        _said("m3", text, by="second"),
        _said("m2", asks, by="first"),
        _said("m3", asks, by="second"),
        _said("m4", text, by="first"),
        _said("m5", TextBlock("Done.")),
        _result(output_tokens=200),
    )
    assert len([message async for message in TurnHooks("boss").watch(messages)]) == 9
    (turn,) = turns
    assert (turn.iterations, turn.usage.input) == (5, 5000)
    assert turn.usage.output == 200 + 3  # of the sub-agents only what was known when they began


async def test_a_turn_ends_where_its_messages_break_off(turns, counts):
    async def broken():
        yield _said("m1", TextBlock("Looking."))
        raise CLIConnectionError("gone")

    with pytest.raises(CLIConnectionError):
        _ = [message async for message in TurnHooks("boss").watch(broken())]
    reader = TurnHooks("boss").watch(_stream(_said("m1", TextBlock("Looking.")), _result(output_tokens=200)))
    await anext(reader)
    await reader.aclose()
    _ = [message async for message in TurnHooks("boss").watch(_stream(_said("m1", TextBlock("Looking."))))]

    assert [(turn.stop_reason, turn.iterations, turn.usage.input) for turn in turns] == [
        ("error", 1, 1000),
        ("user_cancelled", 1, 1000),
        ("unknown", 1, 1000),
    ]
    assert counts("agent_open_turns") == 0


async def test_what_is_said_beside_a_tool_call_is_no_monologue(turns):
    said = [
        message
        for number in range(20)
        for message in (
            _said(f"m{number}", TextBlock("Let me look.")),
            _said(f"m{number}", ToolUseBlock(f"t{number}", NAME, {"customer_id": number})),
        )
    ]
    async for _ in TurnHooks("boss", on_loop="stop").watch(_stream(*said, _result(output_tokens=20))):
        pass
    (turn,) = turns
    assert (turn.iterations, turn.verdict, turn.stop_reason) == (20, None, "final_answer")


async def test_without_the_message_stream_the_run_just_ends(model, tool, counts, options):
    model.script = _for_the_agent(stub_model.loop)
    hooks = TurnHooks("support-bot", on_loop="stop")
    async for _ in query(prompt="Where are my orders?", options=hooks.guard(options)):
        pass
    assert len(tool.calls) <= 4
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
