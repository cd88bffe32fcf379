"""The capability, with real Pydantic AI agents, streamed and not, sync and async."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL
from turnwatch.guards.frameworks.pydantic_ai import TurnCapability

QUESTION = "Where are my orders?"


def _agent(model, tool, api="chat", **guarding):
    kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    provider = OpenAIProvider(base_url=f"{model.url}/v1", api_key="none")
    agent = Agent(kind("gpt-4o-mini", provider=provider), name="support-bot", capabilities=[TurnCapability(**guarding)])

    @agent.tool_plain
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    return agent


async def _run(agent):
    return (await agent.run(QUESTION)).output


async def _run_stream(agent):
    async with agent.run_stream(QUESTION) as result:
        return [text async for text in result.stream_text()][-1]


async def _iter(agent):
    async with agent.iter(QUESTION) as run:
        async for _ in run:
            pass
    return run.result.output


WAYS = pytest.mark.parametrize("run", [_run, _run_stream, _iter])


@WAYS
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, run):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected) as stopped:
        await run(_agent(model, tool, on_loop="stop"))
    assert len(tool.calls) <= 4
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert counts("agent_open_turns") == 0


@WAYS
async def test_a_nudge_is_in_the_next_request(model, tool, counts, run):
    model.script = stub_model.loop_until_nudged
    assert (await run(_agent(model, tool, on_loop="nudge"))).strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]


@WAYS
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, run, api):
    answer = await run(_agent(model, tool, api, on_loop="stop", limits=tw.Limits(max_usd=1.0)))
    assert answer.strip() == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
async def test_a_budget_stop_leaves_partial_results(model, tool, counts, run):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped:
        await run(_agent(model, tool, limits=tw.Limits(max_tokens=3000)))
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]


def test_a_loop_is_stopped_in_a_sync_run(model, tool, counts):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected):
        _agent(model, tool, on_loop="stop").run_sync(QUESTION)


async def test_the_run_says_which_conversation_it_is(model, tool, counts):
    seen = []
    agent = _agent(model, tool, goal=lambda turn: seen.append((turn.state.conversation_id, turn.answer)))
    await agent.run(QUESTION, conversation_id="c-1")
    assert seen == [("c-1", "Both orders are on their way.")]


async def test_a_sub_agent_that_a_tool_runs_pays_from_its_parents_budget(model, tool, counts):
    boss = _agent(model, tool, agent="boss", limits=tw.Limits(max_tokens=2000))
    helper = _agent(model, tool, agent="helper")

    @boss.tool_plain
    async def ask_helper(question: str) -> str:
        """Ask the helper."""
        return (await helper.run(question)).output

    model.script = lambda number, request: (
        stub_model.Reply(calls=[("ask_helper", {"question": QUESTION})]) if number == 1 else stub_model.Reply("None.")
    )
    with pytest.raises(tw.BudgetExceeded):
        await boss.run(QUESTION)
    assert counts("agent_model_calls_total", agent="boss") == counts("agent_model_calls_total", agent="helper") == 1
    assert counts("agent_turns_total", agent="helper", stop_reason="final_answer") == 1
    assert counts("agent_turns_total", agent="boss", stop_reason="max_turn_tokens") == 1
