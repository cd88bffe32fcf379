"""The hooks, with the real OpenAI Agents SDK on both of its model classes, streamed and not."""

import pickle

import pytest
from agents import (
    Agent,
    AgentsException,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    set_trace_processors,
)
from openai import APIStatusError, AsyncOpenAI

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.openai_agents import TurnHooks, as_agents_exception

QUESTION = "Where are my orders?"


def _agent(model, tool, api):
    @function_tool
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    kind = OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel
    client = AsyncOpenAI(base_url=f"{model.url}/v1", max_retries=0)
    return Agent(
        name="support-bot",
        model=kind(model="gpt-4o-mini", openai_client=client),
        model_settings=ModelSettings(include_usage=True),
        tools=[search_orders],
    )


async def _run(agent, stream, **options):
    options.setdefault("run_config", RunConfig(tracing_disabled=True))
    if not stream:
        return (await Runner.run(agent, QUESTION, max_turns=20, **options)).final_output
    result = Runner.run_streamed(agent, QUESTION, max_turns=20, **options)
    async for _ in result.stream_events():
        pass
    return result.final_output


WAYS = pytest.mark.parametrize(
    ("api", "stream"), [("chat", False), ("chat", True), ("responses", False), ("responses", True)]
)


@WAYS
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, api, stream):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected) as stopped:
        await _run(_agent(model, tool, api), stream, hooks=TurnHooks(on_loop="stop"))
    assert len(tool.calls) <= 4
    assert isinstance(stopped.value, AgentsException)
    assert stopped.value.run_data is not None
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert counts("agent_open_turns") == 0


@WAYS
async def test_a_nudge_is_in_the_next_request(model, tool, counts, api, stream):
    model.script = stub_model.loop_until_nudged
    answer = await _run(_agent(model, tool, api), stream, hooks=TurnHooks(on_loop="nudge"))
    assert answer.strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]


@WAYS
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, api, stream):
    hooks = TurnHooks(on_loop="stop", limits=tw.Limits(max_usd=1.0))
    for _ in range(2):
        model.requests.clear()
        answer = await _run(_agent(model, tool, api), stream, hooks=hooks)
        assert answer.strip() == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 4
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 6
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 6000
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 2
    assert counts("agent_duplicate_tool_calls_total") == 0
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
async def test_a_budget_stop_leaves_partial_results(model, tool, counts, api, stream):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped:
        await _run(_agent(model, tool, api), stream, hooks=TurnHooks(limits=tw.Limits(max_tokens=3000)))
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]
    assert len(stopped.value.run_data.raw_responses) == 3


async def test_a_failed_run_ends_when_it_has_been_silent(model, tool, counts):
    model.script = lambda number, request: Reply(status=503)
    hooks = TurnHooks()
    with pytest.raises(APIStatusError):
        await _run(_agent(model, tool, "chat"), False, hooks=hooks)
    watch = tw.default_watch()
    later = watch.clock() + 3600
    watch.clock = lambda: later
    assert counts("agent_open_turns") == 0
    assert counts("agent_turns_total", stop_reason="error") == 1


async def test_runs_of_a_group_are_one_conversation(model, tool, counts):
    seen = []
    hooks = TurnHooks(goal=lambda turn: seen.append((turn.state.conversation_id, turn.answer)))
    set_trace_processors([])
    await _run(_agent(model, tool, "chat"), False, hooks=hooks, run_config=RunConfig(group_id="g-1"))
    assert seen == [("g-1", "Both orders are on their way.")]


async def test_a_limit_of_tool_calls_refuses_the_call(model, tool, counts):
    model.script = stub_model.different_calls
    with pytest.raises(tw.ToolBudgetExceeded):
        await _run(_agent(model, tool, "chat"), False, hooks=TurnHooks(limits=tw.Limits(max_tool_calls=2)))
    assert len(tool.calls) == 2
    assert counts("agent_tool_calls_total", outcome="denied") == 1


def test_a_stop_arrives_in_another_process_as_a_plain_one():
    stopped = as_agents_exception(tw.BudgetExceeded("spent", stop_reason="max_turn_tokens", partial=["row"]))
    arrived = pickle.loads(pickle.dumps(stopped))
    assert type(arrived) is tw.BudgetExceeded
    assert (str(arrived), arrived.stop_reason, arrived.partial) == ("spent", "max_turn_tokens", ["row"])


async def _ask_helper_twice(model, tool, stream, limits):
    """A boss asks its helper two things at once; each time the helper searches once."""
    hooks = TurnHooks(limits=limits)
    agent = _agent(model, tool, "chat")
    helper = agent.clone(name="helper", instructions="You help.")
    model.script = _helped
    boss = agent.clone(name="boss", tools=[helper.as_tool("ask_helper", "Ask.", hooks=hooks)])
    return await _run(boss, stream, hooks=hooks)


def _helped(number, request):
    asked = sum(message["role"] == "assistant" for message in request.body["messages"])
    if "You help." in request.text:
        return Reply("None.") if asked else Reply(calls=[(TOOL, {"customer_id": "C-1"})])
    return (
        Reply("None.") if asked else Reply(calls=[("ask_helper", {"input": "Where?"}), ("ask_helper", {"input": "?"})])
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_used_as_a_tool_has_turns_of_its_own_below_that_of_the_agent_that_asked(
    model, tool, counts, stream
):
    assert (await _ask_helper_twice(model, tool, stream, None)).strip() == "None."
    assert counts("agent_turns_total", agent="boss", stop_reason="final_answer") == 1
    assert counts("agent_turns_total", agent="helper", stop_reason="final_answer") == 2
    assert counts("agent_model_calls_total", agent="boss") == 2
    assert counts("agent_model_calls_total", agent="helper") == 4
    assert counts("agent_tool_calls_total", agent="helper", tool=TOOL, outcome="ok") == 2
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_used_as_a_tool_pays_from_the_budget_of_the_agent_that_asked(model, tool, counts, stream):
    with pytest.raises(tw.BudgetExceeded):
        await _ask_helper_twice(model, tool, stream, tw.Limits(max_tokens=4000))
    # Of 1,100 tokens each: one of the boss's own, two or three of the helper's before the fifth call is refused
    assert counts("agent_model_calls_total", agent="boss") == 1
    assert counts("agent_model_calls_total", agent="helper") <= 3
    assert counts("agent_turns_total", agent="boss", stop_reason="max_turn_tokens") == 1
