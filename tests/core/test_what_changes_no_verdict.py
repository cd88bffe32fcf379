"""What is said of reported loops and of reported work stays the same, however the calls and results are dressed."""

import json

import pytest
from tests.core.test_reports_of_false_alarms import CASES as WORK
from tests.core.test_reports_of_loops import CASES as LOOPS

from turnwatch.core.engine import Engine
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence

CASES = {**LOOPS, **WORK}


def copy(call, **more):
    """The same call, with this instead."""
    fields = ("tool", "args", "result", "outcome", "started", "ended", "round", "agent")
    return ToolCall(**{**{name: getattr(call, name) for name in fields}, **more})


def text(call):
    return call.result._text  # kept until the call is judged


def in_blocks(call, n):
    return copy(call, result=Evidence.of([{"type": "text", "text": text(call)}]))


def in_an_envelope(call, n):
    return copy(call, result=Evidence.of(json.dumps({"content": [{"type": "text", "text": text(call)}]})))


def as_json_text(call, n):
    return copy(call, args=json.dumps(call.args, indent=n % 3 or None))


def in_another_order(call, n):
    return copy(call, args=dict(reversed(call.args.items())))


def of_a_server(call, n):
    return copy(call, tool=f"mcp__server__{call.tool}")


def with_a_longer_list(call, n):
    todos = [{"content": f"item {k}", "status": "completed" if k < n else "pending"} for k in range(n + 2)]
    return [copy(call), ToolCall("TodoWrite", {"todos": todos}, result=Evidence.of("The list has been modified."))]


def with_a_plan(call, n):
    return [copy(call), ToolCall("update_plan", {"plan": ["go on"]}, result=Evidence.of("Plan updated"))]


def with_a_thought(call, n):
    return [copy(call), ToolCall("think", {"thought": f"step {n}, so what?"}, result=Evidence.of("Logged."))]


DRESSED = (in_blocks, in_an_envelope, as_json_text, in_another_order, of_a_server)
NOTED = (with_a_longer_list, with_a_plan, with_a_thought)
NOTES = ("think", "todo_write", "TodoWrite", "update_plan", "write_todos")
WITHOUT_NOTES = {
    name: case
    for name, case in CASES.items()
    if not any(call.tool in NOTES or call.round is not None for call in case.calls)
}


def stuck_at(calls, step=1):
    """By which call the turn was stuck; None if it never was."""
    engine = Engine()
    for number, call in enumerate(calls):
        verdict = engine.observe(call)
        if verdict is not None and verdict.severity == "stuck":
            return number // step
    return None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_how_calls_and_results_are_written_makes_no_difference(case):
    plain = stuck_at(map(copy, case.calls))
    for dress in DRESSED:
        assert stuck_at(dress(call, n) for n, call in enumerate(case.calls)) == plain, dress.__name__


@pytest.mark.parametrize("case", WITHOUT_NOTES.values(), ids=WITHOUT_NOTES)
def test_notes_that_an_agent_takes_make_no_difference(case):
    plain = stuck_at(map(copy, case.calls))
    for note in NOTED:
        noted = [call for n, call in enumerate(case.calls) for call in note(call, n)]
        assert stuck_at(noted, step=2) == plain, note.__name__
