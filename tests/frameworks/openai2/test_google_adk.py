"""The plugin and the spans, with the real Agent Development Kit on Gemini's API, streamed and not."""

import pytest
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.google_adk import TurnPlugin

MODEL = "gemini-2.5-flash"


def _runner(model, tool, *plugins):
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    agent = Agent(name="support_bot", model=Gemini(model=MODEL, base_url=model.url), tools=[search_orders])
    return InMemoryRunner(agent=agent, app_name="shop", plugins=list(plugins))


async def _run(runner, mode=StreamingMode.NONE):
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    question = types.Content(role="user", parts=[types.Part(text="Where are my orders?")])
    return [
        event
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=question, run_config=RunConfig(streaming_mode=mode)
        )
    ]


def _text(events):
    return "".join(part.text or "" for part in events[-1].content.parts)


MODES = pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])


@MODES
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, mode):
    model.script = stub_model.loop
    plugin = TurnPlugin(on_loop="stop")
    events = await _run(_runner(model, tool, plugin), mode)
    assert len(tool.calls) <= 4
    assert _text(events).startswith("Stopped: ")
    assert events[-1].custom_metadata["turnwatch"]["stop_reason"] == "loop_detected"
    (stopped,) = plugin.stops.values()
    assert stopped.partial.tool_calls == len(tool.calls)
    assert counts("agent_turns_total", agent="support_bot", stop_reason="loop_detected") == 1
    assert counts("turnwatch_internal_errors_total") == 0


@MODES
async def test_a_nudge_is_in_the_next_request(model, tool, counts, mode):
    model.script = stub_model.loop_until_nudged
    events = await _run(_runner(model, tool, TurnPlugin(on_loop="nudge")), mode)
    assert _text(events) == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]


@MODES
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, mode):
    plugin = TurnPlugin(on_loop="stop", limits=tw.Limits(max_usd=1.0))
    events = await _run(_runner(model, tool, plugin), mode)
    assert _text(events) == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support_bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support_bot", model=MODEL) == 3
    assert counts("agent_tokens_total", agent="support_bot", type="input") == 3000
    assert counts("agent_turns_total", agent="support_bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0
    assert not plugin.stops


async def test_a_budget_stop_leaves_partial_results(model, tool, counts):
    model.script = stub_model.different_calls
    plugin = TurnPlugin(limits=tw.Limits(max_tokens=3000))
    events = await _run(_runner(model, tool, plugin))
    assert events[-1].error_code == "max_turn_tokens"
    (stopped,) = plugin.stops.values()
    assert len(stopped.partial.results) == 3


async def test_a_tool_call_past_the_limit_is_refused(model, tool, counts):
    model.script = stub_model.different_calls
    await _run(_runner(model, tool, TurnPlugin(limits=tw.Limits(max_tool_calls=2))))
    assert len(tool.calls) == 2
    assert counts("agent_turns_total", stop_reason="max_tool_calls") == 1


async def test_an_agent_used_as_a_tool_is_a_turn_below_and_pays_from_the_budget_of_the_one_that_asked(model, turns):
    def script(number, request):
        if "You help." in request.text:
            return Reply("None.")
        return Reply("None.") if number > 1 else Reply(calls=[("helper", {"request": text}) for text in ("a", "b")])

    model.script = script
    llm = Gemini(model=MODEL, base_url=model.url)
    helper = Agent(name="helper", instruction="You help.", model=llm)
    boss = Agent(name="boss", model=llm, tools=[AgentTool(helper)])
    plugin = TurnPlugin(limits=tw.Limits(max_tokens=3000))
    events = await _run(InMemoryRunner(agent=boss, app_name="shop", plugins=[plugin]))
    assert events[-1].error_code == "max_turn_tokens"
    *helpers, last = turns
    assert [turn.agent for turn in turns] == ["helper", "helper", "boss"]
    assert all((turn.parent, turn.conversation_id) == (last, last.conversation_id) for turn in helpers)
    assert [turn.iterations for turn in turns] == [1, 1, 1]
