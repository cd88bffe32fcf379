"""The step callbacks, with real smolagents."""

import pytest
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent
from smolagents import tool as as_tool
from smolagents.monitoring import LogLevel

import turnwatch as tw
from frameworks import stub_model
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.smolagents import TurnCallbacks

QUESTION = "Where are my orders?"


def _with_final_answer(script):
    """A smolagents model answers by calling a tool."""

    def answer(number, request):
        reply = script(number, request)
        return Reply(calls=[("final_answer", {"answer": reply.text})]) if reply.text else reply

    return answer


def _model(model):
    return OpenAIModel("gpt-4o-mini", api_base=f"{model.url}/v1", api_key="none")


def _agent(llm, tool, **options):
    @as_tool
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    return ToolCallingAgent(
        [search_orders], llm, name="support_bot", max_steps=20, verbosity_level=LogLevel.OFF, **options
    )


def _run(agent):
    return agent.run(QUESTION)


def _stream(agent):
    return list(agent.run(QUESTION, stream=True))[-1].output


WAYS = pytest.mark.parametrize("run", [_run, _stream])


@WAYS
def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, run):
    model.script = _with_final_answer(stub_model.loop)
    with pytest.raises(tw.LoopDetected) as stopped:
        run(_agent(_model(model), tool, step_callbacks=TurnCallbacks(on_loop="stop").by_step))
    assert len(tool.calls) <= 4
    assert stopped.value.partial.tool_calls == len(tool.calls)
    assert counts("agent_turns_total", agent="support_bot", stop_reason="loop_detected") == 1


@WAYS
def test_a_nudge_is_in_the_next_request(model, tool, counts, run):
    model.script = _with_final_answer(stub_model.loop_until_nudged)
    agent = _agent(_model(model), tool, step_callbacks=TurnCallbacks(on_loop="nudge").by_step)
    assert run(agent) == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]


@WAYS
def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, run):
    model.script = _with_final_answer(stub_model.healthy)
    callbacks = TurnCallbacks(on_loop="stop", limits=tw.Limits(max_usd=1.0))
    agent = _agent(_model(model), tool, step_callbacks=callbacks.by_step)
    for _ in range(2):
        model.requests.clear()
        assert run(agent) == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support_bot", tool=TOOL, outcome="ok") == 4
    assert counts("agent_model_calls_total", agent="support_bot", model="gpt-4o-mini") == 6
    assert counts("agent_tokens_total", agent="support_bot", type="input") == 6000
    assert counts("agent_turns_total", agent="support_bot", stop_reason="final_answer") == 2
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


def test_a_budget_stop_leaves_partial_results(model, tool, counts):
    model.script = _with_final_answer(stub_model.different_calls)
    callbacks = TurnCallbacks(limits=tw.Limits(max_tokens=3000))
    with pytest.raises(tw.BudgetExceeded) as stopped:
        _run(_agent(_model(model), tool, step_callbacks=callbacks.by_step))
    assert len(stopped.value.partial.results) == 3


def _asks_helper_twice(number, request):
    """The manager asks its helper two things, one after the other; each time the helper searches once."""
    replied = sum(message["role"] == "assistant" for message in request.body["messages"])
    if "a helpful agent named" in request.text:  # what smolagents tells a managed agent
        return Reply("None.") if replied else Reply(calls=[(TOOL, {"customer_id": "C-1"})])
    return Reply("None.") if replied == 2 else Reply(calls=[("helper", {"task": f"Where {replied}?"})])


def _writes_code(number, request):
    """The same for a manager that writes code."""
    if "a helpful agent named" in request.text:
        return _with_final_answer(_asks_helper_twice)(number, request)
    return Reply("Thought: ask.\n<code>\nhelper('Where?')\nfinal_answer(helper('Where now?'))\n</code>")


@pytest.fixture(params=[ToolCallingAgent, CodeAgent])
def ask_manager(request, model, tool):
    """Asks a manager of one helper, both guarded by the same callbacks."""
    model.script = _with_final_answer(_asks_helper_twice) if request.param is ToolCallingAgent else _writes_code

    def ask(limits=None):
        callbacks = TurnCallbacks(limits=limits)
        helper = _agent(_model(model), tool, step_callbacks=callbacks.by_step)
        helper.name, helper.description = "helper", "Finds orders."
        manager = request.param(
            [],
            _model(model),
            name="boss",
            managed_agents=[helper],
            step_callbacks=callbacks.by_step,
            verbosity_level=LogLevel.OFF,
        )
        callbacks.guard_managed(manager)
        return manager.run(QUESTION)

    return ask


def test_a_managed_agents_runs_are_turns_below_that_of_its_manager(ask_manager, counts, turns):
    assert "None." in ask_manager()
    assert [(turn.agent, turn.parent and turn.parent.agent) for turn in turns] == [
        ("helper", "boss"),
        ("helper", "boss"),
        ("boss", None),
    ]
    assert counts("agent_tool_calls_total", agent="helper", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="helper") == 4
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


def test_a_managed_agent_pays_from_the_budget_of_its_manager(ask_manager, model, counts):
    with pytest.raises(tw.BudgetExceeded):
        ask_manager(tw.Limits(max_tokens=3000))
    assert counts("agent_turns_total", agent="boss", stop_reason="max_turn_tokens") == 1
    assert len(model.requests) <= 5
