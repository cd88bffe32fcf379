"""The Vercel AI SDK in a Node process, whose spans go to ``turnwatch serve`` as OTLP JSON over HTTP."""

import os
from pathlib import Path

import pytest

from frameworks import node, pages, stub_model
from frameworks.stub_model import TOOL

HERE = Path(__file__).parent


@pytest.mark.parametrize("way", ["generate", "stream"])
@pytest.mark.parametrize(
    ("script", "tool_calls", "duplicates"), [(stub_model.healthy, 2, 0), (stub_model.loop, 12, 10)]
)
def test_counters_are_right(model, service, way, script, tool_calls, duplicates):
    model.script = script
    environment = {**os.environ, "MODEL_URL": model.url, "OTLP_URL": service.otlp}
    node.run(HERE, "agent.mjs", way, environment=environment)
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == tool_calls
    assert service("agent_duplicate_tool_calls_total", agent="support-bot", tool=TOOL) == duplicates
    assert service("agent_iterations_sum", agent="support-bot") == tool_calls + 1
    assert service("agent_tokens_total", agent="support-bot", type="input") == 1000 * (tool_calls + 1)
    assert service("agent_tokens_total", agent="support-bot", type="output") == 100 * (tool_calls + 1)
    assert service("turnwatch_internal_errors_total") == 0


def test_the_program_on_the_page_of_docs_is_counted(model, service):
    model.script = stub_model.healthy
    assert pages.exports("vercel-ai") == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    (program,) = pages.blocks("vercel-ai", "Install", "js")
    surroundings = pages.surroundings(model, HERE) | {"OTEL_EXPORTER_OTLP_ENDPOINT": service.otlp}
    node.run(HERE, "--input-type=module", "--eval", program, environment=surroundings)
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == 2
    assert service("agent_tokens_total", agent="support-bot", type="input") == 3000
