"""What the spans of one run of a scripted agent must count up to, whatever the framework."""

import pytest

from frameworks import stub_model
from frameworks.stub_model import INPUT_TOKENS, OUTPUT_TOKENS, TOOL

HEALTHY = {"tool_calls": 2, "iterations": 3}
LOOP = {"tool_calls": 12, "iterations": 13, "duplicates": 10}
SCRIPTS = pytest.mark.parametrize(
    ("script", "truth"), [(stub_model.healthy, HEALTHY), (stub_model.loop, LOOP)], ids=["healthy", "loop"]
)


FAILS = {"tool_calls": 2, "iterations": 3, "errors": 2}
"""Of ``healthy``, with a tool that fails each time."""


def fails(customer_id: str) -> str:
    """A tool that cannot do its work."""
    raise RuntimeError(f"no connection for {customer_id}")


def spans_count(
    counts, agent, *, tool_calls, iterations, duplicates=0, errors=0, turns=1, tool=TOOL, usage=True, arguments=True
):
    """Assert that the agent's calls, and nothing else, were counted.

    Args:
        counts: What was counted.
        agent, tool: The names that the spans give them.
        tool_calls, iterations, duplicates, errors, turns: What really happened.
        usage, arguments: Whether the spans carry them.
    """
    assert counts("agent_tool_calls_total", agent=agent, tool=tool) == tool_calls
    assert counts("agent_tool_calls_total", outcome="error") == errors
    assert counts("agent_duplicate_tool_calls_total", agent=agent, tool=tool) == (duplicates if arguments else 0)
    assert counts("turnwatch_fingerprint_missing_total") == (0 if arguments else tool_calls)
    assert counts("agent_model_calls_total", agent=agent) == iterations
    assert counts("agent_iterations_sum", agent=agent) == iterations
    with_usage = iterations if usage else 0
    assert counts("agent_model_calls_without_usage_total") == iterations - with_usage
    assert counts("agent_tokens_total", agent=agent, type="input") == INPUT_TOKENS * with_usage
    assert counts("agent_tokens_total", agent=agent, type="output") == OUTPUT_TOKENS * with_usage
    assert counts("agent_turns_total") == turns
    assert counts("agent_tool_calls_total") == tool_calls
    assert counts("agent_model_calls_total") == iterations
    assert counts("turnwatch_internal_errors_total") == 0
