"""What the spans of one run of a scripted agent must count up to, whatever the framework."""

import pytest

from frameworks import stub_model
from frameworks.stub_model import INPUT_TOKENS, OUTPUT_TOKENS, TOOL

HEALTHY = {"tool_calls": 2, "iterations": 3}
LOOP = {"tool_calls": 12, "iterations": 13, "duplicates": 10}
SCRIPTS = pytest.mark.parametrize(
    ("script", "truth"), [(stub_model.healthy, HEALTHY), (stub_model.loop, LOOP)], ids=["healthy", "loop"]
)


def spans_count(counts, agent, *, tool_calls, iterations, duplicates=0, turns=1, tool=TOOL):
    """Assert that the agent's calls, and nothing else, were counted."""
    assert counts("agent_tool_calls_total", agent=agent, tool=tool) == tool_calls
    assert counts("agent_duplicate_tool_calls_total", agent=agent, tool=tool) == duplicates
    assert counts("agent_model_calls_total", agent=agent) == iterations
    assert counts("agent_iterations_sum", agent=agent) == iterations
    assert counts("agent_tokens_total", agent=agent, type="input") == INPUT_TOKENS * iterations
    assert counts("agent_tokens_total", agent=agent, type="output") == OUTPUT_TOKENS * iterations
    assert counts("agent_turns_total") == turns
    assert counts("agent_tool_calls_total") == tool_calls
    assert counts("agent_model_calls_total") == iterations
    assert counts("turnwatch_internal_errors_total") == 0
