"""The OpenAI Agents SDK in a Node process, whose spans go to ``turnwatch serve`` as OTLP protobuf over HTTP."""

import os
from pathlib import Path

import pytest

from frameworks import node, pages, stub_model
from frameworks.stub_model import TOOL, Reply

HERE = Path(__file__).parent


def agent(model, service, *arguments):
    environment = {**os.environ, "MODEL_URL": model.url, "OTLP_URL": service.otlp}
    node.run(HERE, "agent.mjs", *arguments, environment=environment)


@pytest.mark.parametrize("instrumented", ["agents", "both"])
@pytest.mark.parametrize(
    ("script", "tool_calls", "duplicates"), [(stub_model.healthy, 2, 0), (stub_model.loop, 12, 10)]
)
def test_counters_are_right(model, service, instrumented, script, tool_calls, duplicates):
    model.script = script
    agent(model, service, "alone", instrumented)
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == tool_calls
    assert service("agent_duplicate_tool_calls_total", agent="support-bot", tool=TOOL) == duplicates
    assert service("agent_iterations_sum", agent="support-bot") == tool_calls + 1
    assert service("agent_tokens_total", agent="support-bot", type="input") == 1000 * (tool_calls + 1)
    assert service("agent_tokens_total", agent="support-bot", type="output") == 100 * (tool_calls + 1)
    assert service("agent_model_calls_total") == tool_calls + 1
    assert service("turnwatch_internal_errors_total") == 0


def handed_over(number, request):
    """The first agent hands over to the second, which calls its tool once."""
    calls = {1: [("transfer_to_support_bot", {})], 2: [(TOOL, {"customer_id": "C-1"})]}
    return Reply(calls=calls[number]) if number in calls else Reply("It is on its way.")


def test_a_handoff_is_a_turn_of_each_agent_and_no_tool_call(model, service):
    model.script = handed_over
    agent(model, service, "handoff", "agents")
    service.wait_for("agent_turns_total", 2)
    assert service("agent_tool_calls_total") == service("agent_tool_calls_total", agent="support-bot", tool=TOOL) == 1
    assert service("agent_iterations_sum", agent="triage") == 1
    assert service("agent_iterations_sum", agent="support-bot") == 2


def test_the_program_on_the_page_of_docs_is_counted(model, service):
    model.script = stub_model.healthy
    assert pages.exports("javascript") == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    (program,) = pages.blocks("javascript", "Install", "js")
    surroundings = pages.surroundings(model, HERE) | {"OTEL_EXPORTER_OTLP_ENDPOINT": service.otlp}
    node.run(HERE, "--input-type=module", "--eval", program, environment=surroundings)
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert service("agent_tokens_total", agent="support-bot", type="input") == 3000
