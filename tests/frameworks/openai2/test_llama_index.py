"""LlamaIndex agents, guarded through the client that their model is given."""

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from openai import AsyncOpenAI

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.llama_index import follow_tools


def _agent(model, tool, *, streaming, name="support-bot", tools=(), prompt=None, **guarding):
    async def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    client = tw.wrap(AsyncOpenAI(base_url=f"{model.url}/v1", api_key="none"), agent=name, **guarding)
    llm = OpenAI(
        "gpt-4o-mini",
        api_base=f"{model.url}/v1",
        api_key="none",
        async_openai_client=client,
        additional_kwargs={"stream_options": {"include_usage": True}} if streaming else {},
    )
    tools = list(tools) or [search_orders]
    return FunctionAgent(name=name, llm=llm, tools=tools, streaming=streaming, system_prompt=prompt)


STREAMING = pytest.mark.parametrize("streaming", [False, True])


@STREAMING
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, streaming):
    model.script = stub_model.loop
    with pytest.raises(Exception, match=TOOL) as failed:
        await _agent(model, tool, streaming=streaming, on_loop="stop").run("Where are my orders?", max_iterations=30)
    assert isinstance(failed.value, tw.LoopDetected) or isinstance(failed.value.__cause__, tw.LoopDetected)
    assert len(tool.calls) <= 4
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1


@STREAMING
async def test_a_nudge_is_in_the_next_request(model, tool, counts, streaming):
    model.script = stub_model.loop_until_nudged
    answer = await _agent(model, tool, streaming=streaming, on_loop="nudge").run("Where are my orders?")
    assert str(answer).strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]


@STREAMING
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, streaming):
    agent = _agent(model, tool, streaming=streaming, on_loop="stop", limits=tw.Limits(max_usd=1.0))
    assert str(await agent.run("Where are my orders?")).strip() == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1


@STREAMING
async def test_a_budget_stop_leaves_partial_results(model, tool, streaming):
    model.script = stub_model.different_calls
    agent = _agent(model, tool, streaming=streaming, limits=tw.Limits(max_tokens=3000))
    with pytest.raises(Exception, match="tokens") as failed:
        await agent.run("Where are my orders?", max_iterations=30)
    stopped = next(error for error in (failed.value, failed.value.__cause__) if isinstance(error, tw.BudgetExceeded))
    assert [result for _, result in stopped.partial.results] == [
        f"no orders of C-{number}" for number in range(1, len(tool.calls) + 1)
    ]
    assert len(model.requests) == 3


def _asks_helper_twice(number, request):
    """The boss asks its helper two things at once; each time the helper searches once."""
    replied = sum(message["role"] == "assistant" for message in request.body["messages"])
    if "You help." in request.text:
        return Reply("None.") if replied else Reply(calls=[(TOOL, {"customer_id": "C-1"})])
    return (
        Reply("None.")
        if replied
        else Reply(calls=[("ask_helper", {"question": "Where?"}), ("ask_helper", {"question": "?"})])
    )


async def _ask_boss(model, tool, streaming, limits):
    follow_tools()
    model.script = _asks_helper_twice

    async def ask_helper(question: str) -> str:
        """Ask."""
        return str(await _agent(model, tool, streaming=streaming, name="helper", prompt="You help.").run(question))

    boss = _agent(model, tool, streaming=streaming, name="boss", tools=[ask_helper], limits=limits)
    return str(await boss.run("Where are my orders?"))


@STREAMING
async def test_an_agent_that_a_tool_runs_has_turns_below_that_of_the_agent_that_asked(
    model, tool, counts, turns, streaming
):
    assert (await _ask_boss(model, tool, streaming, None)).strip() == "None."
    above = [(turn.agent, turn.parent and turn.parent.agent) for turn in turns]
    assert above == [("helper", "boss"), ("helper", "boss"), ("boss", None)]
    assert counts("agent_tool_calls_total", agent="helper", tool=TOOL, outcome="ok") == 2
    assert counts("turnwatch_internal_errors_total") == 0


@STREAMING
async def test_an_agent_that_a_tool_runs_pays_from_the_budget_of_the_agent_that_asked(model, tool, counts, streaming):
    with pytest.raises(Exception, match="max_tokens"):
        await _ask_boss(model, tool, streaming, tw.Limits(max_tokens=3000))
    assert counts("agent_model_calls_total", agent="helper") <= 3
    assert counts("agent_turns_total", agent="boss", stop_reason="max_turn_tokens") == 1
