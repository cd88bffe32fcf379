"""The hooks and the spans, with real crews."""

import asyncio
import contextlib
import contextvars

import pytest
from crewai import LLM, Agent, Crew, Task
from crewai.hooks.dispatch import HookAborted, InterceptionPoint, get_hooks, register_scoped
from crewai.tools import tool as as_tool
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import turnwatch as tw
from frameworks import stub_model
from frameworks.instrumenting import instrumenting
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.crewai import TurnHooks


@pytest.fixture(autouse=True)
def no_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")


def _crew(model, tool, *, stream=False, tasks=1, wrong=None):
    @as_tool(TOOL)
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        if wrong is not None:
            raise wrong
        return tool(customer_id)

    llm = LLM(model="openai/gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none", stream=stream, max_retries=0)
    agent = Agent(role="support-bot", goal="Help.", backstory="Helps.", llm=llm, tools=[search_orders], cache=False)
    work = [Task(description="Where are my orders?", expected_output="A text.", agent=agent) for _ in range(tasks)]
    return Crew(agents=[agent], tasks=work, cache=False)


def _kickoff(crew):
    return str(crew.kickoff()).strip()


def _kickoff_in_a_thread(crew):
    return str(asyncio.run(crew.kickoff_async())).strip()


def _akickoff(crew):
    return str(asyncio.run(crew.akickoff())).strip()


WAYS = pytest.mark.parametrize("run", [_kickoff, _kickoff_in_a_thread, _akickoff])
STREAM = pytest.mark.parametrize("stream", [False, True])


@WAYS
@STREAM
def test_a_loop_is_stopped_by_the_fourth_call(model, tool, counts, run, stream):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected) as stopped, TurnHooks(on_loop="stop"):
        run(_crew(model, tool, stream=stream))
    assert len(tool.calls) <= 4
    assert stopped.value.partial.results[0] == (TOOL, "no orders of C-7841")
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
@STREAM
def test_a_nudge_is_in_the_next_request_and_not_in_the_history(model, tool, counts, run, stream):
    model.script = stub_model.loop_until_nudged
    crew = _crew(model, tool, stream=stream)
    with TurnHooks(on_loop="nudge"):
        assert run(crew) == "I could not find the order."
    assert [request.was_nudged for request in model.requests] == [False] * len(tool.calls) + [True]
    assert "will not help" not in str(crew.agents[0].agent_executor.messages)


@WAYS
@STREAM
def test_a_healthy_turn_is_untouched_and_counted(model, tool, counts, run, stream):
    with TurnHooks(on_loop="stop", limits=tw.Limits(max_usd=1.0)):
        answer = run(_crew(model, tool, stream=stream))
    assert answer == "Both orders are on their way."
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-4o-mini", outcome="ok") == 3
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 3000
    assert counts("agent_tokens_total", agent="support-bot", type="output") == 300
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_open_turns") == 0
    assert counts("turnwatch_internal_errors_total") == 0


@WAYS
def test_a_budget_stop_leaves_partial_results(model, tool, counts, run):
    model.script = stub_model.different_calls
    with pytest.raises(tw.BudgetExceeded) as stopped, TurnHooks(limits=tw.Limits(max_tokens=3000)):
        run(_crew(model, tool))
    assert [result for _, result in stopped.value.partial.results] == [
        "no orders of C-1",
        "no orders of C-2",
        "no orders of C-3",
    ]


def test_each_task_is_a_turn_of_its_own(model, tool, counts):
    model.script = lambda number, request: (
        Reply(calls=[(TOOL, stub_model.ARGUMENTS)]) if number % 2 else Reply("There are none.")
    )
    with TurnHooks(on_loop="stop"):
        _kickoff(_crew(model, tool, tasks=4))
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 4
    assert counts("agent_duplicate_tool_calls_total") == 0


def test_a_budget_around_the_block_is_shared_by_the_tasks(model, tool, counts):
    with (
        pytest.raises(tw.BudgetExceeded),
        tw.turn("support-bot", limits=tw.Limits(max_tokens=3000)),
        TurnHooks(),
    ):
        _kickoff(_crew(model, tool, tasks=2))
    assert counts("agent_turns_total", agent="support-bot") == 1


def test_what_a_coworker_does_is_a_turn_of_its_own(model, tool, counts):
    def script(number, request):
        if number == 1:
            asked = {"task": "Find them.", "context": "C-1", "coworker": "researcher"}
            return Reply(calls=[("delegate_work_to_coworker", asked)])
        return Reply("Found." if number == 2 else "Here they are.")

    model.script = script
    llm = LLM(model="openai/gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none")
    boss = Agent(role="boss", goal="Help.", backstory="Helps.", llm=llm, allow_delegation=True)
    researcher = Agent(role="researcher", goal="Find.", backstory="Finds.", llm=llm)
    task = Task(description="Where are my orders?", expected_output="A text.", agent=boss)
    with TurnHooks(on_loop="stop"):
        assert _kickoff(Crew(agents=[boss, researcher], tasks=[task])) == "Here they are."
    assert counts("agent_model_calls_total", agent="boss") == 2
    assert counts("agent_model_calls_total", agent="researcher") == 1
    assert counts("agent_turns_total", stop_reason="final_answer") == 2


def test_what_a_coworker_spends_comes_out_of_the_budget_of_the_turn_that_asked(model, tool, counts):
    asked = {"task": "Find them.", "context": "C-1", "coworker": "researcher"}
    model.script = lambda number, request: (
        Reply(calls=[("delegate_work_to_coworker", asked)]) if number == 1 else Reply("Found.")
    )
    llm = LLM(model="openai/gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none")
    boss = Agent(role="boss", goal="Help.", backstory="Helps.", llm=llm, allow_delegation=True)
    researcher = Agent(role="researcher", goal="Find.", backstory="Finds.", llm=llm)
    task = Task(description="Where are my orders?", expected_output="A text.", agent=boss)
    with pytest.raises(tw.BudgetExceeded), TurnHooks(limits=tw.Limits(max_tokens=2000)):
        _kickoff(Crew(agents=[boss, researcher], tasks=[task]))
    assert counts("agent_model_calls_total", agent="boss") == 1
    assert counts("agent_model_calls_total", agent="researcher") == 1
    assert counts("agent_turns_total", agent="boss", stop_reason="max_turn_tokens") == 1


def test_two_agents_one_after_another_have_a_budget_each(model, tool, counts):
    with TurnHooks(limits=tw.Limits(max_tokens=3500)):
        for _ in range(2):
            model.requests.clear()
            _crew(model, tool).agents[0].kickoff("Where are my orders?")
    assert counts("agent_model_calls_total") == 6
    assert counts("agent_turns_total", stop_reason="final_answer") == 2


def test_a_tool_that_another_hook_blocks_is_denied(model, tool, counts):
    model.script = lambda number, request: (
        Reply(calls=[(TOOL, stub_model.ARGUMENTS)]) if number == 1 else Reply("I may not look.")
    )

    with TurnHooks():
        register_scoped(InterceptionPoint.PRE_TOOL_CALL, lambda context: False)
        with contextlib.suppress(HookAborted):
            _kickoff(_crew(model, tool))
    assert tool.calls == []
    assert counts("agent_tool_calls_total", tool=TOOL, outcome="denied") == 1


def test_hooks_are_for_one_run_at_a_time_and_may_be_used_again(model, tool, counts):
    hooks = TurnHooks()
    with hooks, pytest.raises(RuntimeError, match="for each run"), hooks:
        pytest.fail("the block must not begin")
    with hooks:
        _kickoff(_crew(model, tool))
    assert counts("agent_turns_total", stop_reason="final_answer") == 1


def test_a_thread_that_outlives_the_block_meets_its_stop(model, tool, counts):
    model.script = stub_model.loop
    crew = _crew(model, tool)
    left_behind = []

    def run():
        left_behind.append(contextvars.copy_context())
        _kickoff(crew)

    with pytest.raises(tw.LoopDetected) as stopped, TurnHooks(on_loop="stop"):
        run()
    asked = len(model.requests)
    with pytest.raises(HookAborted) as refused:
        left_behind[0].run(_kickoff, crew)
    assert refused.value.__cause__ is stopped.value
    assert len(model.requests) == asked
    assert counts("agent_open_turns") == 0


def test_an_agent_without_a_crew_is_watched(model, tool, counts):
    model.script = stub_model.loop
    with pytest.raises(tw.LoopDetected), TurnHooks(on_loop="stop"):
        _crew(model, tool).agents[0].kickoff("Where are my orders?")
    assert len(tool.calls) <= 4
    assert counts("agent_turns_total", agent="support-bot", stop_reason="loop_detected") == 1


def test_a_tool_that_fails_is_an_error(model, tool, counts):
    with TurnHooks():
        _kickoff(_crew(model, tool, wrong=ValueError("no such customer")))
    assert counts("agent_tool_calls_total", tool=TOOL, outcome="error") == 2


def test_an_error_of_the_model_passes_and_ends_the_turn(model, tool, counts):
    model.script = lambda number, request: Reply(status=400)
    with pytest.raises(Exception, match="400"), TurnHooks():
        _kickoff(_crew(model, tool))
    assert counts("agent_model_calls_total", outcome="error") >= 1
    assert counts("agent_turns_total", stop_reason="error") == 1


def test_nothing_is_left_behind_by_the_block(model, tool, counts):
    with TurnHooks(on_loop="stop"):
        pass
    model.script = stub_model.loop
    with contextlib.suppress(Exception):  # CrewAI has a check of its own
        _kickoff(_crew(model, tool))
    assert counts("agent_tool_calls_total") == 0
    assert [get_hooks(point) for point in InterceptionPoint] == [[]] * len(InterceptionPoint)


def test_spans_are_counted(model, tool, counts, monkeypatch):
    from openinference.instrumentation.crewai import CrewAIInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    provider = TracerProvider()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    processor = tw.instrument()
    with instrumenting(provider, CrewAIInstrumentor(), OpenAIInstrumentor()):
        _kickoff(_crew(model, tool))
    processor.shutdown()
    assert counts("agent_tool_calls_total", tool=TOOL) == 2
    assert counts("agent_model_calls_total") == 3
    assert counts("agent_tokens_total", type="input") == 3000
    assert counts("agent_turns_total") == 1
    assert counts("turnwatch_internal_errors_total") == 0
