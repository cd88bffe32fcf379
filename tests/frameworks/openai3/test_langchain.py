"""The middleware and the callback, with real LangChain agents and LangGraph graphs."""

import asyncio
from typing import Annotated, TypedDict
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool as as_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL
from turnwatch.guards.frameworks.langchain import TurnMiddleware
from turnwatch.guards.frameworks.langchain_callback import TurnCallback

QUESTION = {"messages": [{"role": "user", "content": "Where are my orders?"}]}


def _llm(model):
    return ChatOpenAI(model="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none", max_retries=0, stream_usage=True)


def _tool(tool):
    @as_tool
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    return search_orders


def _agent(model, tool, **options):
    return create_agent(_llm(model), [_tool(tool)], middleware=[TurnMiddleware(**options)], name="support-bot")


class Graph(TypedDict):
    messages: Annotated[list, add_messages]


def _graph(model, tool):
    """A graph of one's own, which no middleware reaches."""
    llm = _llm(model).bind_tools([_tool(tool)])
    graph = StateGraph(Graph)
    graph.add_node("ask", lambda state: {"messages": [llm.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([_tool(tool)]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile(name="support-bot")


def _invoke(agent):
    return agent.invoke(QUESTION)["messages"][-1].text


def _stream(agent):
    states = list(agent.stream(QUESTION, stream_mode="values"))
    return states[-1]["messages"][-1].text


def _stream_tokens(agent):
    return "".join(
        piece.text for piece, _ in agent.stream(QUESTION, stream_mode="messages") if piece.type == "AIMessageChunk"
    )


async def _ainvoke(agent):
    return (await agent.ainvoke(QUESTION))["messages"][-1].text


async def _astream(agent):
    states = [state async for state in agent.astream(QUESTION, stream_mode="values")]
    return states[-1]["messages"][-1].text


async def _run(way, agent):
    result = way(agent)
    return await result if hasattr(result, "__await__") else result


WAYS = pytest.mark.parametrize("way", [_invoke, _stream, _stream_tokens, _ainvoke, _astream])


@WAYS
async def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, way):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected) as stopped:
        await _run(way, _agent(model, tool, on_loop="stop"))
    assert len(tool.calls) <= 4
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
async def test_a_nudge_is_in_the_next_request(model, tool, counts, way):
    model.script = stub_model.loop_until_nudged
    answer = await _run(way, _agent(model, tool, on_loop="nudge"))
    assert answer.strip() == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1


@WAYS
async def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, way):
    answer = await _run(way, _agent(model, tool, on_loop="stop", limits=tw.Limits(max_usd=1.0)))
    assert answer.strip() == "Both orders are on their way."
    assert tool.calls == ["C-1", "C-2"]
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
async def test_a_budget_stop_leaves_partial_results(model, tool, counts, way):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped:
        await _run(way, _agent(model, tool, limits=tw.Limits(max_tokens=3000)))
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]


async def test_a_stop_can_end_the_run_with_a_message(model, tool, counts):
    model.script = stub_model.loop
    agent = _agent(model, tool, on_loop="stop", exit_behavior="end")
    assert _invoke(agent).startswith("Stopped: ")
    assert (await _ainvoke(agent)).startswith("Stopped: ")
    assert counts("agent_turns_total", stop_reason="loop_detected") == 2


def test_a_tool_call_past_the_limit_is_refused_and_ends_the_run(model, tool, counts):
    model.script = stub_model.different_calls
    agent = _agent(model, tool, limits=tw.Limits(max_tool_calls=2), exit_behavior="end")
    assert "max_tool_calls" in _invoke(agent)
    assert len(tool.calls) == 2
    assert counts("agent_turns_total", stop_reason="max_tool_calls") == 1


def test_turns_of_a_thread_are_one_conversation(model, tool, counts):
    seen = []
    agent = create_agent(
        _llm(model),
        [_tool(tool)],
        middleware=[TurnMiddleware(goal=lambda turn: seen.append(turn.state.conversation_id))],
        checkpointer=InMemorySaver(),
    )
    for _ in range(2):
        model.requests.clear()
        agent.invoke(QUESTION, config={"configurable": {"thread_id": "t-1"}})
    assert seen == ["t-1", "t-1"]


def test_calls_count_in_the_agents_own_turn(model, tool, counts):
    with tw.turn("by-hand") as turn:
        _invoke(_agent(model, tool))
    assert (turn.iterations, turn.tool_calls) == (3, 2)
    assert counts("agent_turns_total") == 1


def test_a_wrapped_client_inside_does_not_count_again(model, tool, counts):
    llm = _llm(model)
    tw.wrap(llm.root_client)
    agent = create_agent(llm, [_tool(tool)], middleware=[TurnMiddleware()], name="support-bot")
    _invoke(agent)
    assert counts("agent_model_calls_total") == 3
    assert counts("agent_tool_calls_total") == 2
    assert counts("agent_turns_total") == 1


def test_an_error_of_a_tool_passes_unchanged_and_ends_the_turn(model, counts):
    class Broken(Exception):
        pass

    def fail(customer_id):
        raise Broken

    with pytest.raises(Broken):
        _invoke(_agent(model, fail))
    assert counts("agent_tool_calls_total", outcome="error") == 1
    assert counts("agent_turns_total", stop_reason="error") == 1


@WAYS
async def test_the_callback_stops_a_loop_in_any_graph(model, tool, counts, way):
    model.script = stub_model.loop
    for graph in (_graph(model, tool), create_agent(_llm(model), [_tool(tool)], name="support-bot")):
        tool.calls.clear()
        model.requests.clear()
        watched = graph.with_config(callbacks=[TurnCallback(on_loop="stop")])
        with pytest.raises(tw.LoopDetected):
            await _run(way, watched)
        assert len(tool.calls) <= 4
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 2


@WAYS
async def test_the_callback_counts_a_healthy_turn(model, tool, counts, way):
    graph = _graph(model, tool).with_config(callbacks=[TurnCallback(on_loop="stop")])
    assert (await _run(way, graph)).strip() == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0


async def test_the_callback_keeps_nothing_of_calls_that_are_cancelled(counts):
    is_asked = asyncio.Event()

    class Waiting(GenericFakeChatModel):
        async def _agenerate(self, *args, **kwargs):
            is_asked.set()
            await asyncio.Event().wait()

    callback = TurnCallback(agent="support-bot")
    llm = Waiting(messages=iter(()))
    chain = RunnableLambda(lambda question: question) | llm
    for asked in (chain, chain, llm):
        is_asked.clear()
        run = asyncio.create_task(asked.ainvoke("?", config={"callbacks": [callback]}))
        await is_asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert counts("agent_turns_total", agent="support-bot", stop_reason="user_cancelled") == 2
    assert counts("agent_model_calls_total", agent="support-bot", outcome="error") == 2
    # LangChain tells nobody that the third, which is in no chain, was cancelled.
    assert len(callback._runs) == len(callback._turns) == counts("agent_open_turns") == 1


async def test_the_callbacks_open_turns_are_bounded(counts, monkeypatch):
    monkeypatch.setattr("turnwatch.guards.frameworks.langchain_callback.MAX_TURNS", 2)
    callback = TurnCallback(agent="support-bot")
    for _ in range(5):
        callback.on_chain_start(None, {}, run_id=uuid4())
    assert len(callback._runs) == len(callback._turns) == counts("agent_open_turns") == 2
    assert counts("agent_turns_total", agent="support-bot", stop_reason="evicted") == 3


def test_the_callback_stops_at_a_budget_with_partial_results(model, tool, counts):
    model.script = stub_model.different_calls
    with pytest.raises(tw.ToolBudgetExceeded) as stopped:
        _graph(model, tool).invoke(QUESTION, config={"callbacks": [TurnCallback(limits=tw.Limits(max_tool_calls=2))]})
    assert len(tool.calls) == len(stopped.value.partial.results) == 2


def test_a_sub_agent_that_a_tool_runs_pays_from_its_parents_budget(model, tool, counts):
    llm = _llm(model)
    helper = create_agent(llm, [_tool(tool)], middleware=[TurnMiddleware(agent="helper")], name="helper")

    @as_tool
    def ask_helper(question: str) -> str:
        """Ask the helper."""
        return _invoke(helper)

    limits = tw.Limits(max_tokens=2000)
    boss = create_agent(llm, [ask_helper], middleware=[TurnMiddleware(agent="boss", limits=limits)], name="boss")
    model.script = lambda number, request: (
        stub_model.Reply(calls=[("ask_helper", {"question": "Where?"})]) if number == 1 else stub_model.Reply("None.")
    )
    with pytest.raises(tw.BudgetExceeded):
        _invoke(boss)
    assert counts("agent_model_calls_total", agent="boss") == counts("agent_model_calls_total", agent="helper") == 1
    assert counts("agent_turns_total", agent="helper", stop_reason="final_answer") == 1
