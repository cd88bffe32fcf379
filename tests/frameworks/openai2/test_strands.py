"""The hooks and the spans, with real Strands agents."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from strands import Agent
from strands import tool as as_tool
from strands.models.openai import OpenAIModel
from strands.telemetry import tracer

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.strands import TurnHooks

QUESTION = "Where are my orders?"


def _agent(model, tool, *hooks, stream=True):
    @as_tool
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    llm = OpenAIModel(
        client_args={"base_url": f"{model.url}/v1", "api_key": "none", "max_retries": 0},
        model_id="gpt-4o-mini",
        streaming=stream,
    )
    return Agent(name="support-bot", model=llm, tools=[search_orders], hooks=list(hooks), callback_handler=None)


async def _call(agent):
    return str(agent(QUESTION))


async def _invoke(agent):
    return str(await agent.invoke_async(QUESTION))


async def _stream(agent):
    result = None
    async for event in agent.stream_async(QUESTION):
        result = event.get("result", result)
    return str(result)


WAYS = pytest.mark.parametrize("run", [_call, _invoke, _stream])


@WAYS
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, run):
    model.script = stub_model.loop
    agent = _agent(model, tool, TurnHooks(on_loop="stop"))
    with pytest.raises(tw.LoopDetected) as stopped:
        await run(agent)
    assert len(tool.calls) <= 4
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert "Stopped: " in agent.messages[-1]["content"][0]["text"]
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
async def test_a_nudge_is_in_the_next_request_and_not_in_the_history(model, tool, counts, run):
    model.script = stub_model.loop_until_nudged
    agent = _agent(model, tool, TurnHooks(on_loop="nudge"))
    assert (await run(agent)).strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]
    assert "will not help" not in str(agent.messages)


@WAYS
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, run):
    answer = await run(_agent(model, tool, TurnHooks(on_loop="stop", limits=tw.Limits(max_usd=1.0))))
    assert answer.strip() == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0


@WAYS
async def test_a_budget_stop_leaves_partial_results(model, tool, counts, run):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped:
        await run(_agent(model, tool, TurnHooks(limits=tw.Limits(max_tokens=3000))))
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]


async def test_a_stop_can_end_with_the_message_alone(model, tool, counts):
    model.script = stub_model.different_calls
    hooks = TurnHooks(limits=tw.Limits(max_tool_calls=2), exit_behavior="end")
    assert "max_tool_calls" in await _invoke(_agent(model, tool, hooks))
    assert len(tool.calls) == 2


async def test_an_error_of_the_model_ends_the_turn(model, tool, counts):
    model.script = lambda number, request: Reply(status=400)
    with pytest.raises(Exception, match="400"):
        await _invoke(_agent(model, tool, TurnHooks()))
    assert counts("agent_model_calls_total", outcome="error") == 1
    assert counts("agent_turns_total", stop_reason="error") == 1


@WAYS
@pytest.mark.parametrize("kind", ["as_tool", "function"])
async def test_an_agent_used_as_a_tool_is_a_turn_below_and_pays_from_the_budget_of_the_one_that_asked(
    model, tool, turns, run, kind
):
    def script(number, request):
        if "You help." in request.text:
            return Reply("None.")
        return Reply("None.") if number > 1 else Reply(calls=[("helper", {"input": "Where?"})])

    model.script = script
    helper = _agent(model, tool, TurnHooks())
    helper.name, helper.system_prompt = "helper", "You help."

    @as_tool(name="helper")
    def ask_helper(input: str) -> str:
        """Ask the helper."""
        return str(helper(input))

    boss = _agent(model, tool, TurnHooks(limits=tw.Limits(max_tokens=2000)))
    boss.tool_registry.process_tools([helper.as_tool() if kind == "as_tool" else ask_helper])
    with pytest.raises(tw.BudgetExceeded):
        await run(boss)
    first, last = turns
    assert (first.agent, first.iterations, first.parent) == ("helper", 1, last)
    assert (last.agent, last.iterations, last.stop_reason) == ("support-bot", 1, "max_turn_tokens")


def test_a_tool_that_the_program_calls_itself_is_not_the_agents(model, tool, counts):
    agent = _agent(model, tool, TurnHooks(limits=tw.Limits(max_tool_calls=1)))
    for _ in range(2):
        assert agent.tool.search_orders(customer_id="C-1")["status"] == "success"
    assert tool.calls == ["C-1", "C-1"]
    assert counts("agent_tool_calls_total") == counts("turnwatch_internal_errors_total") == 0


# Spans


@pytest.fixture
def ended(counts, monkeypatch):
    """Strands writes spans to the global provider."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    monkeypatch.setattr(tracer, "_tracer_instance", None)
    processor = tw.instrument()
    return processor.shutdown


SCRIPTS = pytest.mark.parametrize(
    ("script", "tool_calls", "duplicates"), [(stub_model.healthy, 2, 0), (stub_model.loop, 12, 10)]
)


def _should_be(counts, tool_calls, duplicates):
    assert counts("agent_tool_calls_total") == tool_calls
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL) == tool_calls
    assert counts("agent_duplicate_tool_calls_total", agent="support-bot", tool=TOOL) == duplicates
    assert counts("agent_iterations_sum", agent="support-bot") == tool_calls + 1
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 1000 * (tool_calls + 1)
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 100 * (tool_calls + 1)
    assert counts("agent_turns_total") == 1
    assert counts("turnwatch_internal_errors_total") == 0


@SCRIPTS
@WAYS
async def test_spans_are_counted(model, tool, counts, ended, run, script, tool_calls, duplicates):
    model.script = script
    await run(_agent(model, tool))
    ended()
    _should_be(counts, tool_calls, duplicates)


async def test_spans_and_hooks_count_once(model, tool, counts, ended):
    await _invoke(_agent(model, tool, TurnHooks()))
    ended()
    _should_be(counts, 2, 0)
